#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small trainings at equal tours, one choice of the recipe changed at a time: bench/results/ablations.sh OUTPUT [VARIANT...]
# writes OUTPUT/<variant>_<seed>.jsonl, the training logs. What is there already is left alone, so that a stopped run goes on.
# All begin with the same model, OUTPUT/start.safetensors, made first: supervised learning on 128,000 tours, as fresh
# parameters would spend the whole run on the plateau at random tours.
#   POINTSMAN  the program (build/host/pointsman)
#   TOURS      of each training (128000)       SEEDS  ("1 2")       THREADS  (1)
set -euo pipefail
program=${POINTSMAN:-build/host/pointsman} tours=${TOURS:-128000} seeds=${SEEDS:-1 2} threads=${THREADS:-1}
output=${1:?usage: ablations.sh OUTPUT [VARIANT...]}
shift
# variant, tours a step, flags: 16 instances of 8 rollouts a step where nothing else is said
variants='shared-8           128 -b 16
shared-16          128 -b 8 --rollouts 16
critic             128 -b 128 --baseline critic
ema                128 -b 128 --baseline ema
rollout            128 -b 128 --baseline rollout
rate-3e-4          128 -b 16 --learning-rate 3e-4
rate-falling       128 -b 16 --decay-steps 18
batch-32x8         256 -b 32
entropy-0.05       128 -b 16 --entropy 0.05 --entropy-steps 1000
supervised         128 {supervised}'
mkdir -p "$output"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

examples=$scratch/examples
make_examples() {  # one for each tour of a supervised training, by a seed that no validation uses
  [[ -f $examples.tours.npy ]] && return
  "$program" generate tsp -n 20 -b "$tours" -s 77 -q -o "$examples.npy"
  "$program" solve "$examples.npy" -m tsp20 --mode greedy --improve on --kicks 20 -q --format npy -o "$examples.tours.npy"
}
supervised="-b 128 --rollouts 1 --instances $examples.npy --solutions $examples.tours.npy"

if [[ ! -f $output/start.safetensors ]]; then
  make_examples
  # shellcheck disable=SC2086 # several words
  "$program" train tsp -n 20 -s 7 --steps 1000 $supervised -o "$output/start.safetensors" -q >"$scratch/answer"
fi
while read -r variant per_step flags; do
  [[ $# -gt 0 && " $* " != *" $variant "* ]] && continue
  for seed in $seeds; do
    log=$output/${variant}_$seed.jsonl
    [[ -f $log ]] && continue
    if [[ $flags == *supervised* ]]; then make_examples; fi
    # shellcheck disable=SC2086 # flags are several words
    "$program" train tsp -n 20 -t "$threads" -s "$seed" --steps $((tours / per_step)) --validation-every $((16000 / per_step)) \
      --init "$output/start.safetensors" ${flags/\{supervised\}/$supervised} -o "$scratch/model.safetensors" -f --log "$scratch/log" -q >"$scratch/answer"
    mv "$scratch/log" "$log"
    echo "$variant, seed $seed: $(tail -1 "$log" | grep -o '"val_cost":[^,]*')"
  done
done <<<"$variants"
