#!/usr/bin/env bash
# Writes every generated file of the repository again.
#
#   tools/generate.sh           writes them
#   tools/generate.sh --list    prints their paths, for make verify
set -euo pipefail
cd "$(dirname "$0")/.."

generated=(
  docs/events.md
  docs/asyncapi.yaml
  docs/nats.md
  docs/rules.md
  docs/problems
  docs/cli
  libs/registryapi
  migrations/schema.sql
  services/gateway/openapi.yaml
  services/gateway/openapi-3.0.yaml
  clients/typescript/src/schema.ts
  libs/client/api.gen.go
  deploy/compose/nats.conf
  deploy/helm/golden
)
modules() { sed -n 's/^[[:space:]]\+\(\.\/[^ ]*\)$/\1/p' go.work; }

if [ "${1:-}" = --list ]; then
  printf '%s\n' "${generated[@]}"
  for m in $(modules); do echo "${m#./}/go.mod"; done
  exit 0
fi

step() { echo "generate: $*"; }

step "go version of every go.mod, from go.work"
version=$(awk '$1 == "go" { print $2 }' go.work)
for m in $(modules); do
  grep -qx "go $version" "$m/go.mod" || (cd "$m" && GOWORK=off go mod edit -go="$version")
done

step "libs/registryapi"
(cd tools/proto && GOWORK=off go run . -dir ../../libs/registryapi -file registry.proto)

# What follows compiles the same packages, and links and runs a program for each file. Two at a time use two processors. None
# of them writes a file that the others compile; what does comes before or after them.
descriptions() {
  step "docs/events.md, docs/asyncapi.yaml"
  go run ./libs/events/cmd/gendocs

  step "docs/rules.md"
  go run ./libs/rules/cmd/gendocs -o docs/rules.md

  step "docs/problems"
  go test ./libs/httpserver -vet=off -count=1 -run TestProblemPages -update >/dev/null

  step "docs/cli"
  go test ./cmd/chandler/cli -vet=off -count=1 -run TestCommandPages -update >/dev/null
}

settings() {
  step "docs/nats.md, deploy/compose/nats.conf"
  go run ./libs/natsauth/cmd/gendocs

  step "migrations/schema.sql"
  go run ./libs/migrate/cmd/dumpschema -o migrations/schema.sql

  step "deploy/helm/golden"
  tools/helm/golden.sh
}

interface() {
  step "services/gateway/openapi.yaml, services/gateway/openapi-3.0.yaml"
  go test ./services/gateway/internal/api -vet=off -count=1 -run TestOpenAPIDocument -update >/dev/null

  step "clients/typescript/src/schema.ts"
  "$(tools/npm.sh clients/typescript)/node_modules/.bin/openapi-typescript" services/gateway/openapi.yaml \
    -o clients/typescript/src/schema.ts >/dev/null
}

interface &
beside=$!
(
  descriptions
  settings
) &
failed=0
wait "$beside" || failed=1
wait "$!" || failed=1
[ "$failed" -eq 0 ] || exit 1

step "libs/client"
(cd tools/goclient && GOWORK=off go run . -document ../../services/gateway/openapi-3.0.yaml -o ../../libs/client/api.gen.go)
