"""The records of dispatch on the IR: for each function, who runs its operators.

    R.func_attr({"mxplan.dispatch": {"conv2d_0": "onednn", "floor_0": "llvm"}})

    R.func_attr({"mxplan.devices": {"conv2d_0": "cuda", "take_0": "llvm"}})

The second one is the device of each, where a function runs on two; operators without a name are the CPU's.

Operators that go to a library stand in composites besides, whose names begin with the library's code
generator.  Operators are known by the names that ``NameOperators`` gave them; those without are not written.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import relax

DISPATCH = "mxplan.dispatch"
DEVICES = "mxplan.devices"
CPU = "llvm"
"""The CPU, by the kind of TVM's target; other devices are called by theirs."""
TVM = "llvm"
"""The name of TVM's own code in targets and in options."""


def with_dispatch(function: relax.Function, chosen: Mapping[str, str]) -> relax.Function:
    """``function`` with the implementation of each of its operators, by their names."""
    return function.with_attr(DISPATCH, dict(chosen)) if chosen else function


def dispatch_of(function: relax.Function) -> dict[str, str]:
    """The implementation of each operator of ``function``; empty before dispatch."""
    written = function.attrs.get(DISPATCH) if function.attrs else None
    return {str(name): str(chosen) for name, chosen in written.items()} if written else {}


def with_changed_dispatch(mod: tvm.IRModule, changed: Mapping[str, str]) -> tvm.IRModule:
    """The module with other implementations for the operators in ``changed``."""
    mod = mod.clone()
    for gvar, function in list(mod.functions.items()):
        if isinstance(function, relax.Function):
            written = dispatch_of(function)
            if not changed.keys().isdisjoint(written):
                new = {name: changed.get(name, chosen) for name, chosen in written.items()}
                mod.update_func(gvar, with_dispatch(function, new))
    return mod


def with_devices(function: relax.Function, chosen: Mapping[str, str]) -> relax.Function:
    """``function`` with the device of each of its operators, by their names."""
    return function.with_attr(DEVICES, dict(chosen))


def devices_in(mod: tvm.IRModule) -> dict[str, str] | None:
    """The devices of all operators of a module; None for a module of one device."""
    found: dict[str, str] | None = None
    for function in mod.functions.values():
        written = function.attrs.get(DEVICES) if getattr(function, "attrs", None) else None
        if written is not None:
            found = {} if found is None else found
            found |= {str(name): str(device) for name, device in written.items()}
    return found
