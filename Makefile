.RECIPEPREFIX = >
SHELL := /bin/bash
PYTHON ?= python3
CORES ?= 2
MEMORY_MB ?= 4000
CONFIG ?= config.yaml
BENCH ?= ingest works works_columns merge importing learning engines warm_start leakage counting triplets searching walks mining probing training training_memory static_encoder examples embedding bert_base scoring beir_folders baselines brought twins corpus_search index serve
SCALE ?= 0.001
SYNERGY ?= data/synergy
REVIEWS ?= Chou_2004 Donners_2021 Jeyaraman_2020 Meijboom_2021 Menon_2022 Nelson_2002 Oud_2018 Sep_2021 van_der_Valk_2021
VENV := .venv
BIN := $(VENV)/bin
SNAKEMAKE := $(BIN)/snakemake --cores $(CORES) --resources mem_mb=$(MEMORY_MB) --keep-going --show-failed-logs \
    --configfile "$(CONFIG)" --replace-workflow-config

.PHONY: help run archive synergy test test-long bench rehearse lint format docs lock clean
.DEFAULT_GOAL := help

help: ## List what can be made
> @grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/run.stamp ## Install, then run CONFIG (the demo unless told otherwise) to its report
> @$(BIN)/cocite config --configfile "$(CONFIG)" > /dev/null
> $(SNAKEMAKE) all

archive: $(VENV)/run.stamp ## Snakemake's own report of a finished run of CONFIG, with every rule and command: report.zip
> $(BIN)/cocite report archive --configfile "$(CONFIG)"

# Abstracts are published as indexes of words, and become texts here (--ignore-legal); do not publish these texts again.
synergy: $(SYNERGY)/venv/bin/synergy ## Download SYNERGY; write REVIEWS as tables for experiments/synergy-public.yaml
> @cd "$(SYNERGY)" && rm -rf tables.part \
>   && HOME="$$PWD" SYNERGY_SET=synergy venv/bin/synergy get --ignore-legal --output tables.part \
>     --vars title,abstract_original,publication_year,referenced_works --dataset $(REVIEWS) 2> errors.log \
>   && rm -rf tables && mv tables.part tables && echo "The tables are in $(SYNERGY)/tables." \
>   || { tail -n 1 errors.log; echo "SYNERGY was not downloaded completely, for the reason above. Run \`make synergy\` again."; exit 1; } >&2

$(SYNERGY)/venv/bin/synergy:
> $(PYTHON) -m venv "$(SYNERGY)/venv"
> "$(SYNERGY)/venv/bin/pip" install --quiet --constraint envs/lock.txt synergy-dataset==2.2 pandas

test: $(VENV)/dev.stamp ## Install, then run the tests that CI runs
> $(BIN)/pytest --numprocesses $(CORES) -m "not long"

test-long: $(VENV)/dev.stamp ## The tests that take too long for CI
> $(BIN)/pytest -m long
> $(BIN)/pytest -m "hypothesis and not long" --hypothesis-profile=thorough

bench: $(VENV)/dev.stamp ## Measure speed and memory beside rivals (BENCH="ingest merge" chooses; needs some GB in .bench)
> set -e; for name in $(BENCH); do $(BIN)/python -m tests.benchmarks $$name .bench; done

rehearse: $(VENV)/dev.stamp ## Run the pipeline on SCALE of a generated release of Semantic Scholar, and say what each stage took
> $(BIN)/python -m tests.benchmarks rehearse .bench --scale $(SCALE) --cores $(CORES)

lint: $(VENV)/dev.stamp ## Formatting, linting and types
> $(BIN)/ruff format --check workflow tests docs/hooks.py
> $(BIN)/ruff check workflow tests docs/hooks.py
> $(BIN)/snakefmt --check Snakefile rules
> $(BIN)/mypy
> $(BIN)/snakemake --lint

format: $(VENV)/dev.stamp ## Format everything
> $(BIN)/ruff format workflow tests
> $(BIN)/ruff check --fix workflow tests
> $(BIN)/snakefmt Snakefile rules

docs: $(VENV)/dev.stamp ## Regenerate what is generated, and build the pages into site/ (.venv/bin/mkdocs serve shows them)
> $(BIN)/cocite docs write
> NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: $(VENV)/dev.stamp ## Pin the newest versions that pyproject.toml allows
> $(BIN)/pip-compile --quiet --all-extras --strip-extras --allow-unsafe --no-annotate --no-header --no-emit-index-url \
    --no-emit-find-links --output-file envs/lock.txt pyproject.toml
> sed -i 's/^torch==\([0-9.]*\)+.*/torch==\1/; /^#/d; /^$$/d' envs/lock.txt
> LC_ALL=C sort -t= -k1,1 -o envs/lock.txt envs/lock.txt

clean: ## Remove the environment (never results)
> rm -rf $(VENV)

$(VENV)/bin/pip:
> $(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: pyproject.toml envs/lock.txt | $(VENV)/bin/pip
> $(BIN)/pip install --quiet --constraint envs/lock.txt --editable .
> touch $@

$(VENV)/dev.stamp: pyproject.toml envs/lock.txt | $(VENV)/bin/pip
> $(BIN)/pip install --quiet --constraint envs/lock.txt --editable '.[dev,offline,mcp]'
> touch $@
