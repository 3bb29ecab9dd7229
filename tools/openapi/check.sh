#!/usr/bin/env bash
# Lints the OpenAPI documents with Redocly's CLI and with Spectral, at the versions of package-lock.json. They are
# installed once below .cache, by npm ci; a new lock file is a new folder, so that nothing stale is run.
set -euo pipefail
cd "$(dirname "$0")/../.."

documents=(services/gateway/openapi.yaml services/gateway/openapi-3.0.yaml)
tools/prepare.sh node

here=tools/openapi
installed="$PWD/.cache/openapi/$(cat $here/package.json $here/package-lock.json | sha256sum | cut -c1-16)"
if [ ! -d "$installed" ]; then
  echo "installing the linters of OpenAPI documents with npm once; this takes about a minute"
  mkdir -p .cache/openapi
  part=$(mktemp -d .cache/openapi/part.XXXXXX)
  trap 'rm -rf "$part"' EXIT
  cp $here/package.json $here/package-lock.json "$part/"
  # No package of the linters needs a script of its own to be installed.
  if ! (cd "$part" && npm ci --ignore-scripts --no-audit --no-fund) >"$part/log" 2>&1; then
    cat "$part/log" >&2
    echo "npm ci could not install the linters of $here/package-lock.json; the reason stands above." >&2
    exit 1
  fi
  # Who installed them meanwhile has installed the same.
  mv -T "$part" "$installed" 2>/dev/null || [ -d "$installed" ]
fi

# Neither linter is to tell anybody that it ran, nor to look for a newer version of itself.
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true SCARF_ANALYTICS=false
failed=0
lint() {
  local said
  if ! said=$("$@" 2>&1); then
    echo "$said" >&2
    failed=1
  fi
}
lint "$installed/node_modules/.bin/redocly" lint --config $here/redocly.yaml --max-problems 1000 "${documents[@]}"
lint "$installed/node_modules/.bin/spectral" lint --fail-severity hint --ruleset $here/spectral.yaml "${documents[@]}"
if [ "$failed" -ne 0 ]; then
  echo "the OpenAPI document breaks the rules above: correct the types and operations that it is made of, in services/gateway/model and services/gateway/internal/api, and run make generate" >&2
  exit 1
fi
