# The one list of commands. `make help` prints it.
#
# Everything is built into .venv and target/. Stamps in .venv say what is up to date, so that a second run only does
# what changed. pip and cargo take their settings from where they always do.
#
# The release profile is what runs; cargo's tests use the dev profile (debug assertions, no link-time optimisation), and
# the linters share its build scripts. The binding, rust/py, is tested from Python only, so pyo3 is never built for cargo's
# tests. maturin asks for an extension module through the environment, not through a feature of pyo3.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check coverage bench long faults cluster failover adapters clocks console vendored integrations image docs man deb forecasts fuzz sanitize peers wheels installs advisories fmt lock clean tools

DEMO ?=
GOALS ?=
FAULTS ?=
MINUTES ?= 0
PICTURES ?=
FRACAST ?=
FUZZ ?=
OFFLINE ?=
DATA ?=
TARGET ?=
VENV := .venv
# Extras of pyproject.toml that are pinned together and that an environment of `make` has.
EXTRAS := client server frames forecast mqtt bench
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# LLVM's counters of branches; a stable compiler takes them as well. With --target, build scripts go without.
COVERAGE := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
# Less what takes a database to test.
CARGO_TEST := cargo test --workspace --exclude fleetcast-cluster --locked
# A package whose engine has the backend of many machines.
CLUSTER := target/cluster/site
# Servers and nodes that end under load: minutes, and their time limits want a machine that does nothing else.
FAILOVER := $(foreach fault,failover old_primaries cuts clock_steps compactors preference objects patroni,tests/cluster/test_$(fault).py)
ON_SERVERS = PYTHONPATH=$(abspath $(CLUSTER)) PYTHON=$(abspath $(VENV))/cluster/bin/python sh tests/cluster/with-engine.sh sh -c
ENGINE := Cargo.toml Cargo.lock pyproject.toml python/fleetcast/_core.pyi $(shell find rust/arrow rust/core rust/docstrings rust/forecast rust/front rust/grpc rust/limiter rust/promql rust/py rust/service -name '*.rs' -o -name Cargo.toml)

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

run: $(VENV)/engine ## build everything, then the demo; DEMO="--once" ends after the tour
	$(BIN)/fleetcast demo $(DEMO)

# Three processes for two cores: half of the time a test waits for a service, or for a clock.
test: $(VENV)/engine $(VENV)/dev ## every test, Rust and Python
	$(CARGO_TEST)
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile

check: $(VENV)/engine $(VENV)/dev ## format, lints, types, layers, licences, the sdist
	@cargo fmt --version >/dev/null 2>&1 || { echo "make check needs rustfmt: rustup component add rustfmt" >&2; exit 1; }
	@cargo clippy --version >/dev/null 2>&1 || { echo "make check needs clippy: rustup component add clippy" >&2; exit 1; }
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	@! cargo tree --locked -p fleetcast-core -e all --prefix none | grep '^pyo3' || { echo "rust/core must not know pyo3" >&2; exit 1; }
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest fleetcast._core --allowlist tools/stubtest-allow
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_licences
	$(BIN)/python tools/sdist
	$(BIN)/python -m pytest -q -s tests/test_tidy.py tests/test_tidy_readers.py tests/test_contract.py

# Leaves an engine behind that counts; without its stamp the next command builds the usual one again.
coverage: $(VENV)/engine $(VENV)/dev ## every test once more, counting the lines it reaches; twenty minutes
	rm -f $(VENV)/engine
	VIRTUAL_ENV=$(abspath $(VENV)) PATH="$(abspath $(BIN)):$$PATH" env -u CONDA_PREFIX $(BIN)/python tools/coverage

bench: $(VENV)/engine $(VENV)/dev ## measure; figures of this machine only; GOALS="--markdown FILE" writes the table
	cargo bench --workspace --locked
	$(BIN)/python -m pytest --benchmark-enable --benchmark-only -q benches
	$(BIN)/python -m benches.goals $(GOALS)

long: $(VENV)/engine $(VENV)/dev ## the tests that draw their input, 5,000 examples each; a quarter of an hour
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest --numprocesses 2 -m hypothesis

faults: $(VENV)/engine $(VENV)/dev ## power cuts, failing calls, full disks and kill -9 at full length; a quarter of an hour
	FAULTS=full cargo test --profile faults --package fleetcast-faults --package fleetcast-model --locked -- --nocapture
	FAULTS=full $(BIN)/python -m pytest -q -s tests/service/test_kill.py tests/backup tests/cli/test_export_killed.py \
	  tests/engine/test_write_arrow_faults.py tests/cli/test_import_parquet.py tests/cli/test_master_key.py tests/cli/test_rekey.py

# Debian has Prometheus (PROMETHEUS=/usr/bin/prometheus); Telegraf is a Go module (TELEGRAF=...). Without them theirs are left out.
adapters: $(VENV)/engine $(VENV)/dev $(VENV)/adapters/made ## clients of other protocols, as published, against the adapter listener
	ADAPTER_CLIENTS=$(abspath $(VENV))/adapters/bin/python $(BIN)/python -m pytest -q tests/adapters/test_clients.py

# Debian has the browser and its driver, and npm for the rules of accessibility; it says what is missing and leaves that out.
console: $(VENV)/engine $(VENV)/dev $(VENV)/console/made ## the console in a real browser; PICTURES=DIR takes pictures of it instead
	sh tests/console/browser/with-browser.sh $(BIN)/python $(PICTURES)

vendored: $(VENV)/console/made ## copy the libraries of the console's pages from npm's packages
	$(BIN)/python tools/vendored

# Programs of others; those that cannot be had are named, and their tests left out.
integrations: $(VENV)/engine $(VENV)/dev ## the files of integrations/ with the programs that they are for; ten minutes
	sh tools/integrations
	INTEGRATIONS=1 $(BIN)/python -m pytest -q -rs tests/integrations

image: ## the steps of integrations/docker/Dockerfile in chroots, as root; TARGET=DIR is what cargo goes on with
	python3 tools/image $(TARGET)

# Another engine than the usual one, which stays where it is. Its build scripts are those of the linters.
cluster: $(VENV)/dev $(VENV)/cluster/made $(CLUSTER)/made ## the tests of PostgreSQL and objects, on servers of their own
	PYTHONPATH=$(abspath $(CLUSTER)) $(BIN)/python -m mypy.stubtest fleetcast._core --allowlist tools/stubtest-allow --ignore-unused-allowlist
	$(ON_SERVERS) 'cargo test --locked -p fleetcast-cluster && \
  $(BIN)/python -m pytest -q tests/cluster $(FAILOVER:%=--ignore=%) && \
  $(BIN)/python -m pytest -q --numprocesses 3 --dist loadfile --backend postgresql tests/conformance tests/client'

failover: $(VENV)/dev $(VENV)/cluster/made $(CLUSTER)/made ## servers and objects fail under load, with a table; MINUTES=30: passes for so long; FAULTS=full: 1,400 rounds, hours
	FAULTS=$(FAULTS) $(ON_SERVERS) '$(BIN)/python -m tests.cluster --minutes $(MINUTES) $(FAILOVER) tests/cluster/test_reads_of_others.py'

# Tests that compare the service with a clock of their own may fail; docs/operations.md ("Clocks") has what must not.
clocks: $(VENV)/engine $(VENV)/dev ## the tests of the service under a wall clock that steps; CLOCKS_SEED=N chooses the steps; twenty minutes
	$(BIN)/python -m tests.clocks -q tests/service tests/conformance tests/composition tests/maintenance tests/accounts tests/admin \
	  tests/limiter tests/predictions tests/console tests/grpc

fuzz: ## hostile bytes for every reader; FUZZ="--seconds 600 json" takes longer, or one of them
	RUSTFLAGS="$(COVERAGE)" cargo run --quiet --release --locked --target $(HOST) --target-dir target/coverage -p fleetcast-fuzz -- $(FUZZ)

# Why these tools: docs/decisions/0021-sanitizers.md. A stable compiler takes the flag if it is told so.
sanitize: ## the tests of unsafe code under AddressSanitizer, those of SIMD under valgrind too
	@command -v valgrind >/dev/null || { echo "make sanitize needs valgrind: apt-get install valgrind" >&2; exit 1; }
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test --locked --target $(HOST) --target-dir target/sanitize \
	  -p fleetcast-core -p fleetcast-arrow -p fleetcast-front -p fleetcast-limiter -p fleetcast-fuzz --lib --test bounded
	CARGO_TARGET_$(shell echo $(HOST) | tr a-z- A-Z_)_RUNNER="valgrind --quiet --error-exitcode=1" \
	  cargo test --locked -p fleetcast-core --lib -- codec::simd codec::float

forecasts: $(VENV)/engine $(VENV)/forecasts/made ## judge the forecast models on real sets, DATA=DIR; writes docs/forecasts.md
	PYTHONPATH=python $(VENV)/forecasts/bin/python -m benches.forecast --data $(DATA)

# fracast brings PyTorch with CUDA, 3 GB to fetch and 5 GB on disk; where FRACAST=1 has not installed it, its rows are left out.
peers: $(VENV)/engine $(VENV)/peers/made $(if $(FRACAST),$(VENV)/peers/fracast) ## judge forecasters of others beside ours, DATA=DIR; writes docs/forecasts.md; FRACAST=1 adds one
	OMP_NUM_THREADS=1 PYTHONPATH=python $(VENV)/peers/bin/python -m benches.forecast.peers --data $(DATA)

# A link of a page may lead to any of these, as on GitHub.
docs: $(VENV)/docs/made ## the pages as a site to read from a folder: target/docs/site/index.html
	rm -rf target/docs
	mkdir -p target/docs/pages
	cp -R *.md LICENSE docs examples integrations protos tools/site/iframe-worker.js target/docs/pages
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --quiet --strict --config-file tools/site/mkdocs.yml

man: $(VENV)/engine $(VENV)/dev ## pages for man, of each command: man -l target/man/fleetcast.1
	$(BIN)/python tools/manpages target/man

deb: $(VENV)/engine $(VENV)/dev ## a Debian package of target/dist, for this machine's Python; after `make wheels`
	$(BIN)/python tools/deb

wheels: $(VENV)/wheels/made ## what is published, into target/dist; TWICE=--twice builds it once more and compares
	$(VENV)/wheels/bin/python tools/wheels $(TWICE)

installs: $(VENV)/made ## install target/dist into bare environments, one for each extra, and try each; after `make wheels`
	$(BIN)/python tools/installs

# The scanner is a Go module. It asks its databases over the network, or with OFFLINE=--offline reads copies of them.
advisories: ## versions of the lock files against published weaknesses; exit status 1 if there are any
	GOBIN=$(abspath target/advisories) go install github.com/google/osv-scanner/v2/cmd/osv-scanner@v2.5.1
	target/advisories/osv-scanner scan source $(OFFLINE) --lockfile Cargo.lock \
	  --lockfile requirements/console/package-lock.json $(foreach file,$(wildcard requirements/*.txt),--lockfile requirements.txt:$(file))

fmt: $(VENV)/dev ## format, and mend what the linters can mend
	cargo fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: tools ## pin the Python packages anew; UPGRADE=--upgrade takes the newest
	python3 -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet pip-tools
	tools/extras $(EXTRAS) > $(VENV)-lock/run.in
	for set in "run $(VENV)-lock/run.in" $(foreach set,build dev train peers fracast cluster adapters console docs grafana wheels,"$(set) requirements/$(set).in"); do set -- $$set; \
	  $(VENV)-lock/bin/pip-compile --quiet --no-config --generate-hashes --strip-extras --no-header --no-emit-index-url \
	    --no-emit-find-links --no-emit-trusted-host --no-emit-options $(UPGRADE) --output-file requirements/$$1.txt $$2 || exit 1; done
	rm -rf $(VENV)-lock

clean: ## remove what was built
	rm -rf $(VENV) $(VENV)-lock target python/fleetcast/_core.*.so

tools:
	@sh tools/need

# Debian's python3 without python3-venv makes only environments without pip; its own pip can fill those in.
$(VENV)/made: | tools
	@rm -rf $(VENV)
	@python3 -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); python3 -m venv --without-pip $(VENV) && \
	  python3 -m pip --python $(BIN)/python install --quiet pip; } || \
	  { rm -rf $(VENV); echo "python3 cannot make a virtual environment: install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/run: requirements/run.txt requirements/build.txt $(VENV)/made
	$(PIP) install --quiet --require-hashes -r requirements/run.txt -r requirements/build.txt
	@touch $@

$(VENV)/dev: requirements/dev.txt $(VENV)/run
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

# Plotting and comparing bring licences that the service's environment is kept free of.
$(VENV)/forecasts/made: requirements/run.txt requirements/train.txt | $(VENV)/made
	$(BIN)/python -m venv --without-pip $(VENV)/forecasts
	$(PIP) --python $(VENV)/forecasts/bin/python install --quiet --require-hashes -r requirements/run.txt -r requirements/train.txt
	@touch $@

$(VENV)/peers/made: requirements/run.txt requirements/peers.txt | $(VENV)/made
	$(BIN)/python -m venv --without-pip $(VENV)/peers
	$(PIP) --python $(VENV)/peers/bin/python install --quiet --require-hashes -r requirements/run.txt -r requirements/peers.txt
	@touch $@

# All of it is pinned but setuptools, which PyTorch does without here.
$(VENV)/peers/fracast: requirements/fracast.txt $(VENV)/peers/made
	$(PIP) --python $(VENV)/peers/bin/python install --quiet --no-deps --require-hashes -r requirements/fracast.txt
	@touch $@

# Servers for tests, apart from what is shipped.
$(VENV)/adapters/made: requirements/adapters.txt | $(VENV)/made
	$(BIN)/python -m venv --without-pip $(VENV)/adapters
	$(PIP) --python $(VENV)/adapters/bin/python install --quiet --require-hashes -r requirements/adapters.txt
	@touch $@

$(VENV)/cluster/made: requirements/cluster.txt | $(VENV)/made
	$(BIN)/python -m venv --without-pip $(VENV)/cluster
	$(PIP) --python $(VENV)/cluster/bin/python install --quiet --require-hashes -r requirements/cluster.txt
	@touch $@

$(CLUSTER)/made: $(ENGINE) $(shell find rust/cluster -name '*.rs' -o -name Cargo.toml) $(shell find python -name '*.py*' -not -name '*.pyc') $(VENV)/run
	rm -rf target/cluster
	VIRTUAL_ENV=$(abspath $(VENV)) PATH="$(abspath $(BIN)):$$PATH" env -u CONDA_PREFIX \
	  maturin build --profile dev --locked --features cluster --compatibility linux --out target/cluster
	$(PIP) install --quiet --no-deps --target $(CLUSTER) target/cluster/*.whl
	@touch $@

$(VENV)/console/made: requirements/console.txt requirements/console/package-lock.json | $(VENV)/made
	$(BIN)/python -m venv --without-pip $(VENV)/console
	$(PIP) --python $(VENV)/console/bin/python install --quiet --require-hashes -r requirements/console.txt
	@cp requirements/console/package*.json $(VENV)/console/
	@if command -v npm >/dev/null; then cd $(VENV)/console && npm ci --silent --no-audit --no-fund; \
	  else echo "no npm: accessibility is not looked at (apt-get install npm)" >&2; fi
	@touch $@

$(VENV)/docs/made: requirements/docs.txt | $(VENV)/made
	$(BIN)/python -m venv --without-pip $(VENV)/docs
	$(PIP) --python $(VENV)/docs/bin/python install --quiet --require-hashes -r requirements/docs.txt
	@touch $@

# Half a gigabyte of compiler, which nothing else needs.
$(VENV)/wheels/made: requirements/wheels.txt | $(VENV)/made
	$(BIN)/python -m venv --without-pip $(VENV)/wheels
	$(PIP) --python $(VENV)/wheels/bin/python install --quiet --require-hashes -r requirements/wheels.txt
	@touch $@

# The package is installed in place: a change in python/ needs no build.
$(VENV)/engine: $(ENGINE) $(VENV)/run
	VIRTUAL_ENV=$(abspath $(VENV)) PATH="$(abspath $(BIN)):$$PATH" env -u CONDA_PREFIX maturin develop --release --locked
	@touch $@
