#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies what a build needs beside compiler, CMake and CUDA into a folder, from a Debian or Ubuntu machine where
# install.sh has run, so that bench/gpu/check.sh can build on one without a network:
#
#   bench/gpu/collect_dependencies.sh FOLDER        (some 20 MB)
#
# Both machines must be x86-64, and the other's C library no older.
set -euo pipefail

folder=${1:?"usage: collect_dependencies.sh FOLDER"}
packages=(nlohmann-json3-dev libcli11-dev catch2 libhwy-dev libzip-dev nettle-dev zlib1g-dev)
mapfile -t run_time < <(dpkg-query -W -f '${Package}\n' 'libhwy[0-9]*' 'libzip[0-9]*' 'libnettle[0-9]*' libbz2-1.0 liblzma5 libzstd1 libssl3)

mkdir -p "$folder"
dpkg -L "${packages[@]}" "${run_time[@]}" | grep -E '^/usr/(include|lib|share/cmake)/|^/lib/' | grep -v '/pkgconfig/' |
  while read -r path; do
    if [ -f "$path" ]; then
      target=$folder/${path#/usr/}
      mkdir -p "$(dirname "$target")"
      cp -L "$path" "$target"
    fi
  done
find "$folder/lib" \( -name 'libz.so*' -o -name 'libnettle.so*' \) -delete # so that the static one is linked
echo "$folder: $(du -sh "$folder" | cut -f 1); use: bench/gpu/check.sh --dependencies $folder"
