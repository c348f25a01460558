"""Errors, by who can mend them.  Messages name the thing, what was expected and the way out."""

from __future__ import annotations


class MxplanError(Exception):
    """Base class of the errors raised here."""


class InvalidInputError(MxplanError, ValueError):
    """The user's input: a file, a target, a tensor, an option."""


class UnsupportedError(MxplanError, NotImplementedError):
    """A thing this build does not do; during compilation it means TVM's own code runs instead."""


class RemoteError(MxplanError):
    """Another machine: nobody answers there, it has not what is needed, or it is gone."""


class InternalError(MxplanError, RuntimeError):
    """A mistake of this project's; please report it."""


def register() -> None:
    """Make these errors pass through TVM's FFI as what they are, from passes, callbacks and the runtime."""
    import tvm_ffi

    for error in (InvalidInputError, UnsupportedError, RemoteError, InternalError):
        tvm_ffi.register_error(f"tvm_mxplan.{error.__name__}", error)
