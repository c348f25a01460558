"""Benchmarks of single operators and steps, and of the machine that they run on."""
