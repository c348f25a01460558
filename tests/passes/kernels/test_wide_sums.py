"""``WideSums``: TVM's products of 16 bits add up in float32."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.passes.kernels import WideSums


def module(dtype: str, *shapes: tuple[int, ...], operator: str = "matmul") -> tvm.IRModule:
    builder = relax.BlockBuilder()
    operands = [relax.Var(f"x{at}", relax.TensorType(shape, dtype)) for at, shape in enumerate(shapes)]
    make = relax.op.matmul if operator == "matmul" else getattr(relax.op.nn, operator)
    with builder.function("main", operands):
        with builder.dataflow():
            out = builder.emit_output(make(*operands))
        builder.emit_func_output(out)
    return builder.get()


def run(mod: tvm.IRModule, *operands: np.ndarray) -> np.ndarray:
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return vm["main"](*map(tvm.runtime.tensor, operands)).numpy()


@pytest.mark.parametrize(
    "operator, shapes",
    [("matmul", ((3, 4608), (4608, 5))), ("conv2d", ((1, 512, 5, 5), (4, 512, 3, 3)))],
)
def test_long_sums_keep_the_digits_of_the_result(operator: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    random = np.random.default_rng(7)
    operands = [random.random(shape).astype("float16") for shape in shapes]
    mod = module("float16", *shapes, operator=operator)
    exact = run(module("float64", *shapes, operator=operator), *(one.astype("float64") for one in operands))
    narrow, wide = (run(one, *operands).astype("float64") for one in (mod, WideSums()(mod)))
    assert np.abs(narrow / exact - 1).max() > 5e-3  # by TVM alone
    assert np.abs(wide / exact - 1).max() < 1e-3  # half a step of float16 is 4.9e-4


def test_products_in_float32_are_left_alone() -> None:
    mod = module("float32", (2, 3), (3, 4))
    tvm.ir.assert_structural_equal(WideSums()(mod), mod)


@pytest.mark.parametrize(
    ("types", "wider"),
    [
        (("float16", "float16"), True),
        (("float32", "float32"), False),
        (("float32", "float16"), False),
        (("float16", "float32"), False),
    ],
)
def test_operands_of_other_types_than_the_result_are_left_alone(types: tuple[str, str], wider: bool) -> None:
    """They say by themselves in which numbers their products add up."""
    builder = relax.BlockBuilder()
    operands = [
        relax.Var(f"x{at}", relax.TensorType(shape, dtype))
        for at, (shape, dtype) in enumerate(zip(((2, 3), (3, 4)), types, strict=True))
    ]
    with builder.function("main", operands):
        with builder.dataflow():
            out = builder.emit_output(relax.op.matmul(*operands, out_dtype="float16"))
        builder.emit_func_output(out)
    mod = builder.get()
    after = WideSums()(mod)
    assert tvm_ffi.structural_equal(after, mod) != wider
