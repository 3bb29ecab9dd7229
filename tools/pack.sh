#!/usr/bin/env bash
# Packs a folder as a tar.gz that is a function of the names, contents and executable bits of its files, and of the time:
# whoever packs the same gets the same bytes, wherever, whenever and as whoever they do it.
#
#   tools/pack.sh FOLDER FILE SECONDS    FOLDER is the only name at the top of FILE; SECONDS since 1970 is the time of all in it
set -euo pipefail

folder=$1 file=$2 seconds=$3
if ! tar --version 2>/dev/null | grep -q GNU; then
  echo "Packing needs GNU tar, and the tar of this machine is another one: install GNU tar as tar." >&2
  exit 1
fi
# ustar has no places for times of access, and every tar reads it; gzip -n leaves name and time of the file out.
tar --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$seconds" \
  --directory="$(dirname "$folder")" "$(basename "$folder")" | gzip -n -9 >"$file.part"
mv "$file.part" "$file"
