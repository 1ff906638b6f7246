#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains what Table 2 needs beside the shipped models: for both networks and 20, 50 and 100 cities 16 models of 16 seeds, each
# on given tours, then by policy gradient. cells.py --models FOLDER measures them.
#
#   bench/paper/train.sh FOLDER [--sizes "20 50 100"] [--networks "lstm best"]
#
# An estimated 0.1, 0.3 and 0.4 hours of one core for each network. Two models are trained at once. A file that is there is complete
# and stays; an interrupted training goes on at its last checkpoint.
#
# POINTSMAN names the program (default: build/host/pointsman).
set -euo pipefail

export POINTSMAN=${POINTSMAN:-$(dirname "$0")/../../build/host/pointsman}
[ $# -ge 1 ] || { sed -n '3,12s/^# \{0,1\}//p' "$0" && exit 2; }
export folder=$1
shift
sizes="20 50 100" networks="lstm best"
while [ $# -ge 2 ]; do
  case $1 in
  --sizes) sizes=$2 ;;
  --networks) networks=$2 ;;
  *) echo "train.sh: no option $1" >&2 && exit 2 ;;
  esac
  shift 2
done
[ $# -eq 0 ] || { echo "train.sh: no option $1" >&2 && exit 2; }
mkdir -p "$folder"

# make TARGET COMMAND ..: runs the command, which writes -o TARGET.part, unless the target is there.
make() {
  local target=$1
  shift
  if [ ! -f "$target" ]; then
    "$@" -q
    mv "${target%.*}.part.${target##*.}" "$target"
  fi
}

# stage TARGET STEPS ARGUMENTS ..: a training that can be interrupted.
stage() {
  local target=$1 steps=$2 resume=()
  shift 2
  if [ -f "${target%.*}.ckpt" ]; then resume=(--resume "${target%.*}.ckpt"); fi
  make "$target" "$POINTSMAN" train tsp -f -t 1 --steps "$steps" --validation-every 100000 --checkpoint "${target%.*}.ckpt" \
    "${resume[@]}" "$@" -o "${target%.*}.part.safetensors"
  rm -f "${target%.*}.ckpt"
}

# The learning rate falls by 0.96 33 to 50 times in a stage.
train() {
  local n=$1 network=$2 seed=$3 name=tsp$1 kind=(--encoder attention) steps=600 rate=1e-3 polish_rate=1e-4 polish
  if [ "$network" = lstm ]; then name+=-lstm kind=(--encoder lstm --prior off) steps=1200 rate=5e-3 polish_rate=5e-4; fi
  if [ "$n" = 100 ]; then steps=$((steps / 2)); fi
  polish=$((n == 100 ? 25 : 50))
  stage "$folder/${name}_supervised_$seed.safetensors" "$steps" -n "$n" "${kind[@]}" -s "$seed" -b 32 --rollouts 1 \
    --learning-rate "$rate" --decay-steps $((steps / 50)) --instances "$folder/tsp$n.npy" --solutions "$folder/tsp$n.tours.npy"
  stage "$folder/${name}_final_$seed.safetensors" "$polish" -n "$n" --init "$folder/${name}_supervised_$seed.safetensors" -s "$seed" \
    --clip 25 --learning-rate "$polish_rate" --decay-steps $((polish / 50 + 1))
}
export -f make stage train

for n in $sizes; do
  make "$folder/tsp$n.npy" "$POINTSMAN" generate tsp -n "$n" -b 40000 -s 9000 -f -o "$folder/tsp$n.part.npy"
  make "$folder/tsp$n.tours.npy" "$POINTSMAN" solve "$folder/tsp$n.npy" --mode local --kicks "$n" --format npy -f -o "$folder/tsp$n.tours.part.npy"
  for network in $networks; do
    for seed in {1..16}; do echo "$n $network $seed"; done
  done
done | xargs -P 2 -L 1 bash -euo pipefail -c 'train "$@"; echo "trained $*"' train
