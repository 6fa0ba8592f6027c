# Every target sets itself up in .venv; the first one takes about half a minute.
PYTHON ?= python3
BIN := .venv/bin
PROJECTS := pyproject.toml compat/boltzlabs/pyproject.toml compat/collimate_rl/pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo test check unit rootless bench soak fmt docs clean

help: ## what there is to make
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 12

.venv/.stamp: $(PROJECTS) scripts/venv
	@scripts/venv .venv "$(PYTHON)"
	@touch $@

demo: .venv/.stamp ## 164 HumanEval programs, each in its own sandbox
	@$(BIN)/hotbed demo

test: check unit rootless ## everything: linters, every test, then the sandbox tests again as another user

check: .venv/.stamp ## linters, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: .venv/.stamp ## every test, as the user who asks, JOBS (2) files at a time
	@scripts/test-twice $(BIN)/python -n $(or $(JOBS),2) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

rootless: .venv/.stamp ## as root only: the sandbox tests again, from a wheel, as an ordinary user
	@scripts/test-rootless

bench: .venv/.stamp ## speed and memory against baselines of the same run
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

soak: .venv/.stamp ## mixed load for SOAK_S seconds (120); processes, descriptors, mounts and memory must come back
	$(BIN)/python -m benchmarks.soak --seconds $(or $(SOAK_S),120)

fmt: .venv/.stamp ## sort imports, format
	$(BIN)/ruff check --select I --fix .
	$(BIN)/ruff format .

docs: .venv/.stamp ## write what the reference says of each route
	$(BIN)/python -m tests.docs.http_page

clean: ## remove what these targets made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
