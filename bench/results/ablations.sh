#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small trainings at equal tours, one choice of the recipe changed at a time: bench/results/ablations.sh OUTPUT [VARIANT...]
# writes OUTPUT/<variant>_<seed>.jsonl, the training logs. What is there already is left alone, so that a stopped run goes on.
# All begin with the same model, OUTPUT/start.safetensors, made first: supervised learning on 128,000 tours, as fresh
# parameters would spend the whole run on the plateau at random tours.
#   POINTSMAN  the program (build/host/pointsman)
#   TOURS      of each training (96000)        SEEDS  ("1 2")       THREADS  (1)
set -euo pipefail
program=${POINTSMAN:-build/host/pointsman} tours=${TOURS:-96000} seeds=${SEEDS:-1 2} threads=${THREADS:-1}
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
fresh-50           50 128 SUPERVISED FRESH"
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

if [[ ! -f $output/start.safetensors ]]; then
  train 20 -s 7 --steps 1000 "SUPERVISED FRESH" -o "$scratch/start.safetensors"
  mv "$scratch/start.safetensors" "$output"
fi
while read -r variant n per_step flags; do
  [[ $# -gt 0 && " $* " != *" $variant "* ]] && continue
  for seed in $seeds; do
    log=$output/${variant}_$seed.jsonl
    [[ -f $log ]] && continue
    train "$n" -s "$seed" --steps $((tours / per_step)) --validation-every $((16000 / per_step)) "$flags" \
      -o "$scratch/model.safetensors" --log "$scratch/log"
    mv "$scratch/log" "$log"
    echo "$variant, seed $seed: $(tail -1 "$log" | grep -o '"val_cost":[^,]*')"
  done
done <<<"$variants"
