"""The names that a graph sees while it is imported."""

from __future__ import annotations

from .values import Value

Scope = dict[str, Value]
"""Values by name; an enclosing graph's are among them."""
