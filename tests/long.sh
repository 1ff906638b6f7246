#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for every change: ThreadSanitizer and AddressSanitizer over all tests, half an hour of changed files
# for the readers, and the planted faults.
# With the path of an earlier build's `pointsman` as argument also the comparison of all answers.
#   tests/long.sh [BEFORE]
set -euo pipefail
cd "$(dirname "$0")/.."

for preset in tsan asan; do
  cmake --preset "$preset" && cmake --build --preset "$preset" && ctest --preset "$preset"
done
build-asan/tests/fuzz/fuzz_readers --seconds 1800 --seed "$RANDOM"
python3 tests/mutants/run.py build-mutants
if (($# > 0)); then
  cmake --preset default && cmake --build --preset default --target pointsman
  python3 tests/same_answers.py "$1" build/host/pointsman
fi
