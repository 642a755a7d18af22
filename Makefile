# The front door. Every target does its own set-up; on a fresh machine start with `make demo`.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv/.ready-bench
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

.DEFAULT_GOAL := help
.PHONY: help demo demo-data test check thorough mutants lint bench clean

help:
	@echo 'make demo    apply manifests-example/ to a lake in .demo/, then fill a table of it on Spark if there is Java'
	@echo 'make test    everything: ruff, mypy, all tests (CI runs this)'
	@echo 'make check   ruff, mypy and the quick tests, a minute and a half of them'
	@echo 'make thorough    all property tests with thousands of examples: hours, before an issue is resolved'
	@echo 'make mutants     whether the tests see mistakes in the safety rules: minutes, before an issue is resolved'
	@echo 'make bench   the benchmarks of tests/bench/'
	@echo 'make clean   removes .venv, .demo and all caches'

# Shows a command of the demo as one would type it, then runs it from .venv.
run = @printf '\n$$ %s\n' '$(1)'; PATH="$(CURDIR)/$(BIN):$$PATH" $(1)

DEMO := manifests-example --var lake=.demo/lake
DEMO_DATA := manifests-example manifests-example-data --var lake=.demo/lake

demo: $(READY)
	@rm -rf .demo && mkdir .demo
	$(call run,reconciler validate $(DEMO))
	$(call run,reconciler plan $(DEMO))
	$(call run,reconciler apply $(DEMO) --yes)
	$(call run,reconciler plan $(DEMO) --detailed-exitcode)
	@missing="$$($(BIN)/python -c 'from reconciler.pipeline.session import SparkOptions, missing; print(missing(SparkOptions()) or "")')"; \
	if [ -n "$$missing" ]; then printf '\nThe second part fills a table, which takes Spark. %s\n' "$$missing"; \
	else $(MAKE) --no-print-directory demo-data; fi

demo-data: $(READY)
	$(call run,reconciler apply $(DEMO_DATA) --yes --target fleet.shifts)
	$(call run,reconciler pipeline verify $(DEMO_DATA) --target fleet.shifts)
	$(call run,reconciler plan $(DEMO_DATA) --detailed-exitcode)

test: lint
	$(BIN)/pytest -n 2 --dist worksteal

check: lint
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

# Another seed: make thorough SEED=7. Hypothesis marks its tests itself; slow ones are among them.
thorough: $(READY)
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -n 2 --dist worksteal -m hypothesis $(if $(SEED),--hypothesis-seed=$(SEED))

# One or a few of them: make mutants NAME='claim-of-another-host percent-at-its-limit'
mutants: $(READY)
	$(BIN)/python tests/mutants/run.py $(NAME)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict reconciler

bench: $(BENCH_READY)
	@for script in tests/bench/bench_*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

# A stamp is younger than pyproject.toml exactly when what that file asks for is installed.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[spark,dev]'
	@touch $@

$(BENCH_READY): $(READY)
	$(PIP) -e '.[bench]'
	@touch $@

clean:
	rm -rf .venv .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
