"""What can go wrong, by who can mend it.  Messages name the thing, what was expected and the way out."""

from __future__ import annotations


class MxplanError(Exception):
    """Base class of the errors raised here."""


class InvalidInputError(MxplanError, ValueError):
    """The user's input: a file, a target, a tensor, an option."""


class UnsupportedError(MxplanError):
    """A thing this build does not do; during compilation it means TVM's own code runs instead."""


class InternalError(MxplanError, RuntimeError):
    """A mistake of this project's; please report it."""
