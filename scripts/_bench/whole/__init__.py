"""Benchmarks of whole networks: engines, precisions and options against one another."""
