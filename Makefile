# Two commands do everything: `make quickstart` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
AS_USERS := --xla_backend_optimization_level=3 --xla_llvm_disable_expensive_passes=false \
  --xla_cpu_use_fusion_emitters=true --xla_cpu_parallel_codegen_split_count=32
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: quickstart test as-users check fast lint docs oldest clean

# Installs jaxfair, runs the first study, and says where its report is.
quickstart: $(VENV)/.installed
	$(BIN)/jaxfair run configs/quickstart.toml --out runs/quickstart

# Everything: style, types, layers, all tests.
test: lint as-users
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Tests compile quickly (tests/helpers/quick_compile.py); these, of privacy, as for users.
as-users: $(VENV)/.installed-for-tests
	XLA_FLAGS="$(AS_USERS)" $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" \
	  tests/privacy tests/training/test_dp_sgd.py

# The fast part, for every change.
check: lint fast

fast: $(VENV)/.installed-for-tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" --maxfail 20

lint: $(VENV)/.installed-for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site in docs/_build/html; examples run once and are kept in .cache.
docs: $(VENV)/.installed-for-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "site: docs/_build/html/index.html"

# The oldest versions that setup.cfg allows, with the fast tests.
oldest: $(VENV)/.created
	.ci/oldest $(VENV)-oldest

clean:
	rm -rf $(VENV) $(VENV)-oldest .cache runs docs/_build docs/api *.egg-info

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "jaxfair needs Python 3.11 or newer; try: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) install --editable .[figures]
	touch $@

$(VENV)/.installed-for-tests: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) install --editable .[test]
	touch $@ $(VENV)/.installed

$(VENV)/.installed-for-docs: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) install --editable .[docs]
	touch $@ $(VENV)/.installed
