// SPDX-License-Identifier: Apache-2.0
// `pointsman train` as a user meets it.
#include <sys/stat.h>

#include <algorithm>

#include "tests/catch.h"
#include "tests/host/command/sandbox.h"

using namespace pointsman;

TEST_CASE("train learns from given tours, which kicks make short") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 6 -b 40 -o set.npy").code == 0);
  const std::string solve = "solve set.npy -m tsp20 --mode greedy --improve on -f -o tours.npy --format npy";
  REQUIRE(sandbox.run(solve).code == 0);
  const std::string train =
      "train tsp -n 6 --instances set.npy --solutions tours.npy -b 8 --rollouts 1 --steps 20 -q -f -o "
      "x.safetensors";
  const Answer answer = sandbox.run(train + " --log x.jsonl");
  REQUIRE(answer.code == 0);
  CHECK(answer.parsed().at("summary").at("training_tours") == 160);
  CHECK(sandbox.read("x.jsonl").find("\"cross_entropy\":") != std::string::npos);

  CHECK(sandbox.run("train tsp -n 6 --solutions tours.npy -o y.safetensors").code == 2);
  CHECK(sandbox.run(train + " --baseline critic").code == 2);
  const Answer size =
      sandbox.run("train tsp -n 7 --instances set.npy --solutions tours.npy -f -o x.safetensors");
  CHECK(size.code == 3);
  CHECK(size.out.find("set.npy: instance 0: expected 7 items (-n), found 6") != std::string::npos);
  sandbox.write("bad.json", R"({"solutions":[{"tour":[0,1,2,3,4,4]}]})");
  CHECK(sandbox.run("train tsp -n 6 --instances set.npy --solutions bad.json -f -o x.safetensors").code == 3);

  CHECK(sandbox.run("solve set.npy --mode greedy --kicks 5").code == 2);  // nothing is improved
  REQUIRE(sandbox.run("generate tsp -n 60 -b 3 -f -o set.npy").code == 0);
  const auto cost = [&](const std::string& flags) {
    return sandbox.run("solve set.npy -m tsp20 --mode greedy --improve on " + flags)
        .parsed()
        .at("summary")
        .at("mean_cost")
        .get<double>();
  };
  const double plain = cost("");
  CHECK(cost("--kicks 500") < plain);  // n = 60: the first local optima are some 3% above the best
}

TEST_CASE("train on one's own instances draws from the file and validates on its last tenth") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 6 -b 40 -o set.npy").code == 0);
  const std::string train =
      "train tsp -n 6 --instances set.npy -b 2 --rollouts 2 --steps 3 -f -o x.safetensors";
  const Answer answer = sandbox.run(train + " --baseline ema");
  REQUIRE(answer.code == 0);
  CHECK(answer.err.find("36 instances to train on, 4 to validate") != std::string::npos);
  CHECK(sandbox.run(train + " -q").parsed().at("summary").at("training_tours") == 12);
  const Answer size = sandbox.run("train tsp -n 7 --instances set.npy -o y.safetensors");
  CHECK(size.code == 3);
  CHECK(size.out.find("set.npy: instance 0: expected 7 items (-n), found 6") != std::string::npos);
}

TEST_CASE("train makes an attention encoder with a prior, or the paper's network where told") {
  const Sandbox sandbox;
  const auto made = [&](const std::string& flags) {
    REQUIRE(sandbox.run("train tsp -n 8 --steps 1 -b 2 -f -q -o x.safetensors " + flags).code == 0);
    return sandbox.run("info x.safetensors").parsed().at("model");
  };
  const json usual = made(""), paper = made("--encoder lstm --prior off");
  CHECK(usual.at("encoder") == "attention");
  CHECK(usual.at("prior") == true);
  CHECK(usual.at("learning_rate") == 3e-4);
  CHECK(paper.at("encoder") == "lstm");
  CHECK(paper.at("prior") == false);
  CHECK(paper.at("learning_rate") == 1e-3);
  CHECK(usual.at("layers") == 3);
  CHECK(made("--layers 1").at("layers") == 1);
  const Answer refused = sandbox.run("train tsp -n 8 --encoder lstm --layers 2");
  CHECK(refused.code == 2);
  CHECK(refused.err.find("--layers: the LSTM encoder has none") != std::string::npos);
}

TEST_CASE("the attention encoder has no use for --shuffle, and solve says so once") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("train tsp -n 8 --steps 1 -b 2 -q -o x.safetensors").code == 0);
  REQUIRE(sandbox.run("generate tsp -n 8 -b 5 -o set.npy").code == 0);
  const Answer answer =
      sandbox.run("solve set.npy -m x.safetensors --mode greedy -n 16 --shuffle --batch-size 2");
  REQUIRE(answer.code == 0);
  CHECK(answer.parsed().at("summary").at("shuffle") == false);
  CHECK(answer.parsed().at("summary").at("samples") == 1);
  const size_t told = answer.err.find("--shuffle: ignored");
  REQUIRE(told != std::string::npos);
  CHECK(answer.err.find("--shuffle: ignored", told + 1) == std::string::npos);
}

TEST_CASE("train writes a model that solve finds by name") {
  const Sandbox sandbox;
  const Answer answer =
      sandbox.run("train tsp -n 8 --steps 2 -b 2 --rollouts 2 -o models/tsp8.safetensors --log log");
  REQUIRE(answer.code == 0);
  CHECK(answer.parsed().at("summary").at("steps") == 2);
  CHECK(!lines_of(sandbox.read("log")).empty());
  CHECK(sandbox.run("train tsp -n 8 --steps 2 -o models/tsp8.safetensors").code == 2);  // there already
  CHECK(sandbox.run("solve -q -n 4 -m tsp8 " + kMap).parsed().at("summary").at("model") == "tsp8");
  const json models = sandbox.run("info").parsed().at("models");
  CHECK(std::any_of(models.begin(), models.end(),
                    [](const json& model) { return model.at("name") == "tsp8"; }));
  CHECK(sandbox.run("info tsp8").parsed().at("model").at("n") == 8);
}

TEST_CASE("of two models of a size the one whose name ends in -lstm is taken only where it is alone") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 9 -b 1 -o set.npy").code == 0);
  const std::string train = "train tsp -n 9 --steps 1 -b 2 -q -o models/tsp9";
  const auto chosen = [&] {
    return sandbox.run("solve -q --mode greedy set.npy").parsed().at("summary").at("model");
  };
  REQUIRE(sandbox.run(train + "-lstm.safetensors --encoder lstm --prior off").code == 0);
  CHECK(chosen() == "tsp9-lstm");
  REQUIRE(sandbox.run(train + ".safetensors").code == 0);
  CHECK(chosen() == "tsp9");
}

TEST_CASE("train goes on from a model, with another clip where told") {
  const Sandbox sandbox;
  const std::string train = "train tsp -n 8 --steps 1 -b 2 -f -q ";
  const auto trained = [&](const std::string& flags) {
    REQUIRE(sandbox.run(train + flags + " -o x.safetensors").code == 0);
    return sandbox.run("info x.safetensors").parsed().at("model");
  };
  const json first = trained("--learning-rate 0.002");
  REQUIRE(sandbox.run(train + "--learning-rate 0.002 -o first.safetensors").code == 0);
  const json same = trained("--init first.safetensors --learning-rate 1e-7");
  const json colder = trained("--init first.safetensors --clip 31");
  CHECK(same.at("clip") == first.at("clip"));
  CHECK(colder.at("clip") == 31.0);
  CHECK(same.at("learning_rate") == 0.002);  // of the first of its trainings
  CHECK(first.at("training_tours") == 16);
  CHECK(same.at("training_tours") == 32);
  CHECK(sandbox.run(train + "--init first.safetensors --glimpses 2 -o x.safetensors").code == 2);
}

TEST_CASE("a sharpened model is the model at a lower temperature") {
  const Sandbox sandbox;
  const std::string train = "train tsp -n 8 --steps 1 -b 2 -f -q ";
  REQUIRE(sandbox.run(train + "-o first.safetensors").code == 0);
  REQUIRE(
      sandbox.run(train + "--init first.safetensors --sharpen 4 --learning-rate 1e-9 -o sharp.safetensors")
          .code == 0);
  CHECK(sandbox.run("info sharp.safetensors").parsed().at("model").at("clip") == 40.0);
  REQUIRE(sandbox.run("generate tsp -n 8 -b 5 -o set.npy").code == 0);
  REQUIRE(sandbox.run("solve set.npy -m ./first.safetensors --mode greedy -o tours.npy").code == 0);
  const auto scores = [&](const std::string& flags) {
    return sandbox.run("score set.npy --solutions tours.npy " + flags).parsed().at("solutions");
  };
  const json sharp = scores("-m ./sharp.safetensors"),
             cold = scores("-m ./first.safetensors --temperature 0.25");
  const json warm = scores("-m ./first.safetensors");
  for (size_t i = 0; i < 5; ++i) {
    // Adam's one step moves a weight by 1e-9; log p of a step is then off by some 1e-6.
    CHECK(sharp[i].at("log_prob").get<double>() == Approx(cold[i].at("log_prob").get<double>()).margin(1e-4));
    CHECK(sharp[i].at("log_prob").get<double>() > warm[i].at("log_prob").get<double>());
  }
  CHECK(sandbox.run(train + "--sharpen 2 -o x.safetensors").code == 2);
}

TEST_CASE("one network that re-reads learns from tours of several sizes, and solves them all") {
  const Sandbox sandbox;
  std::string set, tours;
  for (const char* n : {"8", "12", "30"}) {
    const std::string size = n;
    REQUIRE(sandbox.run("generate tsp -n " + size + " -b 20 --format ndjson -o " + size + ".ndjson").code ==
            0);
    set += sandbox.read(size + ".ndjson");
  }
  sandbox.write("set.ndjson", set);
  REQUIRE(sandbox.run("solve set.ndjson --mode local --format ndjson -o tours.ndjson").code == 0);
  REQUIRE(sandbox.run("train tsp -n 9 --steps 1 -b 2 -q -o once.safetensors").code == 0);
  const std::string train = "train tsp -n 9 -b 4 -f -q ",
                    given = "--rollouts 1 --instances set.ndjson --solutions tours.ndjson ";
  REQUIRE(sandbox.run(train + "--reread 4 " + given + "--steps 2 --init once.safetensors -o any.safetensors")
              .code == 0);
  CHECK(sandbox.run("info any.safetensors").parsed().at("model").at("reread") == 4);
  REQUIRE(sandbox
              .run(train + "--reread 4 " + given +
                   "--steps 1 --learning-rate 1e-9 --init once.safetensors -o begun.safetensors")
              .code == 0);
  const Model once = read_model(sandbox.path("once.safetensors")),
              begun = read_model(sandbox.path("begun.safetensors"));
  const ParameterLayout from(once.config), to(begun.config);
  for (size_t i = 0; i < 1024; ++i) {  // the embedding [128, 8], of [128, 2]
    const float known = i % 8 < 2 ? once.parameters[i / 8 * 2 + i % 8] : 0.0f;
    CHECK(begun.parameters[i] == Approx(known).margin(1e-8));
  }
  for (size_t i = 0; i < 128; ++i)
    CHECK(begun.parameters[to.query + i] == Approx(once.parameters[from.query + i]).margin(1e-8));
  CHECK(begun.parameters[to.prior] == Approx(once.parameters[from.prior] / 3.0f).margin(1e-5));  // n = 9
  CHECK(!sandbox.run("info once.safetensors").parsed().at("model").contains("reread"));
  const json solved = sandbox.run("solve set.ndjson -m ./any.safetensors --mode greedy --augment 8").parsed();
  CHECK(solved.at("solutions").size() == 60);
  // One of the program's own choice reads an instance once, and one that was named serves all sizes.
  REQUIRE(sandbox.run("train tsp -n 30 " + given + "--reread 4 -b 4 -q --steps 1 -o models/a30.safetensors")
              .code == 0);
  const auto model_of = [&](const std::string& flags) {
    return sandbox.run("solve 30.ndjson --mode greedy " + flags)
        .parsed()
        .at("summary")
        .at("groups")[0]
        .at("model");
  };
  CHECK(model_of("") == "tsp20");
  CHECK(model_of("-m a30") == "a30");
  sandbox.run("generate tsp -n 70 -b 1 -o 70.npy");
  const json summary = sandbox.run("solve 70.npy -m a30 --temperature 1 -n 8").parsed().at("summary");
  CHECK(summary.at("groups")[0].at("model") == "a30");
  // Further training keeps what the model is.
  REQUIRE(sandbox.run(train + given + "--steps 1 --init any.safetensors -o more.safetensors").code == 0);
  CHECK(sandbox.run("info more.safetensors").parsed().at("model").at("reread") == 4);
  const auto refused = [&](const std::string& flags, const char* words) {
    const auto run = sandbox.run(flags);
    CHECK(run.code == 2);
    CHECK_THAT(run.err, has_text(words));
  };
  refused(train + "--reread 4", "--reread: learns from --solutions");
  refused(train + "--init any.safetensors", "--reread: learns from --solutions");
  refused(train + "--reread 4 --encoder lstm " + given, "--reread: is for the attention encoder and tsp");
  REQUIRE(sandbox.run("train cvrp -n 9 --steps 1 -b 2 -q -o routes.safetensors").code == 0);
  for (const char* other :
       {"path -n 9", "knapsack -n 50 --init knapsack50", "cvrp -n 9 --init routes.safetensors"})
    refused(std::string("train ") + other + " --reread 4", "--reread: is for the attention encoder and tsp");
  refused(train + "--reread 0 --init any.safetensors", "any.safetensors re-reads");
  refused(train + "--reread 4 --precision bf16 " + given, "runs on the CPU, in fp32");
  refused("solve set.ndjson -m ./any.safetensors --mode active --steps 1", "reads an instance once");
  CHECK(sandbox.run(train + given).code == 3);  // without --reread the instances have size -n
}

TEST_CASE("train starts from a model of another problem whose network reads the same numbers") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("train tsp -n 8 --steps 1 -b 2 -q -o tour.safetensors").code == 0);
  REQUIRE(sandbox.run("train path -n 8 --steps 1 -b 2 -q --init tour.safetensors -o path.safetensors").code ==
          0);
  const json model = sandbox.run("info path.safetensors").parsed().at("model");
  CHECK(model.at("problem") == "path");
  CHECK(model.at("training_tours") == 32);
  for (const char* other : {"cvrp -n 9", "knapsack -n 8"}) {
    const auto refused =
        sandbox.run(std::string("train ") + other + " --init tour.safetensors -o x.safetensors");
    CHECK(refused.code == 2);
    CHECK(refused.err.find("is a model for tsp") != std::string::npos);
  }
}

TEST_CASE("train refuses what means nothing with windows") {
  const Sandbox sandbox;
  for (const auto& [options, said] :
       {std::pair("train tsp -n 8 --penalty 2", "--penalty: is for tsptw"),
        {"train tsp -n 8 --infeasible mask", "--infeasible: is for tsptw"},
        {"train tsptw -n 8 --infeasible mask --penalty 2", "--penalty: goes with neither"},
        {"train tsptw -n 8 --infeasible mask --baseline ema",
         "--infeasible mask: goes with --baseline shared"},
        {"train tsptw -n 8 --asynchronous", "--asynchronous: is not for tsptw"},
        {"train tsptw -n 201", "-n: expected at most 200 places"}}) {
    const Answer refused = sandbox.run(options);
    INFO(options << ": " << refused.err);
    CHECK(refused.code == 2);
    CHECK(refused.err.find(said) != std::string::npos);
  }
}

TEST_CASE("train goes on with the glimpses of a model") {
  const Sandbox sandbox;
  const std::string train = "train tsp -n 8 --steps 1 -b 2 -q ";
  REQUIRE(sandbox.run(train + "--glimpses 2 -o two.safetensors").code == 0);
  REQUIRE(sandbox.run(train + "--init two.safetensors -o more.safetensors").code == 0);
  CHECK(sandbox.run("info more.safetensors").parsed().at("model").at("glimpses") == 2);
}

TEST_CASE("train refuses before its first step what it could not write after its last") {
  const Sandbox sandbox;
  sandbox.write("there", "precious");
  REQUIRE(sandbox.run("generate tsp -n 8 -b 1 -o folder/set.npy").code == 4);  // makes no folder
  REQUIRE(mkfifo(sandbox.path("fifo").c_str(), 0600) == 0);
  const std::string train = "train tsp -n 8 --steps 100000 -l 5 -q ";
  const std::pair<const char*, int> cases[] = {{"-o there", 2},
                                               {"-o models -f", 2},
                                               {"-o fifo -f", 2},
                                               {"-o none/x.safetensors", 4},
                                               {"-o x --checkpoint there", 2},
                                               {"-o x --checkpoint models -f", 2},
                                               {"-o x --checkpoint fifo", 2},
                                               {"-o x --checkpoint none/x", 4},
                                               {"-o x --checkpoint ./x", 2},
                                               {"-o x --log there", 2},
                                               {"-o x --log models -f", 2},
                                               {"-o x --log fifo", 2},
                                               {"-o x --log none/x", 4},
                                               {"-o x --log models/../x", 2},
                                               {"-o x --checkpoint y --log y", 2}};
  for (const auto& [files, code] : cases) {
    CAPTURE(files);
    CHECK(sandbox.run(train + files).code == code);
  }
  CHECK(sandbox.read("there") == "precious");
  CHECK(!sandbox.exists("x"));
  CHECK(sandbox.run("train tsp -n 8 --steps 1 -b 2 -q -o x --log /dev/null").code == 0);
}

TEST_CASE("a checkpoint that is none is bad input") {
  const Sandbox sandbox;
  sandbox.write("junk.ckpt", "not a checkpoint");
  const Answer answer = sandbox.run("train tsp -n 8 --steps 1 -b 2 -q -o x.safetensors --resume junk.ckpt");
  CHECK(answer.code == 3);
  CHECK(answer.parsed().at("code") == 3);
}
