#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scores models on the evaluation sets: rows in a file for each. results.py makes the tables of them.
#
#   bench/results/evaluate.sh DATA OUTPUT [MODEL ...]
#
#   DATA       folder of {tsp20,tsp50,tsp100,knap50,knap100,knap200}_test.npy and tsp200.npy, and of their optima, *.opt.npy
#   OUTPUT     for MODEL.jsonl.gz: a row a strategy, and the rows of the search for its T* on other instances. A file
#              that is there is complete and stays; one that was interrupted starts again
#   MODEL      a name (default: those of the six sets, as far as they are there); how it begins names its set
#
# POINTSMAN names the program (default: build/host/pointsman). Needs python3.
set -euo pipefail
shopt -s inherit_errexit

pointsman=${POINTSMAN:-$(dirname "$0")/../../build/host/pointsman}
[ $# -ge 2 ] || { sed -n '3,12s/^# \{0,1\}//p' "$0" && exit 2; }
data=$1 output=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$output"

is_there() { "$pointsman" info "$1" --format json >"$folder/info" 2>&1; }

# orders: what makes an LSTM model read the items in other orders; the attention encoder has no use for it. After is_there.
orders() { grep -q '"encoder": *"attention"' "$folder/info" || echo +shuffle; }

# first SOURCE COUNT TARGET: the first rows of a NumPy file, at most all of them; its header stays as long as it was.
first() {
  python3 - "$@" <<'END'
import re, sys
source, count, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(source, "rb") as file:
    header, data = file.read().split(b"\n", 1)
rows = int(re.search(rb"'shape': \((\d+)", header)[1])
count = min(count, rows)
shorter = re.sub(rb"'shape': \(\d+", b"'shape': (%d" % count, header.rstrip())
with open(target, "wb") as file:
    file.write(shorter.ljust(len(header)) + b"\n" + data[:len(data) // rows * count])
END
}

# evaluate MODEL SET.npy MODES: rows on stdout; the optima are SET.opt.npy where they are known.
evaluate() {
  local reference=()
  if [ -f "${2%.npy}.opt.npy" ]; then reference=(--ref "${2%.npy}.opt.npy"); fi
  "$pointsman" eval "$2" -m "$1" --modes "$3" --format ndjson "${reference[@]}" "${capacity[@]}"
}

# tune MODEL MODE: rows on stdout, and in `tuned` the mode at T*, the temperature with the best mean over 30 instances that
# are in no test set; empty where T* is 1.
tune() {
  local modes=$2 temperature
  "$pointsman" generate "$problem" -n "$n" -s 4321 -b 30 -o "$folder/validation.npy" --force
  for temperature in 0.35 0.5 0.7 1.5 2; do modes+=,$2+t$temperature; done
  evaluate "$1" "$folder/validation.npy" "$modes" | tee "$folder/validation.jsonl"
  temperature=$(python3 - "$folder/validation.jsonl" "$problem" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
sign = 1 if sys.argv[2] == "tsp" else -1  # a packing's mean is its value
print(f"{min(rows, key=lambda row: sign * row['mean_cost'])['temperature']:g}")
END
  )
  tuned=$([ "$temperature" = 1 ] || echo ",$2+t$temperature")
}

# After `choose_set`: the rows of a model, and of what needs none, on all instances, then on the first 100, 20 or 10.
tsp_rows() {
  local shuffle best
  shuffle=$(orders) best=sample+1280+x8$shuffle
  tune "$1" "$best"
  # 16 tours: greedy ones where orders give so many, else the coldest samples.
  local sixteen=${shuffle:+greedy+16+x8+shuffle}
  sixteen=${sixteen:-sample+16+x8+t0.35}
  evaluate "$1" "$all" "greedy,greedy+x8,$sixteen,greedy+x8+improve,local,local+$n,local+$((10 * n)),random+1280"
  evaluate "$1" "$first100" "sample+128,sample+1280,${shuffle:+sample+1280+x8,}$best$tuned,sample+1280+x8+improve"
  evaluate "$1" "$first_few" sample+12800,sample+12800+x8,active+12800+x8 # 100 steps of 128
}
knapsack_rows() {
  local shuffle best
  shuffle=$(orders) best=sample+1280$shuffle
  tune "$1" "$best"
  evaluate "$1" "$all" greedy,ratio,exact,random+1280
  evaluate "$1" "$first100" "sample+128${shuffle:+,sample+1280},$best$tuned"
  evaluate "$1" "$first_few" sample+12800,active+12800
}

# choose_set SET: problem, n, capacity and where the instances lie.
choose_set() {
  n=${1//[a-z]/} problem=tsp capacity=() all=$data/$1_test.npy
  if [ ! -f "$all" ]; then all=$data/$1.npy; fi
  first100=$folder/$1_first100.npy
  few=$([ "$n" -lt 100 ] && echo 20 || echo 10)
  first_few=$folder/$1_first$few.npy
  if [[ $1 = knap* ]]; then
    problem=knapsack capacity=(--problem knapsack --capacity "$([ "$n" -le 50 ] && echo 12.5 || echo 25)")
  fi
  for count in 100 "$few"; do
    first "$all" "$count" "$folder/$1_first$count.npy"
    first "${all%.npy}.opt.npy" "$count" "$folder/$1_first$count.opt.npy"
  done
}

[ $# -gt 0 ] || set -- {tsp20,tsp50,tsp100,tsp200,knap50,knap100,knap200}{,-lstm}
for model in "$@"; do
  if [[ ! $model =~ ^(tsp|knap)[0-9]+ ]]; then
    echo "$model: expected a name that begins with its set, as tsp50" >&2 && exit 2
  fi
  target=$output/$model.jsonl.gz
  if [ -f "$target" ]; then
    echo "$target is there" >&2
  elif is_there "$model"; then
    echo "making $target" >&2
    choose_set "${BASH_REMATCH[0]}"
    "${problem}_rows" "$model" | gzip -9n >"$target.part"
    mv "$target.part" "$target"
  else
    echo "no model $model" >&2
  fi
done
