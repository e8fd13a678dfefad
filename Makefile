# Stratagem: every task of the project. `make` lists them.
#
# A task makes the virtual environment and installs what it needs when it first runs, and again
# when pyproject.toml changes. ARGS are handed on, as in `make test ARGS="-k merge"`.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev
INSTALL := $(BIN)/python scripts/install.py
# Tests wait for processes of their own for a third of their time: a few workers more than a small machine
# has cores fill it. Neighbours go to one worker, so that a server that serves a whole file is started once.
WORKERS ?= 5
# How long `make soak` takes random walks.
MINUTES ?= 5
PYTEST := $(BIN)/python -m pytest
TEST_OPTIONS := -n $(WORKERS) --dist worksteal -m "not slow"
PYTHON ?=
ARGS ?=

.PHONY: help
help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- for users

.PHONY: run
run: $(RUNTIME) ## start the server and say how to connect an agent
	@exec $(BIN)/stratagem serve $(ARGS)

.PHONY: test
test: $(DEV) ## run the tests, but for the slow ones
	$(PYTEST) $(TEST_OPTIONS) $(ARGS)

# --- for contributors

# The tests come last and in any case, so that their summary closes the output. They check the
# docs too.
.PHONY: check
check: ## everything that must hold before a commit: format, lint, types, imports, tests, docs
	@status=0; \
	$(MAKE) --no-print-directory lint || status=$$?; \
	$(MAKE) --no-print-directory audit || status=$$?; \
	$(BIN)/python -m tests.retry $(TEST_OPTIONS) $(ARGS) || status=$$?; \
	exit $$status

# What most mistakes are found by, in less than a minute: no server, no other process.
.PHONY: quick
quick: lint ## lint, types, and the tests of the SDK in this process: within a minute
	$(PYTEST) -q -n $(WORKERS) --dist worksteal -m "not slow" tests/test_tidy.py tests/unit/engine \
		tests/unit/memory tests/test_manifest.py tests/behaviour --ignore tests/behaviour/gateway \
		--ignore tests/behaviour/knowledge -k "not (postgres or mcp] or connect] or cli] or mcp- or connect- or cli-)" $(ARGS)

.PHONY: lint
lint: $(DEV) ## format, lint, types and import contracts, without the tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

.PHONY: audit
audit: $(DEV) ## write an SBOM, and look for known weaknesses of what is installed
	$(BIN)/python -m tests.security.audit

.PHONY: format
format: $(DEV) ## format the code and apply safe fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: generate
generate: $(DEV) ## rewrite the schemas and the SDK's methods that are made from the code
	$(BIN)/python -m scripts.generate

.PHONY: docs
docs: $(DEV) ## rewrite the reference pages that are made from the code
	$(BIN)/python -m tests.docs_tables

.PHONY: coverage
coverage: $(DEV) ## tests with coverage: all of the engine, 95 % of the rest
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not slow" --cov --cov-report= $(ARGS)
	$(BIN)/coverage report --include='*/stratagem/engine/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

.PHONY: api-types
api-types: $(DEV) ## check with pyright that the public API is typed completely
	$(BIN)/pyright --verifytypes stratagem --ignoreexternal

.PHONY: bench
bench: $(DEV) ## measure speed against plain SQLite
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: load
load: $(DEV) ## 64 agents at once for a minute each: SQLite and PostgreSQL, one process and two
	$(BIN)/python -m benchmarks.load $(ARGS)

.PHONY: eval
eval: $(DEV) ## measure the quality of search
	$(BIN)/python -m evals $(ARGS)

.PHONY: soak
soak: $(DEV) ## random walks for MINUTES=5, then the slow tests: crashes, full disks, many processes
	$(BIN)/python -m tests.properties.walks --minutes $(MINUTES)
	$(PYTEST) -m slow tests $(ARGS)

.PHONY: clients
clients: $(DEV) ## ask the clients that npm has to read what `init` wrote and what plugins/ holds
	$(PYTEST) -m slow tests/surfaces/cli/test_client_programs.py $(ARGS)

.PHONY: conformance
conformance: $(DEV) ## run the official MCP conformance suite against the server
	tests/conformance/run.sh $(ARGS)

# In an environment of its own, so that nothing is pinned that the project does not ask for.
.PHONY: constraints
constraints: ## refresh constraints.txt: the newest versions that pyproject.toml allows
	rm -rf build/constraints
	python3 -m venv build/constraints
	build/constraints/bin/python -m pip --disable-pip-version-check install '.[dev]'
	{ head -n 1 constraints.txt; build/constraints/bin/python -m pip freeze --exclude stratagem; } \
		> build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/constraints

.PHONY: clean
clean: ## remove builds, caches and reports
	rm -rf build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks evals -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: distclean
distclean: clean ## remove the virtual environment too
	rm -rf $(VENV)

# --- the virtual environment

# The newest Python that runs and can make an environment. A command that is only a shim, or a
# Python without ensurepip (Debian has it in python3-venv), does not count.
$(BIN)/python:
	@for candidate in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
		if "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
			>/dev/null 2>&1; then \
			echo "Making $(VENV) with $$("$$candidate" --version)"; \
			"$$candidate" -m venv $(VENV) && exit 0; \
			rm -rf $(VENV); \
		fi; \
	done; \
	echo "Stratagem needs Python 3.11 or newer with venv (on Debian: python3 and python3-venv)." >&2; \
	exit 1

$(RUNTIME): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Stratagem (once; about half a minute)"
	@$(INSTALL) .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Stratagem and the tools that check it (once; two minutes or so)"
	@$(INSTALL) '.[dev]'
	@touch $@ $(RUNTIME)
