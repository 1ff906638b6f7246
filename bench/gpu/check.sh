#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CUDA half on a machine that has a GPU: builds, tests, sanitizes, measures one device, and leaves one report.
# Needs nvcc, CMake, a C++20 compiler and python3; no network.
#
#   bench/gpu/check.sh --output DIR [flags] [stage ...]
#
#   build      the program, its CUDA module, the device tests and the benches, Release
#   compare    what the device is; the same tours from the same seeds on cuda and cpu
#   test       the CUDA tests on the GPU
#   bench      every operation beside its floor, the LSTM beside cuDNN, the engine's calls
#   sanitize   compute-sanitizer's four tools on the cases tagged [race]
#   torch      PyTorch's twin on the same GPU: eager, as CUDA graphs, compiled
#   train      a minute and a half of training, with a checkpoint
#   profile    Nsight Compute's counters of each kernel: how busy the units are, and what its warps wait for
#
# Without stages: the first five. None takes ten minutes. A stage that fails or runs out of its time stops no other and keeps
# the rows that it had, and a stage named again replaces its part of the report: `check.sh torch train` goes on where the
# first call ended, and a tree built elsewhere needs no stage `build`.
#
#   --output DIR         where report.md, rows.jsonl and the stages' logs go
#   --dependencies DIR   headers and libraries of collect_dependencies.sh, where the packages are not installed
#   --build DIR          build tree (default: build-cuda)
#   --limit SECONDS      for the whole call (default: 570)
# shellcheck disable=SC2317 # stages run in shells of their own, under a time limit
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build-cuda
output=
dependencies=
limit=570
stages=()
declare -A seconds_of=([build]=300 [compare]=60 [test]=90 [bench]=260 [sanitize]=120 [torch]=400 [train]=150 [profile]=240)

usage() {
  sed -n '3,24s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit "$1"
}

while [ $# -gt 0 ]; do
  case $1 in
    --dependencies | --build | --output | --limit)
      [ $# -ge 2 ] || usage 2
      declare "${1#--}=$2"
      shift
      ;;
    --help | -h) usage 0 ;;
    *)
      [ -n "${seconds_of[$1]:-}" ] || usage 2
      stages+=("$1")
      ;;
  esac
  shift
done
if [ -n "$dependencies" ]; then dependencies=$(cd "$dependencies" && pwd) || exit 2; fi
[ ${#stages[@]} -gt 0 ] || stages=(build compare test bench sanitize)
[ -n "$output" ] || { echo "check.sh: expected --output DIR, found none" >&2 && usage 2; }

mkdir -p "$build"
build=$(cd "$build" && pwd)
state=$build/gpu_check # a stage's rows, log and result, until the report is made of them
mkdir -p "$state"
export root build state
PATH=$PATH:/usr/local/cuda/bin
export PATH

# A row of the report: name, variant, more JSON.
row() {
  printf '{"name": "%s", "variant": "%s", "n": 0, "batch": 0, %s}\n' "$1" "$2" "$3"
}

# A row that passed if the exit code is 0.
row_of_code() {
  local pass=true
  [ "$3" -eq 0 ] || pass=false
  row "$1" "$2" "\"pass\": $pass, \"error\": \"exit code $3\""
}

# Runs a program that prints rows; says so in a row when it fails.
measure() {
  local code=0
  echo "--- $* ---" >&2
  "$@" || code=$?
  [ "$code" -eq 0 ] || row_of_code failed "$(basename "$1") ${*:2}" "$code"
  return "$code"
}

# The engine's calls on the GPU, a row at a time.
bench_engine() {
  measure "$build/host/pointsman" bench "$@" --device cuda --format ndjson
}

# Folders of NVIDIA's Python packages, which hold cuBLAS and cuDNN where the toolkit comes without.
python_packages() {
  python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null
}

stage_build() {
  local nvcc toolkit package flags=()
  nvcc=$(command -v nvcc) || { echo "no nvcc" && return 1; }
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  flags+=("-DCMAKE_CUDA_COMPILER=$nvcc")
  if [ -n "$dependencies" ]; then
    flags+=("-DCMAKE_PREFIX_PATH=$dependencies" "-Dhwy_DIR=$dependencies/lib/x86_64-linux-gnu/cmake/hwy")
  fi
  while read -r package; do
    if [ -e "$package/cudnn/include/cudnn.h" ]; then flags+=("-DPOINTSMAN_CUDNN=$package/cudnn"); fi
    if ! find -L "$toolkit" -name cublas_v2.h 2>/dev/null | grep -q . && [ -e "$package/cu13/include/cublas_v2.h" ]; then
      export CPLUS_INCLUDE_PATH=$package/cu13/include
      flags+=("-DCUDA_cublas_LIBRARY=$package/cu13/lib/libcublas.so.13"
        "-DCUDA_cublasLt_LIBRARY=$package/cu13/lib/libcublasLt.so.13")
    fi
  done < <(python_packages)
  if command -v ninja >/dev/null; then flags+=(-G Ninja); fi
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DPOINTSMAN_CUDA=ON -DPOINTSMAN_BUILD_BENCH=ON \
    "${flags[@]}" >&2 &&
    cmake --build "$build" --parallel "$(nproc)" \
      --target pointsman pointsman_cuda test_cuda_device pointsman_bench bench_operations >&2
}

stage_compare() {
  "$build/host/pointsman" info --device cuda >&2 && bench_engine compare
}

stage_test() {
  local code=0
  "$build/tests/kernels/cuda/test_cuda_device" --durations yes >&2 || code=$?
  row_of_code device_tests test_cuda_device "$code"
  return "$code"
}

stage_bench() {
  local part worst=0
  for part in decode training 2opt; do measure "$build/bench/bench_operations" "$part" || worst=1; done
  bench_engine sample greedy train active || worst=1
  measure "$build/bench/bench_operations" lstm || worst=1
  return "$worst"
}

stage_sanitize() {
  local tool code worst=0
  if ! command -v compute-sanitizer >/dev/null; then
    row sanitize compute-sanitizer '"skipped": "no compute-sanitizer"'
    return 0
  fi
  for tool in memcheck racecheck synccheck initcheck; do
    echo "--- $tool ---" >&2
    code=0
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/kernels/cuda/test_cuda_device" '[race]' >&2 || code=$?
    row_of_code sanitize "$tool" "$code"
    [ "$code" -eq 0 ] || worst=1
  done
  return "$worst"
}

stage_torch() {
  bench_engine torch
}

stage_train() {
  local folder=$state/training
  mkdir -p "$folder"
  "$build/host/pointsman" train tsp -n 50 --device cuda --batch-size 512 --time-limit 90 --log "$folder/log.jsonl" \
    --checkpoint "$folder/tsp50.ckpt" --output "$folder/tsp50.safetensors" --force >&2 || return
  tail -n 3 "$folder/log.jsonl" >&2
}

# Of the first launches of each of the engine's calls; what a kernel costs there is a mean of them.
stage_profile() {
  local call code worst=0
  if ! command -v ncu >/dev/null; then
    row profile ncu '"skipped": "no ncu"'
    return 0
  fi
  for call in sample greedy train; do
    code=0
    ncu --target-processes all --launch-count 60 --print-summary per-kernel --section SpeedOfLight --section Occupancy \
      --section LaunchStats --section SchedulerStats --section WarpStateStats \
      "$build/host/pointsman" bench "$call" --device cuda --turns 1 --seconds 0.01 --quiet >&2 || code=$?
    row_of_code profile "$call" "$code"
    [ "$code" -eq 0 ] || worst=1
  done
  return "$worst"
}

machine() {
  date -u '+%Y-%m-%d %H:%M UTC'
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit --format=csv 2>/dev/null ||
    echo "no nvidia-smi"
  nvcc --version 2>&1 | grep release
  cmake --version | head -n 1
  c++ --version | head -n 1
  git -C "$root" rev-parse HEAD 2>/dev/null
  lscpu | grep -E 'Model name|^CPU\(s\)'
}

export dependencies
export -f row row_of_code measure bench_engine python_packages stage_build stage_compare stage_test stage_bench stage_sanitize stage_torch stage_train stage_profile

machine >"$state/machine.txt"
failed=0
for stage in "${stages[@]}"; do
  left=$((limit - SECONDS))
  allowed=${seconds_of[$stage]}
  [ "$left" -ge "$allowed" ] || allowed=$left
  start=$SECONDS
  code=124
  echo "$stage: at most $allowed s"
  if [ "$allowed" -gt 0 ]; then
    timeout --kill-after=5 "$allowed" bash -c "stage_$stage" >"$state/$stage.rows" 2>"$state/$stage.log"
    code=$?
  fi
  printf '{"stage": "%s", "code": %d, "seconds": %d, "limit": %d}\n' "$stage" "$code" "$((SECONDS - start))" "$allowed" \
    >"$state/$stage.result"
  echo "$stage: exit code $code after $((SECONDS - start)) s"
  if [ "$code" -ne 0 ]; then
    failed=1
    tail -n 5 "$state/$stage.log"
  fi
done
python3 "$root/bench/gpu/report.py" "$state" "$output" || failed=1
echo "report: $output/report.md; $SECONDS s in all"
exit $failed
