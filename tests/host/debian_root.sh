#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a package that `cpack` made in a bare Debian 12, solves with its program there, and then builds the examples of
# docs/embedding.md against its library. As root, with mmdebstrap; the rest it fetches. A few minutes.
#   tests/host/debian_root.sh DEB
set -euo pipefail
deb="$(realpath "$1")"
cd "$(dirname "$0")/../.."

here="$(mktemp -d)"
trap 'rm -rf "$here"' EXIT
cp "$deb" "$here/pointsman.deb"
cp -r --parents docs/embedding.md tests/data/swiss_stations.tsp tests/host/library/examples.py "$here"

cat >"$here/bare.sh" <<'END'
set -eux
cd /pointsman
apt-get install --yes --no-install-recommends ./pointsman.deb
pointsman solve tests/data/swiss_stations.tsp -o auto.tour
pointsman solve tests/data/swiss_stations.tsp --mode greedy -o greedy.tour
pointsman verify tests/data/swiss_stations.tsp auto.tour --format text
test -s /usr/share/bash-completion/completions/pointsman
apt-get install --yes --no-install-recommends g++ cmake make ninja-build pkg-config python3 libhwy-dev libzip-dev nettle-dev zlib1g-dev
python3 tests/host/library/examples.py /usr
apt-get remove --yes pointsman
test ! -e /usr/bin/pointsman -a ! -e /usr/lib/libpointsman.so.1
END
mmdebstrap --variant=minbase --format=null --customize-hook="cp -r '$here' \"\$1/pointsman\"" \
  --customize-hook='chroot "$1" sh /pointsman/bare.sh' bookworm /dev/null
echo "debian_root.sh: $(basename "$deb") installs, runs and goes"
