#!/usr/bin/env bash
# Lints the OpenAPI documents with Redocly's CLI and with Spectral, at the versions of package-lock.json.
set -euo pipefail
cd "$(dirname "$0")/../.."

documents=(services/gateway/openapi.yaml services/gateway/openapi-3.0.yaml)
here=tools/openapi
installed=$(tools/npm.sh $here)

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
