# The first of these that is Python 3.11 or newer creates .venv.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
WORLDS ?= 10000
KILLS ?= 100
LANDINGS ?= 1000
REQUESTS ?= 50000
MINUTES ?= 60
MINUTES_TO_BUILD ?= 8
COOLDOWN ?= 1 week
BIN := .venv/bin

LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	--constraints requirements/avoid.txt --exclude-newer "$(COOLDOWN)" --no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-browser setup-sandbox setup-image setup-schema run demo dist urls docs \
	test test-deciding test-long test-forge lint format types layers bench bench-small \
	worlds simulate race chaos kills campaign fuzz soak forge live-github live-gitlab live-gitea \
	states api-page lock audit-deps ci kept clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## Create .venv with what the product needs, from a hashed lock file; immediate when nothing changed.
	@PYTHON="$(PYTHON)" sh tools/setup.sh run

setup-test: ## Add to .venv what tests and documentation need, from a hashed lock file; immediate when nothing changed.
	@PYTHON="$(PYTHON)" sh tools/setup.sh test

run: setup ## Start the server, with the settings of mergeyard.toml if it exists.
	@$(BIN)/mergeyard serve

demo: setup ## Run a demo with a real server and a dashboard, until Ctrl-C; EXIT=1 ends it after the last pull request.
	@$(BIN)/mergeyard demo $(if $(EXIT),--exit)

# The engine's tests must cover every branch; measuring that slows tests down, so all others run separately. Many of those
# wait for processes and leases, so four workers run on two processors. Each worker gets one test for each that it has
# finished, except that tests which share a server run in one worker.
PARALLEL := -n 4 --dist loadgroup
DECIDING := tests/unit/domain tests/unit/engine tests/story

# Keep bytecode, even where the shell disables it: otherwise every worker and every server compiles everything again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest

test: setup-test ## Check everything: style, types, layers and all tests but the long ones, with coverage of the engine.
	@$(MAKE) --output-sync=target lint types layers test-deciding & checks=$$!; \
	$(PYTEST) $(PARALLEL) -m "not long" $(DECIDING:%=--ignore %); tests=$$?; \
	wait $$checks || { echo "FAILED: style, types, layers or the tests of the engine; see above."; exit 1; }; exit $$tests

test-deciding: setup-test ## Test domain and engine, with full branch coverage.
	$(PYTEST) -n auto --dist worksteal $(DECIDING) --cov

test-long: setup-test ## Run the tests that are too slow for every day.
	$(PYTEST) $(PARALLEL) -m long

lint: setup-test ## Check format and style.
	$(BIN)/ruff format --check
	$(BIN)/ruff check

format: setup-test ## Format the code and sort imports.
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format

types: setup-test ## Check types, strictly.
	$(BIN)/basedpyright

layers: setup-test ## Check that no module imports from a layer above its own.
	$(BIN)/lint-imports --no-logo

bench: setup-test ## Measure the cost of a decision, a request and a test branch.
	$(BIN)/python -m tests.bench

bench-small: setup-test ## Measure the same with smaller loads, and fail when a ratio fell by a third.
	$(BIN)/python -m tests.bench --small

worlds: setup-test ## Check the laws of the engine on WORLDS=10000 random worlds.
	$(BIN)/python -m tests.model --worlds $(WORLDS)

simulate: setup-test ## Check the promises of the whole service in WORLDS=10000 simulated worlds; HEADS=1 REVIEWS=1 for all.
	$(BIN)/python -m tests.simulation --worlds $(WORLDS) $(if $(HEADS),--heads) $(if $(REVIEWS),--reviews)

race: setup-test ## Compare merge policies on simulated days; RACE="--rate 500 ..." gives options.
	$(BIN)/python -m benchmarks.policy_race $(RACE)

chaos: setup-test ## Kill, stop and restart replicas on one PostgreSQL, KILLS=100 times.
	$(BIN)/python -m tests.replicas --kills $(KILLS)

kills: setup-test ## Kill the server around each of its effects, KILLS=100 times, on SQLite and PostgreSQL.
	$(BIN)/python -m tests.kills --kills $(KILLS)

campaign: setup-test ## Merge LANDINGS=1000 times by each method in real repositories, and compare every tree.
	$(BIN)/python -m tests.campaign --landings $(LANDINGS)

fuzz: setup-test ## Send REQUESTS=50000 generated requests, and feed every parser with random input.
	$(BIN)/python -m tests.fuzz --requests $(REQUESTS)

soak: setup-test ## Put batched traffic on a real server for MINUTES=60, and report throughput and growth.
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

dist: setup-test ## Build wheel, source distribution and bill of materials (CycloneDX) into dist/.
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python -m tools.sbom

urls: setup-test ## Replace the project's addresses everywhere: REPOSITORY=https://... DOCUMENTATION=https://...
	$(BIN)/python -m tools.urls "$(REPOSITORY)" "$(DOCUMENTATION)"

audit-deps: setup-test ## Compare the dependencies with the current data of the registries.
	$(BIN)/python -m tools.audit_deps

forge: ## Build a Gitea for test-forge into .forge, from the Go module registry; nothing when one exists.
	@sh tools/forge.sh

test-forge: setup-test ## Test with a real Gitea: the one of `make forge`, or at MERGEYARD_TEST_FORGE_URL.
	$(BIN)/pytest -n 0 tests/forge

live-github: setup-test ## Compare GitHub with our fake of it, on a scratch repository: ARGS="--owner ... --token-file ...".
	$(BIN)/python -m tests.live github $(ARGS)

live-gitlab: setup-test ## Compare GitLab with our fake of it, on a scratch project: ARGS="--owner ... --token-file ...".
	$(BIN)/python -m tests.live gitlab $(ARGS)

live-gitea: setup-test ## Compare Gitea with our fake of it: the one of `make forge`, or the one that ARGS="--url ..." names.
	$(BIN)/python -m tests.live gitea $(ARGS)

docs: setup-test ## Build the documentation as a site into .docs, strictly.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir .docs

setup-browser: ## Install Chromium for the tests of the pages, if it is missing.
	@sh tools/browser.sh

setup-sandbox: ## Install bubblewrap for the tests of the check runner's sandbox, if it is missing.
	@sh tools/sandbox.sh

setup-image: ## Install a container engine and the base image for the test of the image, if they are missing.
	@sh tools/image.sh

setup-schema: ## Get GitHub's published GraphQL schema into .graphql, to compare our queries with it.
	@sh tools/graphql_schema.sh

states: setup-test ## Generate docs/reference/states.md from the tables of the domain.
	$(BIN)/python -m tests.project.states_page

api-page: setup-test ## Generate docs/reference/api.md from the OpenAPI document.
	$(BIN)/python -m tests.project.api_page

lock: ## Generate the lock files, also that of the lowest versions, with uv; UPGRADE=1 takes the newest versions that are at least COOLDOWN="1 week" old.
	$(LOCK) --output-file requirements/run.txt
	$(LOCK) --output-file requirements/test.txt --group test --constraints requirements/run.txt
	$(LOCK) --output-file requirements/lowest.txt --resolution lowest-direct

# Every part decides, except those marked with `-`, which depend on other machines or measure time. A part that does not
# end within its minutes is started once more; if it does not end then either, or if CI_MINUTES are over, that is printed
# and decides nothing. Tests that fail on a busy machine, or on a slow Git host, are repeated once before they count.
# A promise that was found broken always counts: it is written to .ci-violations at once, and `kept` reads that.
CI_MINUTES ?= 80
MINUTES_LEFT = $$(( ($$(cat .ci-started) - $$(date +%s)) / 60 + $(CI_MINUTES) ))
within = @echo "$(2)"; code=124; \
	for attempt in 1 2; do \
		left=$(MINUTES_LEFT); minutes=$$(( left < $(1) ? left : $(1) )); \
		[ $$code -ne 124 ] || [ $$minutes -lt 1 ] || { code=0; timeout $${minutes}m $(2) || code=$$?; }; \
	done; \
	[ $$code -ne 124 ] || { echo "NOT FINISHED, out of time: $(2)"; code=0; }; exit $$code

ci: export MERGEYARD_VIOLATIONS := $(CURDIR)/.ci-violations
ci: ## Run all tests, also slow ones, simulate at length, kill replicas, and test on a real Gitea.
	@date +%s >.ci-started
	@rm -f .ci-violations
	@$(MAKE) setup-browser || echo "NOT TESTED in a browser: Chromium could not be installed here."
	@$(MAKE) setup-sandbox || echo "NOT TESTED in a sandbox: bubblewrap could not be installed here."
	@timeout 6m $(MAKE) setup-image || echo "NOT TESTED as a container: no container engine or no base image could be installed here."
	@timeout 2m $(MAKE) setup-schema || echo "NOT TESTED against GitHub's GraphQL schema: it could not be fetched from the npm registry."
	$(MAKE) test || { $(MAKE) lint types layers test-deciding && $(PYTEST) -n 1 -m "not long" --last-failed --last-failed-no-failures none; }
	$(MAKE) dist
	$(call within,4,$(MAKE) worlds WORLDS=4000)
	$(call within,5,$(MAKE) simulate WORLDS=1000)
	$(call within,5,$(MAKE) simulate WORLDS=500 HEADS=1 REVIEWS=1)
	$(call within,6,$(MAKE) campaign LANDINGS=15)
	$(call within,5,$(MAKE) kills KILLS=30)
	$(call within,5,$(MAKE) chaos KILLS=20)
	$(call within,3,$(MAKE) fuzz REQUESTS=2000)
	@left=$(MINUTES_LEFT); export MERGEYARD_TEST_MINUTES=$$(( left < 40 ? left - 10 : 30 )); \
		[ $$left -le 12 ] && echo "NOT TESTED, out of time: the long tests." || $(MAKE) test-long || \
		MERGEYARD_TEST_MINUTES= $(PYTEST) -n 1 -m long --last-failed --last-failed-no-failures none
	-$(call within,$(MINUTES_TO_BUILD),$(MAKE) forge)
	@ls .forge/gitea-*/gitea >/dev/null 2>&1 || [ -n "$$MERGEYARD_FORGE_BINARY" ] || echo "NOT TESTED on a real Gitea: none could be built here."
	$(call within,8,$(MAKE) test-forge)
	@$(MAKE) kept
	-$(call within,4,$(MAKE) bench-small)
	-$(call within,1,$(MAKE) audit-deps)

kept: ## Fail if a part of `make ci` found a broken promise, also if that part was repeated or out of time.
	@[ ! -s .ci-violations ] || { echo "FAILED: these promises were broken, in a part that was repeated or out of time:"; \
		cat .ci-violations; exit 1; }

clean: ## Remove everything that can be generated again.
	rm -rf .venv .ci-started .ci-violations .bench .live .docs .coverage* .hypothesis .import_linter_cache .pytest_cache .ruff_cache dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +
