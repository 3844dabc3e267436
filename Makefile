# On a fresh machine with Python ≥ 3.11, git and make:  make demo   or   make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
STAMP  := $(VENV)/.installed

.PHONY: install demo reproduce lint types contracts dependencies unit test test-browser test-readme kills kernels bench clean fuzz

install: $(STAMP)

# What a user installs: the base, and what draws the report. torch is named exactly: a range would pull gigabytes of CUDA
# libraries on machines without a GPU.
$(BASE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): minutes at the first time, nothing later …"
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet torch==2.13.0
	@$(BIN)/python -m pip install --quiet --editable '.[report]'
	@touch $(BASE)

# What working on it needs besides. torchrec with its dependencies would pull CUDA libraries too; those that it needs
# besides fbgemm-gpu are in the extra `distributed`. Both have wheels for Linux only; elsewhere the tests that need them
# say so and skip.
$(STAMP): $(BASE) Makefile
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
ifeq ($(shell uname -s),Linux)
	$(BIN)/python -m pip install --quiet --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0
endif
	touch $(STAMP)

demo: $(BASE)
	@$(BIN)/ukge demo

# Hours, but it may be stopped at any moment and goes on where it was. Looks for the graphs where UKGE_DATA says.
reproduce: install
	$(BIN)/ukge reproduce --parts paper,rules,clean --page docs/results.md
	$(BIN)/ukge reproduce --parts field --seeds 1 --page docs/field.md

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# What is imported is declared, and what is declared is imported.
dependencies: install
	$(BIN)/deptry src

types: install
	$(BIN)/mypy

contracts: install
	$(BIN)/lint-imports --no-cache

# Each worker begins with one half, so that what a folder prepares is prepared once, and helps the other at the end.
# Two workers with as many threads as cores each would wait for one another.
unit: install
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# Hostile inputs for every reader and rule syntax; findings are kept in tests/fuzz/corpus and tried again by the tests.
MINUTES ?= 30
SEED ?= 0
fuzz: install
	$(BIN)/python -m tests.fuzz.run --minutes $(MINUTES) --seed $(SEED)

test: lint types contracts dependencies unit

# The explorer in headless Chromium (on Debian: apt-get install chromium); pictures go to SCREENSHOTS.
SCREENSHOTS ?= screenshots
test-browser: install
	UKGE_BROWSER=1 UKGE_SCREENSHOTS=$(SCREENSHOTS) $(BIN)/pytest tests/browser

# The README in a new environment with what it installs, on a pseudo-terminal, without UKGE_DATA; then docs/.
test-readme: install
	UKGE_README=1 $(BIN)/pytest tests/readme

# A kill, and a full disk, at every file operation of every command that works for long, and a hundred additions with kills at
# random moments; needs a C compiler, on Linux.
kills: install
	$(BIN)/python tests/kills/harness.py
	PYTHONPATH=. $(BIN)/python tests/kills/additions.py

# Whole training steps of every scorer, compiled: minutes. The tests compile two, and of the others what differs.
kernels: install
	UKGE_KERNELS=1 $(BIN)/pytest tests/contracts

bench: install
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
