"""Models with named, unnamed and bounded dimensions: one executable, right at several sizes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import check, model, normal, operators

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.execution.signature import Signature
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.testing.reference import onnxruntime_outputs

UNCACHED = {"cache": "disabled"}


def check_offloaded(parsed: onnx.ModelProto, several: list[dict[str, np.ndarray]], **stated: object) -> None:
    """Hold one executable with regions against onnxruntime at several sizes."""
    executable = tvm_mxplan.compile(parsed, options=UNCACHED, **stated)
    assert executable.report.regions, executable.report.fallbacks
    for inputs in several:
        expected = onnxruntime_outputs(parsed, dict(inputs))
        for ours, theirs in zip(executable(**inputs), expected, strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


def constants(parsed: onnx.ModelProto, **arrays: np.ndarray) -> onnx.ModelProto:
    """The model with initializers in the place of inputs of their names."""
    for name, array in arrays.items():
        (value,) = (one for one in parsed.graph.input if one.name == name)
        parsed.graph.input.remove(value)
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return parsed


EMBEDDING = """agraph (float[b, t, 6] x, float[1, 8, 6] table, float[6, 5] w) => (float[b, t, 5] y)
    <int64[1] start = {0}, int64[1] one = {1}, int64[1] two = {2}> {
        s = Shape(x)
        t = Slice(s, one, two)
        rows = Slice(table, start, t, one)
        sum = Add(x, rows)
        y = MatMul(sum, w)
    }"""


def embedding() -> onnx.ModelProto:
    return constants(model(EMBEDDING), table=normal(1, 8, 6), w=normal(6, 5))


def test_a_table_cut_to_a_named_length_has_that_length():
    """The rows are as many as the table has at most; where they are added they are as many as the input's."""
    parsed = embedding()
    main = import_model(parsed)["main"]
    assert list(map(str, main.ret_ty.shape.values[:2])) == ["b", "t"]
    check_offloaded(parsed, [{"x": normal(b, t, 6)} for b, t in ((2, 5), (1, 1), (3, 8))])


def test_dimensions_that_had_to_be_equal_and_are_not_are_an_error_that_names_the_node():
    executable = tvm_mxplan.compile(embedding(), options=UNCACHED)
    with pytest.raises(InvalidInputError, match=r"node 'sum' \(Add\): expected equal dimensions min\(t"):
        executable(x=normal(1, 9, 6))


def test_ranges_over_two_dimensions_beside_a_shape_of_the_call_stay_apart():
    """Two functions of equal types with different contents, in a function that is cut into blocks."""
    parsed = constants(
        model(
            """agraph (float[b, t] x, int64[2] to, float[3, 4] w) => (float[r, c] y, int64[b2] z, int64[t2] v)
            <int64 zero = {0}, int64 one = {1}> {
                s = Shape(x)
                b = Gather(s, zero)
                t = Gather(s, one)
                z = Range(zero, b, one)
                v = Range(zero, t, one)
                r = Reshape(x, to)
                y = MatMul(r, w)
            }"""
        ),
        w=normal(3, 4),
    )
    check_offloaded(parsed, [{"x": normal(b, t), "to": np.array([-1, 3])} for b, t in ((2, 6), (3, 5))])


def test_ranges_forwards_and_backwards_over_a_dimension():
    """Relative positions, a step that does not divide, floats, and a range that is empty at small sizes."""
    parsed = model(
        """agraph (float[s] x) => (int64[a] both, int64[b] odd, float[c] real, int64[d] part)
        <int64 zero = {0}, int64 one = {1}, int64 back = {-1}, int64 three = {-3}, int64 four = {4},
         float half = {-2.0}, float none = {0.0}> {
            shape = Shape(x)
            s = Gather(shape, zero)
            minus = Neg(s)
            both = Range(s, minus, back)
            odd = Range(s, minus, three)
            float_s = Cast<to = 1>(s)
            real = Range(float_s, none, half)
            part = Range(four, s, one)
        }"""
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    for size in (1, 3, 6, 7):
        results = [result.numpy() for result in executable(x=normal(size))]
        expected = [
            np.arange(size, -size, -1),
            np.arange(size, -size, -3),
            np.arange(size, 0, -2, dtype="float32"),
            np.arange(4, size),
        ]
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.slow
def test_a_skip_connection_over_sizes_that_only_a_call_can_show_to_be_equal():
    """Down by two, up by two, and joined: equal for even sizes only."""
    parsed = constants(
        model(
            """agraph (float[n, 3, h, w] x, float[5, 3, 3, 3] down, float[4, 8, 1, 1] last)
            => (float[n, 4, h, w] y) <float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
                d = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, down)
                u = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric">(d, , scales)
                both = Concat<axis = 1>(x, u)
                y = Conv(both, last)
            }"""
        ),
        down=normal(5, 3, 3, 3),
        last=normal(4, 8, 1, 1),
    )
    check_offloaded(parsed, [{"x": normal(n, 3, h, w)} for n, h, w in ((1, 8, 6), (2, 4, 10))])
    executable = tvm_mxplan.compile(parsed, "llvm", options=UNCACHED)
    with pytest.raises(InvalidInputError, match=r"node 'both' \(Concat\): expected equal dimensions"):
        executable(x=normal(1, 3, 7, 6))


def test_sizes_through_floating_point_leave_no_operators():
    parsed = model(
        """agraph (float[1, 2, h, w] x, float[1, 1, p, q] other) => (float[1, 2, p, q] y, float[k] row)
        <int64[1] two = {2}, int64[1] four = {4}, float[2] ones = {1.0, 1.0}, int64 at = {2},
         float half = {0.5}, float zero = {0.0}, float one = {1.0}> {
            s = Shape(x)
            o = Shape(other)
            from = Slice(s, two, four)
            to = Slice(o, two, four)
            f = Cast<to = 1>(from)
            t = Cast<to = 1>(to)
            ratio = Div(t, f)
            scales = Concat<axis = 0>(ones, ratio)
            y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric",
                nearest_mode = "floor">(x, , scales)
            h = Gather(s, at)
            hf = Cast<to = 1>(h)
            part = Mul(hf, half)
            count = Floor(part)
            row = Range(zero, count, one)
        }"""
    )
    assert not {"shape_to_tensor", "tensor_to_shape", "divide", "floor"} & set(operators(parsed))
    for h, w, p, q in ((4, 6, 8, 12), (5, 3, 10, 6)):
        check(parsed, {"x": normal(1, 2, h, w), "other": normal(1, 1, p, q)})


@pytest.mark.parametrize("rule", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2])
def test_padding_that_depends_on_a_named_size(rule, stride):
    parsed = constants(
        model(
            f"""agraph (float[n, 3, h, 7] x, float[5, 3, 3, 2] w) => (float[n, 5, p, q] y) {{
                c = Conv<auto_pad = "{rule}", strides = [{stride}, {stride}]>(x, w)
                y = MaxPool<auto_pad = "{rule}", kernel_shape = [2, 2], strides = [{stride}, 1]>(c)
            }}"""
        ),
        w=normal(5, 3, 3, 2),
    )
    check_offloaded(parsed, [{"x": normal(n, 3, h, 7)} for n, h in ((1, 8), (2, 5), (1, 4))])


def test_a_slice_to_the_end_is_the_whole():
    parsed = model(
        """agraph (float[n, 4] x) => (float[n, 4] y)
        <int64[1] start = {0}, int64[1] end = {2147483647}, int64[1] axis = {0}> {
            part = Slice(x, start, end, axis)
            y = Add(part, x)
        }"""
    )
    assert "call" not in operators(parsed)
    check(parsed, {"x": normal(3, 4)})


def test_dimensions_without_names_stay_open_and_are_no_others():
    parsed = model("agraph (float[n, m] x, float[m, 3] w) => (float[n, 3] y) { y = MatMul(x, w) }")
    dims = [value.type.tensor_type.shape.dim for value in parsed.graph.input]
    dims[0][0].dim_value = -1
    dims[0][1].dim_param = dims[1][0].dim_param = "?"
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    assert executable.report.regions
    assert [port.shape for port in executable.signature.inputs] == [("x_0", "x_1"), ("w_0", 3)]
    for n, m in ((2, 5), (4, 3)):
        x, w = normal(n, m), normal(m, 3)
        np.testing.assert_allclose(executable(x=x, w=w)[0].numpy(), x @ w, rtol=1e-4, atol=1e-5)


def test_shapes_with_names_and_arithmetic_over_names():
    parsed = model("agraph (float[2, 3] x, float[2, 3] y) => (float[2, 6] z) { z = Concat<axis = 1>(x, y) }")
    executable = tvm_mxplan.compile(parsed, shapes={"x": ["b", 3], "y": ["b", "k"]}, options=UNCACHED)
    for b, k in ((1, 2), (4, 5)):
        x, y = normal(b, 3), normal(b, k)
        np.testing.assert_array_equal(executable(x=x, y=y)[0].numpy(), np.concatenate([x, y], 1))
    with pytest.raises(InvalidInputError, match="expected that shape"):
        executable(x=normal(2, 3), y=normal(1, 3))
    parsed.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "past + 2 * k"
    parsed.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "k"
    found = import_model(parsed)["main"].params
    assert str(found[1].ty.shape.values[1].name) == "past___2___k", "nothing is called past"
    parsed.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "past"
    found = import_model(parsed)["main"].params
    assert str(found[1].ty.shape.values[1]).count("k") == 1
    assert not hasattr(found[1].ty.shape.values[1], "name")


def test_bounds_are_kept_by_calls_and_used_by_proofs():
    text = """agraph (float[b, 3] x) => (float[b, 3] y)
    <int64[1] at = {0}, int64[1] to = {1}, int64[1] one = {1}> {
        s = Shape(x)
        b = Slice(s, at, to)
        many = Greater(b, one)
        flag = Squeeze(many)
        y = If(flag) <
            then_branch = t () => (float[b, 3] p) { p = Relu(x) },
            else_branch = e () => (float[b, 3] q) { q = Neg(x) }
        >
    }"""
    parsed = model(text)
    bounded = tvm_mxplan.compile(parsed, "llvm", bounds={"b": (2, 4)}, options=UNCACHED)
    assert operators_of(parsed, {"b": (2, 4)}) == ["nn.relu"]
    x = normal(3, 3)
    np.testing.assert_array_equal(bounded(x=x)[0].numpy(), np.maximum(x, 0))
    for size in (1, 5):
        with pytest.raises(InvalidInputError, match=f"dimension b is {size}; expected 2 to 4"):
            bounded(x=normal(size, 3))
    assert Signature.from_json(bounded.signature.to_json()) == bounded.signature
    with pytest.raises(InvalidInputError, match="no open dimension 'c'; the open dimensions are: b"):
        tvm_mxplan.compile(parsed, bounds={"c": (1, 2)}, options=UNCACHED)


def operators_of(parsed: onnx.ModelProto, bounds: dict[str, tuple[int, int]]) -> list[str]:
    text = str(import_model(parsed, bounds=bounds)["main"])
    return [name for name in ("nn.relu", "negative", "if ") if name in text]


@pytest.mark.parametrize(
    "stated",
    [
        {"shapes": {"x": ["not a name", 3]}},
        {"bounds": {"b": (3, 1)}},
        {"bounds": {"b": 4}},
        {"shapes": {"x": [2.5, 3]}},
    ],
)
def test_what_is_stated_wrongly_is_one_line(stated):
    parsed = model("agraph (float[b, 3] x) => (float[b, 3] y) { y = Relu(x) }")
    with pytest.raises(InvalidInputError, match="expected") as caught:
        tvm_mxplan.compile(parsed, options=UNCACHED, **stated)
    assert "\n" not in str(caught.value)


def test_what_cannot_stay_open_is_said_with_the_option_that_fixes_it():
    spectrum = model(
        """agraph (float[1, t, 1] x) => (float[1, t, 2] y) {
            y = DFT<axis = 1>(x)
        }"""
    )
    with pytest.raises(
        UnsupportedError, match=r"node 'y' \(DFT\): .* t open; state t as a number: shapes="
    ) as caught:
        tvm_mxplan.compile(spectrum, "llvm", options=UNCACHED)
    assert "\n" not in str(caught.value)
    squeeze = model(
        """agraph (float[1, n] x) => (float[r] y) <int64 at = {1}, int64 one = {1}, int64[1] axis = {1}> {
            s = Shape(x)
            n = Gather(s, at)
            flag = Equal(n, one)
            y = If(flag) <
                then_branch = t () => (float[p] a) { a = Squeeze(x, axis) },
                else_branch = e () => (float[p, q] b) { b = Identity(x) }
            >
        }"""
    )
    with pytest.raises(UnsupportedError, match=r"\(If\): .* 1 and 2 dimensions, .* shape of 'x' in numbers"):
        tvm_mxplan.compile(squeeze, "llvm", options=UNCACHED)
    fixed = tvm_mxplan.compile(squeeze, "llvm", shapes={"x": [1, 3]}, options=UNCACHED)
    assert fixed(x=normal(1, 3))[0].shape == (1, 3)


def test_positions_behind_a_cache_of_a_named_length():
    """The length of what came before stands in no shape of the kernel that counts on from it."""
    parsed = constants(
        model(
            """agraph (float[b, q, 6] x, float[b, past, 6] before, float[6, 5] w)
            => (float[b, q, 5] y, int64[q2] at, float[b, p, 6] after)
            <int64 zero = {0}, int64 one = {1}> {
                s = Shape(x)
                q = Gather(s, one)
                c = Shape(before)
                past = Gather(c, one)
                steps = Range(zero, q, one)
                at = Add(steps, past)
                y = MatMul(x, w)
                after = Concat<axis = 1>(before, x)
            }"""
        ),
        w=normal(6, 5),
    )
    several = ((2, 3, 4), (1, 1, 0), (3, 5, 9))
    check_offloaded(parsed, [{"x": normal(b, q, 6), "before": normal(b, p, 6)} for b, q, p in several])


def test_arithmetic_over_names_is_held_to_in_calls():
    """A mask over past and new tokens, by the model's own text or by ``shapes=``."""
    parsed = model(
        """agraph (float[b, q, 6] x, float[b, past, 6] before, float[b, all, 1] mask) => (float[b, a, 6] y) {
            c = Concat<axis = 1>(before, x)
            y = Mul(c, mask)
        }"""
    )
    stated = tvm_mxplan.compile(parsed, "llvm", shapes={"mask": ["b", "past + q", 1]}, options=UNCACHED)
    (value,) = (one for one in parsed.graph.input if one.name == "mask")
    value.type.tensor_type.shape.dim[1].dim_param = "past + q"
    for executable in (stated, tvm_mxplan.compile(parsed, "llvm", options=UNCACHED)):
        assert executable.signature.inputs[2].shape == ("b", "(past + q)", 1)
        x, before, mask = normal(2, 3, 6), normal(2, 5, 6), normal(2, 8, 1)
        (y,) = executable(x, before, mask)
        np.testing.assert_allclose(y.numpy(), np.concatenate([before, x], 1) * mask, rtol=1e-6)
        with pytest.raises(
            InvalidInputError, match=r"input mask: .*expected 8 in dimension 1 \(past = 5, q = 3\), got 7"
        ):
            executable(x, before, normal(2, 7, 1))
