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


def last_line(error: BaseException) -> str:
    """The last line that an error has to say, where TVM puts its reason; else its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def register() -> None:
    """Make these errors pass through TVM's FFI as what they are, from passes, callbacks and the runtime."""
    import tvm_ffi

    for error in (InvalidInputError, UnsupportedError, RemoteError, InternalError):
        tvm_ffi.register_error(f"tvm_mxplan.{error.__name__}", error)
