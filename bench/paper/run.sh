#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The paper's tables and figures beside ours, from the shipped models: measures what is missing in OUTPUT, then writes
# OUTPUT/docs/paper.md, results.md and rivals.md (of OUTPUT/rivals.jsonl, by rivals.py) and, where the Python package and
# matplotlib are there, the pictures.
#
#   bench/paper/run.sh OUTPUT [--minutes M] [--models FOLDER]
#
#   --minutes   of measuring (60). A later call with the same OUTPUT continues, and measures more instances
#   --models    of train.sh
#
# POINTSMAN names the program (default: build/host/pointsman). Needs python3.
set -euo pipefail

[[ $# -ge 1 && $1 != -* ]] || { sed -n '3,12s/^# \{0,1\}//p' "$0" && exit 2; }
here=$(dirname "$0")
export POINTSMAN=${POINTSMAN:-$here/../../build/host/pointsman}
python3 "$here/cells.py" --pointsman "$POINTSMAN" "$@"
python3 "$here/tables.py" --rows "$1" --pages "$1"
if python3 -c 'from pointsman import plot' 2>/dev/null; then
  python3 "$here/pictures.py" "$1" "$1/docs/images"
else
  echo "no pictures: they need the Python package and matplotlib (pip install '.[plot]')"
fi
echo "$1/docs/paper.md"
