#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CUDA half on a machine that has a GPU: builds, tests, sanitizes, measures one device, and leaves one report.
# Needs nvcc, CMake, a C++20 compiler and what install.sh installs, or a tree that was built elsewhere (pack.sh), and
# python3; no network.
#
#   bench/gpu/check.sh --output DIR [flags] [stage ...]
#
#   build      the program, its CUDA module, the device tests and the benches, Release
#   compare    what the device is; the same tours from the same seeds on cuda and cpu
#   test       the CUDA tests on the GPU, each in a process of its own
#   bench      the engine's calls with both encoders, the LSTM beside cuDNN, mode 2opt
#   sanitize   compute-sanitizer's four tools on the cases tagged [race]
#   torch      PyTorch's fused attention, and the network's twin on the same GPU: eager, as CUDA graphs, compiled
#   profile    Nsight Compute's counters of the main kernels, and what their warps wait for at each instruction
#
# Without stages: the first five. None takes ten minutes. A stage that fails or runs out of its time stops no other and keeps
# the rows that it had, and a stage named again replaces its part of the report: `check.sh torch` goes on where the
# first call ended, and a tree built elsewhere (pack.sh) needs no stage `build`.
#
#   --output DIR         where report.md, rows.jsonl and the stages' logs go
#   --build DIR          build tree, or pack.sh's folder (default: build-cuda)
#   --limit SECONDS      for the whole call (default: 570)
# shellcheck disable=SC2317 # stages run in shells of their own, under a time limit
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build-cuda
output=
limit=570
stages=()
declare -A seconds_of=([build]=300 [compare]=60 [test]=120 [bench]=360 [sanitize]=200 [torch]=400 [profile]=240)

usage() {
  sed -n '3,${/^# shellcheck/q;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  exit "$1"
}

while [ $# -gt 0 ]; do
  case $1 in
    --build | --output | --limit)
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
[ ${#stages[@]} -gt 0 ] || stages=(build compare test bench sanitize)
[ -n "$output" ] || { echo "check.sh: expected --output DIR, found none" >&2 && usage 2; }

mkdir -p "$build" "$output"
output=$(cd "$output" && pwd)
build=$(cd "$build" && pwd)
state=$build/gpu_check # a stage's rows, log and result, until the report is made of them
mkdir -p "$state"
export root build state output
PATH=$PATH:/usr/local/cuda/bin
# NVIDIA's Python packages, which hold cuBLAS and cuDNN where the toolkit comes without.
packages=$(python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null)
LD_LIBRARY_PATH=$build/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
while read -r package; do
  [ -n "$package" ] || continue
  for folder in "$package"/*/lib; do LD_LIBRARY_PATH+=:$folder; done
done <<<"$packages"
export PATH LD_LIBRARY_PATH packages

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

# Runs a program that prints rows, for so many seconds at most; says so in a row when it fails.
measure() {
  local code=0 arguments="${*:3}"
  echo "--- ${*:2} ---" >&2
  timeout --kill-after=5 "$1" "${@:2}" || code=$?
  [ "$code" -eq 0 ] || row_of_code failed "$(basename "$2")${arguments:+ $arguments}" "$code"
  return "$code"
}

# The engine's calls on the GPU, a row at a time.
bench_engine() {
  measure "$1" "$build/host/pointsman" bench "${@:2}" --device cuda --format ndjson
}

stage_build() {
  local nvcc toolkit package flags=()
  nvcc=$(command -v nvcc) || { echo "no nvcc" && return 1; }
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  flags+=("-DCMAKE_CUDA_COMPILER=$nvcc")
  while read -r package; do
    if [ -e "$package/cudnn/include/cudnn.h" ]; then flags+=("-DPOINTSMAN_CUDNN=$package/cudnn"); fi
    if ! find -L "$toolkit" -name cublas_v2.h 2>/dev/null | grep -q . && [ -e "$package/cu13/include/cublas_v2.h" ]; then
      export CPLUS_INCLUDE_PATH=$package/cu13/include
      flags+=("-DCUDA_cublas_LIBRARY=$package/cu13/lib/libcublas.so.13"
        "-DCUDA_cublasLt_LIBRARY=$package/cu13/lib/libcublasLt.so.13")
    fi
  done <<<"$packages"
  if command -v ninja >/dev/null; then flags+=(-G Ninja); fi
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DPOINTSMAN_CUDA=ON -DPOINTSMAN_BUILD_BENCH=ON \
    "${flags[@]}" >&2 &&
    cmake --build "$build" --parallel "$(nproc)" \
      --target pointsman pointsman_cuda test_cuda_device pointsman_bench bench_lstm bench_encoder >&2
}

stage_compare() {
  local encoder worst=0
  "$build/host/pointsman" info --device cuda >&2 || worst=1
  for encoder in lstm attention; do bench_engine 30 compare --encoder "$encoder" || worst=1; done
  return "$worst"
}

# case_row SECONDS NAME VARIANT CASE [WRAPPER ...]: one case in a process of its own, so that a hang or a sticky error costs
# no other case.
case_row() {
  local code=0 log
  log=$(mktemp -p "$state")
  timeout --kill-after=5 "$1" "${@:5}" "$build/tests/kernels/cuda/test_cuda_device" "${4//,/\\,}" --durations yes >"$log" 2>&1 || code=$?
  flock "$state" cat "$log" >&2
  rm "$log"
  row_of_code "$2" "${3//\"/}" "$code"
}
device_case() { case_row 20 device_tests "$1" "$1"; }
sanitize_case() { # TOOL NAME, in one word
  local tool=${1%% *} flags=()
  # The program checks the result of each call of the runtime and expects one to fail: that is no finding.
  [ "$tool" != memcheck ] || flags=(--report-api-errors no)
  case_row 190 sanitize "$tool: ${1#* }" "${1#* }" compute-sanitizer --tool "$tool" "${flags[@]}" --error-exitcode 9
}

# The names of all cases, or of those with a tag. Catch2 3 prints them for the first flags; 2 begins that list with a title,
# and prints them for another.
device_cases() {
  local test=$build/tests/kernels/cuda/test_cuda_device names
  names=$("$test" "$@" --list-tests --verbosity quiet)
  [[ $names != All* && $names != Matching* ]] || names=$("$test" "$@" --list-test-names-only)
  echo "$names"
}

# run_cases FUNCTION: calls it with each line of stdin, six at once.
run_cases() {
  xargs -d '\n' -P 6 -n 1 bash -c "$1 \"\$0\"" | tee "$state/cases"
  ! grep -q '"pass": false' "$state/cases" && [ -s "$state/cases" ]
}

stage_test() { device_cases | run_cases device_case; }

stage_bench() {
  local part encoder n worst=0
  for encoder in lstm attention; do
    for part in greedy train active sample; do bench_engine 40 "$part" --seconds 0.2 --encoder "$encoder" || worst=1; done
  done
  measure 60 "$build/bench/bench_lstm" || worst=1
  measure 40 "$build/bench/bench_encoder" || worst=1
  for n in 20 50 100; do
    "$build/host/pointsman" generate tsp -n "$n" -b 10000 -q -f -o "$state/tours.npy"
    measure 40 "$build/host/pointsman" eval "$state/tours.npy" --modes "2opt,2opt+$((4 * n)),2opt+$((64 * n))" --device cuda \
      --format ndjson || worst=1
  done
  return "$worst"
}

stage_sanitize() {
  local tool
  if ! command -v compute-sanitizer >/dev/null; then
    row sanitize compute-sanitizer '"skipped": "no compute-sanitizer"'
    return 0
  fi
  for tool in racecheck memcheck synccheck initcheck; do device_cases '[race]' | sed "s/^/$tool /"; done | run_cases sanitize_case
}

stage_torch() {
  local worst=0
  measure 60 python3 "$root/bench/gpu/attention_peer.py" || worst=1
  bench_engine 330 torch --twin "$root/bench/torch_twin.py" || worst=1
  return "$worst"
}

# One launch of each of the kernels that take most of the time, with the bench that calls it: Nsight Compute's counters, and
# by instruction what warps wait for (profile.KERNEL.csv.gz).
stage_profile() {
  local kernel command code worst=0
  if ! command -v ncu >/dev/null; then
    row profile ncu '"skipped": "no ncu"'
    return 0
  fi
  while read -r kernel command; do
    code=0
    # shellcheck disable=SC2086 # several words
    timeout --kill-after=5 45 ncu --kernel-name "regex:$kernel" --launch-skip 3 --launch-count 1 --kill yes --set full \
      --clock-control none --force-overwrite --export "$state/$kernel" "$build/"$command </dev/null >&2 || code=$?
    ncu --import "$state/$kernel.ncu-rep" --page details >&2
    ncu --import "$state/$kernel.ncu-rep" --page source --csv 2>/dev/null | gzip -9 >"$state/profile.$kernel.csv.gz"
    row_of_code profile "$kernel" "$code"
    [ "$code" -eq 0 ] || worst=1
  done <<'LIST'
decode_cluster_kernel bench/pointsman-bench bench train --device cuda
decode_kernel bench/pointsman-bench bench greedy --device cuda
lstm_forward_cluster_kernel bench/bench_lstm
step_gradients_kernel bench/pointsman-bench bench train --device cuda
item_gradients_kernel bench/pointsman-bench bench train --device cuda
LIST
  cp "$state"/profile.*.csv.gz "$output"
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

export -f row row_of_code measure bench_engine case_row device_case device_cases sanitize_case run_cases stage_build stage_compare stage_test stage_bench stage_sanitize stage_torch stage_profile

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
