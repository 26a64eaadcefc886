# Everything a developer runs. `make help` lists it.
# It needs Go, make and git; a local Postgres is found, or downloaded.

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
PKG      := github.com/justfortytwo/backfill
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -X $(PKG)/internal/version.Version=$(VERSION) -X $(PKG)/internal/version.Commit=$(COMMIT)
FUZZTIME ?= 20s
CAMPAIGN ?= 1000000

.DEFAULT_GOAL := help
.PHONY: help build demo demo-stop run test model race lint bench campaign eval eval-unread docs cover fuzz mutants clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { gsub(/\$$\$$/, "$$", $$2); printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/backfill and bin/worker
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

demo: build ## the whole job on a local Postgres, from nothing
	bin/backfill demo

demo-stop: build ## stop the demo's Postgres; its data stays
	bin/backfill demo --stop

run: build ## run the worker on $$DATABASE_URL (migrates first)
	bin/backfill migrate up
	bin/worker

test: ## run every test, on a real Postgres that it starts itself
	go test -parallel 6 ./...

model: ## random commands of operators, workers and consumers against the invariants, for some minutes
	go test -run TestCommands -rapid.checks=1000 -rapid.steps=80 -timeout 30m ./jobs

race: ## run the tests of the pipeline with the race detector
	go test -race ./jobs ./store ./internal/daemon ./internal/cli

lint: ## run the linters
	go run $(GOLANGCI) run --allow-parallel-runners

bench: ## measure: the drain against raw COPY and one job per capture, the hand-off, the heuristic, the importer
	go test -run '^$$' -bench . -benchtime 5x ./jobs ./store ./internal/cli
	go test -run '^$$' -bench . -benchmem ./heuristic ./internal/transcript

eval: build ## score the heuristic on the development sets, where they are
	@test -f $(EVAL)/score.py || { echo "no score.py in $(EVAL): set EVAL"; exit 1; }
	python3 $(EVAL)/score.py --bin "bin/backfill extract --jsonl"

eval-unread: build ## the same on the part of them that nobody has read
	rm -rf bin/split && python3 internal/eval/split.py $(EVAL)/../data/quality bin/split
	EVAL_DATA=$(CURDIR)/bin/split/unread python3 $(EVAL)/score.py --bin "bin/backfill extract --jsonl"

EVAL ?= ../shared/eval

campaign: ## measure a backfill of $$CAMPAIGN captures, and what goes on beside it
	BACKFILL_CAMPAIGN=$(CAMPAIGN) go test -count 1 -timeout 30m -v -run '^TestCampaign$$' ./internal/e2e

docs: build ## renew the outputs in docs/sql.md, on a demo of its own (needs psql)
	python3 docs/fill.py docs/sql.md $(CURDIR)/bin/backfill bin/docs

cover: ## test coverage, by package
	go test -coverprofile=coverage.out -coverpkg=./... ./...
	go tool cover -func=coverage.out | tail -1

fuzz: ## fuzz every target for $$FUZZTIME each
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep ^Fuzz); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

mutants: ## make known mistakes in the importer, one at a time, and see its cases fail
	go test -tags mutants -count=1 -run '^TestMutants$$' ./internal/transcript

clean: ## remove what was built
	rm -rf bin coverage.out
