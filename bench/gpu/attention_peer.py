#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's scaled_dot_product_attention on the shapes of bench_encoder's self-attention, by each of the kernels that
PyTorch chooses from, cuDNN's among them: rows of the report, one JSON object a line.

    python3 bench/gpu/attention_peer.py [--device cuda] [--sequences 10000] [--seconds 0.2]

Queries, keys and values lie side by side, [sequences, n, 3, heads, 16], as the linear layer before leaves them. In bf16
they are bf16 already, so that half as many bytes are read as by ours, which reads fp32.
"""
import argparse
import json
import os
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from torch_twin import captured, event_times, seconds_of  # noqa: E402

HEADS, WIDTH = 8, 16
BACKENDS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
            "memory-efficient": SDPBackend.EFFICIENT_ATTENTION, "unfused": SDPBackend.MATH}


def measure(backend, qkv, seconds):
    """Milliseconds of each run by one kernel, and the largest difference from the same sum in double precision."""
    q, k, v = qkv.permute(2, 0, 3, 1, 4)

    def run():
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v)

    few = qkv[:16].double().permute(2, 0, 3, 1, 4)
    exact = torch.softmax(few[0] @ few[1].transpose(2, 3) / WIDTH**0.5, 3) @ few[2]
    error = (run()[:16].double() - exact).abs().max().item()
    if not error <= (2.0**-6 if qkv.dtype == torch.bfloat16 else 1e-5):
        raise RuntimeError(f"{error} from double precision")
    return (event_times(captured(run), seconds) if qkv.is_cuda else [1e3 * seconds_of(run)]), error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sequences", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    for n in (20, 50, 100):
        uniform = 2 * torch.rand(options.sequences, n, 3, HEADS, WIDTH, device=options.device) - 1
        for dtype, precision in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
            for name, backend in BACKENDS.items():
                row = {"name": "self_attention", "variant": f"PyTorch {name}, {precision}", "n": n,
                       "batch": options.sequences}
                try:
                    times, error = measure(backend, uniform.to(dtype), options.seconds)
                    middle = times[len(times) // 2]
                    row.update(ms=middle, spread=(times[-1] - times[0]) / middle, runs=len(times),
                               per_second=1e3 * options.sequences / middle, from_double=error)
                except RuntimeError as failure:  # a kernel that does not take these arguments
                    row["skipped"] = str(failure).splitlines()[0][:300]
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
