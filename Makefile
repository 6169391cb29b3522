# One word a command. `make` alone prints them.
PYTHON ?= python3
# A process of ours compiles nothing that another has compiled: tests start thousands.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CHART_READY := $(VENV)/.chart

.DEFAULT_GOAL := help
.PHONY: help setup run test test-redis test-benchmarks test-cluster test-conformance chart diff-kcm check chaos sim evidence planted bench release clean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "oarlock needs Python >= 3.11: make PYTHON=/path/to/python3.11"; exit 2; }
	@test -x $(BIN)/python || { echo "making $(VENV) ..."; $(PYTHON) -m venv $(VENV) || { echo "this Python lacks venv: on Debian, apt-get install python3-venv"; exit 2; }; }
	@echo "installing what oarlock needs into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(CHART_READY): $(READY)
	@echo "installing a Helm engine, the API's schemas and three clients, and kopf, into $(VENV) (230 MB, once) ..."
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[chart,clients,kopf]'
	@touch $@

setup: $(READY) ## make the environment (.venv) and install everything into it

run: $(READY) ## the main job on the embedded default, shown working; FLAGS="--workers 4 --no-chaos"
	@$(BIN)/oarlock run $(FLAGS)

test: $(CHART_READY) ## every test, 16 minutes on 2 slow cores; ARGS="-k queue" narrows it
	@$(BIN)/python -m pytest -q -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-redis: $(READY) ## Sentinels, clusters, failovers and moved slots, also under a fleet's load; ARGS="-k cluster"
	@OARLOCK_TEST_REDIS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile tests/redis/failover $(ARGS)

test-benchmarks: $(CHART_READY) ## each benchmark to its end, however small: that it runs and says what docs/benchmarks lists
	@OARLOCK_TEST_BENCHMARKS=1 $(BIN)/python -m pytest -q -n 2 tests/benchmarks/runs $(ARGS)

test-cluster: $(CHART_READY) ## the acceptance suite on a real kube-apiserver: KUBEBUILDER_ASSETS=DIR, or built once; or OARLOCK_TEST_KUBECONFIG=FILE
	@$(if $(OARLOCK_TEST_KUBECONFIG),,$(BIN)/python -m tests.realserver >/dev/null)
	@OARLOCK_TEST_SERVER=real $(BIN)/python -m pytest -q --timeout 900 $(if $(OARLOCK_TEST_KUBECONFIG),,-n 2 --dist loadfile tests/realserver tests/chart/test_real_*.py) tests/cluster/acceptance $(ARGS)

test-conformance: $(READY) ## upstream's own e2e.test, built once, with a fleet in its manager's place; FLAGS="--kind Deployment"
	@$(BIN)/python -m tests.conformance $(FLAGS)

diff-kcm: $(READY) ## the same scenarios beside upstream's manager, compared; SCENARIOS=300 SEED=1 FLAGS="--only 7"; FLAGS=--shadow: a dry run beside upstream
	@$(BIN)/python -m tests.differential --scenarios $(or $(SCENARIOS),20) --seed $(or $(SEED),1) $(FLAGS)

chart: $(CHART_READY) ## the Helm chart: lint, render each of its options, validate to the letter; ARGS="-k redis" narrows it
	@$(BIN)/python -m pytest -q tests/chart $(ARGS)

check: $(READY) ## ruff, mypy strict, the import contract, the script headers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/broker/test_script_headers.py

chaos: $(READY) ## seeded campaign of faults with a verdict; DURATION=120 SEED=7 FAULTS=300, or ONLY=redis-cut
	@$(BIN)/oarlock chaos $(if $(DURATION),--duration $(DURATION)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(ONLY),--only $(ONLY)) $(FLAGS)

sim: $(READY) ## SEEDS=1000 simulated runs on all cores; it goes on where it stopped; FLAGS="--only rolling --first 17"
	@$(BIN)/python -m tests.simulation run --seeds $(or $(SEEDS),1000) $(FLAGS)

evidence: $(READY) ## what is left to play for docs/evidence.md; SLICES=10 campaigns, JOBS=3 side by side, ONLY=points
	@$(BIN)/python -m tests.evidence play $(if $(SLICES),--slices $(SLICES)) $(if $(JOBS),--jobs $(JOBS)) $(if $(ONLY),--only $(ONLY))
	@$(BIN)/python -m tests.evidence table

planted: $(READY) ## faults planted in a running fleet, each named by the commands and the page of docs/troubleshoot.md; FLAGS="--only quota"
	@$(BIN)/python -m tests.planted $(FLAGS)

bench: $(READY) ## NAME=queue|pods|converge|failover|daemonset|nodes|fixture|blocking|budget|latency|webhook|keyed_queue|look|fair|board|history|large|scale|ingest|desired|operators|operators.kills|peers|scale_out|versus_kcm|picture; the last line is one JSON object
	@$(BIN)/python -m benchmarks.$(or $(NAME),queue) $(FLAGS)

release: $(READY) ## wheel, source archive, SBOM, audit and checksums into dist/; AUDIT=no leaves the audit out
	@AUDIT=$(AUDIT) PYTHON=$(BIN)/python image/release.sh

clean: ## remove the environment and all caches
	@rm -rf $(VENV) build dist *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
