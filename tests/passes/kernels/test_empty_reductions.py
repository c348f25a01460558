"""Reductions over axes that turn out to have no elements: their results are written all the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan.passes.kernels import EmptyReductions

LLVM = tvm.target.Target("llvm")
DTYPES = ("float32", "float64", "int32")


def module(build: Callable[[relax.Expr], relax.Expr], shape: list, dtype: str = "float32") -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(build(x)))
    return builder.get()


def kernels(mod: tvm.IRModule) -> dict[str, tirx.PrimFunc]:
    return {gvar.name_hint: f for gvar, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}


def symbols() -> list[tirx.Var]:
    return [tirx.Var(name, "int64") for name in "nm"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("build", "start"),
    [
        (lambda x: relax.op.sum(x, [1]), 0),
        (lambda x: relax.op.prod(x, [1, 2], keepdims=True), 1),
        (lambda x: relax.op.sum(x), 0),
        (lambda x: relax.op.argmax(x, 1), -1),
        (lambda x: relax.op.matmul(relax.op.permute_dims(x, [0, 2, 1]), x), 0),
    ],
)
@pytest.mark.parametrize("elements", [0, 3])
def test_kernels_of_named_axes(build: Callable, start: int, dtype: str, elements: int) -> None:
    n, m = symbols()
    mod = relax.transform.LegalizeOps()(relax.transform.Normalize()(module(build, [n, m, 4], dtype)))
    after = EmptyReductions(LLVM)(mod)
    changed = [name for name, kernel in kernels(mod).items() if not kernel.same_as(kernels(after)[name])]
    assert len(changed) == 1
    data = (4 * np.random.default_rng(0).standard_normal((2, elements, 4))).astype(dtype)
    run = relax.VirtualMachine(tvm.compile(after, LLVM), tvm.cpu())["main"]
    found = run(tvm.runtime.tensor(data)).numpy()
    if elements:
        plain = relax.VirtualMachine(tvm.compile(mod, LLVM), tvm.cpu())["main"]
        np.testing.assert_array_equal(found, plain(tvm.runtime.tensor(data)).numpy())
    else:
        np.testing.assert_array_equal(found, np.full_like(found, start))


def test_axes_of_known_numbers_of_elements_stay() -> None:
    n, _ = symbols()
    for shape, changes in (([2, 3], False), ([n, 3], False), ([2, 1], False), ([3, n], True)):
        mod = relax.transform.LegalizeOps()(module(lambda x: relax.op.sum(x, [1]), shape))
        ((name, kernel),) = kernels(mod).items()
        assert kernels(EmptyReductions(LLVM)(mod))[name].same_as(kernel) != changes
    elementwise = relax.transform.LegalizeOps()(module(relax.op.exp, [n, 0]))
    tvm.ir.assert_structural_equal(EmptyReductions(LLVM)(elementwise), elementwise)


def test_kernels_of_another_device_stay() -> None:
    mod = relax.transform.LegalizeOps()(module(lambda x: relax.op.sum(x, [1]), symbols()))
    ((name, kernel),) = kernels(mod).items()
    for target, changes in ((tvm.target.Target("cuda"), False), (LLVM, True)):
        mod.update_func(mod.get_global_var(name), kernel.with_attr("target", target))
        changed = not kernels(EmptyReductions(LLVM)(mod))[name].same_as(mod[name])
        assert changed == changes


@pytest.mark.parametrize("target", ["dnnl, llvm", "host, llvm"])
@pytest.mark.parametrize(
    ("operator", "start", "dtype"),
    [
        *[("sum", 0, dtype) for dtype in DTYPES],
        *[("prod", 1, dtype) for dtype in DTYPES],
        *[("max", -np.inf, dtype) for dtype in ("float32", "float64")],
        *[("min", np.inf, dtype) for dtype in ("float32", "float64")],
        *[("mean", np.nan, dtype) for dtype in ("float32", "float64")],
        ("max", np.iinfo("int32").min, "int32"),
        ("min", np.iinfo("int32").max, "int32"),
    ],
)
def test_a_compiled_model(operator: str, start: float, dtype: str, target: str) -> None:
    """Whoever runs the reduction, with something that is computed behind it."""

    def build(x: relax.Expr) -> relax.Expr:
        reduced = getattr(relax.op, operator)(x, [1])
        return relax.op.negative(reduced) if dtype != "int32" else reduced

    executable = tvm_mxplan.compile(module(build, [*symbols(), 5], dtype), target)
    assert bool(executable.report.regions) == (dtype == "float32")
    for shape in ((2, 0, 5), (2, 3, 5), (0, 0, 5)):
        data = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        expected = (
            getattr(np, operator)(data, axis=1) if shape[1] else np.full((shape[0], 5), start).astype(dtype)
        )
        found = executable(data)[0].numpy()
        np.testing.assert_allclose(found, -expected if dtype != "int32" else expected, rtol=1e-6)
