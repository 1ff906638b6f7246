#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network in PyTorch float32, tuned as far as eager PyTorch goes: the rival of `pointsman bench decode`, and on
a GPU (command "device") of `pointsman bench torch`, there also as CUDA graphs and with its steps compiled.

    python3 bench/torch_twin.py --model MODEL.safetensors

One JSON command a line on stdin, one JSON answer a line on stdout (see COMMANDS); the first line out says what
it runs on. `pointsman bench` drives it; bench/README.md shows how to by hand. Tuning: the embedding folded into
the LSTM's input (2 -> 512); references projected once per instance; the pointer's query product folded into the
glimpse's values; one product per step for the gates and the query; every tanh of size H or more as
2 sigmoid(2 x) - 1 with the twos folded into weights; samples by an exponential race; buffers reused; the best
chunk of several; one thread; the processor's own kernels in OpenBLAS and ATen; jemalloc when it is installed.
"""
import argparse
import glob
import json
import os
import struct
import sys
import time


def tuned_environment():
    """What must be in the environment before the libraries load."""
    wanted = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        flags = []
    if all(flag in flags for flag in ("avx512f", "avx512bw", "avx512dq", "avx512vl")):
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

H = 128
PROCESS_STEPS = 3
DECODE_CHUNKS = (16, 64, 256)
TRAIN_CHUNKS = (16, 32, 64, 128)


def read_model(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
        tensors[name] = torch.tensor(values)
    return metadata, tensors


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


def encode(lstm, features, step=encoder_step):
    """features [B, n, 2] -> references [B, n, H], h [B, H], c [B, H]."""
    inputs = (features @ lstm["in"] + lstm["bias"]).transpose(0, 1).contiguous()
    h = features.new_zeros(features.shape[0], H)
    c = features.new_zeros(features.shape[0], H)
    references = []
    for x in inputs:
        h, c = step(x, h, c, lstm["hh"])
        references.append(h)
    return torch.stack(references, 1), h, c


class Twin:
    def __init__(self, path):
        self.metadata, self.original = read_model(path)
        self.glimpses = int(self.metadata["glimpses"])
        self.clip = float(self.metadata["clip"])
        self.centre = self.metadata["centre_logits"] in ("1", "true", "True", "on")
        self.features = None
        self.move("cpu")

    def move(self, device):
        self.device = torch.device(device)
        self.original = {name: tensor.to(self.device) for name, tensor in self.original.items()}
        self.p = {name: tensor.clone().requires_grad_() for name, tensor in self.original.items()}
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
        with torch.no_grad():
            for name, tensor in self.p.items():
                tensor.copy_(self.original[name])
            self.actor = self.fold_actor()

    def fold_actor(self):
        p, embedding = self.p, self.p["actor.embedding.weight"]
        f = {"encoder": fold_lstm(p, "actor.encoder", embedding),
             "decoder": fold_lstm(p, "actor.decoder", embedding),
             "pointer": fold_attention(p, "actor.pointer")}
        first = f["pointer"]
        if self.glimpses > 0:
            f["glimpse"] = first = fold_attention(p, "actor.glimpse")
        f["start"] = f["decoder"]["weight_ih"] @ p["actor.decoder.start"] + f["decoder"]["bias"]
        f["product"] = torch.cat([f["decoder"]["hh"], first["q"]], 1)  # [H, 4H + H]
        return f

    def project(self, f, references):
        """Computed once per instance: projected references and, per glimpse, the values it reads out."""
        r = {"pointer": references @ f["pointer"]["ref"], "values": []}
        if self.glimpses > 0:
            r["glimpse"] = references @ f["glimpse"]["ref"]
            r["values"] = [references @ f["glimpse"]["q"]] * (self.glimpses - 1)
            r["values"].append(references @ f["pointer"]["q"])
        return r

    def scores(self, projected, query, v):
        """v . tanh(projected + query) + sum v, [B, n]. projected: [1 or B, n, H]."""
        if torch.is_grad_enabled() or self.compiled:
            return torch.sigmoid(projected + query.unsqueeze(1)) @ v
        shape = (query.shape[0], projected.shape[1], H)
        if shape not in self.buffers:
            self.buffers = {shape: torch.empty(shape, device=self.device)}
        hidden = torch.add(projected, query.unsqueeze(1), out=self.buffers[shape]).sigmoid_()
        return torch.mv(hidden.view(-1, H), v).view(shape[:2])

    def decoder_step(self, f, r, x, recurrent, c, closed, open_, left):
        """x: input half of the gates; left: items left, a tensor -> recurrent half of the next gates, c, log p."""
        h, c = cell(x + recurrent, c)
        product = h @ f["product"]
        recurrent, query = product[:, :4 * H], product[:, 4 * H:]
        for values in r["values"]:
            p = torch.softmax(self.scores(r["glimpse"], query, f["glimpse"]["v"]) + closed, 1)
            if values.shape[0] == 1:
                query = p @ values[0]
            else:
                query = torch.bmm(p.unsqueeze(1), values).squeeze(1)
        u = self.scores(r["pointer"], query, f["pointer"]["v"])
        if self.centre:
            u = u - (u * open_).sum(1, keepdim=True) / left
        else:
            u = u - f["pointer"]["sum_v"]
        return recurrent, c, torch.log_softmax(self.clip * torch.tanh(u) + closed, 1)

    def decode(self, f, features, r, h, c, choose):
        """features, r: of one instance (leading size 1) or of B; h, c: [B, H]. choose(t, log p) -> items [B].
        Returns orders [B, n] and log p [B]."""
        batch, n = h.shape[0], features.shape[1]
        inputs = (features @ f["decoder"]["in"] + f["decoder"]["bias"]).expand(batch, n, 4 * H)
        rows = torch.arange(batch, device=self.device)
        left = torch.arange(n, 0, -1, device=self.device, dtype=torch.float32)
        closed = features.new_zeros(batch, n)  # 0, or -infinity where chosen
        open_ = features.new_ones(batch, n)
        x = f["start"].expand(batch, 4 * H)
        recurrent = h @ f["decoder"]["hh"]
        total = features.new_zeros(batch)
        orders = []
        for t in range(n):
            recurrent, c, log_p = self.step(f, r, x, recurrent, c, closed, open_, left[t])
            chosen = choose(t, log_p.detach())
            total = total + log_p[rows, chosen]
            if torch.is_grad_enabled():  # the graph keeps the old ones
                closed, open_ = closed.clone(), open_.clone()
            closed[rows, chosen] = -float("inf")
            open_[rows, chosen] = 0.0
            x = inputs[rows, chosen] if inputs.stride(0) else inputs[0][chosen]
            orders.append(chosen)
        return torch.stack(orders, 1), total

    def rollout(self, f, features, choose, batch=None):
        """One rollout of each instance with the folded actor f; or `batch` of one instance, encoded once."""
        references, h, c = encode(f["encoder"], features, self.encoder_step)
        if batch:
            h, c = h.expand(batch, H), c.expand(batch, H)
        return self.decode(f, features, self.project(f, references), h, c, choose)

    def sample(self, batch, choose):
        return self.rollout(self.actor, self.features[:1], choose, batch)

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

    def train_step(self, features, chunk):
        """Algorithm 1 of Bello et al.: sample, critic, both gradients (in chunks that add up), clip, Adam."""
        if self.adam is None:
            graphs = {"capturable": True} if self.device.type == "cuda" else {}
            self.adam = torch.optim.Adam(self.p.values(), lr=1e-3, **graphs)
        self.adam.zero_grad()
        for part in features.split(chunk):
            orders, log_p = self.rollout(self.fold_actor(), part, sampled_choice)
            cost = tour_length(part, orders)
            value = self.critic(part)
            loss = ((cost - value.detach()) * log_p).sum() + ((value - cost)**2).sum()
            (loss / features.shape[0]).backward()
        for network in ("actor.", "critic."):
            torch.nn.utils.clip_grad_norm_([q for name, q in self.p.items() if name.startswith(network)], 1.0)
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
    return {}


def device(twin, command):
    """{"do": "device", "name": "cuda"}: works there from now on; says what it is."""
    if not torch.cuda.is_available():
        return {"skipped": "this torch sees no CUDA device"}
    twin.move(command["name"])
    return {"name": torch.cuda.get_device_name(twin.device), "cuda": torch.version.cuda}


@torch.no_grad()
def judge_greedy(twin, command):
    """{"do": "judge_greedy", "orders": [[..], ..]}: of a tour of each instance its log p and how far the worst of
    its choices was from the most probable one (difference of log p)."""
    orders = torch.tensor(command["orders"], device=twin.device)
    rows = torch.arange(orders.shape[0], device=twin.device)
    worst = torch.zeros(orders.shape[0], device=twin.device)

    def choose(t, log_p):
        torch.maximum(worst, log_p.max(1)[0] - log_p[rows, orders[:, t]], out=worst)
        return orders[:, t]

    _, log_p = twin.rollout(twin.actor, twin.features[:orders.shape[0]], choose)
    return {"worst": worst.tolist(), "log_probs": log_p.tolist()}


@torch.no_grad()
def score(twin, command):
    """{"do": "score", "orders": [[..], ..]}: log p of tours of instance 0."""
    orders = torch.tensor(command["orders"], device=twin.device)
    return {"log_probs": twin.sample(orders.shape[0], forced_choice(orders))[1].tolist()}


def gradient(twin, command):
    """{"do": "gradient", "orders": .., "weights": .., "targets": .., "out": FILE}: d(sum of weights x log p + mean
    of (b - target)^2) of the first instances, raw float32 tensors in the model file's order."""
    orders = torch.tensor(command["orders"], device=twin.device)
    features = twin.features[:orders.shape[0]]
    for tensor in twin.p.values():
        tensor.grad = None
    log_p = twin.rollout(twin.fold_actor(), features, forced_choice(orders))[1]
    value = twin.critic(features)
    weights = torch.tensor(command["weights"], device=twin.device)
    targets = torch.tensor(command["targets"], device=twin.device)
    loss = (log_p * weights).sum() + ((value - targets)**2).mean()
    loss.backward()
    with open(command["out"], "wb") as file:
        for tensor in twin.p.values():
            file.write(tensor.grad.cpu().numpy().astype("<f4").tobytes())
    return {"values": value.tolist()}


@torch.no_grad()
def run_sample(twin, batch, chunk):
    for first in range(0, batch, chunk):
        twin.sample(min(chunk, batch - first), sampled_choice)


@torch.no_grad()
def run_greedy(twin, batch, chunk):
    for part in twin.features[:batch].split(chunk):
        twin.rollout(twin.actor, part, greedy_choice)


def run_train(twin, batch, chunk):
    twin.train_step(twin.features[:batch], chunk)


TASKS = {"decode_sample": (run_sample, DECODE_CHUNKS), "decode_greedy": (run_greedy, DECODE_CHUNKS),
         "train_step": (run_train, TRAIN_CHUNKS)}


def seconds_of(run, twin, batch, chunk):
    start = time.process_time()
    run(twin, batch, chunk)
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

        def run():
            task(twin, batch, batch)

        times = event_times(run if variant == "eager" else captured(run), command["seconds"])
        middle = times[len(times) // 2]
        return {"ms": middle, "spread": (times[-1] - times[0]) / middle, "runs": len(times)}
    except Exception as failure:  # whatever torch does not bear is no reason to end the bench
        return {"skipped": f"{type(failure).__name__}: {str(failure)[:300]}"}
    finally:
        twin.start_over()
        torch.cuda.empty_cache()


COMMANDS = {"load": load, "device": device, "judge_greedy": judge_greedy, "score": score, "gradient": gradient,
            "time": time_task, "time_device": time_device}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a TSP model with a critic")
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
