# The first of these that is Python 3.11 or newer makes .venv.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
WORLDS ?= 10000
KILLS ?= 100
BIN := .venv/bin

LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup run demo test lint format types storeys bench simulate chaos states lock ci clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

setup: ## Make .venv from the hashed lock; at once when nothing changed.
	@PYTHON="$(PYTHON)" sh tools/setup.sh

run: setup ## Start the server, with the settings of mergeyard.toml if there is one.
	@$(BIN)/mergeyard serve

demo: setup ## Watch a real server at work, in the terminal; EXIT=1 leaves at the end.
	@$(BIN)/mergeyard demo $(if $(EXIT),--exit)

# What decides must be covered to the last branch; measuring that slows all others down, so they run apart. Of those
# many wait for processes and leases, so there is one more of them at a time than two processors would carry.
DECIDING := tests/unit/domain tests/unit/engine tests/story tests/model/test_planted.py

test: lint types storeys ## Check everything: style, types, storeys, then all tests, those of the engine with coverage.
	$(BIN)/pytest -n auto --dist worksteal $(DECIDING) --cov
	$(BIN)/pytest -n 3 --dist load $(DECIDING:%=--ignore %)

lint: setup ## Check format and style.
	$(BIN)/ruff format --check
	$(BIN)/ruff check

format: setup ## Put format and imports in order.
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format

types: setup ## Check types, strictly.
	$(BIN)/basedpyright

storeys: setup ## Check that no room imports from a storey above it.
	$(BIN)/lint-imports --no-logo

bench: setup ## Measure what a turn, a request and a test branch cost.
	$(BIN)/python -m tests.bench

simulate: setup ## Hold the engine to its laws on WORLDS=10000 random worlds.
	$(BIN)/python -m tests.model --worlds $(WORLDS)

chaos: setup ## Kill, stop and restart replicas on one PostgreSQL, KILLS=100 times.
	$(BIN)/python -m tests.replicas --kills $(KILLS)

states: setup ## Write docs/states.md anew from the tables of the domain.
	$(BIN)/python -m tests.house.states_page

lock: ## Write the locks anew, with uv; UPGRADE=1 takes the newest versions.
	$(LOCK) --output-file requirements/run.txt
	$(LOCK) --output-file requirements/test.txt --group test --constraints requirements/run.txt

ci: ## Test, then simulate at length, then kill replicas, then measure.
	$(MAKE) test
	$(MAKE) simulate WORLDS=20000
	-$(MAKE) chaos KILLS=100
	-$(MAKE) bench

clean: ## Remove everything that can be made again.
	rm -rf .venv .bench .coverage* .hypothesis .import_linter_cache .pytest_cache .ruff_cache dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +
