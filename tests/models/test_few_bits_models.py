"""Models with weights of few bits: they stay so in regions, and give what onnxruntime gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.products.few_bits import pack_words, unpack_words
from tvm_mxplan.report.inspection import decoded_programs

RANDOM = np.random.default_rng(3)


def model(nodes: list[Any], given: dict[str, Any], shape: list[Any], opset: int = 18, dtype: int = 1) -> Any:
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", dtype, None)],
        [value if isinstance(value, TensorProto) else numpy_helper.from_array(value, name)
         for name, value in given.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def packed(
    depth: int, columns: int, bits: int = 4, block: int = 32, zero: bool = True
) -> dict[str, np.ndarray]:
    """Operands of a MatMulNBits behind the first."""
    blocks = -(-depth // block)
    found = {
        "B": RANDOM.integers(0, 256, (columns, blocks, block * bits // 8)).astype("uint8"),
        "scales": (RANDOM.standard_normal(columns * blocks) / 2**bits / depth**0.5).astype("float32"),
    }
    if zero:
        found["zeros"] = RANDOM.integers(0, 256, columns * -(-blocks * bits // 8)).astype("uint8")
    return found


def product(result: str, source: str, given: dict[str, np.ndarray], **attributes: int) -> Any:
    inputs = [source, "B", "scales", "zeros" if "zeros" in given else ""]
    if "groups" in given or "bias" in given:
        inputs += ["groups" if "groups" in given else "", *(["bias"] if "bias" in given else [])]
    return helper.make_node("MatMulNBits", inputs, [result], domain="com.microsoft", **attributes)


def compared(made: Any, x: np.ndarray, few: int = 1, allowed: float = 2e-5) -> Any:
    """The executable, whose results are onnxruntime's and which has as many products with few bits."""
    compiled = tvm_mxplan.compile(made)
    kinds = [step.kind for step in programs_of(compiled)]
    assert kinds.count("few_bits_product") == few, kinds
    (ours,) = compiled(x)
    (theirs,) = exactly(made).run(None, {"x": x})
    gap = np.abs(ours.numpy().astype("float64") - theirs).max()
    assert gap <= allowed * np.abs(theirs.astype("float64")).max()
    return compiled


def exactly(made: Any) -> ort.InferenceSession:
    """onnxruntime without its optimiser, which rounds rows to 8 bits where they meet blocked weights."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(made.SerializeToString(), options)


def programs_of(compiled: Any) -> list[ir.Step]:
    return [step for program in decoded_programs(compiled.module) for step in program.steps]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("shape", [(1, 100), (5, 100), (2, 33, 100)])
def test_products_with_few_bits(bits: int, zero: bool, shape: tuple[int, ...]) -> None:
    given = packed(100, 67, bits, zero=zero)
    if bits == 2:  # onnxruntime has some of them alone
        given = packed(128, 64, bits, zero=zero)
        shape = (*shape[:-1], 128)
    columns = len(given["B"])
    made = model(
        [product("y", "x", given, K=shape[-1], N=columns, bits=bits, block_size=32)], given, list(shape)
    )
    compared(made, RANDOM.standard_normal(shape).astype("float32"))


@pytest.mark.parametrize("block", [16, 32, 64, 128])
@pytest.mark.parametrize("depth", [64, 256, 300])
def test_blocks(block: int, depth: int) -> None:
    given = packed(depth, 35, block=block)
    made = model([product("y", "x", given, K=depth, N=35, bits=4, block_size=block)], given, [3, depth])
    compared(made, RANDOM.standard_normal((3, depth)).astype("float32"))


def test_bias_activation_and_residual_stand_behind_the_product() -> None:
    given = {**packed(96, 96), "bias": RANDOM.standard_normal(96).astype("float32")}
    nodes = [
        product("a", "x", given, K=96, N=96, bits=4, block_size=32),
        helper.make_node("Sigmoid", ["a"], ["s"]),
        helper.make_node("Mul", ["a", "s"], ["silu"]),
        helper.make_node("Add", ["silu", "x"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    made = model(nodes, given, [2, 7, 96])
    compiled = compared(made, RANDOM.standard_normal((2, 7, 96)).astype("float32"))
    (step,) = programs_of(compiled)
    assert [type(op) for op in step.post_ops] == [
        ir.BinaryPostOp, ir.EltwisePostOp, ir.BinaryPostOp, ir.EltwisePostOp
    ]  # fmt: skip


def test_functions_that_the_kernel_has_not_stand_alone() -> None:
    given = packed(96, 35)
    nodes = [product("a", "x", given, K=96, N=35, bits=4, block_size=32),
             helper.make_node("Gelu", ["a"], ["g"]), helper.make_node("Relu", ["g"], ["y"])]  # fmt: skip
    compared(model(nodes, given, [2, 96], opset=20), RANDOM.standard_normal((2, 96)).astype("float32"))


def test_named_dimensions() -> None:
    given = packed(64, 35)
    made = model(
        [product("y", "x", given, K=64, N=35, bits=4, block_size=32)], given, ["batch", "tokens", 64]
    )
    compiled = tvm_mxplan.compile(made)
    session = exactly(made)
    for rows in (1, 2, 40):
        x = RANDOM.standard_normal((2, rows, 64)).astype("float32")
        (ours,), (theirs,) = compiled(x), session.run(None, {"x": x})
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


def test_a_model_in_float16() -> None:
    given = packed(64, 35)
    given["scales"] = given["scales"].astype("float16")
    made = model(
        [product("y", "x", given, K=64, N=35, bits=4, block_size=32)],
        given,
        [3, 64],
        dtype=TensorProto.FLOAT16,
    )
    compared(made, RANDOM.standard_normal((3, 64)).astype("float16"), allowed=4e-3)


@pytest.mark.parametrize("kind", ["in a row", "permuted", "uneven"])
def test_groups_of_the_depth(kind: str) -> None:
    """Rows are taken in the order of the blocks; where blocks have other sizes weights are real."""
    given, groups = packed(128, 35, zero=False), np.arange(128) // 32
    if kind != "in a row":
        groups = RANDOM.permutation(groups)
    if kind == "uneven":
        groups[:] = np.where(np.arange(128) < 40, 0, 1 + np.arange(128) % 3)
    given["groups"] = groups.astype("int32")
    made = model([product("y", "x", given, K=128, N=35, bits=4, block_size=32)], given, [3, 128])
    compared(made, RANDOM.standard_normal((3, 128)).astype("float32"), few=int(kind != "uneven"))


@pytest.mark.parametrize("real", [False, True])
def test_groups_with_zero_points_are_those_of_the_definition(real: bool) -> None:
    """onnxruntime 1.32 takes other zero points there than its definition says."""
    given, groups = packed(128, 34), RANDOM.permutation(np.arange(128) // 32)
    given["groups"] = groups.astype("int32")
    nibbles = [(given[name].reshape(34, -1, 1) >> np.array([0, 4])) & 15 for name in ("B", "zeros")]
    numbers, zeros = (array.reshape(34, -1).astype("float64") for array in nibbles)
    if real:
        zeros = zeros + 0.25
        given["zeros"] = zeros.astype("float32").reshape(-1)
    matrix = (numbers - zeros[:, groups]) * given["scales"].reshape(34, 4)[:, groups]
    made = model([product("y", "x", given, K=128, N=34, bits=4, block_size=32)], given, [3, 128])
    x = RANDOM.standard_normal((3, 128)).astype("float32")
    compiled = tvm_mxplan.compile(made)
    assert "few_bits_product" in [step.kind for step in programs_of(compiled)]
    np.testing.assert_allclose(compiled(x)[0].numpy(), x @ matrix.T, rtol=1e-4, atol=1e-5)


def blocked(name: str, array: np.ndarray, kind: int) -> TensorProto:
    return helper.make_tensor(name, kind, array.shape, array.astype("int32").reshape(-1).tolist())


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT8"])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("form", ["columns", "rows", "gemm"])
def test_blocks_behind_dequantize_linear(kind: str, zero: bool, form: str) -> None:
    depth, columns, block = 96, 40, 32
    least, most = {"INT4": (-8, 8), "UINT4": (0, 16), "INT8": (-128, 128)}[kind]
    axis, dtype = (0 if form == "columns" else 1), getattr(TensorProto, kind)
    shape = (depth, columns) if axis == 0 else (columns, depth)
    scales = tuple(extent // block if at == axis else extent for at, extent in enumerate(shape))
    given: dict[str, Any] = {
        "w": blocked("w", RANDOM.integers(least, most, shape), dtype),
        "s": ((RANDOM.random(scales) + 0.5) / most).astype("float32"),
    }
    if zero:
        given["z"] = blocked("z", RANDOM.integers(least, most, scales), dtype)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", *(["z"] if zero else [])], ["real"],
                              axis=axis, block_size=block)]  # fmt: skip
    if form == "columns":
        nodes.append(helper.make_node("MatMul", ["x", "real"], ["y"]))
    elif form == "rows":
        nodes.append(helper.make_node("Transpose", ["real"], ["turned"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "turned"], ["y"]))
    else:
        given["c"] = RANDOM.standard_normal(columns).astype("float32")
        nodes.append(helper.make_node("Gemm", ["x", "real", "c"], ["y"], transB=1))
    compared(model(nodes, given, [5, depth], opset=21), RANDOM.standard_normal((5, depth)).astype("float32"))


def test_a_scale_for_each_column_of_four_bits() -> None:
    given: dict[str, Any] = {
        "w": blocked("w", RANDOM.integers(-8, 8, (70, 33)), TensorProto.INT4),
        "s": (RANDOM.random(33) + 0.5).astype("float32"),
    }
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["real"], axis=1),
             helper.make_node("MatMul", ["x", "real"], ["y"])]  # fmt: skip
    compared(model(nodes, given, [2, 70], opset=21), RANDOM.standard_normal((2, 70)).astype("float32"))


def test_a_matrix_that_no_product_reads_is_real() -> None:
    given: dict[str, Any] = {
        "w": blocked("w", RANDOM.integers(-8, 8, (6, 64)), TensorProto.INT4),
        "s": (RANDOM.random((6, 2)) + 0.5).astype("float32"),
    }
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["real"], axis=1, block_size=32),
             helper.make_node("Add", ["x", "real"], ["y"])]  # fmt: skip
    compared(model(nodes, given, [6, 64], opset=21), RANDOM.standard_normal((6, 64)).astype("float32"), few=0)


def test_an_exported_library_holds_few_bits(tmp_path: Path) -> None:
    depth = columns = 512
    given = packed(depth, columns, zero=False)
    made = model([product("y", "x", given, K=depth, N=columns, bits=4, block_size=32)], given, [1, depth])
    x = RANDOM.standard_normal((1, depth)).astype("float32")
    compiled = compared(made, x)
    path = tmp_path / "few.so"
    compiled.export(path)
    few = depth * columns // 2 + depth // 32 * columns * 4
    assert few < path.stat().st_size < few + depth * columns
    loaded = tvm_mxplan.load(path)
    np.testing.assert_array_equal(loaded(x)[0].numpy(), compiled(x)[0].numpy())


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_words_hold_numbers_the_lowest_bits_first(bits: int) -> None:
    numbers = RANDOM.integers(0, 2**bits, (3, 37)).astype("uint8")
    words = pack_words(numbers, bits)
    of_word = 32 // bits
    assert words.shape == (3, -(-37 // of_word))
    for row, at in np.ndindex(3, 37):
        assert (int(words[row, at // of_word]) >> (at % of_word * bits)) & (2**bits - 1) == numbers[row, at]
    np.testing.assert_array_equal(unpack_words(words, bits, 37), numbers)
