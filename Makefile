# The first of these that is Python 3.11 or newer makes .venv.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
WORLDS ?= 10000
KILLS ?= 100
LANDINGS ?= 1000
REQUESTS ?= 50000
MINUTES ?= 60
MINUTES_TO_BUILD ?= 8
BIN := .venv/bin

LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	--no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup setup-browser setup-sandbox run demo docs test test-deciding test-long test-forge lint format types storeys bench bench-small \
	worlds simulate chaos kills campaign fuzz soak forge states api-page lock sbom audit-deps ci clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## Make .venv from the hashed lock; at once when nothing changed.
	@PYTHON="$(PYTHON)" sh tools/setup.sh

run: setup ## Start the server, with the settings of mergeyard.toml if there is one.
	@$(BIN)/mergeyard serve

demo: setup ## Watch a real server at work, in the terminal; EXIT=1 leaves at the end.
	@$(BIN)/mergeyard demo $(if $(EXIT),--exit)

# What decides must be covered to the last branch; measuring that slows all others down, so they run apart. Of those
# many wait for processes and leases, so there are more of them at a time than two processors would carry. Each worker
# gets one for one that it has done: one with many short tests would else take hundreds more, and be the last for long.
DECIDING := tests/unit/domain tests/unit/engine tests/story

# What is compiled is kept, even where the shell says otherwise: else every worker and every server compiles it anew.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest

test: setup ## Check everything: style, types, storeys, then all tests, those of the engine with coverage.
	@$(MAKE) --jobs 2 --output-sync=target types lint storeys test-deciding
	$(PYTEST) -n 4 --dist load --maxschedchunk 1 -m "not long" $(DECIDING:%=--ignore %)

test-deciding: setup ## Test what decides, covered to the last branch.
	$(PYTEST) -n auto --dist worksteal $(DECIDING) --cov

test-long: setup ## Run the tests that take too long for every day.
	$(PYTEST) -n 4 --dist load --maxschedchunk 1 -m long

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

bench-small: setup ## Measure the same on smaller grounds, and fail when a ratio fell by a third.
	$(BIN)/python -m tests.bench --small

worlds: setup ## Hold the engine to its laws on WORLDS=10000 random worlds.
	$(BIN)/python -m tests.model --worlds $(WORLDS)

simulate: setup ## Hold the whole service to its promises in WORLDS=10000 simulated worlds.
	$(BIN)/python -m tests.simulation --worlds $(WORLDS)

chaos: setup ## Kill, stop and restart replicas on one PostgreSQL, KILLS=100 times.
	$(BIN)/python -m tests.replicas --kills $(KILLS)

kills: setup ## Kill the server at every effect it has, KILLS=100 times, on SQLite and PostgreSQL.
	$(BIN)/python -m tests.kills --kills $(KILLS)

campaign: setup ## Land LANDINGS=1000 times in real repositories full of odd contents, and compare every tree.
	$(BIN)/python -m tests.campaign --landings $(LANDINGS)

fuzz: setup ## Send REQUESTS=50000 made-up requests, and feed every parser with nonsense.
	$(BIN)/python -m tests.fuzz --requests $(REQUESTS)

soak: setup ## Put batched traffic on a real server for MINUTES=60, and say what it carried and what grew.
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

sbom: setup ## Write down all that runs with the service, as CycloneDX, into dist/.
	$(BIN)/python -m tools.sbom dist/mergeyard.cdx.json

audit-deps: setup ## Compare what we depend on with what the registries know of it now.
	$(BIN)/python -m tools.audit_deps

forge: ## Build a Gitea for test-forge into .forge, from the Go module registry; nothing when one is there.
	@sh tools/forge.sh

test-forge: setup ## Test against a real Gitea: the one of `make forge`, or at MERGEYARD_TEST_FORGE_URL.
	$(BIN)/pytest -n 0 tests/forge

docs: setup ## Build the documentation as a site into .docs, strictly.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir .docs

setup-browser: ## Install Chromium for the tests of the pages, where there is none.
	@sh tools/browser.sh

setup-sandbox: ## Install bubblewrap for the tests of the check runner's sandbox, where there is none.
	@sh tools/sandbox.sh

states: setup ## Write docs/states.md anew from the tables of the domain.
	$(BIN)/python -m tests.house.states_page

api-page: setup ## Write docs/api.md anew from the OpenAPI document.
	$(BIN)/python -m tests.house.api_page

lock: ## Write the locks anew, with uv; UPGRADE=1 takes the newest versions.
	$(LOCK) --output-file requirements/run.txt
	$(LOCK) --output-file requirements/test.txt --group test --constraints requirements/run.txt

# What fails on a busy machine, or at a forge with a pace of its own, is tried once more before it is judged. Campaigns
# with real processes are shown within their time. A forge is built only where that is done in time; where it is not,
# this is said, and the rest goes on.
ci: ## Test, also what takes long, simulate at length, kill replicas, and test on a real forge.
	@$(MAKE) setup-browser || echo "NOT TESTED in a browser: Chromium could not be installed here."
	@$(MAKE) setup-sandbox || echo "NOT TESTED in a sandbox: bubblewrap could not be installed here."
	$(MAKE) test
	$(MAKE) sbom
	$(MAKE) worlds WORLDS=5000
	$(MAKE) simulate WORLDS=2000
	timeout 30m $(MAKE) test-long || $(BIN)/pytest -n 1 -m long --last-failed --last-failed-no-failures none
	-timeout 3m $(MAKE) chaos KILLS=30
	-timeout 3m $(MAKE) kills KILLS=30
	-timeout 2m $(MAKE) campaign LANDINGS=100
	-timeout 2m $(MAKE) fuzz REQUESTS=2000
	-timeout 4m $(MAKE) bench-small
	-timeout 1m $(MAKE) audit-deps
	@timeout $(MINUTES_TO_BUILD)m $(MAKE) forge || echo "NOT TESTED on a real forge: none could be built here in $(MINUTES_TO_BUILD) minutes."
	-@if [ -n "$$MERGEYARD_FORGE_BINARY" ] || ls .forge/gitea-*/gitea >/dev/null 2>&1; then timeout 8m $(MAKE) test-forge || $(BIN)/pytest -n 0 tests/forge --last-failed; fi

clean: ## Remove everything that can be made again.
	rm -rf .venv .bench .docs .coverage* .hypothesis .import_linter_cache .pytest_cache .ruff_cache dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +
