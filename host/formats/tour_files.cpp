// SPDX-License-Identifier: Apache-2.0
// Tours and routes as text: TSPLIB's TOUR_SECTION, Concorde's .sol ("n", then n cities from 0), linkern's
// .cyc
// ("n n", then edges "a b length"), plain lists, a CSV column of them, lines "x y .. output tour", and
// CVRPLIB's routes.
#include <cmath>
#include <limits>
#include <unordered_map>

#include "host/formats/formats.h"
#include "host/formats/tsplib_file.h"

namespace pointsman {
namespace {

struct Word {
  std::string_view text;
  int64_t line;
};
using Words = std::vector<Word>;

[[noreturn]] void fail_at(const std::string& file, int64_t line, const std::string& message) {
  throw InputError(file, line, message);
}

// The words of a text from its line `before` + 1 on, which commas, semicolons and quotes separate like
// blanks; only the last of each line where `is_table`.
Words words_of(std::string_view text, const std::string& file, int64_t before, bool is_table = false) {
  const auto is_between = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == ',' || c == ';' || c == '"';
  };
  Words words;
  TextReader lines(text, file, before);
  for (std::string_view line; lines.next_row(line);) {
    const size_t count = words.size();
    for (auto begin = line.begin();;) {
      begin = std::find_if_not(begin, line.end(), is_between);
      const auto end = std::find_if(begin, line.end(), is_between);
      if (begin == end) break;
      if (is_table) words.resize(count);
      words.push_back({{begin, end}, lines.number()});
      begin = end;
    }
  }
  return words;
}

bool has_zero(const Words& words) {
  return std::ranges::any_of(words, [](const Word& word) { return word.text == "0"; });
}

// The cities: by their names where the instance has names, the file may use them and every word is one; else
// by their places, from 0 if that occurs, else from 1. Throws InputError.
std::vector<int32_t> cities_of(const Words& words, const Instance& instance, bool may_be_names,
                               const std::string& file) {
  std::unordered_map<std::string_view, int32_t> numbers;
  for (int city = 0; may_be_names && instance.names && city < instance.n(); ++city)
    numbers.emplace((*instance.names)[city], city);
  const bool are_ids = !numbers.empty() && std::cmp_equal(numbers.size(), instance.n());  // each another
  const bool has_names = are_ids && std::ranges::all_of(words, [&](const Word& word) {
                           return numbers.contains(printable(word.text));
                         });
  const int first = has_zero(words) ? 0 : 1;
  std::vector<int32_t> cities;
  for (const Word& word : words) {
    int64_t number = 0;
    const bool is_city =
        has_names || (parse_integer(word.text, number) && number >= first && number - first < instance.n());
    if (!is_city)
      fail_at(file, word.line,
              "expected a city's id from " + std::to_string(first) + " to " +
                  std::to_string(instance.n() - 1 + first) + ", found " + shown(word.text));
    cities.push_back(has_names ? numbers.at(printable(word.text)) : static_cast<int32_t>(number - first));
  }
  return cities;
}

// A list of all cities; a round trip may end with its first city again.
Solution read_list(Words words, const Instance& instance, const std::string& file, int64_t line,
                   bool may_be_names = true) {
  const auto n = static_cast<size_t>(instance.n());
  const bool is_closed = n > 1 && words.size() == n + 1 && words.front().text == words.back().text;
  if (is_closed && !is_open(instance.problem)) words.pop_back();
  if (words.size() != n)
    fail_at(file, words.empty() ? line : words.back().line,
            "expected n = " + std::to_string(n) + " ids, found " + std::to_string(words.size()));
  Solution solution;
  solution.objective = kNoNumber;
  solution.order = cities_of(words, instance, may_be_names, file);
  std::vector<int64_t> line_of(n, 0);
  for (size_t i = 0; i < n; ++i) {
    int64_t& other = line_of[solution.order[i]];
    if (other != 0)
      fail_at(file, words[i].line,
              "expected each city once, found " + printable(words[i].text) + " as in line " +
                  std::to_string(other));
    other = words[i].line;
  }
  return solution;
}

// Tours until -1 each; of one instance the shortest counts.
SolutionBatch read_tour_section(std::string_view text, const InstanceBatch& instances,
                                const std::string& name) {
  const TsplibFile file = split_tsplib(text, name);
  const TsplibFile::Section* const section = file.find("TOUR_SECTION");
  if (!section) fail_at(name, file.last_line, "expected TOUR_SECTION, found none");
  SolutionBatch tours;
  Words words;
  const auto add = [&] {
    const Instance& instance = instances[std::min(tours.size(), instances.size() - 1)];
    tours.push_back(read_list(std::move(words), instance, name, section->line));
    words.clear();
  };
  bool is_ended = false;
  for (const Word& word : words_of(section->rows, name, section->line)) {
    const bool is_end = word.text == "EOF";  // behind the last tour, on its line
    is_ended = is_end || word.text == "-1";
    if (is_end) break;
    if (!is_ended) {
      words.push_back(word);
    } else if (!words.empty() || tours.empty()) {
      add();
    }
  }
  if (!words.empty() || tours.empty()) add();
  if (!is_ended && !file.has_end)
    fail_at(name, file.last_line, "TOUR_SECTION: expected -1 at its end, found the end of the file");
  for (const TsplibFile::Keyword& keyword : file.keywords) {
    if (keyword.key == "DIMENSION" && keyword.value != std::to_string(instances[0].n()))
      fail_at(
          name, keyword.line,
          "DIMENSION: expected n = " + std::to_string(instances[0].n()) + ", found " + shown(keyword.value));
  }
  if (instances.size() > 1 || tours.size() == 1) return tours;
  for (size_t i = 0; i < tours.size(); ++i) {
    if (const std::string wrong = validate_solution(instances[0], tours[i]); !wrong.empty())
      fail_at(name, section->line, "tour " + std::to_string(i) + ": " + wrong);
  }
  return {*std::ranges::min_element(tours, {}, &Solution::objective)};
}

// linkern's edges, each with its length.
Solution read_edges(const Words& words, const Instance& instance, const std::string& file) {
  const auto n = static_cast<size_t>(instance.n());
  std::vector<std::vector<int32_t>> others(n);
  Words ends;
  for (size_t i = 2; i < words.size(); i += 3) ends.insert(ends.end(), {words[i], words[i + 1]});
  const std::vector<int32_t> cities = cities_of(ends, instance, false, file);
  for (size_t i = 0; i < cities.size(); i += 2) {
    for (const auto& [from, to] :
         {std::pair(cities[i], cities[i + 1]), std::pair(cities[i + 1], cities[i])}) {
      if (others[from].size() == 2)
        fail_at(file, ends[i].line,
                "expected two edges at each city, found a third at " + std::to_string(from));
      others[from].push_back(to);
    }
  }
  Solution solution;
  solution.objective = kNoNumber;
  int32_t before = -1, city = 0;
  do {
    solution.order.push_back(city);
    const int32_t next = others[city][others[city][0] == before ? 1 : 0];
    before = std::exchange(city, next);
  } while (city != 0 && solution.order.size() < n);
  if (city != 0 || solution.order.size() != n)
    fail_at(file, 1,
            "expected one tour of all cities, found a cycle of " + std::to_string(solution.order.size()));
  return solution;
}

// Whether the first line names columns, of which the last holds the tour.
bool has_header(std::string_view line, const Instance& instance) {
  const Words words = words_of(line, "", 0);
  if (words.empty() || !is_letter(words[0].text.front())) return false;
  return !instance.names ||
         std::ranges::find(*instance.names, printable(words[0].text)) == instance.names->end();
}

// A file of numbers, or of one column.
SolutionBatch read_numbers(std::string_view text, const InstanceBatch& instances, const std::string& file) {
  TextReader lines(text, file);
  std::string_view line;
  if (!lines.next_row(line)) throw InputError(file, 0, "expected a tour, found an empty file");
  if (has_header(line, instances[0]))
    return {read_list(words_of(lines.rest(), file, lines.number(), true), instances[0], file, 1)};
  if (instances.size() > 1) {
    SolutionBatch tours;
    do {
      if (tours.size() == instances.size())
        lines.fail("expected " + solutions_wanted(instances) + ", a line for each, found another line");
      tours.push_back(
          read_list(words_of(line, file, lines.number() - 1), instances[tours.size()], file, lines.number()));
    } while (lines.next_row(line));
    return tours;
  }
  const std::string n = std::to_string(instances[0].n());
  Words words = words_of(text, file, 0);
  std::array<std::string_view, 3> head;
  const size_t width = split_words(line, head);
  if (width == 2 && head[0] == n && head[1] == n &&
      words.size() == 3 * static_cast<size_t>(instances[0].n()) + 2)
    return {read_edges(words, instances[0], file)};
  const bool is_concorde = width == 1 && head[0] == n && words.back().text != n && has_zero(words);
  if (is_concorde) words.erase(words.begin());
  return {read_list(std::move(words), instances[0], file, 1, !is_concorde)};
}

// Lines "x y x y .. output 1 2 .. 1", whose cities count from 1.
SolutionBatch read_line_tours(std::string_view text, const InstanceBatch& instances,
                              const std::string& file) {
  SolutionBatch tours;
  TextReader lines(text, file);
  for (std::string_view line; lines.next_row(line);) {
    if (tours.size() == instances.size())
      lines.fail("expected " + solutions_wanted(instances) + ", found another line");
    const size_t output = line.find(kOutputWord);
    if (output == std::string_view::npos)
      lines.fail("expected \"x y .. output tour\", found " + shown(trim(line)));
    tours.push_back(read_list(words_of(line.substr(output + kOutputWord.size()), file, lines.number() - 1),
                              instances[tours.size()], file, lines.number()));
  }
  return tours;
}

}  // namespace

SolutionBatch parse_tour(InputFile& file, const InstanceBatch& instances) {
  const std::string_view text = file.read_rest();
  std::string_view line;
  LineScanner(text).next_filled(line);
  line = trim(line);
  const Problem& problem = problem_of(instances[0]);
  if (!holds_tours(problem))
    throw InputError(file.name(), 0,
                     std::string("expected a TSP to this tour, found a ") + problem.title +
                         "; use JSON, NDJSON, .npy or .npz");
  const bool has_tsplib_key = line.find(':') != std::string_view::npos || begins_tsplib(line) ||
                              upper_case(line).starts_with("TOUR_SECTION");
  SolutionBatch tours = line.find(kOutputWord) != std::string_view::npos
                            ? read_line_tours(text, instances, file.name())
                        : has_tsplib_key ? read_tour_section(text, instances, file.name())
                                         : read_numbers(text, instances, file.name());
  check_count(tours.size(), instances, file.name());
  return tours;
}

// The instances of such lines, whose tours parse_tour() reads.
InstanceFile parse_tour_lines(InputFile& file, const ReadOptions& options) {
  InstanceFile out;
  TextReader lines(file.read_rest(), file.name());
  for (std::string_view line; lines.next_row(line);) {
    Instance& instance = out.instances.emplace_back();
    instance.problem = problem_with(ItemFields::kCoordinates, options);
    std::string_view places = line.substr(0, std::min(line.find(kOutputWord), line.size()));
    for (std::string_view word; !(word = take_word(places)).empty();) {
      if (double& number = instance.values.emplace_back();
          !parse_number(word, number) || std::fabs(number) > kLargestNumber)
        lines.fail("expected coordinates within +-1e100, found " + shown(word));
    }
    if (instance.values.empty() || instance.values.size() % 2 != 0)
      lines.fail("expected \"x y .. output tour\", pairs of coordinates; found " +
                 std::to_string(instance.values.size()) + " numbers");
  }
  if (out.instances.empty())
    throw InputError(file.name(), 0, "expected lines \"x y .. output tour\", found none");
  return out;
}

// Writes what LKH writes: cities by their ids, from 1 unless the instance names them, a tour in its canonical
// order.
std::string write_tour(const Answer& answer) {
  const Problem& problem = problem_of(answer.instances[0]);
  if (answer.solutions.size() != 1 || !holds_tours(problem))
    throw OutputRefused("a .tour file holds one TSP tour; use json, ndjson, npy or npz");
  const Instance& instance = answer.instances[0];
  const Solution& solution = answer.solutions[0];
  if (!has_answer(solution))
    throw OutputRefused(solution.status == Status::kUnsolved ? "no tour was found before the run was stopped"
                                                             : "every tour found takes a forbidden way");
  const std::string cost = objective_text(instance, solution.objective);
  std::string out =
      "NAME : " + printable(instance.id.empty() ? "tour" : instance.id) + "." + cost +
      ".tour\nCOMMENT : Length = " + cost + "\nCOMMENT : Found by pointsman " + answer.summary.version +
      "\nTYPE : TOUR\nDIMENSION : " + std::to_string(solution.order.size()) + "\nTOUR_SECTION\n";
  const bool has_ends = is_open(instance.problem);
  const bool is_placed = has_ends || instance.first_city >= 0;
  const std::vector<std::string>* const names = names_as_ids(instance);
  for (const int32_t city : is_placed ? solution.order : problem.canonical(solution.order))
    out += (names ? (*names)[city] : std::to_string(city + 1)) + "\n";
  return out + "-1\nEOF\n";
}

// "Route #1: 3 2", customers from 1, and "Cost 12".
SolutionBatch parse_routes(InputFile& file, const InstanceBatch& instances) {
  check_count(1, instances, file.name());
  if (!problem_of(instances[0]).has_depot)
    throw InputError(
        file.name(), 0,
        "expected a CVRP to these routes, found a " + std::string(problem_of(instances[0]).title));
  TextReader lines(file.read_rest(), file.name());
  Solution solution;
  solution.objective = kNoNumber;
  for (std::string_view line; lines.next_row(line);) {
    const std::string_view first = take_word(line);
    if (lower_case(first) == "cost") {
      if (!parse_number(trim(line), solution.objective))
        lines.fail("expected a number behind Cost, found " + shown(trim(line)));
      continue;
    }
    const size_t colon = line.find(':');
    if (lower_case(first) != "route" || colon == std::string_view::npos)
      lines.fail("expected \"Route #1: 3 2 ..\" or \"Cost 12\", found " + shown(first));
    line.remove_prefix(colon + 1);
    if (!solution.order.empty()) solution.order.push_back(0);
    for (std::string_view word; !(word = take_word(line)).empty();) {
      int64_t customer = 0;
      if (!parse_integer(word, customer) || customer < 1 || customer > std::numeric_limits<int32_t>::max())
        lines.fail("expected a customer, from 1, found " + shown(word));
      solution.order.push_back(static_cast<int32_t>(customer));
    }
  }
  return {solution};
}

std::string write_routes(const Answer& answer) {
  if (answer.solutions.size() != 1 || !problem_of(answer.instances[0]).has_depot)
    throw OutputRefused("a .sol file holds the routes of one CVRP; use json, ndjson, npy or npz");
  const Solution& solution = answer.solutions[0];
  if (!has_answer(solution)) throw OutputRefused("no routes were found before the run was stopped");
  std::string out;
  int number = 0;
  for (const std::vector<int32_t>& route : routes_of(solution.order)) {
    out += "Route #" + std::to_string(++number) + ":";
    for (const int32_t customer : route) out += " " + std::to_string(customer);
    out += "\n";
  }
  return out + "Cost " + objective_text(answer.instances[0], solution.objective) + "\n";
}

}  // namespace pointsman
