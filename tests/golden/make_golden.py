#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files that tests/golden/test_golden.cpp checks the engine against.

An independent statement of the network of Bello et al. 2017 in PyTorch: float64, one city at a time, the
plain unfolded formulas, gradients by autograd, Adam by torch.optim. It shares no code with the engine.

    python3 tests/golden/make_golden.py            write tests/golden/*.safetensors
    python3 tests/golden/make_golden.py --only X   only the case X
    python3 tests/golden/make_golden.py --single   write nothing; print how far float32 is from float64 here

Every number that the files do not hold is a formula of a name: uniforms(name, count) below is std::mt19937
seeded with the FNV-1a hash of the name. Parameters are scale (2 u - 1) rounded to float. In the cases called
"initial" the scale is the paper's 0.08; in the others it is SCALES, under which attention is peaked and every
gradient is far above the rounding of float32 (at 0.08 a glimpse is all but uniform, and what reaches the
decoder is 1e-13). A large tensor's gradient and movement are kept as three summaries, which together see every
element: G s ("rows"), s' G ("columns") with random signs s and s', and every 211th element ("sample"). Small
tensors are kept whole ("full").
"""
import argparse
import itertools
import json
import pathlib
import struct

import numpy as np
import torch

H = 128
STEPS = 10
LEARNING_RATE = 1e-3
MAX_NORM = 1.0
STRIDE = 211
CRITIC_WEIGHT = 1.0 / 32
SMALL = 1024
# By the first part of the name that matches.
SCALES = {"norm": 1.0, "attention.": 0.15, "linear": 0.15, "start.": 0.15, "prior": 4.0, "embedding": 1.0, "start": 1.0, "weight_": 0.12, "bias": 0.12, "pointer.v": 0.1, "glimpse.v": 0.6,
          "process.v": 0.6, "w_": 0.25, "fc": 0.08}
# What the weights of update step t are multiplied by, so that some steps are clipped and some are not.
FACTORS = [0.25, 4.0, 1.0, 0.5, 8.0, 0.125, 2.0, 0.25, 1.0, 4.0]


def fnv1a(text):
    value = 2166136261
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) % 2**32
    return value


def uniforms(name, count):
    return np.random.RandomState(fnv1a(name)).random_sample(count)


def shapes(case):
    glimpses = case["glimpses"]
    lstm = {"weight_ih": (4 * H, H), "weight_hh": (4 * H, H), "bias": (4 * H,)}
    attention = {"w_ref": (H, H), "w_q": (H, H), "v": (H,)}
    result = {"actor.embedding.weight": (H, 2), "actor.decoder.start": (H,)}
    parts = [("actor.decoder", lstm), ("actor.pointer", attention)]
    if case["layers"] == 0:
        parts.append(("actor.encoder", lstm))
    for layer in range(case["layers"]):
        for name, parameter in encoder_layer(case).named_parameters():
            result[f"actor.encoder.layers.{layer}.{name.replace('self_attn', 'attention')}"] = tuple(parameter.shape)
    if case["layers"] > 0:
        for state in ("h", "c"):
            result[f"actor.start.{state}.weight"], result[f"actor.start.{state}.bias"] = (H, H), (H,)
        result["actor.prior.weight"] = (1,) if case["problem"] == "tsp" else (3,)
    if glimpses > 0:
        parts.append(("actor.glimpse", attention))
    result["critic.embedding.weight"] = (H, 2)
    parts += [("critic.encoder", lstm), ("critic.process", attention)]
    for prefix, tensors in parts:
        for suffix, shape in tensors.items():
            result[prefix + "." + suffix] = shape
    result["critic.head.fc1.weight"], result["critic.head.fc1.bias"] = (H, H), (H,)
    result["critic.head.fc2.weight"], result["critic.head.fc2.bias"] = (1, H), (1,)
    return result


def scale_of(case, name):
    if case["initial"]:
        return 0.08
    return next(scale for ending, scale in SCALES.items() if ending in name)


def make_parameters(case, network, dtype):
    result = {}
    for name, shape in shapes(case).items():
        if name.startswith(network):
            u = uniforms(name, int(np.prod(shape)))
            values = (scale_of(case, name) * (2.0 * u - 1.0)).astype(np.float32)
            result[name] = torch.tensor(values.reshape(shape), dtype=dtype, requires_grad=True)
    return result


# --- The network ---


def lstm(p, prefix, x, h, c):
    gates = p[prefix + ".weight_ih"] @ x + p[prefix + ".weight_hh"] @ h + p[prefix + ".bias"]
    i, f, g, o = torch.sigmoid(gates[:H]), torch.sigmoid(gates[H:2 * H]), torch.tanh(gates[2 * H:3 * H]), \
        torch.sigmoid(gates[3 * H:])
    c = f * c + i * g
    return o * torch.tanh(c), c


def encoder_layer(case):
    return torch.nn.TransformerEncoderLayer(H, case["heads"], case["feed_forward"], dropout=0.0, batch_first=True,
                                            norm_first=True)


def encode_by_attention(p, case, features):
    """References [n][H] and the decoder's start state."""
    x = (features @ p["actor.embedding.weight"].T)[None]
    for number in range(case["layers"]):
        prefix = f"actor.encoder.layers.{number}."
        weights = {name[len(prefix):].replace("attention", "self_attn"): value
                   for name, value in p.items() if name.startswith(prefix)}
        x = torch.nn.utils.stateless.functional_call(encoder_layer(case).to(features.dtype), weights, (x,))
    mean = x[0].mean(0)
    h, c = (p[f"actor.start.{s}.weight"] @ mean + p[f"actor.start.{s}.bias"] for s in ("h", "c"))
    return list(x[0]), torch.tanh(h), c


def prior(p, case, sequence, order, candidates):
    """What the prior adds to the logits, before the temperature."""
    weights = p["actor.prior.weight"]
    features = torch.tensor(sequence["features"], dtype=weights.dtype)
    if case["problem"] == "tsp":
        if not order:
            return 0.0
        return -weights[0] * torch.linalg.norm(features[candidates] - features[order[-1]], dim=1)
    ratio = torch.log((features[candidates, 1] + 1e-6) / (features[candidates, 0] + 1e-6)).clamp(max=8.0)
    left = sequence["capacity"] - sum(sequence["weights"][i] for i in order)
    share = torch.tensor(sequence["weights"][candidates] / left, dtype=weights.dtype)
    ahead = torch.tensor(look_ahead(sequence, left, candidates), dtype=weights.dtype)
    return weights[0] * ratio + weights[1] * share + weights[2] * ahead


def look_ahead(sequence, left, candidates):
    """KnapSack: the best packing with each candidate less the best of all, among those of the eight with most value per weight."""
    weight = {i: float(sequence["weights"][i]) for i in candidates}
    value = {i: float(sequence["features"][i][1]) for i in candidates}
    ratio = {i: (value[i] + 1e-6) / (float(sequence["features"][i][0]) + 1e-6) for i in candidates}
    seen = sorted((i for i in candidates if weight[i] <= left), key=lambda i: -ratio[i])[:8]
    if sum(weight[i] for i in seen) <= left:
        return [0.0 if weight[i] <= left else -0.1 for i in candidates]
    packings = [chosen for k in range(9) for chosen in itertools.combinations(seen, k) if sum(weight[i] for i in chosen) <= left]
    worth = {i: max(sum(value[j] for j in chosen) for chosen in packings if i in chosen) for i in seen}
    return [max(worth[i] - max(worth.values()), -0.1) if i in seen else -0.1 for i in candidates]


def encode(p, network, features):
    h = c = torch.zeros(H, dtype=features.dtype)
    references = []
    for point in features:
        h, c = lstm(p, network + ".encoder", p[network + ".embedding.weight"] @ point, h, c)
        references.append(h)
    return references, h, c


def scores(p, prefix, references, query, candidates):
    return torch.stack([
        p[prefix + ".v"] @ torch.tanh(p[prefix + ".w_ref"] @ references[i] + p[prefix + ".w_q"] @ query)
        for i in candidates])


def glimpse(p, prefix, references, query, candidates):
    weights = torch.softmax(scores(p, prefix, references, query, candidates), 0)
    return sum(weights[k] * references[i] for k, i in enumerate(candidates))


def candidates_after(case, sequence, order):
    left = [i for i in range(case["n"]) if i not in order]
    if case["problem"] == "tsp":
        return left
    used = sum(sequence["weights"][i] for i in order)
    return [i for i in left if used + sequence["weights"][i] <= sequence["capacity"]]


def log_prob(p, case, sequence, order, dtype):
    """Sum of the log-probabilities and the logits [n][n] of each step, -inf where an item is no candidate."""
    features = torch.tensor(sequence["features"], dtype=dtype)
    references, h, c = encode_by_attention(p, case, features) if case["layers"] else encode(p, "actor", features)
    x = p["actor.decoder.start"]
    total = torch.zeros((), dtype=dtype)
    all_logits = np.full((case["n"], case["n"]), -np.inf)
    for t, chosen in enumerate(order):
        h, c = lstm(p, "actor.decoder", x, h, c)
        candidates = candidates_after(case, sequence, order[:t])
        query = h
        for _ in range(case["glimpses"]):
            query = glimpse(p, "actor.glimpse", references, query, candidates)
        u = scores(p, "actor.pointer", references, query, candidates)
        if case["centre_logits"]:
            u = u - u.mean()
        logits = 10.0 * torch.tanh(u)
        if case["layers"]:
            logits = logits + prior(p, case, sequence, order[:t], candidates)
        logits = logits / case["temperature"]
        all_logits[t, candidates] = logits.detach().numpy()
        total = total + torch.log_softmax(logits, 0)[candidates.index(chosen)]
        x = p["actor.embedding.weight"] @ features[chosen]
    return total, all_logits


def critic_value(p, sequence, dtype):
    references, query, _ = encode(p, "critic", torch.tensor(sequence["features"], dtype=dtype))
    for _ in range(3):
        query = glimpse(p, "critic.process", references, query, range(len(references)))
    hidden = torch.relu(p["critic.head.fc1.weight"] @ query + p["critic.head.fc1.bias"])
    return (p["critic.head.fc2.weight"] @ hidden + p["critic.head.fc2.bias"])[0]


# --- Cases ---


def make_sequences(case, count=3):
    sequences = []
    for s in range(count):
        features = uniforms(f"{case['problem']} {s}", 2 * case["n"]).astype(np.float32).reshape(-1, 2)
        sequences.append({"features": features, "weights": features[:, 0].astype(np.float64),
                          "capacity": case["capacity"]})
    return sequences


def random_order(case, sequence, name):
    order = []
    for u in uniforms(name, case["n"]):
        candidates = candidates_after(case, sequence, order)
        if not candidates:
            break
        order.append(candidates[int(u * len(candidates))])
    return order


def train(parameters, loss):
    """The gradient of loss(1.0), then ten Adam steps on loss(FACTORS[t]); also the norms before clipping."""
    start = {name: p.detach().clone() for name, p in parameters.items()}
    loss(1.0).backward()
    gradient = {name: p.grad.clone() for name, p in parameters.items()}
    adam = torch.optim.Adam(parameters.values(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8)
    norms = []
    for factor in FACTORS:
        adam.zero_grad()
        loss(factor).backward()
        norm = torch.sqrt(sum((p.grad**2).sum() for p in parameters.values()))
        norms.append(norm.item())
        for p in parameters.values():
            p.grad *= min(1.0, MAX_NORM / norm.item())
        adam.step()
    movement = {name: p.detach() - start[name] for name, p in parameters.items()}
    return gradient, movement, norms


def run_actor(case, dtype):
    sequences = make_sequences(case)
    owner = [0, 0, 1, 2, 2]  # which sequence each rollout belongs to
    weights = np.array([0.5, -1.0, 0.75, 1.5, -0.5], dtype=np.float32) / 128
    orders = [random_order(case, sequences[s], f"{case['problem']} order {r}") for r, s in enumerate(owner)]
    parameters = make_parameters(case, "actor.", dtype)

    def loss(factor):
        return sum(factor * float(weights[r]) * log_prob(parameters, case, sequences[s], orders[r], dtype)[0]
                   for r, s in enumerate(owner))

    rollouts = [log_prob(parameters, case, sequences[s], orders[r], dtype) for r, s in enumerate(owner)]
    gradient, movement, norms = train(parameters, loss)
    padded = np.full((len(owner), case["n"]), -1, dtype=np.int32)
    for r, order in enumerate(orders):
        padded[r, :len(order)] = order
    tensors = {
        "features": np.stack([s["features"] for s in sequences]),
        "weights": np.stack([s["weights"] for s in sequences]),
        "counts": np.array([2, 1, 2], dtype=np.int32), "orders": padded, "order_weights": weights,
        "logits": np.stack([logits for _, logits in rollouts]),
        "log_probs": np.array([value.item() for value, _ in rollouts]), "norms": np.array(norms),
    }
    return tensors, gradient, movement


def run_critic(case, dtype):
    sequences = make_sequences(case)
    targets = np.array([3.5, 4.25, 5.0], dtype=np.float32)
    parameters = make_parameters(case, "critic.", dtype)

    def loss(factor):
        return factor * CRITIC_WEIGHT * sum((critic_value(parameters, s, dtype) - float(t))**2
                                            for s, t in zip(sequences, targets))

    values = np.array([critic_value(parameters, s, dtype).item() for s in sequences])
    gradient, movement, norms = train(parameters, loss)
    tensors = {"features": np.stack([s["features"] for s in sequences]), "targets": targets, "values": values,
               "norms": np.array(norms)}
    return tensors, gradient, movement


def signs(name, count):
    return np.where(uniforms(name, count) < 0.5, -1.0, 1.0)


def summaries(prefix, name, values):
    values = values.numpy()
    largest = {f"{prefix}/{name}/largest": np.array([np.abs(values).max()])}
    if values.size <= SMALL:
        return {**largest, f"{prefix}/{name}/full": values.astype(np.float32)}
    return {**largest,
            f"{prefix}/{name}/rows": (values @ signs(name + "/in", values.shape[1])).astype(np.float32),
            f"{prefix}/{name}/columns": (signs(name + "/out", values.shape[0]) @ values).astype(np.float32),
            f"{prefix}/{name}/sample": values.reshape(-1)[::STRIDE].astype(np.float32)}


def all_cases():
    cases = []
    for problem, capacity in (("tsp", 0.0), ("knapsack", 2.5)):
        for glimpses in (0, 1, 2):
            for centre in (True, False):
                name = f"{problem}_glimpses{glimpses}_{'centred' if centre else 'literal'}"
                cases.append({"name": name, "problem": problem, "n": 10, "capacity": capacity,
                              "glimpses": glimpses, "centre_logits": centre, "temperature": 1.0,
                              "layers": 0, "network": "actor", "initial": False})
    cases.append(dict(cases[2], name="tsp_glimpses1_temperature", temperature=1.6))
    cases.append(dict(cases[2], name="tsp_glimpses1_initial", initial=True))
    cases.append(dict(cases[8], name="knapsack_glimpses1_initial", initial=True))
    cases.append(dict(cases[2], name="critic", network="critic"))
    attention = {"layers": 2, "heads": 8, "feed_forward": 48}
    cases.append(dict(cases[2], name="tsp_attention", temperature=1.6, **attention))
    cases.append(dict(cases[8], name="knapsack_attention", **attention))
    return cases


def run(case, dtype):
    return (run_actor if case["network"] == "actor" else run_critic)(case, dtype)


def write_safetensors(path, metadata, tensors):
    names = {"float32": "F32", "float64": "F64", "int32": "I32"}
    header, offset = {"__metadata__": {key: str(value) for key, value in metadata.items()}}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": names[str(values.dtype)], "shape": list(values.shape),
                        "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values).tobytes())


def report_single(case):
    """Largest distance of plain float32 from float64, relative to the tensor's largest magnitude."""
    (tensors, gradient, movement), (tensors32, gradient32, movement32) = run(case, torch.float64), run(
        case, torch.float32)
    key = "log_probs" if case["network"] == "actor" else "values"
    relative = np.max(np.abs(tensors32[key] / tensors[key] - 1.0))
    norms = tensors["norms"]
    print(f"{case['name']}: {key} {relative:.1e}, norm {norms.min():.2g} .. {norms.max():.2g}")
    for name, exact in gradient.items():
        off = (gradient32[name].double() - exact).abs().max() / exact.abs().max()
        move = (movement32[name].double() - movement[name]).abs()
        print(f"    {name:28s} gradient {off:.1e} of {exact.abs().max():.1e}; after Adam rms"
              f" {(move**2).mean().sqrt() / LEARNING_RATE:.1e}, most {move.max() / LEARNING_RATE:.1e}"
              " learning rates")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--single", action="store_true", help="print the distance of float32 from float64")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these cases")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for case in all_cases():
        if arguments.only and case["name"] not in arguments.only:
            continue
        if arguments.single:
            report_single(case)
            continue
        tensors, gradient, movement = run(case, torch.float64)
        for name in gradient:
            tensors.update(summaries("gradient", name, gradient[name]))
            # There Adam would only divide rounding by rounding: of all gradients, or of that of the keys' bias, which is 0.
            if not case["initial"] and case["layers"] == 0:
                tensors.update(summaries("movement", name, movement[name]))
        # Booleans as 0 and 1.
        metadata = {key: int(value) if isinstance(value, bool) else value for key, value in case.items()}
        write_safetensors(pathlib.Path(__file__).parent / (case["name"] + ".safetensors"), metadata, tensors)


if __name__ == "__main__":
    main()
