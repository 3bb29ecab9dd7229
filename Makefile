# The commands of this repository; `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CACHE := $(CURDIR)/.cache
TOOLS := $(CACHE)/bin

# Versions stand in the go.mod of each tool; a new version is a new file name, so nothing stale is run.
tool_version = $(shell awk '$$1 == "$(2)" || ($$1 == "require" && $$2 == "$(2)") { for (i = 1; i <= NF; i++) if ($$i ~ /^v[0-9]/) { print $$i; exit } }' $(1)/go.mod)
LINT_VERSION := $(call tool_version,tools/lint,github.com/golangci/golangci-lint/v2)
VULN_VERSION := $(call tool_version,tools/vuln,golang.org/x/vuln)
HELM_VERSION := $(call tool_version,tools/helm,helm.sh/helm/v3)
LINT := $(TOOLS)/golangci-lint-$(LINT_VERSION)
VULN := $(TOOLS)/vuln-$(VULN_VERSION)
HELM := $(TOOLS)/helm-$(HELM_VERSION)
TESTRUN := $(TOOLS)/testrun
export HELM TESTRUN

# What was compiled is taken by every step and in every checkout: without cgo, which the race detector alone needs
# (tools/testrun), and without the folder of the checkout. Else each package is compiled again for either.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS 2>/dev/null)) -trimpath
# The demo itself needs the standard library only, and no module of the workspace: it runs at once on a fresh machine.
DEMO := tools/demo.sh

# Modules of the workspace as patterns for tools that do not know the pattern `work`.
MODULES := $(shell sed -n 's/^[[:space:]]\{1,\}\(\.\/[^ ]*\)$$/\1/p' go.work)
PATTERNS := $(addsuffix /...,$(MODULES))

# Tests that make test shortens, and make chaos does not.
CHAOS := TestFaults$$|TestFaultsOf|TestOlderBackup|TestLargeInput|TestManySubscriptions|TestFaultsAtEveryStep|TestAPIServerRestarts|TestCrashAtEveryPoint|TestRemovalCrashes

# What ships.
PROGRAMS := ./cmd/chandler ./services/catalog-indexer ./services/resolver ./services/installer ./services/installer/chandler-agent ./services/gateway

# Packages without I/O, whose tests need nothing and take seconds.
PURE := ./libs/archtest/... ./libs/agentconfig/... ./examples/port/... ./libs/client/... ./libs/reach/... ./libs/errs/... ./libs/fleet/... ./libs/keys/... ./libs/digest/... ./libs/events/... ./libs/protocol/... ./libs/catalog/... ./libs/content/... ./libs/source ./libs/internal/... \
	./libs/installplan/... ./libs/bundle/... ./libs/render/... ./libs/service/... ./libs/telemetry/... ./libs/httpserver/... \
	./services/catalog-indexer/index/... ./services/resolver/resolve/... ./services/resolver/decide/... ./services/resolver/conformance/... ./services/installer/csv/... \
	./services/installer/record/... ./cmd/chandler/client/... ./cmd/chandler/olm/... ./cmd/chandler/eventtext/...

# Tags of releases alone: those of modules, such as libs/client/v1.2.3, are at the same commits.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo unknown)

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: static archtest-pure ## format, vet, lint, import rules, pure tests, chart and compose file, OpenAPI document, known vulnerabilities; under a minute when warm

.PHONY: static
static: fmt-check lint chart compose openapi vuln # what is checked without the tests that make test runs, too

.PHONY: verify
verify: $(HELM) prepare ## generate everything again and fail on a difference
	@tools/verify.sh

.PHONY: test
test: ## every test, with the race detector where goroutines share something; installs or builds what the tests need
	@tools/test.sh

.PHONY: test-pure test-services test-executor test-e2e test-deploy test-tools
test-pure: ## the tests that start no process
test-services: ## the tests with PostgreSQL and NATS
test-executor: ## executors on real API servers
test-e2e: ## the four services as processes, with a cluster
test-deploy: ## chart, compose file, migrations
test-tools: ## what tests are made with: test clusters, the stack, the demo
test-pure test-services test-executor test-e2e test-deploy test-tools:
	@tools/test.sh $(@:test-%=%)

.PHONY: test-clients
test-clients: prepare ## the clients for portals, with those whose packages are large: some 900 MB from npm once
	@CHANDLER_TEST_CLIENTS=all CI=true go test -count=1 -timeout 20m -run 'TestScripts/(typescript|portals|backstage)$$' ./cmd/chandler/cli

.PHONY: fresh
fresh: ## what a new machine does: clean clone, empty caches, demo and tests, with their times; FRESH=demo is the first half
	@tools/fresh.sh

.PHONY: test-bundles
test-bundles: prepare testrun clusters ## install, upgrade and remove published operators on a real API server: some 70 in about ten minutes, those below BUNDLES=DIR, or BUNDLES=all of the test data, which goes on where it was interrupted
	@if [ -z "$(BUNDLES)" ]; then CHANDLER_TEST_BUNDLES=all CI=true go test -count=1 -run TestBundles -v -timeout 40m ./test/bundles; else \
	  CHANDLER_CAMPAIGN="$(BUNDLES)" CHANDLER_CAMPAIGN_LOG="$${CHANDLER_CAMPAIGN_LOG:-$(CURDIR)/.cache/campaign.jsonl}" CI=true go test -count=1 -run TestPublished -v -timeout 10h ./test/bundles; fi

.PHONY: chaos
chaos: prepare testrun clusters stack ## harm running systems as long as production would, executors at every point: about an hour; FAULTS=TestFaultsOfNATS takes one
	@CHANDLER_CHAOS=all CI=true go test -count=1 -v -timeout 3h -p 1 -parallel 1 -run '$(or $(FAULTS),$(CHAOS))' ./test/e2e ./test/executor

.PHONY: bench
bench: prepare ## run the benchmarks
	@go test -run '^$$' -bench . -benchmem -timeout 60m -p 1 work | grep -v 'no test files'

.PHONY: fuzz
fuzz: ## run every fuzz target for a minute; FUZZTIME=10s and PATTERN='catalog' shorten it
	@tools/fuzz.sh $(PATTERN)

.PHONY: demo
demo recording: export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) # as the Kubernetes programs, for one standard library
demo: ## bring operators from a catalog to two real API servers; CATALOG=<dir> takes another catalog
	@tools/prepare.sh postgres
	@$(DEMO) up $(if $(CATALOG),--catalog '$(CATALOG)')

.PHONY: demo-fleet
demo-fleet: export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS))
demo-fleet: ## bring an operator to three real API servers and 200 simulated clusters in waves, with a version that stops the rollout; SPOKES=50 simulates fewer
	@tools/prepare.sh postgres
	@$(DEMO) up --fleet $(if $(SPOKES),--spokes '$(SPOKES)')

.PHONY: demo-down
demo-down: ## stop what make demo left running
	@$(DEMO) down

.PHONY: recording
recording: ## run the demo and draw docs/demo.svg from what it says
	@tools/prepare.sh postgres
	@$(DEMO) up --record docs/demo.svg
	@$(DEMO) down

.PHONY: build
build: ## build the CLI and the four services into bin/
	@mkdir -p bin
	@go build -ldflags '-s -w -X github.com/chandler-fleet/chandler/libs/service.version=$(VERSION)' -o bin/ \
		$(PROGRAMS)
	@ls -l bin

.PHONY: release
release: $(HELM) ## what users download, into dist/: programs, chart, clients, OpenAPI documents, checksums; VERSION=v1.2.3, RELEASE_CHECK=1 makes it twice and compares
	@tools/release.sh '$(VERSION)'

.PHONY: tools
tools: $(LINT) $(HELM) testrun clusters ## build golangci-lint, helm and the programs of test clusters

.PHONY: generate
generate: $(HELM) prepare ## write generated documents, schema and golden files again
	@tools/generate.sh

.PHONY: fmt
fmt: $(LINT) ## format all Go code
	@$(LINT) fmt $(PATTERNS)

.PHONY: clean
clean: ## remove what this checkout has built, and results of tests; what checkouts share stays in ~/.cache/chandler and the build cache of Go
	@rm -rf bin dist '$(TOOLS)' '$(CACHE)/demo' '$(CACHE)/stack'
	@go clean -testcache

# Parts of the targets above, without a line in the list.

.PHONY: prepare
prepare:
	@tools/prepare.sh

.PHONY: fmt-check
fmt-check: $(LINT)
	@$(LINT) fmt --diff $(PATTERNS) || { echo "not formatted as above: run make fmt" >&2; exit 1; }

.PHONY: lint
lint: $(LINT)
	@$(LINT) run --allow-serial-runners $(PATTERNS)

.PHONY: archtest-pure
archtest-pure:
	@go test -short $(PURE)

.PHONY: chart
chart: $(HELM)
	@tools/helm/check.sh

.PHONY: compose
compose:
	@cd tools/compose && GOWORK=off go test ./...

.PHONY: openapi
openapi:
	@tools/openapi/check.sh

.PHONY: vuln
vuln: $(VULN)
	@$(VULN) $(PROGRAMS)

.PHONY: helm
helm: $(HELM)

.PHONY: testrun
testrun: $(TESTRUN)

.PHONY: stack
stack:
	@go run ./test/stack/cmd

.PHONY: client
client:
	@tools/clients.sh typescript >/dev/null

.PHONY: clusters
clusters:
	@go run ./test/testcluster/cmd build

$(TESTRUN): $(wildcard tools/testrun/*.go) tools/testrun/go.mod
	@cd tools/testrun && GOWORK=off go test ./...
	@tools/tool.sh tools/testrun . '$@'

$(LINT): tools/lint/go.mod
	@echo "golangci-lint $(LINT_VERSION): building it takes two to five minutes once"
	@tools/tool.sh tools/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint '$@'

$(VULN): $(wildcard tools/vuln/*.go tools/vuln/testdata/*/*/*) tools/vuln/go.mod
	@cd tools/vuln && GOWORK=off go test ./...
	@tools/tool.sh tools/vuln . '$@'

$(HELM): tools/helm/go.mod
	@echo "helm $(HELM_VERSION): building it takes two to three minutes once"
	@tools/tool.sh tools/helm helm.sh/helm/v3/cmd/helm '$@'
