# Targets with a text after "##" are what `make help` shows.

PYTHON ?= python3
VENV ?= .venv
ROOT ?= examples/data
HOST ?= 127.0.0.1
PORT ?= 8000
SIZE ?= 200k
PYTEST_ARGS ?=
EXAMPLES ?= 20000
LAWS ?= 500
SECONDS ?= 60
LOAD_SECONDS ?= 30
MINUTES ?= 30
KILLS ?= 200
HISTORIES ?= 5000
QUERIES ?= 2000
PARTS ?=

BIN := $(VENV)/bin
CREATED := $(VENV)/.created
RUNTIME := $(VENV)/.runtime
DEMO := $(VENV)/.demo
DEV := $(VENV)/.dev
COMMAND := $(VENV)/.command
WARM := $(VENV)/.warm

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup demo test check serve bench load endure fuzz laws matrix texts soak faults format proto openapi lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV) $(COMMAND) ## make .venv with everything for development, from the lock file

demo: $(DEMO) $(COMMAND) $(WARM) ## make a table on Spark, serve it, show three requests; ONCE=1 exits then
	@$(BIN)/python examples/demo.py --port $(PORT) $(if $(ONCE),--once)

test: $(DEV) $(COMMAND) ## run all tests; PYTEST_ARGS="-k words" selects some
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder $(PYTEST_ARGS)

check: $(DEV) $(COMMAND) ## format, lint, types, imports, generated code, OpenAPI: changes nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && mkdir -p "$$fresh/lance_core/proto" \
	  && $(BIN)/python protos/generate.py --target "$$fresh" \
	  && diff -r -x __init__.py -x __pycache__ "$$fresh/lance_core/proto" lance_core/proto \
	  || { echo "lance_core/proto is not what protos/ says: run make proto" >&2; exit 1; }
	@$(BIN)/lance-serve openapi | diff openapi.yaml - \
	  || { echo "openapi.yaml is not what the service answers: run make openapi" >&2; exit 1; }

serve: $(RUNTIME) $(COMMAND) ## serve every dataset below ROOT (default examples/data) at HOST:PORT
	$(BIN)/lance-serve serve --root $(ROOT) --host $(HOST) --port $(PORT)

bench: $(DEV) $(COMMAND) ## measure against pylance; SIZE=200k or 1m, PARTS="http text" or all
	$(BIN)/python -m benchmarks.run --size $(SIZE) $(if $(PARTS),--parts $(PARTS))

load: $(DEV) $(COMMAND) ## ask the served example as fast as it answers, for LOAD_SECONDS (30)
	@$(BIN)/python deploy/load/run.py --seconds $(LOAD_SECONDS)

endure: $(DEV) $(COMMAND) ## query for MINUTES (30) while a table changes; answers are checked by brute force
	$(BIN)/python -m tests.soak_http --minutes $(MINUTES)

fuzz: $(DEV) $(COMMAND) ## read EXAMPLES (default 20000) random and as many damaged files; takes hours
	HYPOTHESIS_PROFILE=fuzz FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -n 2 \
	  -o faulthandler_timeout=0 tests/interop/test_random_files.py tests/property/test_file_round_trips.py
	$(BIN)/python -m tests.mutation_runs --count $(EXAMPLES)

laws: $(DEV) $(COMMAND) ## try each law with LAWS (default 500) random examples, which CI has no time for
	HYPOTHESIS_PROFILE=fuzz FUZZ_EXAMPLES=$(LAWS) $(BIN)/pytest -n 2 --dist loadgroup \
	  tests/property tests/interop $(PYTEST_ARGS)

matrix: $(DEV) $(COMMAND) ## compare all kinds and states of indices with pylance; search beyond the cache
	MATRIX=all CACHE_SECONDS=60 CACHE_ROWS=1000000 $(BIN)/pytest -n 2 -o faulthandler_timeout=0 \
	  tests/interop/test_vector_matrix.py tests/interop/test_cache_budget.py

texts: $(DEV) $(COMMAND) ## rank rows of QUERIES random text queries as pylance does
	$(BIN)/python -m tests.text_runs --count $(QUERIES)

soak: $(DEV) $(COMMAND) ## race eight writers for SECONDS, kill writers KILLS times, HISTORIES random histories
	RACE_SECONDS=$(SECONDS) CRASH_KILLS=$(KILLS) $(BIN)/pytest -o faulthandler_timeout=0 \
	  tests/interop/test_concurrent_writers.py tests/interop/test_crashes.py
	HYPOTHESIS_PROFILE=fuzz FUZZ_EXAMPLES=$$(($(HISTORIES) * 5 / 2)) $(BIN)/pytest \
	  -o faulthandler_timeout=0 tests/interop/test_table_histories.py

faults: $(DEV) $(COMMAND) ## run KILLS jobs on a Spark cluster of which something dies at random moments
	$(BIN)/python -m tests.pipeline_runs --count $(KILLS)

format: $(DEV) ## format the code and mend what ruff can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

proto: $(DEV) ## write lance_core/proto from protos/
	$(BIN)/python protos/generate.py

openapi: $(DEV) $(COMMAND) ## write openapi.yaml from the service
	$(BIN)/lance-serve openapi > openapi.yaml

lock: $(DEV) ## write the lock files from pyproject.toml; UPGRADE=1 takes the newest versions
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  $(if $(UPGRADE),--upgrade) --extra dev --output-file requirements-dev.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  $(if $(UPGRADE),--upgrade) --constraints requirements-dev.lock \
	  --output-file requirements.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  $(if $(UPGRADE),--upgrade) --constraints requirements-dev.lock \
	  --extra demo --extra spark --output-file requirements-demo.lock pyproject.toml

clean: ## remove .venv and everything generated that git ignores
	rm -rf $(VENV) .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info

# Stamp files: an environment is made once, and again only when its lock file changes.

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "lance-serve needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) has no venv module (Debian: apt install python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(RUNTIME): requirements.lock $(CREATED)
	@echo 'installing the packages of requirements.lock, which takes a minute or two'
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@touch $@

$(DEMO): requirements-demo.lock $(CREATED)
	@echo 'installing the packages of requirements-demo.lock, which takes two or three minutes'
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-demo.lock
	@touch $(RUNTIME) $@

$(DEV): requirements-dev.lock $(CREATED)
	@echo 'installing the packages of requirements-dev.lock, which takes a minute or two'
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $(RUNTIME) $(DEMO) $@

# What the kernels are compiled to is kept; changed ones are compiled when they are needed.
$(WARM): $(DEMO) $(COMMAND)
	@echo 'compiling kernels, which takes two or three minutes'
	@$(BIN)/lance-serve warm
	@touch $@

# The command runs the code of this folder; no copy of it is installed.
$(COMMAND): pyproject.toml $(CREATED)
	@$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@
