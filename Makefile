# Short names for the commands of a day's work. CI runs .ci/run, not this.

STATICCHECK   = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

PKG   ?= ./...
BENCH ?= .
TIMEOUT ?= 30m
RUNS ?= 20
TOPOLOGY ?= single
SEED ?= 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## run the tests in virtual time (PKG=./rlock/ for one package)
	go test -timeout $(TIMEOUT) $(PKG)

.PHONY: servers
servers: ## run these and the tests on real servers, in real time
	HOLDFAST_SERVERS=1 go test -p 1 -timeout $(TIMEOUT) $(PKG)

.PHONY: race
race: ## the same with the race detector
	HOLDFAST_SERVERS=1 go test -race -p 1 -timeout $(TIMEOUT) $(PKG)

.PHONY: loaded
loaded: ## run the tests in virtual time 20 times beside two busy loops (RUNS=5)
	.ci/loaded $(RUNS)

.PHONY: torture
torture: ## contend under faults for a minute (TOPOLOGY=cluster SEED=7)
	go run ./cmd/holdfast-torture -topology $(TOPOLOGY) -seed $(SEED)

.PHONY: bench
bench: ## run the benchmarks, no tests (BENCH=Lock for some)
	HOLDFAST_SERVERS=1 go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

.PHONY: cover
cover: ## write coverage.html over the whole module
	HOLDFAST_SERVERS=1 go test -p 1 -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=coverage.out $(PKG)
	go tool cover -html=coverage.out -o coverage.html
	@go tool cover -func=coverage.out | tail -1

.PHONY: lint
lint: ## vet, staticcheck, golangci-lint
	go vet ./...
	go run $(STATICCHECK) ./...
	go run $(GOLANGCI_LINT) run

.PHONY: tidy-check
tidy-check: ## fail if go.mod or go.sum are not tidy
	go mod tidy -diff

.PHONY: ci
ci: ## all that a change must pass
	.ci/run

.PHONY: ci-long
ci-long: ## the whole suite at its full counts
	.ci/long
