"""``MultiplyEinsums``: the same numbers as numpy's, of random equations, and products in oneDNN."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.canonicalize import MultiplyEinsums
from tvm_mxplan.report.inspection import decoded_programs

SIZES = {"a": 1, "b": 2, "c": 3, "d": 5, "e": 7, "f": 4, "g": 6}


def module(text: str, arrays: list[np.ndarray]) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    operands = [relax.Var(f"x{at}", relax.TensorType(a.shape, str(a.dtype))) for at, a in enumerate(arrays)]
    with builder.function("main", operands):
        with builder.dataflow():
            result = builder.emit_output(relax.op.einsum(tuple(operands), text))
        builder.emit_func_output(result)
    return builder.get()


def called(mod: tvm.IRModule) -> list[relax.Call]:
    found: list[relax.Call] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call):
            found.append(expr)

    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def operators(mod: tvm.IRModule) -> list[str]:
    return [str(call.op.name).removeprefix("relax.") for call in called(mod)]


def drawn(labels: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal([SIZES[one] for one in labels]).astype("float32")


@pytest.mark.parametrize("seed", range(12))
def test_random_equations(seed: int) -> None:
    rng = random.Random(seed)
    terms = ["".join(rng.sample("abcdef", rng.randint(1, 4))) for _ in range(rng.choice([1, 2, 2, 3]))]
    letters = sorted(set("".join(terms)))
    text = ",".join(terms) + "->" + "".join(rng.sample(letters, rng.randint(0, min(4, len(letters)))))
    arrays = [drawn(term, at) for at, term in enumerate(terms)]
    mod = MultiplyEinsums()(module(text, arrays))
    assert "einsum" not in operators(mod)
    run = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"]
    found = run(*map(tvm.runtime.tensor, arrays)).numpy()
    expected = np.einsum(text, *(array.astype("float64") for array in arrays))
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max(initial=1.0)), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bcd,bde->bce", ["matmul"]),
        ("bd,cd->bc", ["permute_dims", "matmul"]),
        ("bcde,be->bcd", ["reshape", "reshape", "matmul", "reshape"]),
        ("cd,cde->ce", ["reshape", "matmul", "reshape"]),  # one row of each, and one column
        ("ced,cd->ce", ["reshape", "matmul", "reshape"]),
        ("b,c->bc", ["reshape", "reshape", "multiply"]),
        ("bcd,b->bcd", ["reshape", "multiply"]),
        ("bc,bc->b", ["multiply", "sum"]),
        ("bcdef,bcdfg->bcdeg", ["matmul"]),  # three axes of a batch stay; four are one
        ("abcdef,abcdfg->abcdeg", ["reshape", "reshape", "matmul", "reshape"]),
    ],
)
def test_what_equations_become(text: str, expected: list[str]) -> None:
    arrays = [drawn(term) for term in text.partition("->")[0].split(",")]
    assert operators(MultiplyEinsums()(module(text, arrays))) == expected


def test_a_constant_is_the_second_operand_of_a_product() -> None:
    """Libraries keep weights in layouts of their own there."""
    x, weights = relax.Var("x", relax.TensorType([5, 7], "float32")), relax.const(drawn("ce"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.einsum((weights, x), "ce,de->dc"))
        builder.emit_func_output(result)
    mod = MultiplyEinsums()(builder.get())
    assert operators(mod) == ["permute_dims", "matmul"]
    (product,) = (one for one in called(mod) if one.op.name == "relax.matmul")
    assert product.args[0].same_as(mod["main"].params[0])


def test_an_operand_of_unknown_shape_stays() -> None:
    builder = relax.BlockBuilder()
    kinds = [relax.TensorType([5, 7], "float32"), relax.TensorType(dtype="float32", ndim=2)]
    operands = [relax.Var(f"x{at}", kind) for at, kind in enumerate(kinds)]
    with builder.function("main", operands):
        with builder.dataflow():
            result = builder.emit_output(relax.op.einsum(tuple(operands), "ij,jk->ik"))
        builder.emit_func_output(result)
    assert operators(MultiplyEinsums()(builder.get())) == ["einsum"]


def test_integers_and_diagonals_stay() -> None:
    whole = [np.ones((2, 3), "int32"), np.ones((3, 4), "int32")]
    assert operators(MultiplyEinsums()(module("ij,jk->ik", whole))) == ["einsum"]


def onnx_model(text: str, shapes: list[tuple[int | str, ...]]) -> onnx.ModelProto:
    names = [f"x{at}" for at in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node("Einsum", names, ["y"], equation=text)],
        "sums",
        [helper.make_tensor_value_info(*pair) for pair in zip(names, [1] * len(names), shapes, strict=True)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ijkl,bil->bijk", [(17, 3, 8, 5), (4, 17, 5)]),
        ("bhqd, bhkd -> bhqk", [(2, 3, 17, 8), (2, 3, 9, 8)]),
        ("...ij,...jk", [(2, 5, 7), (2, 7, 3)]),
        ("ab,bc,cd->ad", [(5, 7), (7, 9), (9, 3)]),
    ],
)
def test_models_run_in_a_library(text: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    ex = tvm_mxplan.compile(onnx_model(text, shapes), options={"cache": "disabled"})
    kinds = [type(step.attrs) for program in decoded_programs(ex.module) for step in program.steps]
    assert ir.MatMul in kinds
    expected = np.einsum(text, *(array.astype("float64") for array in arrays))
    assert np.allclose(ex(*arrays)[0].numpy(), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_a_diagonal_runs_as_before() -> None:
    x = np.random.default_rng(4).standard_normal((5, 5)).astype("float32")
    ex = tvm_mxplan.compile(onnx_model("ii->i", [(5, 5)]), options={"cache": "disabled"})
    assert np.array_equal(ex(x)[0].numpy(), x.diagonal())
