# `make demo` and `make test` work on a bare machine with Python 3.11 or newer, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two workers fit two cores; pass WORKERS=8 on a larger machine. Threads of BLAS would only wait for one another.
WORKERS ?= 2

.PHONY: demo test check site slow clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## solve a real problem, print a table, save a plot
	$(BIN)/onesfw solve logistic --steps 200000 --plot out/logistic.png

test: $(VENV)/.installed  ## the test suite and the examples in docstrings
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

check: $(VENV)/.installed  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.docs: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[docs]'
	@touch $@

site: $(VENV)/.docs  ## the pictures, the gallery and the site in out/site; warnings are errors; then its tests in a browser
	$(BIN)/python docs/site/banner.py
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs out/site
	$(BIN)/python -m pytest -q -m site tests/site

slow: $(VENV)/.installed  ## the long statistical tests; their figures are kept in docs/
	$(BIN)/python -m pytest -q -m slow -s

clean:
	rm -rf $(VENV) out docs/api docs/gallery
