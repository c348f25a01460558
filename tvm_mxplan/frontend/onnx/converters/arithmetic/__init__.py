"""Converters of arithmetic: activations, powers and products."""
