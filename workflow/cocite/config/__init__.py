"""The configuration of a run, the benchmarks and models that it names, and the record of a finished run."""
