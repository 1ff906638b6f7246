#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies what bench/gpu/check.sh runs out of a build tree, stripped, with the libraries it needs, so that a machine with a
# GPU needs neither compiler nor toolkit:
#
#   cmake -S . -B build-gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DPOINTSMAN_CUDA=ON -DPOINTSMAN_BUILD_BENCH=ON \
#     -DPOINTSMAN_CUDA_ARCHITECTURES=90-real
#   cmake --build build-gpu --target pointsman pointsman_cuda test_cuda_device pointsman_bench bench_lstm bench_encoder
#   bench/gpu/pack.sh build-gpu FOLDER
#   bench/gpu/check.sh --build FOLDER --output DIR compare test bench sanitize        (there)
#
# Both machines must be x86-64, and the other's C and C++ libraries no older. cuBLAS and cuDNN are the other's: the
# toolkit's, or those of NVIDIA's Python packages.
set -euo pipefail

build=${1:?"usage: pack.sh BUILD FOLDER"}
folder=${2:?"usage: pack.sh BUILD FOLDER"}
files=(host/pointsman bench/pointsman-bench bench/bench_lstm bench/bench_encoder tests/kernels/cuda/test_cuda_device)
mapfile -t modules < <(cd "$build" && find lib/pointsman -name '*.so')
system='^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcublas|libcublasLt|libcudnn.*|libcuda)\.'

rm -rf "$folder"
for file in "${files[@]}" "${modules[@]}"; do
  mkdir -p "$folder/$(dirname "$file")"
  strip -o "$folder/$file" "$build/$file"
done
mkdir -p "$folder/libraries"
for file in "${files[@]}" "${modules[@]}"; do ldd "$build/$file"; done |
  awk '$2 == "=>" && $3 ~ "^/" { print $1, $3 }' | sort -u | grep -Ev "$system" |
  while read -r name path; do cp -L "$path" "$folder/libraries/$name"; done
echo "$folder: $(du -sm "$folder" | cut -f 1) MiB"
