"""Trained models that ship inside of Python packages, compiled and compared."""
