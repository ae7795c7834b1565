# Needs python3 (3.11 or later), git and make; everything else is installed into .venv from requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-crash check format bench picture lock clean

demo: $(READY)          ## the main job, on a sample project: no key, no network (ARGS=--headless: without the screen)
	@$(BIN)/cdd demo $(ARGS)

test: check             ## everything that must be clean at every commit
	@$(BIN)/pytest --dist loadgroup -n $$((2 * $$(getconf _NPROCESSORS_ONLN)))  # half of the time is waiting for programs

test-crash: $(READY)    ## a run killed at every one of its points, and resumed (the tests take a sample)
	@$(BIN)/pytest tests/crash -n auto --all-kill-points

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
	@$(BIN)/python -m benchmarks.transcript
	@$(BIN)/python -m benchmarks.plan_parsing
	@$(BIN)/python -m benchmarks.walking
	@$(BIN)/python -m benchmarks.checkpoints
	@$(BIN)/python -m benchmarks.replies

picture: $(READY)       ## docs/shell.svg, from a run of the demo
	@$(BIN)/python docs/picture.py

lock: $(READY)          ## take newer versions of the dependencies into requirements.lock
	@$(BIN)/pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 \
		--group dev pyproject.toml --output-file requirements.lock

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "cdd-agent needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV) (about a minute the first time) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

clean:                  ## remove what set-up and tests made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
