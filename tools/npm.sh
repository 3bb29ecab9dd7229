#!/usr/bin/env bash
# Installs the packages of a package-lock.json once, by npm ci, and prints the folder that holds their node_modules. A
# new lock file is a new folder, so that nothing stale is run. All checkouts of a user share it: it lies in
# ~/.cache/chandler, or where XDG_CACHE_HOME or CHANDLER_CACHE says.
#
#   tools/npm.sh DIR    DIR holds package.json and package-lock.json
set -euo pipefail
cd "$(dirname "$0")/.."

from=$1
tools/prepare.sh node >&2
caches=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=${CHANDLER_CACHE:-${caches:+$caches/chandler}}
cache=${cache:-.cache} # who has no home
[[ $cache == /* ]] || cache=$PWD/$cache
# What a package holds for one platform does not run on another.
key=$({ cat "$from/package.json" "$from/package-lock.json"; uname -sm; } | sha256sum | cut -c1-16)
installed=$cache/npm/$key
if [ ! -d "$installed" ]; then
  echo "installing the packages of $from with npm once; this takes a minute or two" >&2
  mkdir -p "$cache/npm"
  part=$(mktemp -d "$cache/npm/part.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  cp "$from/package.json" "$from/package-lock.json" "$part/"
  # No package that is used here needs a script of its own to be installed.
  if ! (cd "$part" && npm ci --ignore-scripts --no-audit --no-fund) >"$part/log" 2>&1; then
    cat "$part/log" >&2
    echo "npm ci could not install the packages of $from/package-lock.json; the reason stands above." >&2
    exit 1
  fi
  # Who installed them meanwhile has installed the same.
  mv -T "$part" "$installed" 2>/dev/null || [ -d "$installed" ]
fi
echo "$installed"
