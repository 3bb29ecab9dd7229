#!/usr/bin/env bash
# Lints the chart, proves that wrong values are refused by name, and compares what it renders with the golden files.
set -euo pipefail
cd "$(dirname "$0")/../.."
chart=deploy/helm/chandler

"$HELM" lint --strict --quiet "$chart"
"$HELM" lint --strict --quiet "$chart" --values deploy/helm/golden-values.yaml

refuse() {
  local want=$1
  shift
  if said=$("$HELM" template chandler "$chart" "$@" 2>&1); then
    echo "chart: $* was accepted" >&2
    exit 1
  fi
  if [[ $said != *"$want"* ]]; then
    echo "chart: $* was refused without naming $want: $said" >&2
    exit 1
  fi
}
refuse existingSecret --set existingSecret=
refuse sslmode --set database.sslmode=maybe
refuse replicas --set gateway.replicas=many
refuse gatway --set gatway.replicas=2
refuse nats --set nats.url=http://nats:4222

now=$(mktemp -d)
trap 'rm -rf "$now"' EXIT
tools/helm/golden.sh "$now"
if ! diff -ru deploy/helm/golden "$now"; then
  echo "chart: what it renders has changed: if that is meant, run make generate and commit deploy/helm/golden" >&2
  exit 1
fi
echo "chart: ok"
