"""Benchmarks of convolutions of some shapes, each beside what else could run it."""
