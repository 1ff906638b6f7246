#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small trainings, one choice of the recipe changed at a time: bench/results/ablations.sh OUTPUT [VARIANT...]
# writes OUTPUT/<variant>_<seed>.jsonl, the training logs. What is there already is left alone, so that a stopped run goes on.
# The paper's network: at equal tours. All begin with the same model, OUTPUT/start.safetensors, made first: supervised
# learning on 128,000 tours, as fresh parameters would spend the whole run on the plateau at random tours.
# Encoder, layers and prior, the variants with CLOCK: from fresh parameters and for equal times. The steps that a variant
# has time for are those of its CPU time for 100 steps, so that work beside it does not count.
#   POINTSMAN  the program (build/host/pointsman)
#   TOURS      of each training at equal tours (96000)      CLOCK  seconds of each of the others (150)
#   SEEDS      ("1 2")       THREADS  (1)
set -euo pipefail
program=${POINTSMAN:-build/host/pointsman} tours=${TOURS:-96000} clock=${CLOCK:-150} seeds=${SEEDS:-1 2} threads=${THREADS:-1}
output=${1:?usage: ablations.sh OUTPUT [VARIANT...]}
shift
steps=$((tours / 128))
# variant, cities, tours a step, flags: 16 instances of 8 rollouts a step where nothing else is said
variants="shared-8           20 128 -b 16
shared-16          20 128 -b 8 --rollouts 16
critic             20 128 -b 128 --baseline critic
ema                20 128 -b 128 --baseline ema
rollout            20 128 -b 128 --baseline rollout
rate-3e-4          20 128 -b 16 --learning-rate 3e-4
rate-falling       20 128 -b 16 --decay-steps $((steps / 56))
last-tenth         20 128 -b 16 --decay 0.1 --decay-steps $((steps * 9 / 10))
batch-32x8         20 256 -b 32
entropy-0.05       20 128 -b 16 --entropy 0.05 --entropy-steps $steps
supervised         20 128 SUPERVISED
fresh              20 128 SUPERVISED FRESH
fresh-uncentred    20 128 SUPERVISED FRESH --centre-logits off
curriculum-50      50 128 SUPERVISED
fresh-50           50 128 SUPERVISED FRESH
attention          20 256 CLOCK
layers-2           20 256 CLOCK --layers 2
layers-1           20 256 CLOCK --layers 1
attention-only     20 256 CLOCK --prior off
lstm-and-prior     20 256 CLOCK --encoder lstm
lstm-only          20 256 CLOCK --encoder lstm --prior off
attention-50       50 256 CLOCK
attention-only-50  50 256 CLOCK --prior off
attention-100      100 256 CLOCK
attention-only-100 100 256 CLOCK --prior off
knapsack           50 256 CLOCK
knapsack-no-prior  50 256 CLOCK --prior off"
mkdir -p "$output"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# make_examples N: one for each tour of a supervised training, by a seed that no validation uses.
make_examples() {
  local examples=$scratch/examples$1
  [[ -f $examples.tours.npy ]] && return
  "$program" generate tsp -n "$1" -b "$tours" -s 77 -q -o "$examples.npy"
  "$program" solve "$examples.npy" -m tsp20 --mode greedy --improve on --kicks "$1" -q --format npy -o "$examples.tours.npy"
}

# train N FLAG ...: with SUPERVISED spelled out, and from the start model unless FRESH is among the flags.
train() {
  local n=$1 flags=" ${*:2} " start="--init $output/start.safetensors"
  if [[ $flags == *SUPERVISED* ]]; then make_examples "$n"; fi
  if [[ $flags == *FRESH* ]]; then start="--encoder lstm --prior off"; fi
  flags=${flags/SUPERVISED/-b 128 --rollouts 1 --instances $scratch/examples$n.npy --solutions $scratch/examples$n.tours.npy}
  # shellcheck disable=SC2086 # several words
  "$program" train tsp -n "$n" ${flags/FRESH/} $start -t "$threads" -f -q >"$scratch/answer"
}

# train_by_the_clock PROBLEM N FLAG ...: by policy gradient, 16 instances of 16 rollouts a step, the rate falling to a tenth.
train_by_the_clock() {
  local seconds steps TIMEFORMAT=%U
  local flags=("$1" -n "$2" -b 16 --rollouts 16 -t 1 -f -q -o "$scratch/model.safetensors" "${@:3}")
  seconds=$({ time "$program" train --steps 100 "${flags[@]}" >/dev/null; } 2>&1)
  steps=$(awk "BEGIN {print int(100 * $clock / $seconds)}")
  "$program" train --steps "$steps" --decay 0.825 --decay-steps $((steps / 12)) --validation-every $((steps / 12)) \
    "${flags[@]}" --log "$scratch/log" >/dev/null
}

make_start() {
  [[ -f $output/start.safetensors ]] && return
  train 20 -s 7 --steps 1000 "SUPERVISED FRESH" -o "$scratch/start.safetensors"
  mv "$scratch/start.safetensors" "$output"
}

while read -r variant n per_step flags; do
  [[ $# -gt 0 && " $* " != *" $variant "* ]] && continue
  for seed in $seeds; do
    log=$output/${variant}_$seed.jsonl
    [[ -f $log ]] && continue
    if [[ $flags == CLOCK* ]]; then
      problem=tsp
      if [[ $variant == knapsack* ]]; then problem=knapsack; fi
      # shellcheck disable=SC2086 # several words
      train_by_the_clock "$problem" "$n" -s "$seed" ${flags#CLOCK}
    else
      make_start
      train "$n" -s "$seed" --steps $((tours / per_step)) --validation-every $((16000 / per_step)) "$flags" \
        -o "$scratch/model.safetensors" --log "$scratch/log"
    fi
    mv "$scratch/log" "$log"
    echo "$variant, seed $seed: $(tail -1 "$log" | grep -o '"val_cost":[^,]*')"
  done
done <<<"$variants"
