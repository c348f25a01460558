"""One step of the host library's, run on arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_mxplan.byoc import registry
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.layout.layout_arrays import pack, unpack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

RNG = np.random.default_rng(5)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -3e38, 88.8, -104.0, 4.0], "float32")


def one_step(
    attrs: ir.Attributes,
    operands: Sequence[tuple[str, np.ndarray]],
    shape: tuple[int, ...],
    dtype: str,
    layouts: Sequence[str] = (),
) -> ir.Program:
    values, roles = [], []
    kinds = [*operands, ("dst", np.empty(shape, dtype))]
    for at, (role, array) in enumerate(kinds):
        kind: ir.ValueKind = "output" if role == "dst" else "input"
        layout = layouts[at] if layouts else plain_layout(array.ndim)
        values.append(ir.Value(role, array.shape, str(array.dtype), kind, layout, 0 if role == "dst" else at))
        roles.append(ir.Operand(role, at))
    return ir.Program("p", tuple(values), (ir.Step("s", attrs, tuple(roles)),))


def ran(
    attrs: ir.Attributes,
    operands: Sequence[tuple[str, np.ndarray]],
    shape: tuple[int, ...],
    dtype: str = "float32",
    layouts: Sequence[str] = (),
) -> np.ndarray:
    """The step's results on one thread and on two; bytes around the result stay, and padding is zero."""
    program = one_step(attrs, operands, shape, dtype, layouts)
    backend = registry.planner("host")
    step = backend.describe(program).steps[0]
    assert step.implementation.startswith("host:"), step.error
    layout = parse_layout(program.values[-1].layout)
    stored = [
        pack(array, parse_layout(value.layout))
        for (_, array), value in zip(operands, program.values, strict=False)
    ]
    physical = layout.physical_shape(shape)
    found = []
    guarded = np.full(int(np.prod(physical)) + 64, 1, dtype)
    out = guarded[32:-32].reshape(physical)
    for count in (1, 2):
        out[...] = 1
        with with_threads(count):
            backend.trial(program, [])(*stored, out)
        found.append(out.copy())
    assert np.array_equal(*found, equal_nan=np.dtype(dtype).kind == "f")
    assert (guarded[:32] == 1).all() and (guarded[-32:] == 1).all()
    logical = unpack(out, layout, shape)
    assert np.array_equal(pack(logical, layout), out, equal_nan=np.dtype(dtype).kind == "f")
    return logical


def drawn(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    numbers = RNG.standard_normal(shape) * 4
    return (numbers > 0 if dtype == "bool" else numbers).astype(dtype)
