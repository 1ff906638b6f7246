#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Pointsman is built with and is not there yet, on Debian 12 or Ubuntu 24.04, as root or through sudo.
# Why each package is needed: docs/dependencies.md.
set -euo pipefail

packages=(g++ cmake ninja-build libhwy-dev nlohmann-json3-dev libcli11-dev catch2 libzip-dev nettle-dev zlib1g-dev git
  ca-certificates)

is_installed() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null || true)" == installed ]]
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install.sh: no apt-get here; install what these Debian packages hold: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "install.sh: nothing is missing"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install.sh: root is needed to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "install.sh: installing ${missing[*]}"
"${as_root[@]}" apt-get update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
