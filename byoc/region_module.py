"""Functions that runtime modules of regions have, by name, whatever library made them.

    get_symbol              the region's name, by which it is called
    mxplan.program          its program, in bytes
    mxplan.keep             keeps at least so many specialisations from now on
    mxplan.with_program     a copy of the module under another program, for planners of whole functions

A module that lacks a function is not asked: a region without a program is a kernel to all but its library.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_mxplan.core.program.program import Program

_PROGRAM, _WITH_PROGRAM = "mxplan.program", "mxplan.with_program"
_KEEP = "mxplan.keep"


def carries_program(module: Any) -> bool:
    """True for modules of regions that tell their programs."""
    return bool(module.implements_function(_PROGRAM))


def symbol_of(module: Any) -> str:
    return str(module["get_symbol"]())


def program_bytes(module: Any) -> bytes:
    return bytes(module[_PROGRAM]())


def program_of(module: Any) -> Program:
    from tvm_mxplan.core.program import codec  # which a cached compilation does without

    return codec.decode(program_bytes(module))


def keep_specializations(module: Any, count: int) -> None:
    """Let all regions below a module keep at least ``count`` specialisations."""
    for node in modules_under(module):
        if carries_program(node) and node.implements_function(_KEEP):
            node[_KEEP](count)


def takes_program(module: Any) -> bool:
    """True for modules that can be had under another program."""
    return bool(module.implements_function(_WITH_PROGRAM))


def with_program(module: Any, program: Program) -> Any:
    """A copy of ``module`` that runs ``program``, which differs in where things stand alone."""
    from tvm_mxplan.core.program import codec

    return module[_WITH_PROGRAM](codec.encode(program))


def modules_under(module: Any) -> Iterator[Any]:
    """``module`` and all that it imports, each before those that it imports itself."""
    yield module
    for child in module.imports:
        yield from modules_under(child)


def module_bytes(module: Any) -> bytes:
    """Returns the bytes that a runtime module writes into an exported library, without its imports."""
    import tvm_ffi  # by whoever made the module, and without PyTorch

    return bytes(tvm_ffi.get_global_func("tvm_mxplan.module_bytes")(module))
