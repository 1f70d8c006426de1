#!/usr/bin/env bash
# Snakemake runs this in the project's folder once it has made the conda environment.
set -euo pipefail
pip install --no-deps --editable "$PWD"
