# Everything that a contributor runs. `make test` is what CI runs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

VERSION := $(or $(VERSION),$(shell git describe --tags --always --dirty 2>/dev/null || echo dev))
# without gRPC, which the library of Google's store carries and we do not use
TAGS := disable_grpc_modules
GOFLAGS_BUILD := -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

VENV := .venv
COLLECT_VENV := .venv-collect
HTA_VENV := .venv-hta
CLUSTER_VENV := .venv-cluster
CLUSTER_PYTHON := $(or $(TRACELAKE_CLUSTER_PYTHON),$(CURDIR)/$(CLUSTER_VENV)/bin/python)
HF_PYTHON := $(or $(TRACELAKE_HF_PYTHON),$(CURDIR)/$(COLLECT_VENV)/bin/python)
TEST_TIMEOUT ?= 20m
FUZZTIME ?= 20s
BENCH_MB ?= 300
BENCH_MIXES ?= serving
BENCH_KERNELS ?= 2000000
# a Python with duckdb, pyarrow and duckdb-extension-sqlite-scanner of one version
BENCH_DUCKDB_PYTHON ?=
DEMO_LAKE ?= demo-lake

GOFUMPT := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: demo build small test test-collect e2e venv venv-collect venv-hta venv-cluster lint audit bench fuzz wheel release generate clean

## demo: convert the traces of testdata/demo and answer three questions about them
demo: build
	rm -rf $(DEMO_LAKE)
	bin/tracelake convert testdata/demo -o $(DEMO_LAKE)
	for question in kernels devices unlinked; do \
	  echo; echo "== $$question"; \
	  bin/tracelake sql $(DEMO_LAKE) -f analyze/query/sql/$$question.sql; \
	done

## build: bin/tracelake
build:
	mkdir -p bin
	go build -tags $(TAGS) $(GOFLAGS_BUILD) -o bin/tracelake ./cmd/tracelake

## small: bin/tracelake-small, static and without DuckDB, for cluster nodes
small:
	mkdir -p bin
	CGO_ENABLED=0 go build -tags noduckdb,$(TAGS) $(GOFLAGS_BUILD) -o bin/tracelake-small ./cmd/tracelake

venv:
	scripts/venv.sh $(VENV) python/requirements-test.txt

## venv-collect: torch, transformers and vLLM; TRACELAKE_HF_PYTHON names an interpreter that has them
venv-collect:
ifndef TRACELAKE_HF_PYTHON
	scripts/venv.sh $(COLLECT_VENV) python/requirements-collect.txt python/requirements-collect-vllm.txt
endif

## venv-hta: HolisticTraceAnalysis, to compare with; TRACELAKE_HTA_PYTHON names an interpreter that has it
venv-hta:
ifndef TRACELAKE_HTA_PYTHON
	scripts/venv.sh $(HTA_VENV) python/requirements-hta.txt python/requirements-hta-alone.txt
endif

## venv-cluster: Spark, Ray and table formats; TRACELAKE_CLUSTER_PYTHON names an interpreter that has them
venv-cluster:
ifndef TRACELAKE_CLUSTER_PYTHON
	scripts/venv.sh $(CLUSTER_VENV) python/requirements-cluster.txt
endif

## test: all tests, with the race detector, then the Python tests against the binary
test: venv venv-collect venv-hta build
	$(VENV)/bin/ruff check --config python/ruff.toml python bench collect/worker
	go vet ./...
	export TRACELAKE_PYTHON=$(CURDIR)/$(VENV)/bin/python TRACELAKE_HF_PYTHON=$(HF_PYTHON) TRACELAKE_TORCH_PYTHON=$(HF_PYTHON); \
	go test -race -timeout $(TEST_TIMEOUT) ./... && \
	go test -timeout $(TEST_TIMEOUT) -run TestLive -v ./analyze/activity | grep -vE '^(=== | +--- PASS)'
	TRACELAKE_TORCH_PYTHON=$(HF_PYTHON) $(VENV)/bin/python -m pytest -q python/tests --ignore python/tests/collect --ignore python/tests/cluster --ignore python/tests/stores
	$(MAKE) test-collect
	$(MAKE) e2e

## test-collect: every tracer on tiny models, through the real libraries, on the CPU, into a dataset
test-collect: venv venv-collect build
	TRACELAKE_HF_PYTHON=$(HF_PYTHON) $(VENV)/bin/python -m pytest -q python/tests/collect

## e2e: a real Spark cluster, killed and run again, real Ray, ClickHouse, Iceberg, Delta and three kinds of object stores on this machine; Spark needs a JRE, one of the stores npm
e2e: venv venv-cluster build
	TRACELAKE_HF_PYTHON=$(HF_PYTHON) $(CLUSTER_PYTHON) -m pytest -q -rs --durations=5 python/tests/cluster
	$(VENV)/bin/python -m pytest -q -rs --durations=5 python/tests/stores

## lint: formatting and static checks; none of them may print anything
lint: venv
	test -z "$$($(GOFUMPT) -l . | tee /dev/stderr)"
	go vet ./...
	$(STATICCHECK) ./...
	$(STATICCHECK) -tags noduckdb,nocloud ./...
	$(GOLANGCI) run
	go test ./internal/archtest >/dev/null || go test ./internal/archtest
	$(VENV)/bin/ruff check --config python/ruff.toml python bench collect/worker
	$(VENV)/bin/ruff format --check --config python/ruff.toml bench

## audit: known vulnerabilities in what the program calls; needs the network for their database
audit:
	$(GOVULNCHECK) -tags $(TAGS) ./...

## fuzz: every fuzz target for FUZZTIME
fuzz:
	scripts/fuzz.sh $(FUZZTIME)

## bench: throughput against other readers; BENCH_MB (10,100,1000), BENCH_MIXES and BENCH_KERNELS set the inputs
bench: build
	scripts/venv.sh .bench/venv python/requirements-bench.txt
	.bench/venv/bin/python bench/run.py --sizes $(BENCH_MB) --mixes $(BENCH_MIXES)
	.bench/venv/bin/python bench/analyses.py
	.bench/venv/bin/python bench/nsight.py --kernels $(BENCH_KERNELS) --duckdb-python "$(BENCH_DUCKDB_PYTHON)"

## wheel: a Python wheel around bin/tracelake, in dist/
wheel: venv build
	scripts/wheel.sh bin/tracelake $(VERSION) dist $(VENV)/bin/python

## release: programs, wheels, manual pages, checksums and components of VERSION, in dist/
release: venv
	scripts/release.sh $(VERSION) dist $(VENV)/bin/python

## generate: generated documentation and test data
generate:
	go generate ./...

clean:
	rm -rf bin $(DEMO_LAKE) .bench
