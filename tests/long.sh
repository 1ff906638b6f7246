#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for every change: ThreadSanitizer and AddressSanitizer over all tests, races of CUDA kernels in large
# tiles, a rehearsal of bench/gpu/check.sh, a billion quotients, 20,000 packings, samples of the large models, 100,000 tours,
# 100,000 own problems, half an hour of changed files for the readers, the planted faults, 2,200 kills and 1,400 limits, every
# allocation refused, to the program (hours) and the library, and the package in a bare Debian 12.
# With the path of an earlier build's `pointsman` as argument also the comparison of all answers.
#   tests/long.sh [BEFORE]
set -euo pipefail
cd "$(dirname "$0")/.."

for preset in tsan asan; do
  cmake --preset "$preset" && cmake --build --preset "$preset" && ctest --preset "$preset"
done
cmake --preset default && cmake --build --preset default --target pointsman pointsman_bench \
  pointsman_cuda_emulated fake_driver test_cuda_races test_cuda_{arithmetic,backend,decode,precision,shapes,sums}_emulated
for schedule in forward reverse; do
  for name in backend decode precision shapes; do
    POINTSMAN_EMULATION_SCHEDULE=$schedule "build/tests/cuda_emulation/test_cuda_${name}_emulated"
  done
done
build/tests/cuda_emulation/test_cuda_races '[race],[large]'
build/tests/cuda_emulation/test_cuda_arithmetic_emulated '[.long]'
python3 tests/cuda_emulation/rehearse_check.py build
cmake --build --preset default --target test_exact_packings test_tsptw test_shipped_models test_own
build/tests/test_exact_packings '[.long]'
build/tests/test_tsptw '[.long]'
build/tests/test_shipped_models '[.long]'
build/tests/test_own '[.long]'
build-asan/tests/fuzz/fuzz_readers --seconds 1800 --seed "$RANDOM"
python3 tests/mutants/run.py build-mutants
cmake --preset default && cmake --build --preset default --target pointsman fail_malloc test_library_faults test_large_distances
build/tests/test_large_distances '[.long]'
python3 tests/faults/kills.py build/host/pointsman
build/tests/test_library_faults '[.every]'
python3 tests/faults/allocations.py build/host/pointsman build/tests/libfail_malloc.so
python3 tests/faults/allocations.py build/host/pointsman build/tests/libfail_malloc.so --every 101 \
  --leaks "$(g++ -print-file-name=liblsan.so)"
(cd build && cmake --build . && cpack -G DEB) && tests/host/debian_root.sh build/pointsman_*.deb
if (($# > 0)); then
  python3 tests/same_answers.py "$1" build/host/pointsman
fi
