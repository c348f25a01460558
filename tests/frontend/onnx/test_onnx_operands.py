"""Operands that the model gets when it runs, and errors where they do not fit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import check, model, normal

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError


@pytest.mark.slow
def test_reductions_over_axes_of_a_call() -> None:
    kinds = ["ReduceMean", "ReduceLogSumExp"]
    lines = "".join(
        f"{kind} = {kind}<keepdims = 0>(x, axes) k{kind} = {kind}<keepdims = 1>(x, axes)" for kind in kinds
    )
    outputs = ", ".join(f"float[a, b] {kind}, float[a, b, c, d] k{kind}" for kind in kinds)
    parsed = model(f"agraph (float[2, 3, 4, 5] x, int64[2] axes) => ({outputs}) {{ {lines} }}")
    for axes in ([1, -1], [0, 2]):
        check(parsed, {"x": normal(2, 3, 4, 5), "axes": np.array(axes)})


def test_the_largest_of_nothing_but_infinity() -> None:
    parsed = model("agraph (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }")
    x = np.array([[-np.inf, -np.inf, -np.inf], [1.5, -np.inf, 0.5]], "float32")
    check(parsed, {"x": x})


PADS = """agraph (float[3, 5] x, int64[4] p) => (float[a, b] c, float[a, b] e, float[a, b] r, float[a, b] w) {
    c = Pad(x, p)
    e = Pad<mode = "edge">(x, p)
    r = Pad<mode = "reflect">(x, p)
    w = Pad<mode = "wrap">(x, p)
}"""


def test_padding_of_a_call() -> None:
    parsed = model(PADS, opset=19)
    for pads in ([1, 2, 2, 0], [0, -1, 1, 2]):
        check(parsed, {"x": normal(3, 5), "p": np.array(pads)})


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[1, 2, 2, 0], [0, -1, 1, 2], [-1, 9, 7, -2], [0, 0, -1, 11]])
def test_known_padding_is_that_of_a_call(mode: str, pads: list[int]) -> None:
    """Reads by constant places find what the kernel of padding that is computed finds."""
    pad = f'{{ y = Pad<mode = "{mode}">(x, p) }}'
    numbers = ", ".join(map(str, pads))
    for rows, columns in ((3, 5), (2, 6)):
        x = normal(rows, columns)
        known = model(
            f"agraph (float[{rows}, {columns}] x) => (float[a, b] y) <int64[4] p = {{{numbers}}}> {pad}",
            opset=19,
        )
        given = model(f"agraph (float[{rows}, {columns}] x, int64[4] p) => (float[a, b] y) {pad}", opset=19)
        (wanted,) = tvm_mxplan.compile(given)(x, np.array(pads))
        executable = tvm_mxplan.compile(known)
        kinds = {one.operator for one in executable.report.fallbacks}
        assert "relax.call_tir" not in kinds
        np.testing.assert_array_equal(executable(x)[0].numpy(), wanted.numpy())


def test_parts_whose_sizes_do_not_add_up_are_an_error() -> None:
    parsed = model(
        "agraph (float[7, 3] x, int64[2] s) => (float[a, 3] y, float[b, 3] z) { y, z = Split(x, s) }"
    )
    check(parsed, {"x": normal(7, 3), "s": np.array([2, 5])})
    run = tvm_mxplan.compile(parsed, "llvm")
    refusal = r"node 'y' \(Split\): expected sizes of 0 or more, 7 in all"
    for wrong in ([2, 6], [-1, 8], [8, -1]):
        with pytest.raises(InvalidInputError, match=refusal):
            run(normal(7, 3), np.array(wrong))


def test_more_of_the_largest_than_there_are_is_an_error() -> None:
    text = "agraph (float[3, 7] x, int64[1] k) => (float[3, n] y, int64[3, n] i) { y, i = TopK(x, k) }"
    parsed = model(text)
    check(parsed, {"x": normal(3, 7), "k": np.array([4])})
    run = tvm_mxplan.compile(parsed, "llvm")
    for wrong in (8, -1):
        with pytest.raises(InvalidInputError, match=r"node 'y' \(TopK\): expected k from 0 to 7"):
            run(normal(3, 7), np.array([wrong]))
    fixed = (
        "agraph (float[3, 7] x) => (float[3, n] y, int64[3, n] i) <int64[1] k = {8}> { y, i = TopK(x, k) }"
    )
    with pytest.raises(InvalidInputError, match="less than the requested k"):
        tvm_mxplan.compile(model(fixed), "llvm")


@pytest.mark.parametrize("shape", [(3, 7), ()])
def test_dropping_elements_is_refused(shape: tuple[int, ...]) -> None:
    dims = str(list(shape)) if shape else ""
    text = f"""agraph (float{dims} x, bool t) => (float{dims} y, bool{dims} m) <float r = {{0.5}}> {{
        y, m = Dropout(x, r, t)
    }}"""
    run = tvm_mxplan.compile(model(text), "llvm")
    x = np.asarray(normal(*shape), "float32")
    y, mask = (result.numpy() for result in run(x, np.array(False)))
    np.testing.assert_array_equal(y, x)
    assert mask.all()
    with pytest.raises(UnsupportedError, match=r"node 'y' \(Dropout\): drops elements at random"):
        run(x, np.array(True))
    with pytest.raises(UnsupportedError, match="drops elements at random"):
        tvm_mxplan.compile(
            model(text.replace(", bool t", "").replace("{0.5}", "{0.5}, bool t = {1}")), "llvm"
        )


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_casts_to_8_bits_and_back(dtype: str, saturate: int) -> None:
    """All 65,536 numbers of float16, as ONNX's own conversion has them."""
    kind = np.dtype(getattr(ml_dtypes, dtype))
    number = helper.np_dtype_to_tensor_dtype(kind)
    nodes = [
        helper.make_node("Cast", ["x"], ["y"], to=number, saturate=saturate),
        helper.make_node("Cast", ["y"], ["z"], to=1),
    ]
    x = np.arange(2**16, dtype="uint16").view("float16")
    inputs = [helper.make_tensor_value_info("x", 10, x.shape)]
    outputs = [
        helper.make_tensor_value_info("y", number, x.shape),
        helper.make_tensor_value_info("z", 1, x.shape),
    ]
    parsed = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs),
        opset_imports=[helper.make_opsetid("", 19)],
        ir_version=9,
    )
    small, wide = (result.numpy() for result in tvm_mxplan.compile(parsed, "llvm")(x))
    wanted = numpy_helper.saturate_cast(x, kind) if saturate else x.astype("float32").astype(kind)
    same = (small.view("uint8") == wanted.view("uint8")) | (
        np.isnan(small.astype("float32")) & np.isnan(wanted.astype("float32"))
    )
    assert same.all(), f"{x[~same][:5]} becomes {small[~same][:5]}, expected {wanted[~same][:5]}"
    np.testing.assert_array_equal(wide, small.astype("float32"))
