#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trains a shipped model further: on tours of local search, then by policy gradient at a lower temperature.
#
#   bench/results/train.sh MODEL FOLDER       tsp20, tsp50, tsp100, tsp200, tsp20-lstm, tsp50-lstm or tsp100-lstm
#
# PROGRAM names the program, THREADS the threads. BUDGET=0.1 makes a tenth of the steps under the same fall of the rate,
# whose curve tells what the rest is worth. The same command again goes on where the last one ended: training resumes
# from its checkpoint (at most 500 steps older), so that a budget may be cut anywhere. FOLDER receives MODEL.safetensors,
# MODEL.jsonl (the curve: validations, each with its stage) and MODEL.md (the card's draft: commands, tours, gaps).
set -euo pipefail
model=$1 folder=$2 program=$(realpath "$(command -v "${PROGRAM:-pointsman}")") threads=${THREADS:-1} budget=${BUDGET:-1}
size=${model#tsp} size=${size%-lstm}
mkdir -p "$folder"
cd "$folder"

# Given tours: labels, steps of 128 and the first rate, which falls to a tenth. Then steps of policy gradient.
case $model in
  tsp20) labels=4000000 steps=60000 rate=3e-4 polish=4000 ;;
  tsp50) labels=2000000 steps=40000 rate=3e-4 polish=3200 ;;
  tsp100) labels=1000000 steps=24000 rate=3e-4 polish=2400 ;;
  tsp200) labels=300000 steps=8000 rate=3e-4 polish=1200 ;;
  tsp20-lstm | tsp50-lstm) labels=2000000 steps=60000 rate=4e-4 polish=3000 ;;
  tsp100-lstm) labels=1000000 steps=30000 rate=4e-4 polish=2000 ;;
  *) echo "train.sh: no recipe for $model" >&2; exit 2 ;;
esac
case $model in
  *-lstm) cold=(--clip 60 -b 32 --rollouts 8) warm=(--clip 25) ;;
  *) cold=(--sharpen 1.5 -b 16 --rollouts 16) warm=(--sharpen 0.6666666666666667) ;;
esac
scaled() { awk -v x="$1" -v by="$budget" 'BEGIN { printf "%d", x * by < 10 ? 10 : x * by }'; }
labels=$(scaled "$labels") steps=$(scaled "$steps") polish=$(scaled "$polish")

# Runs the program, and keeps its command for the card.
run() { echo "pointsman $*" >> commands.txt; "$program" "$@"; }

# train_stage NAME STEPS OUTPUT ARGUMENTS: from the checkpoint where there is one; nothing where the output is there.
train_stage() {
  local name=$1 count=$2 output=$3 resume=()
  shift 3
  [ -e "$output" ] && return
  [ -e "$output.ck" ] && resume=(--resume "$output.ck")
  "$program" train tsp -n "$size" --threads "$threads" -q "$@" --steps "$count" --validation-every "$(((count + 7) / 8))" \
    --checkpoint "$output.ck" --log "$output.jsonl" --force "${resume[@]}" -o "$output.part" > /dev/null
  echo "pointsman train tsp -n $size $* --steps $count -o $output" >> commands.txt
  grep val_cost "$output.jsonl" | sed "s/^{/{\"stage\":\"$name\",/" >> "$model.jsonl"
  mv "$output.part" "$output"
}

# labels_of COUNT SEED NAME KICKS: instances and their tours, which get their name only when they are whole.
labels_of() {
  [ -e "$3.tours.npy" ] && return
  run generate tsp -n "$size" -b "$1" -s "$2" -q --force -o "$3.npy"
  run solve "$3.npy" --mode local --kicks "$4" --threads "$threads" -q --force --format npy -o "$3.part.npy"
  mv "$3.part.npy" "$3.tours.npy"
}

gap() {
  "$program" eval valid.npy --ref valid.tours.npy -m "$1" --modes greedy,greedy+x8 -q --threads "$threads" --format text |
    awk '/^greedy/ { printf "%s%s %s %s %s", line++ ? ", " : "", $1, $4, $5, $6 }'
}

labels_of 1000 4321 valid 1000  # what the cards are measured on
labels_of "$labels" 9500 given 30
decay_steps=$(((steps + 8) / 9))
train_stage "1 supervised" "$steps" given.safetensors -s 97 --init "$model" --instances given.npy \
  --solutions given.tours.npy -b 128 --rollouts 1 --learning-rate "$rate" --decay 0.7743 --decay-steps "$decay_steps"
train_stage "2 policy gradient" "$polish" cold.safetensors -s 101 --init given.safetensors "${cold[@]}" \
  --learning-rate 1e-4 --decay 0.75 --decay-steps "$(((polish + 7) / 8))"
train_stage "3 temperature" 1 "$model.safetensors" --init cold.safetensors "${warm[@]}" --learning-rate 1e-9 -b 2 --rollouts 2
{
  printf '# %s\n\n%s given tours and %s steps of policy gradient.\n\n```\n' "$model" "$((128 * steps))" "$polish"
  cat commands.txt
  printf '```\n\n'
  for after in "$model" given.safetensors "$model.safetensors"; do
    name=$after
    [ -e "$after" ] && name=./$after
    echo "- $after: $(gap "$name")"
  done
} > "$model.md"
cat "$model.md"
