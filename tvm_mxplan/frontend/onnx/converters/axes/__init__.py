"""Converters of operators along axes: reductions, running sums, normalizations."""
