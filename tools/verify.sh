#!/usr/bin/env bash
# Generates everything again and fails, with the difference, when a file in the tree was not current;
# then proves that every module names its own requirements and does not live on the workspace's.
set -euo pipefail
cd "$(dirname "$0")/.."

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
mapfile -t paths < <(tools/generate.sh --list)
for p in "${paths[@]}"; do
  if [ -e "$p" ]; then
    mkdir -p "$before/$(dirname "$p")"
    cp -R "$p" "$before/$p"
  fi
done

tools/generate.sh

stale=0
for p in "${paths[@]}"; do
  diff -ruN "$before/$p" "$p" || stale=1
done
if [ "$stale" -ne 0 ]; then
  echo "verify: generated files were not current; they are now: look at the difference above and commit them" >&2
  exit 1
fi

if git rev-parse --git-dir >/dev/null 2>&1; then
  untracked=$(git ls-files --others --exclude-standard -- "${paths[@]}")
  if [ -n "$untracked" ] && [ "${CI:-}" = true ]; then
    echo "verify: generated files are not in git: $untracked" >&2
    exit 1
  fi
fi

stands() {
  echo "verify: $1 stands without the workspace"
  cd "$1" && GOWORK=off GOFLAGS=-mod=readonly go list -deps -test ./... >/dev/null
}
export -f stands
sed -n 's/^[[:space:]]\+\(\.\/[^ ]*\)$/\1/p' go.work | xargs -P 2 -I {} bash -euo pipefail -c 'stands {}'
echo "verify: everything is current"
