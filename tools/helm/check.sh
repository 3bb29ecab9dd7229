#!/usr/bin/env bash
# Lints the chart, proves that wrong values are refused by name, and compares what it renders with the golden files.
set -euo pipefail
cd "$(dirname "$0")/../.."
helm=${HELM:?is the path of helm, which make sets}
chart=deploy/helm/chandler
minimal=$chart/ci/default-values.yaml
# Fixed, so that the answer does not depend on the release of helm.
kubernetes=1.34.0

# Without values, too: a first `helm lint` of the chart as it is must not fail.
for values in /dev/null "$chart"/ci/*-values.yaml; do
  if ! said=$("$helm" lint --strict --kube-version "$kubernetes" "$chart" --values "$values" 2>&1); then
    echo "$said" >&2
    exit 1
  fi
done

# refuse TEXT FLAGS...: rendering fails with a message that holds the text.
refuse() {
  local want=$1 said
  shift
  if said=$("$helm" template chandler "$chart" --kube-version "$kubernetes" "$@" 2>&1); then
    echo "chart: $* was accepted" >&2
    exit 1
  fi
  if [[ $said != *"$want"* ]]; then
    echo "chart: $* was refused without naming $want: $said" >&2
    exit 1
  fi
}
refuse database.host --set nats.url=nats://nats:4222
refuse nats.url --set database.host=postgres
refuse ingress.host --values "$minimal" --set ingress.enabled=true
refuse existingSecret --values "$minimal" --set existingSecret=
refuse sslMode --values "$minimal" --set database.sslMode=maybe
refuse replicaCount --values "$minimal" --set gateway.replicaCount=many
refuse gatway --values "$minimal" --set gatway.replicaCount=2
refuse url --values "$minimal" --set nats.url=http://nats:4222
# A password in a value would stand in the ConfigMap and in the release.
refuse url --values "$minimal" --set nats.url=nats://token@nats:4222
refuse host --values "$minimal" --set database.host=user:password@postgres
refuse runAsUser --values "$minimal" --set runAsUser=0

agent=deploy/helm/chandler-agent
values=$agent/ci/agent-values.yaml
if ! said=$("$helm" lint --strict --kube-version "$kubernetes" "$agent" --values "$values" 2>&1); then
  echo "$said" >&2
  exit 1
fi
chart=$agent
refuse existingSecret --set nats.url=tls://nats:4222
refuse /nats/url --set existingSecret=a
refuse credential --values "$values" --set credential=password
refuse url --values "$values" --set nats.url=tls://token@nats:4222
refuse holdr --values "$values" --set holdr=a

now=$(mktemp -d)
trap 'rm -rf "$now"' EXIT
tools/helm/golden.sh "$now"
if ! diff -ru deploy/helm/golden "$now"; then
  echo "chart: what it renders has changed: if that is meant, run make generate and commit deploy/helm/golden" >&2
  exit 1
fi
echo "chart: ok"
