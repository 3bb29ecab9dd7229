#!/usr/bin/env bash
# Puts a program that a module below tools needs at a path, without debug information. Go keeps in its build cache what
# go run has linked, under everything that decides about the bytes: the next checkout on the machine links nothing.
#
#   tools/tool.sh MODULE PACKAGE PATH
set -euo pipefail
cd "$(dirname "$0")/.."

module=$1 package=$2 path=$3
[[ $path == /* ]] || path=$PWD/$path
mkdir -p "$(dirname "$path")"
part=$(mktemp "$path.XXXXXX")
trap 'rm -f "$part"' EXIT
# "cp PROGRAM PART" is run instead of the program. A copy, since Go removes what was not used for days.
(cd "$module" && CGO_ENABLED=0 GOWORK=off go run -trimpath -ldflags '-s -w' -exec 'cp --' "$package" "$part")
chmod 755 "$part"
mv -f "$part" "$path"
