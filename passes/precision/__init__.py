"""Passes that decide in which element types the steps of regions compute."""

from .assign_precision import AssignPrecision

__all__ = ["AssignPrecision"]
