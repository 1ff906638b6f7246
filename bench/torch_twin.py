#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network in PyTorch float32, tuned as far as eager PyTorch goes: the rival of `pointsman bench decode`, and on
a GPU (command "device") of `pointsman bench torch`, there also as CUDA graphs and with its steps compiled.

    python3 bench/torch_twin.py --model MODEL.safetensors

One JSON command a line on stdin, one JSON answer a line on stdout (see COMMANDS); the first line out says what
it runs on. `pointsman bench` drives it; bench/README.md shows how to by hand, and how it is tuned. Every tanh of size H
or more is 2 sigmoid(2 x) - 1 with the twos folded into weights. What is compared with the engine's answers, before
anything is timed, the same code computes in float64.
"""
import argparse
import copy
import functools
import glob
import json
import os
import sys
import time


def tuned_environment():
    """What must be in the environment before the libraries load."""
    wanted = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        with open("/proc/cpuinfo") as file:
            flags = set(next((line for line in file if line.startswith("flags")), "").split())
    except OSError:
        flags = set()
    if flags >= {"avx512f", "avx512bw", "avx512dq", "avx512vl"}:
        wanted.update(OPENBLAS_CORETYPE="SKYLAKEX", ATEN_CPU_CAPABILITY="avx512")
    elif "avx2" in flags:
        wanted.update(OPENBLAS_CORETYPE="HASWELL", ATEN_CPU_CAPABILITY="avx2")
    jemalloc = glob.glob("/usr/lib/*/libjemalloc.so.2") + glob.glob("/usr/lib*/libjemalloc.so.2")
    if jemalloc:
        # Dirty pages are kept: giving them back makes every large tensor fault its pages in again.
        wanted.update(LD_PRELOAD=jemalloc[0], MALLOC_CONF="dirty_decay_ms:-1,muzzy_decay_ms:-1")
    return wanted


if __name__ == "__main__" and "POINTSMAN_TWIN_TUNED" not in os.environ:
    environment = {**tuned_environment(), **os.environ, "POINTSMAN_TWIN_TUNED": "1"}
    os.execve(sys.executable, [sys.executable] + sys.argv, environment)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

H = 128
PROCESS_STEPS = 3
SHARED = 8  # rollouts of an instance in a training step without a critic
DECODE_CHUNKS = (16, 64, 256)
ENCODE_CHUNKS = (1, 2, 4, 8, 16, 64, 256)
TRAIN_CHUNKS = (16, 32, 64, 128)


def read_model(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(length)), file.read()
    metadata = header.pop("__metadata__")
    values = {name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f4") for name, entry in header.items()}
    return metadata, {name: torch.tensor(values[name].reshape(header[name]["shape"])) for name in header}


def fold_lstm(p, prefix, embedding):
    """Input [2, 4H], recurrent [H, 4H] and bias [4H] with the gates in the order i, f, o, g and g doubled."""

    def order(matrix):
        i, f, g, o = matrix.split(H)
        return torch.cat([i, f, o, 2.0 * g])

    weight_ih = order(p[prefix + ".weight_ih"])
    return {"in": (weight_ih @ embedding).t().contiguous(),
            "hh": order(p[prefix + ".weight_hh"]).t().contiguous(), "bias": order(p[prefix + ".bias"]),
            "weight_ih": weight_ih}


def fold_attention(p, prefix):
    return {"ref": 2.0 * p[prefix + ".w_ref"].t(), "q": 2.0 * p[prefix + ".w_q"].t(),
            "v": 2.0 * p[prefix + ".v"], "sum_v": p[prefix + ".v"].sum()}


def cell(gates, c):
    gates = torch.sigmoid(gates)
    c = gates[:, H:2 * H] * c + gates[:, :H] * (2.0 * gates[:, 3 * H:] - 1.0)
    return gates[:, 2 * H:3 * H] * (2.0 * torch.sigmoid(2.0 * c) - 1.0), c


def encoder_step(x, h, c, recurrent):
    return cell(torch.addmm(x, h, recurrent), c)


def encode(lstm, features, step):
    """features [B, n, 2] -> references [B, n, H], h [B, H], c [B, H]."""
    inputs = (features @ lstm["in"] + lstm["bias"]).transpose(0, 1).contiguous()
    h = features.new_zeros(features.shape[0], H)
    c = features.new_zeros(features.shape[0], H)
    references = []
    for x in inputs:
        h, c = step(x, h, c, lstm["hh"])
        references.append(h)
    return torch.stack(references, 1), h, c


def fold_encoder_layer(p, prefix, heads):
    """For the gradient the scale of the scores goes into the queries' weights."""
    layer = {name: (p[f"{prefix}.{name}.weight"], p[f"{prefix}.{name}.bias"])
             for name in ("norm1", "attention.out_proj", "norm2", "linear1", "linear2")}
    weight, bias = p[prefix + ".attention.in_proj_weight"], p[prefix + ".attention.in_proj_bias"]
    if torch.is_grad_enabled():
        scale = weight.new_ones(3 * H, 1)
        scale[:H] = (H // heads)**-0.5
        weight, bias = scale * weight, scale[:, 0] * bias
    layer["in"] = (weight, bias)
    return layer


def self_attention(x, heads):
    """x [B, n, 3H] -> [B, n, H]."""
    batch, n, _ = x.shape
    q, k, v = x.view(batch, n, 3, heads, H // heads).permute(2, 0, 3, 1, 4).reshape(3, batch * heads, n, -1)
    attended = torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), 2), v)
    return attended.view(batch, heads, n, -1).transpose(1, 2).reshape(batch, n, H)


def encoder_layer(x, layer, heads):
    """Pre-norm (nn.TransformerEncoderLayer with norm_first): without a gradient PyTorch's own fast path."""
    if not torch.is_grad_enabled():
        return torch._transformer_encoder_layer_fwd(x, H, heads, *layer["in"], *layer["attention.out_proj"], False,
                                                    True, 1e-5, *layer["norm1"], *layer["norm2"], *layer["linear1"],
                                                    *layer["linear2"])
    normed = functional.layer_norm(x, (H,), *layer["norm1"])
    attended = self_attention(functional.linear(normed, *layer["in"]), heads)
    x = x + functional.linear(attended, *layer["attention.out_proj"])
    normed = functional.layer_norm(x, (H,), *layer["norm2"])
    hidden = functional.linear(normed, *layer["linear1"]).relu_()
    return x + functional.linear(hidden, *layer["linear2"])


class Twin:
    def __init__(self, path):
        self.metadata, self.original = read_model(path)
        self.attention = self.metadata.get("encoder") == "attention"
        self.heads = int(self.metadata.get("heads", 0))
        self.glimpses = int(self.metadata["glimpses"])
        self.clip = float(self.metadata["clip"])
        self.centre = self.metadata["centre_logits"] in ("1", "true", "True", "on")
        self.features = None
        self.move("cpu")

    def move(self, device, dtype=torch.float32):
        self.device = torch.device(device)
        self.original = {name: tensor.to(self.device, dtype) for name, tensor in self.original.items()}
        self.start_over()

    def start_over(self, compiled=False):
        """The model as it was read, whatever training did to it; steps of the two recurrences as torch.compile makes
        them, or as they are written."""
        self.compiled = compiled
        self.encoder_step, self.step = encoder_step, self.decoder_step
        if compiled:
            torch._dynamo.reset()
            self.encoder_step = torch.compile(encoder_step, dynamic=False)
            self.step = torch.compile(self.decoder_step, dynamic=False)
        self.buffers = {}
        self.chunks = {}
        self.adam = None
        self.p = {name: tensor.clone().requires_grad_() for name, tensor in self.original.items()}
        with torch.no_grad():
            self.actor = self.fold_actor()

    def fold_actor(self):
        p, embedding = self.p, self.p["actor.embedding.weight"]
        f = {"decoder": fold_lstm(p, "actor.decoder", embedding), "pointer": fold_attention(p, "actor.pointer"),
             "prior": p.get("actor.prior.weight")}
        if self.attention:
            f["layers"] = [fold_encoder_layer(p, f"actor.encoder.layers.{i}", self.heads)
                           for i in range(int(self.metadata["layers"]))]
            f["embedding"] = embedding.t()
            f["start_h"], f["start_c"] = ((p[f"actor.start.{name}.weight"], p[f"actor.start.{name}.bias"])
                                          for name in "hc")
        else:
            f["encoder"] = fold_lstm(p, "actor.encoder", embedding)
        first = f["pointer"]
        if self.glimpses > 0:
            f["glimpse"] = first = fold_attention(p, "actor.glimpse")
        f["start"] = f["decoder"]["weight_ih"] @ p["actor.decoder.start"] + f["decoder"]["bias"]
        f["product"] = torch.cat([f["decoder"]["hh"], first["q"]], 1)  # [H, 4H + H]
        return f

    def encode(self, f, features):
        """features [B, n, 2] -> references [B, n, H], h [B, H], c [B, H]."""
        if not self.attention:
            return encode(f["encoder"], features, self.encoder_step)
        x = features @ f["embedding"]
        for layer in f["layers"]:
            x = encoder_layer(x, layer, self.heads)
        mean = x.mean(1)
        return x, torch.tanh(functional.linear(mean, *f["start_h"])), functional.linear(mean, *f["start_c"])

    def project(self, f, references):
        """Computed once per instance: projected references and, per glimpse, the values it reads out."""
        r = {"pointer": references @ f["pointer"]["ref"], "values": []}
        if self.glimpses > 0:
            r["glimpse"] = references @ f["glimpse"]["ref"]
            r["values"] = [references @ f["glimpse"]["q"]] * (self.glimpses - 1)
            r["values"].append(references @ f["pointer"]["q"])
        return r

    def scores(self, projected, query, v):
        """v . tanh(projected + query) + sum v, [B k, n]. projected: [B, n, H]; query: [B k, H]."""
        instances, n, _ = projected.shape
        projected, query = projected.unsqueeze(1), query.view(instances, -1, 1, H)
        if torch.is_grad_enabled() or self.compiled:
            return (torch.sigmoid(projected + query) @ v).view(-1, n)
        shape = (instances, query.shape[1], n, H)
        if shape not in self.buffers:
            self.buffers = {shape: projected.new_empty(shape)}
        hidden = torch.add(projected, query, out=self.buffers[shape]).sigmoid_()
        return torch.mv(hidden.view(-1, H), v).view(-1, n)

    def decoder_step(self, f, r, x, recurrent, c, closed, prior, open_, left):
        """x: input half of the gates; prior: of the logits, or None; left: items left, a tensor -> recurrent half
        of the next gates, c, log p."""
        h, c = cell(x + recurrent, c)
        product = h @ f["product"]
        recurrent, query = product[:, :4 * H], product[:, 4 * H:]
        for values in r["values"]:
            p = torch.softmax(self.scores(r["glimpse"], query, f["glimpse"]["v"]) + closed, 1)
            if values.shape[0] == 1:
                query = p @ values[0]
            else:
                query = torch.bmm(p.view(values.shape[0], -1, p.shape[1]), values).view(-1, H)
        u = self.scores(r["pointer"], query, f["pointer"]["v"])
        if self.centre:
            u = u - (u * open_).sum(1, keepdim=True) / left
        else:
            u = u - f["pointer"]["sum_v"]
        logits = self.clip * torch.tanh(u) + closed
        return recurrent, c, torch.log_softmax(logits if prior is None else logits + prior, 1)

    def decode(self, f, features, r, h, c, choose):
        """features, r: of B instances; h, c: [B k, H], k rollouts of each. choose(t, log p) -> items [B k].
        Returns orders [B k, n] and log p [B k]."""
        batch, n = h.shape[0], features.shape[1]
        points, table = features.reshape(-1, 2), None
        if not torch.is_grad_enabled():
            table = torch.addmm(f["decoder"]["bias"], points, f["decoder"]["in"])
        rows = torch.arange(batch, device=self.device)
        first = rows // (batch // features.shape[0]) * n  # row of the rollout's item 0
        prior = None
        if f["prior"] is not None:
            distances = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist").view(-1, n)
        left = torch.arange(n, 0, -1, device=self.device, dtype=features.dtype)
        closed = features.new_zeros(batch, n)  # 0, or -infinity where chosen
        open_ = features.new_ones(batch, n)
        x = f["start"].expand(batch, 4 * H)
        recurrent = h @ f["decoder"]["hh"]
        total = features.new_zeros(batch)
        orders = []
        for t in range(n):
            recurrent, c, log_p = self.step(f, r, x, recurrent, c, closed, prior, open_, left[t])
            chosen = choose(t, log_p.detach())
            total = total + log_p[rows, chosen]
            if torch.is_grad_enabled():  # the graph keeps the old ones
                closed, open_ = closed.clone(), open_.clone()
            closed[rows, chosen] = -float("inf")
            open_[rows, chosen] = 0.0
            present = first + chosen
            if table is not None:
                x = table.index_select(0, present)
            else:  # the gradient of a table would be one as large at each step
                x = torch.addmm(f["decoder"]["bias"], points.index_select(0, present), f["decoder"]["in"])
            if f["prior"] is not None:
                prior = distances.index_select(0, present) * -f["prior"]
            orders.append(chosen)
        return torch.stack(orders, 1), total

    def rollout(self, f, features, choose, rollouts=1):
        """`rollouts` of each instance, encoded once, with the folded actor f."""
        references, h, c = self.encode(f, features)
        if rollouts > 1:
            h, c = h.repeat_interleave(rollouts, 0), c.repeat_interleave(rollouts, 0)
        return self.decode(f, features, self.project(f, references), h, c, choose)

    def critic(self, features):
        p = self.p
        references, query, _ = encode(fold_lstm(p, "critic.encoder", p["critic.embedding.weight"]), features,
                                      self.encoder_step)
        f = fold_attention(p, "critic.process")
        projected, values, query = references @ f["ref"], references @ f["q"], query @ f["q"]
        for step in range(PROCESS_STEPS):
            weights = torch.softmax(self.scores(projected, query, f["v"]), 1).unsqueeze(1)
            query = torch.bmm(weights, references if step == PROCESS_STEPS - 1 else values).squeeze(1)
        hidden = torch.relu(query @ p["critic.head.fc1.weight"].t() + p["critic.head.fc1.bias"])
        return (hidden @ p["critic.head.fc2.weight"].t() + p["critic.head.fc2.bias"]).squeeze(1)

    def loss(self, features, rollouts):
        """Summed over the instances: with one rollout of each Algorithm 1 of Bello et al., with several each against the
        mean of the others (Kool et al. 2019b)."""
        orders, log_p = self.rollout(self.fold_actor(), features, sampled_choice, rollouts)
        if rollouts == 1:
            cost, value = tour_length(features, orders), self.critic(features)
            return ((cost - value.detach()) * log_p).sum() + ((value - cost)**2).sum()
        cost = tour_length(features.repeat_interleave(rollouts, 0), orders).view(-1, rollouts)
        baseline = (cost.sum(1, keepdim=True) - cost) / (rollouts - 1)
        return ((cost - baseline).view(-1) * log_p).sum() / rollouts

    def train_step(self, features, chunk, rollouts):
        """Sample, gradients (in chunks that add up), clip, Adam; with one rollout of each instance also the critic."""
        if self.adam is None:
            graphs = {"capturable": True} if self.device.type == "cuda" else {}
            self.adam = torch.optim.Adam(self.p.values(), lr=1e-3, **graphs)
        self.adam.zero_grad()
        for part in features.split(chunk):
            (self.loss(part, rollouts) / features.shape[0]).backward()
        for network in ("actor.", "critic."):
            parameters = [q for name, q in self.p.items() if name.startswith(network)]
            if parameters:
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        self.adam.step()


def tour_length(features, orders):
    cities = torch.gather(features, 1, orders.unsqueeze(2).expand(-1, -1, 2))
    return (cities - cities.roll(-1, 1)).norm(dim=2).sum(1)


def greedy_choice(_, log_p):
    return log_p.argmax(1)


def sampled_choice(_, log_p):
    return (log_p.exp() / torch.empty_like(log_p).exponential_()).argmax(1)


def forced_choice(orders):
    return lambda t, _: orders[:, t]


# --- Commands ---


def load(twin, command):
    """{"do": "load", "features": FILE, "count": C, "n": N}: instances, raw float32 [C][N][2]; forgets training."""
    values = np.fromfile(command["features"], dtype="<f4").reshape(command["count"], command["n"], 2)
    twin.features = torch.tensor(values, device=twin.device)
    twin.start_over()
    twin.exact = copy.copy(twin)
    twin.exact.features = twin.features.double()
    twin.exact.move(twin.device, torch.float64)
    return {}


def device(twin, command):
    """{"do": "device", "name": "cuda"}: works there from now on; says what it is."""
    if not torch.cuda.is_available():
        return {"skipped": "this torch sees no CUDA device"}
    twin.move(command["name"])
    return {"name": torch.cuda.get_device_name(twin.device), "cuda": torch.version.cuda}


@torch.no_grad()
def judge(twin, command):
    """{"do": "judge_greedy", "orders": [[..], ..]}: of a tour of each instance its log p and how far the worst of
    its choices was from the most probable one (difference of log p). {"do": "score", ..}: of tours of instance 0."""
    orders = torch.tensor(command["orders"], device=twin.device)
    instances = orders.shape[0] if command["do"] == "judge_greedy" else 1
    rows = torch.arange(orders.shape[0], device=twin.device)
    worst = torch.zeros(orders.shape[0], device=twin.device, dtype=torch.float64)

    def choose(t, log_p):
        torch.maximum(worst, log_p.max(1)[0] - log_p[rows, orders[:, t]], out=worst)
        return orders[:, t]

    features = twin.exact.features[:instances]
    _, log_p = twin.exact.rollout(twin.exact.actor, features, choose, orders.shape[0] // instances)
    return {"worst": worst.tolist(), "log_probs": log_p.tolist()}


def gradient(twin, command):
    """{"do": "gradient", "orders": .., "weights": .., "targets": .., "rollouts": K, "out": FILE}: d(sum of weights x
    log p + mean of (b - target)^2) of the first instances, K tours of each, raw float32 tensors in the model file's
    order. Without a critic the second term and the answer's values are left out."""
    orders, twin = torch.tensor(command["orders"], device=twin.device), twin.exact
    features = twin.features[:orders.shape[0] // command["rollouts"]]
    for tensor in twin.p.values():
        tensor.grad = None
    log_p = twin.rollout(twin.fold_actor(), features, forced_choice(orders), command["rollouts"])[1]
    loss = (log_p * log_p.new_tensor(command["weights"])).sum()
    values = []
    if "critic.embedding.weight" in twin.p:
        value = twin.critic(features)
        values = value.tolist()
        loss = loss + ((value - value.new_tensor(command["targets"]))**2).mean()
    loss.backward()
    with open(command["out"], "wb") as file:
        for tensor in twin.p.values():
            file.write(tensor.grad.cpu().numpy().astype("<f4").tobytes())
    return {"values": values}


@torch.no_grad()
def run_sample(twin, batch, chunk):
    for first in range(0, batch, chunk):
        twin.rollout(twin.actor, twin.features[:1], sampled_choice, min(chunk, batch - first))


@torch.no_grad()
def run_greedy(twin, batch, chunk):
    for part in twin.features[:batch].split(chunk):
        twin.rollout(twin.actor, part, greedy_choice)


@torch.no_grad()
def run_encode(twin, batch, chunk):
    for part in twin.features[:batch].split(chunk):
        twin.project(twin.actor, twin.encode(twin.actor, part)[0])


def run_train(twin, batch, chunk):
    """With a critic `batch` instances, else SHARED rollouts of each of batch / SHARED."""
    rollouts = 1 if "critic.embedding.weight" in twin.p else SHARED
    twin.train_step(twin.features[:batch // rollouts], chunk // rollouts, rollouts)


def greedy(twin, command):
    """{"do": "greedy", "chunks": [C, ..], "compiled": false}: greedy tours of all instances and the CPU seconds of the
    fastest chunk, after a first pass of each that is not timed."""
    twin.start_over(command["compiled"])

    def tours_of(chunk):
        with torch.no_grad():
            return [twin.rollout(twin.actor, part, greedy_choice)[0] for part in twin.features.split(chunk)]

    found = {chunk: torch.cat(tours_of(chunk)).tolist() for chunk in command["chunks"]}
    seconds = {chunk: seconds_of(tours_of, chunk) for chunk in found}
    best = min(seconds, key=seconds.get)
    twin.start_over()
    return {"tours": found[best], "seconds": seconds[best], "chunk": best}


TASKS = {"encode": (run_encode, ENCODE_CHUNKS), "decode_sample": (run_sample, DECODE_CHUNKS),
         "decode_greedy": (run_greedy, DECODE_CHUNKS), "train_step": (run_train, TRAIN_CHUNKS)}


def seconds_of(run, *arguments):
    start = time.process_time()
    run(*arguments)
    return time.process_time() - start


def time_task(twin, command):
    """{"do": "time", "task": T, "batch": B, "seconds": S}: calls per CPU second over at least S seconds, with the
    chunk that was fastest when first asked (best of three tries each)."""
    run, chunks = TASKS[command["task"]]
    batch = command["batch"]
    key = (command["task"], batch)
    if key not in twin.chunks:
        tried = {chunk: min(seconds_of(run, twin, batch, chunk) for _ in range(3))
                 for chunk in chunks if chunk <= batch}
        twin.chunks[key] = min(tried, key=tried.get)
    calls, spent = 0, 0.0
    while spent < command["seconds"]:
        spent += seconds_of(run, twin, batch, twin.chunks[key])
        calls += 1
    return {"calls_per_second": calls / spent, "chunk": twin.chunks[key]}


def captured(run):
    """What replays `run` as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def event_times(run, seconds):
    """Milliseconds of each of 5 to 100 calls, after two that warm up."""
    times = []
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    end = time.perf_counter() + seconds
    while len(times) < 5 or (len(times) < 100 and time.perf_counter() < end):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        run()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]))
    return sorted(times)


def time_device(twin, command):
    """{"do": "time_device", "task": T, "batch": B, "variant": V, "seconds": S}: milliseconds of one call by CUDA
    events. V: "eager", "graph" (the whole call as one CUDA graph) or "compiled" (the same, the steps through
    torch.compile)."""
    task, batch, variant = TASKS[command["task"]][0], command["batch"], command["variant"]
    if twin.device.type != "cuda":
        return {"skipped": "the twin is on no CUDA device"}
    try:
        twin.start_over(variant == "compiled")
        run = functools.partial(task, twin, batch, batch)
        times = event_times(run if variant == "eager" else captured(run), command["seconds"])
        middle = times[len(times) // 2]
        return {"ms": middle, "spread": (times[-1] - times[0]) / middle, "runs": len(times)}
    except Exception as failure:  # whatever torch does not bear is no reason to end the bench
        return {"skipped": f"{type(failure).__name__}: {str(failure)[:300]}"}
    finally:
        twin.start_over()
        torch.cuda.empty_cache()


COMMANDS = {"load": load, "device": device, "judge_greedy": judge, "score": judge, "gradient": gradient,
            "greedy": greedy, "time": time_task, "time_device": time_device}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a TSP model; training steps with a critic where it has one")
    twin = Twin(parser.parse_args().model)
    torch.set_num_threads(1)
    names = ("OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY", "LD_PRELOAD")
    settings = {name: os.environ.get(name, "") for name in names}
    print(json.dumps({"torch": torch.__version__, **settings}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(COMMANDS[command["do"]](twin, command)), flush=True)


if __name__ == "__main__":
    main()
