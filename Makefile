# Needs python3 >= 3.11 with venv, and make; everything else comes from requirements.lock.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
# Extra arguments: make test ARGS="-k kernel", make lock ARGS=--upgrade
ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Workers take whole files, in the order that tests/conftest.py gives them.
unexport PYTHONDONTWRITEBYTECODE # or each worker, and each process that a test starts, compiles all sources again
SHARED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 1
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-slow mutants lint bench docs results links release-check proofs lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## the environment in .venv, every package pinned and hash-checked

# A no-op until the lock or the project's metadata changes; an interrupted run leaves no stamp and starts again.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fluidcc needs Python 3.11 or later; choose one with: make venv PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module; on Debian: apt install python3-venv" >&2; exit 1; }
	@echo "[1/3] creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "[2/3] installing $$(grep -c '^[a-z0-9]' requirements.lock) pinned packages (once; a few minutes)"
	@$(PIP) install --quiet --require-hashes --requirement requirements.lock
	@echo "[3/3] installing fluidcc itself, editable"
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: venv ## audit a switch's and a NIC's settings, sweep around them, write out/
	@$(BIN)/python examples/demo.py $(ARGS)

test: venv ## the tests, without the slow ones
	@$(BIN)/pytest $(SHARED) $(ARGS)

test-slow: venv ## only the tests marked slow
	@$(BIN)/pytest $(SHARED) -m slow $(ARGS)

mutants: venv ## small mistakes in a copy of the sources: do the tests notice? ARGS="--drawn 240 --seed 1", --only NAME, --list, --jobs K
	@$(BIN)/python -m mutants $(ARGS)

proofs: venv ## have Coq check the theorems in proofs/; without it a line says how to install it
	@$(BIN)/python -m fluidcc.proofs.verdict.coq $(ARGS)

lint: venv ## ruff (rules and format) and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: venv ## measure against JiTCDDE and a C kernel
	@$(BIN)/python -m benchmarks $(ARGS)

docs: venv ## the documentation in docs/_build/html; warnings, stale results and pages that load from elsewhere are errors
	@$(BIN)/sphinx-build --jobs auto --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@$(BIN)/python -m docs.pages.foreign_loads docs/_build/html
	@echo "open docs/_build/html/index.html"

results: venv ## what the documentation shows of claims, figures and notebooks, where its sources changed; ARGS=--check
	@$(BIN)/python -m docs.pages.results $(ARGS)

links: venv ## are the documentation's links to other hosts alive? Needs a network
	@$(BIN)/sphinx-build --quiet -b linkcheck docs docs/_build/links

release-check: venv ## sdist and wheel in dist/, in a clean environment: command, demo, tests. ARGS="--fresh --all"
	@$(BIN)/python -m tests.release $(ARGS)

# Needs a network. Keeps the pins it can; ARGS=--upgrade takes the newest of everything, ARGS="--upgrade-package jax" of one.
# One version of each package for all Pythons where there is one, so that every machine runs what was tested.
lock: ## requirements.lock anew from pyproject.toml
	@test -x $(BIN)/uv || { echo "no $(BIN)/uv: run 'make venv' first" >&2; exit 1; }
	@$(BIN)/uv --no-config pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --fork-strategy fewest --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" --quiet --output-file requirements.lock $(ARGS)
	@! grep -nE '://|^-|@ ' requirements.lock || { echo "requirements.lock names a place: see the lines above" >&2; exit 1; }

clean: ## remove caches and builds; keeps .venv and out/
	rm -rf build dist docs/_build docs/generated docs/notebooks docs/reference docs/jupyter_execute .pytest_cache .ruff_cache .hypothesis .coverage
	find fluidcc tests mutants benchmarks examples notebooks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
