"""Benchmarks: what a subject costs the API server and the machine, and how soon it acts, as ratios within one run."""
