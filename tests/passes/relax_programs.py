"""Relax modules from text: lowered to allocations, planned one way or another, and run in the VM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.relax import vm_build
from tvm.relax.backend.cpu_generic import pipeline

TARGET = tvm.target.Target({"kind": "llvm", "opt-level": 0})  # small and run once
Array = np.ndarray[Any, np.dtype[Any]]


def parse(body: str, parameters: str, attributes: str = "") -> tvm.IRModule:
    """A module of one function ``main``, its body written as in TVMScript without indentation."""
    lines = [
        "@I.ir_module",
        "class Module:",
        "    @R.function",
        f"    def main({parameters}):",
        *([f"        R.func_attr({attributes})"] if attributes else []),
        *(f"        {line}" for line in body.strip("\n").splitlines()),
    ]
    return tvm.script.from_source("\n".join(lines) + "\n")


def lower(mod: tvm.IRModule, dataflow: bool = False) -> tvm.IRModule:
    """A module as memory planners get it; in dataflow blocks TVM fuses operators and makes reshapes views."""
    passes = [relax.transform.ConvertToDataflow()] if dataflow else []
    passes += pipeline.library_dispatch_passes(TARGET) + pipeline.legalize_passes(TARGET)
    with TARGET:
        return tvm.transform.Sequential(passes + pipeline.dataflow_lower_passes(TARGET))(mod)


def build(
    lowered: tvm.IRModule, planner: tvm.transform.Pass | None, exec_mode: str = "bytecode"
) -> relax.VirtualMachine:
    """The VM on a lowered module; without a planner every tensor has its own memory.

    Bytecode calls kernels that are compiled once for all modules; compiled functions come with theirs.
    """
    passes = [] if planner is None else [planner]
    with TARGET:
        mod = tvm.transform.Sequential(passes + pipeline.finalize_passes(TARGET)[1:])(lowered)
    if exec_mode == "compiled":
        built = relax.build(mod, TARGET, relax_pipeline=None, exec_mode=exec_mode)
        return relax.VirtualMachine(built, tvm.cpu())
    builder = relax.ExecBuilder()
    left = vm_build._vmcodegen(builder, mod, exec_mode)
    constants = mod.get_attr("const_name_to_constant") or {}
    kernels = [_compiled(var.name_hint, left[var]) for var in left.get_global_vars()]
    built = vm_build._vmlink(builder, TARGET, ext_libs=kernels, params=dict(constants))
    return relax.VirtualMachine(built.mod, tvm.cpu())


_libraries: dict[tuple[str, int], list[tuple[tirx.PrimFunc, tvm.runtime.Module]]] = {}


def _compiled(name: str, kernel: tirx.PrimFunc) -> tvm.runtime.Module:
    """A library of one kernel, the same for kernels that are equal."""
    known = _libraries.setdefault((name, tvm_ffi.structural_hash(kernel)), [])
    for other, library in known:
        if tvm_ffi.structural_equal(other, kernel):
            return library
    library = tvm.tirx.build(tvm.IRModule({name: kernel}), TARGET)
    known.append((kernel, library))
    return library


def run(vm: relax.VirtualMachine, *inputs: Array) -> list[Array]:
    """The results of ``main``, tuples flattened."""
    result = vm["main"](*(tvm.runtime.tensor(array) for array in inputs))
    return [part.numpy() for part in _flat(result)]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tvm_ffi.Array):
        return [leaf for part in result for leaf in _flat(part)]
    return [result]


def result_of(mod: tvm.IRModule, x: Array) -> Array:
    """The one result of a module that TVM alone compiles."""
    (result,) = run(relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu()), x)
    return result


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def storages(mod: tvm.IRModule) -> list[int]:
    """Bytes of the arenas, or of TVM's storages, of ``main``."""
    return [_bytes(call) for call in calls_to(mod["main"], "relax.memory.alloc_storage")]


def total_bytes(mod: tvm.IRModule) -> int:
    """All that ``main`` allocates, each at a multiple of 64 bytes."""
    own = calls_to(mod["main"], "relax.builtin.alloc_tensor")
    return sum(-(-size // 64) * 64 for size in (*storages(mod), *(_bytes(call) for call in own)))


def calls_to(function: relax.Function, name: str) -> list[tvm.ir.Call]:
    """Calls to an operator, in the order of the text; branches included."""
    found: list[tvm.ir.Call] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.Call) and isinstance(expr.op, tvm.ir.Op) and expr.op.name == name:
            found.append(expr)

    relax.analysis.post_order_visit(function, visit)
    return found


def kernels(mod: tvm.IRModule) -> list[str]:
    """Names of the kernels that ``main`` calls, in the order of the text."""
    names: list[str] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            names.append(expr.op.name_hint)

    relax.analysis.post_order_visit(mod["main"], visit)
    return names


def assert_same(got: Sequence[Array], expected: Sequence[Array]) -> None:
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def _bytes(call: tvm.ir.Call) -> int:
    is_storage = call.op.name == "relax.memory.alloc_storage"
    count = 1
    for dim in call.args[0].values:
        count *= int(dim)
    return count if is_storage else count * (tvm.DataType(str(call.args[1].value)).bits // 8)
