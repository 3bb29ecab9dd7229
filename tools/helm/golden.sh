#!/usr/bin/env bash
# Renders the charts with each file of deploy/helm/chandler/ci into deploy/helm/golden, or into the folder given.
set -euo pipefail
cd "$(dirname "$0")/../.."
helm=${HELM:?is the path of helm, which make sets}
out=${1:-deploy/helm/golden}
mkdir -p "$out"
for values in deploy/helm/chandler/ci/*-values.yaml; do
  name=$(basename "$values" -values.yaml)
  # The version of Kubernetes is fixed: what is rendered must not depend on the release of helm.
  "$helm" template chandler deploy/helm/chandler --namespace chandler --kube-version 1.34.0 --values "$values" >"$out/$name.yaml"
done
"$helm" template chandler-agent deploy/helm/chandler-agent --namespace chandler-agent --kube-version 1.34.0 \
  --values deploy/helm/chandler-agent/ci/agent-values.yaml >"$out/agent.yaml"
