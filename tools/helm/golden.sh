#!/usr/bin/env bash
# Renders the chart into deploy/helm/golden: with its own values, and with every setting changed.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-deploy/helm/golden}
mkdir -p "$out"
render() { "$HELM" template chandler deploy/helm/chandler --namespace chandler --kube-version 1.34.0 "$@"; }
render >"$out/default.yaml"
render --values deploy/helm/golden-values.yaml >"$out/all.yaml"
