"""What a run is asked for: its configuration, the benchmarks and models it names, and what it wrote down of itself."""
