"""Converters of control flow and of sequences."""
