"""If, Loop and Scan."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import answers, check, model, normal, operators

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

IF = """agraph (float[2, 3] x KNOWN) => (float[2, 3] y) <FLAG> {
    y = If(flag) <
        then_branch = then_graph () => (float[2, 3] a) { t = Relu(x)  a = Add(t, x) },
        else_branch = else_graph () => (float[2, 3] b) { b = Neg(x) }
    >
}"""


def test_a_known_condition_leaves_one_branch():
    parsed = model(IF.replace("KNOWN", "").replace("FLAG", "bool flag = {1}"))
    assert operators(parsed) == ["nn.relu", "add"]
    check(parsed, {"x": normal(2, 3)})


@pytest.mark.parametrize("flag", [True, False])
def test_a_condition_of_the_call_runs_one_branch(flag):
    parsed = model(IF.replace("KNOWN", ", bool flag").replace("<FLAG>", ""))
    check(parsed, {"x": normal(2, 3), "flag": np.array(flag)})


LOOP = """agraph (float[3] x COUNT) => (float[3] last, float[n, 3] all) <MOST bool go = {1}> {
    last, all = Loop(most, go, x) <
      body = b (int64 i, bool c, float[3] state) => (bool again, float[3] next, float[3] row) {
        again = Identity(c)
        f = Cast<to = 1>(i)
        a = Add(state, f)
        next = Mul(a, x)
        row = Identity(state)
    }>
}"""


def test_a_known_count_is_unrolled():
    parsed = model(LOOP.replace("COUNT", "").replace("MOST", "int64 most = {4},"))
    assert "call" not in operators(parsed)
    check(parsed, {"x": normal(3)})


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_count_of_the_call_runs_as_often(turns):
    parsed = model(LOOP.replace("COUNT", ", int64 most").replace("MOST", ""))
    assert "call" in operators(parsed)
    check(parsed, {"x": normal(3), "most": np.array(turns, "int64")})


def test_a_scan_forwards_and_backwards():
    parsed = model(
        """agraph (float[2] start, float[5, 2] xs) => (float[2] end, float[5, 2] sums) {
            end, sums = Scan<num_scan_inputs = 1, scan_input_directions = [1],
                body = b (float[2] state, float[2] x) => (float[2] next, float[2] out) {
                    next = Add(state, x)
                    out = Mul(next, x)
                }>(start, xs)
        }"""
    )
    check(parsed, {"start": normal(2), "xs": normal(5, 2)})


@pytest.mark.parametrize("flag", [True, False])
def test_a_condition_inside_of_a_function_of_the_model(flag):
    parsed = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18, "mine": 1]>
        agraph (float[2, 3] x, bool flag) => (float[2, 3] y) { y = mine.choose(x, flag) }
        <domain: "mine", opset_import: ["": 18]> choose (x, flag) => (y) {
            y = If(flag) <
                then_branch = then_graph () => (float[2, 3] a) { a = Relu(x) },
                else_branch = else_graph () => (float[2, 3] b) { b = Neg(x) }
            >
        }"""
    )
    check(parsed, {"x": normal(2, 3), "flag": np.array(flag)})


HALVES = """agraph (float[2, n] x, bool whole) => (float[2, m] y)
    <int64[2] pairs = {8, 3}, int64[2] eights = {3, 8}> {
        y = If(whole) <
            then_branch = all () => (float[2, 6] z) {
                z = Mul(x, x)
            },
            else_branch = part () => (float[8, 5] u) {
                r = Reshape(x, pairs)
                e = Reshape(x, eights)
                u = MatMul(r, e)
            }>
    }"""


def test_a_branch_that_no_call_can_run_is_an_error_of_the_calls_that_choose_it() -> None:
    """Twelve numbers are neither 8 rows of 3 nor 3 of 8; whichever branch says so, the other one runs."""
    x = normal(2, 6)
    for text in (HALVES, HALVES.replace("then_branch", "a_branch").replace("else_branch", "then_branch")):
        text = text.replace("a_branch", "else_branch")
        parsed = model(text)
        executable = tvm_mxplan.compile(parsed, "llvm", shapes={"x": [2, 6]}, options={"cache": "disabled"})
        runs = "then_branch = all" in text
        (y,) = executable(x, np.array(runs))
        np.testing.assert_allclose(y.numpy(), x * x, rtol=1e-6)
        with pytest.raises(InvalidInputError, match=r"node 'y' \(If\): .*do not fit: node 'r' \(Reshape\)"):
            executable(x, np.array(not runs))


def test_a_recurrent_layer_that_gets_images_is_an_error_of_the_calls_that_run_it() -> None:
    parsed = model(
        """agraph (float[2, 1, 3] x, bool f, float[1, 8, 3] w, float[1, 8, 2] r) => (float[p, 1, 1, 2] z) <
            int64[1] axes = {0}
        > {
            z = If(f) <
                then_branch = t () => (float[p, 1, 1, 2] a) { a = LSTM<hidden_size = 2>(x, w, r) },
                else_branch = e () => (float[p, 1, 1, 2] b) {
                    image = Unsqueeze(x, axes)
                    b = LSTM<hidden_size = 2>(image, w, r)
                }
            >
        }"""
    )
    x, w, r = normal(2, 1, 3), normal(1, 8, 3), normal(1, 8, 2)
    executable = tvm_mxplan.compile(parsed, "llvm", options={"cache": "disabled"})
    assert executable(x, np.array(True), w, r)[0].shape == (2, 1, 1, 2)
    with pytest.raises(InvalidInputError, match=r"do not fit: node 'b' \(LSTM\): expected data of 3 dimen"):
        executable(x, np.array(False), w, r)


def test_two_branches_that_no_call_can_run_are_an_error_of_the_model() -> None:
    parsed = model(HALVES.replace("Mul(x, x)", "Reshape(x, pairs)"))
    with pytest.raises(InvalidInputError, match=r"node 'z' \(Reshape\): its operands contradict each other"):
        tvm_mxplan.compile(parsed, "llvm", shapes={"x": [2, 6]}, options={"cache": "disabled"})


def test_kernels_inside_of_loops_that_run_when_the_model_does() -> None:
    """An exclusive sum is a kernel of ours, here in the turns of a loop and of one inside of it."""
    parsed = model(
        """agraph (float[3] x, int64 most) => (float[3] last) <bool go = {1}, int64 axis = {0}> {
            last = Loop(most, go, x) <
              body = outer (int64 i, bool c, float[3] state) => (bool again, float[3] next) {
                again = Identity(c)
                most_inside = Add(i, most)
                inside = Loop(most_inside, c, state) <
                  body = inner (int64 j, bool d, float[3] now) => (bool more, float[3] then) {
                    more = Identity(d)
                    then = CumSum<exclusive = 1, reverse = 1>(now, axis)
                }>
                summed = CumSum<exclusive = 1>(x, axis)
                next = Add(inside, summed)
            }>
        }"""
    )
    assert operators(parsed).count("call") >= 1
    for turns in (0, 2):
        check(parsed, {"x": normal(3), "most": np.array(turns, "int64")})


WHILE = """agraph (float[6] x COUNT) => (float[4] y)
    <int64 none = {0}, bool go = {1}, int64[1] one = {1}, int64 step = {1} MOST> {
    empty = SequenceEmpty<dtype = 1>()
    last, rows = Loop(, go, none, empty) <
      body = b (int64 i, bool c, int64 at, seq(float[1]) so_far) =>
               (bool again, int64 next, seq(float[1]) then) {
        start = Reshape(at, one)
        end = Add(start, one)
        row = Slice(x, start, end)
        then = SequenceInsert(so_far, row)
        next = Add(at, step)
        again = Less(next, most)
    }>
    y = ConcatFromSequence<axis = 0>(rows)
}"""


def test_a_loop_without_a_count_whose_condition_follows_from_constants_is_unrolled():
    """A sequence grows in it, as PyTorch's exporter writes bags of embeddings."""
    parsed = model(WHILE.replace("COUNT", "").replace("MOST", ", int64 most = {4}"))
    assert "call" not in operators(parsed)
    check(parsed, {"x": normal(6)})


def test_a_sequence_in_a_loop_that_runs_when_the_model_does_is_refused():
    parsed = model(WHILE.replace("COUNT", ", int64 most").replace("MOST", ""))
    with pytest.raises(UnsupportedError, match="a sequence in a loop whose number of turns is not known"):
        tvm_mxplan.compile(parsed, "llvm", options={"cache": "disabled"})


def test_a_function_over_a_sequence_reads_what_stands_around_it():
    parsed = model(
        """agraph (float[2, 3] x, float[4] z) => (float[3, 2] y, float[4] w) <float two = {2}> {
            pair = SequenceConstruct(x, z)
            mapped = SequenceMap(pair) <
              body = b (float one) => (float more) { more = Mul(one, two) }>
            first = SequenceAt(mapped, zero)
            y = Transpose(first)
            w = SequenceAt(mapped, last)
        }""".replace("float two = {2}", "float two = {2}, int64 zero = {0}, int64 last = {1}")
    )
    check(parsed, {"x": normal(2, 3), "z": normal(4)})


def test_an_axis_to_insert_that_is_a_scalar():
    parsed = model(
        "agraph (float[2, 3] x) => (float[2, 1, 3] y) <int64 axis = {1}> { y = Unsqueeze(x, axis) }"
    )
    check(parsed, {"x": normal(2, 3)})


COUNTED = """agraph (int64 x COUNT) => (int64 last) <int64 one = {1} MOST> {
    last = Loop(most, , x) <
      body = b (int64 i, bool c, int64 state) => (bool again, int64 next) {
        again = Identity(c)
        next = Add(state, one)
    }>
}"""


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 5000, 100_000])
def test_the_stack_is_not_as_long_as_the_loop(count):
    parsed = model(COUNTED.replace("COUNT", ", int64 most").replace("MOST", ""))
    (last,) = answers(parsed, {"x": np.array(3), "most": np.array(count)})
    assert last == 3 + count


def test_a_known_count_too_large_to_unroll():
    parsed = model(COUNTED.replace("COUNT", "").replace("MOST", ", int64 most = {20000}"))
    assert answers(parsed, {"x": np.array(3)})[0] == 20_003


@pytest.mark.parametrize(("axis", "back"), [(0, 0), (1, 1)])
def test_a_scan_of_nothing(axis, back):
    """The states as they were, and results with no part."""
    shape = (0, 4) if axis == 0 else (4, 0)
    parsed = model(
        f"""agraph (float[4] i, float[{shape[0]}, {shape[1]}] x) => (float[4] y, float[a, b, c] z)
        <int64[1] first = {{0}}> {{
            y, z = Scan<num_scan_inputs = 1, scan_input_axes = [{axis}], scan_output_axes = [{-axis}],
                        scan_input_directions = [{back}], scan_output_directions = [{back}],
              body = b (float[4] s, float[4] v) => (float[4] t, float[2, 4] r) {{
                t = Add(s, v)
                u = Unsqueeze(t, first)
                r = Concat<axis = 0>(u, u)
            }}>(i, x)
        }}"""
    )
    state = normal(4)
    y, z = answers(parsed, {"i": state, "x": normal(*shape)})
    np.testing.assert_array_equal(y, state)
    assert z.shape == ((0, 2, 4) if axis == 0 else (2, 4, 0))


@pytest.mark.parametrize("known", [True, False])
def test_a_branch_in_a_function_is_of_the_functions_opset(known):
    """Softmax of version 11 is over all axes from one on."""
    flag, constant = ("", "<bool flag = {1}>") if known else (", bool flag", "")
    parsed = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18, "my": 1]>
        agraph (float[2, 3, 4] x{flag}) => (float[2, 3, 4] y) {constant} {{ y = my.f(x, flag) }}
        <domain: "my", opset_import: ["": 11]>
        f (a, c) => (b) {{
            b = If(c) <
                then_branch = t () => (float[2, 3, 4] p) {{ p = Softmax<axis = 1>(a) }},
                else_branch = e () => (float[2, 3, 4] q) {{ q = Neg(a) }}
            >
        }}"""
    )
    x = normal(2, 3, 4)
    raised = np.exp(x)
    (y,) = answers(parsed, {"x": x} if known else {"x": x, "flag": np.array(True)})
    np.testing.assert_allclose(y, raised / raised.sum((1, 2), keepdims=True), rtol=1e-5)
