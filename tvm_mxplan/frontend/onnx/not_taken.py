"""The exception by which a converter leaves a node to the next one in line."""

from __future__ import annotations


class NotTaken(Exception):
    """Raised by a converter that leaves a node to the next one in line."""
