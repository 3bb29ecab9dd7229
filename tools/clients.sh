#!/usr/bin/env bash
# Type-checks and compiles a client of clients/ and prints the folder in which it lies compiled, below .cache. What was
# compiled of the same files is taken as it is.
#
#   tools/clients.sh typescript
#   tools/clients.sh backstage       with the client in TypeScript inside, as src/client
#   tools/clients.sh backstage-card  with what it and the backend know of each other inside, as src/card.ts
set -euo pipefail
cd "$(dirname "$0")/.."

from=clients/$1
tools/prepare.sh node >&2
# What the clients are made for, and what compiles and tests them.
oldest=20
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt $oldest ]; then
  echo "The clients need Node $oldest or later, and this machine has $(node --version): install a newer one." >&2
  exit 1
fi
installed=$(tools/npm.sh "$from")
# Copied instead of linked: a link does not survive every way in which sources are passed on.
inside=
case $1 in
backstage) inside=clients/typescript/src copy=src/client ;;
backstage-card) inside=clients/backstage/src/card.ts copy=src/card.ts ;;
esac
# files DIR: the sources below it, without what npm run build copies and writes there.
files() { (cd "$1" && find . \( -name node_modules -o -name dist -o -path "./${copy:-none}" \) -prune -o -type f -print) | LC_ALL=C sort; }
sums() { if [ -f "$1" ]; then sha256sum "$1"; else (cd "$1" && xargs sha256sum) < <(files "$1"); fi; }
built="$PWD/.cache/clients/$1-$({ sums "$from"; [ -z "$inside" ] || sums "$inside"; } | sha256sum | cut -c1-16)"
if [ ! -d "$built" ]; then
  mkdir -p .cache/clients
  part=$(mktemp -d .cache/clients/part.XXXXXX)
  trap 'rm -rf "$part"' EXIT
  files "$from" | (cd "$from" && xargs cp --parents -t "$OLDPWD/$part")
  [ -z "$inside" ] || cp -R "$inside" "$part/$copy"
  # What the README shows is TypeScript, too.
  mkdir "$part/readme"
  awk '/^```ts$/ { on = 1; next } /^```/ { on = 0 } on' "$part/README.md" >"$part/readme/example.ts"
  ln -s "$installed/node_modules" "$part/node_modules"
  # What is made for browsers has its tests bundled, as apps bundle it.
  if ! said=$(cd "$part" && node_modules/.bin/tsc -p . &&
    { [ ! -f test/tsconfig.json ] || node_modules/.bin/tsc -p test; } &&
    { [ ! -f test/bundle.mjs ] || node test/bundle.mjs 2>&1; }); then
    echo "$said" >&2
    echo "$from is not typed as TypeScript wants it: see above." >&2
    exit 1
  fi
  # Who compiled it meanwhile has compiled the same.
  mv -T "$part" "$built" 2>/dev/null || [ -d "$built" ]
fi
# The packages lie where they were installed then; who has emptied that cache has them elsewhere, or anew.
[ -d "$built/node_modules" ] || ln -sfn "$installed/node_modules" "$built/node_modules"
echo "$built"
