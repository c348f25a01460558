"""Models that keep keys, values and states from call to call, held against what is fed back by hand."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import onnx
import pytest
from decoders import DEPTH, HEADS, WIDTH, FedBack, decoder, states_of
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.byoc.region_module import modules_under
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

CAPACITY = 16


def compiled(model: onnx.ModelProto, target: str = "dnnl, llvm", **more: Any) -> tvm_mxplan.Executable:
    return tvm_mxplan.compile(model, target, states=states_of(model), capacity=CAPACITY, **more)


def attentions(ex: tvm_mxplan.Executable) -> list[str]:
    """Steps of attention on caches."""
    steps = [step for region in ex.report.regions for step in region.steps]
    return [step.name for step in steps if step.name.startswith("cached_attention")]


def addresses(session: Any) -> list[int]:
    return [np.from_dlpack(tensor).ctypes.data for tensor in session._tensors.values()]


def tokens(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, count]).standard_normal((1, count, WIDTH)).astype("float32")


def feed(count: int, past: int, mask: bool, seed: int = 0) -> dict[str, np.ndarray]:
    inputs = {"x": tokens(count, seed)}
    if mask:
        seen = np.random.default_rng([seed, past]).random((1, 1, 1, past + count)) < 0.7
        inputs["mask"] = np.where(seen, 0, -1e4).astype("float32")
    return inputs


def check(
    session: Any, other: FedBack, turns: tuple[int, ...], mask: bool = False, atol: float = 2e-6
) -> None:
    for turn, count in enumerate(turns):
        inputs = feed(count, other.length, mask, turn)
        (got,) = session.run(inputs)
        np.testing.assert_allclose(got, other.run(inputs), rtol=0, atol=atol)
        assert session.length == other.length
        for name, array in other.past.items():
            np.testing.assert_allclose(session.state(name), array, rtol=0, atol=atol)


@pytest.mark.parametrize(
    "settings", [{}, {"mask": True}, {"layers": 3}, {"groups": 1}, {"groups": 1, "mask": True, "layers": 2}]
)
def test_caches_grow_where_they_stand(settings: dict[str, Any]) -> None:
    model = decoder(**settings)
    ex = compiled(model)
    assert len(attentions(ex)) == settings.get("layers", 1)
    session = ex.session()
    before = addresses(session)
    check(session, FedBack(model), (5, 1, 1, 3, 1), settings.get("mask", False))
    assert addresses(session) == before
    assert session.length == 11 and session.capacity == CAPACITY


@pytest.mark.parametrize("mask", [False, True])
def test_nothing_is_made_anew_when_caches_grow(mask: bool) -> None:
    model = decoder(mask=mask, layers=2)
    ex = compiled(model)
    check(ex.session(), FedBack(model), (3, 1, 1, 1, 1), mask)
    (region,) = (node for node in modules_under(ex.module.mod) if node.kind == "mxplan_onednn")
    made = json.loads(str(region["mxplan.stats"]()))["specializations"]
    assert sorted(one["symbols"]["seq"] for one in made) == [1, 3]


def test_tvm_runs_them_where_no_library_does() -> None:
    model = decoder(mask=True, layers=2)
    ex = compiled(model, "llvm")
    assert not ex.report.regions
    check(ex.session(), FedBack(model), (4, 1, 2), mask=True)


@pytest.mark.parametrize("through", ["Identity", "Neg"])
def test_presents_that_something_else_makes(through: str) -> None:
    """Those that are no plain join are written as a whole."""
    model = decoder(through=through)
    check(compiled(model).session(), FedBack(model), (3, 1, 1))


def test_a_cache_that_something_else_reads_is_not_written_where_it_stands() -> None:
    model = decoder()
    model.graph.node.append(helper.make_node("ReduceSum", ["past_key0"], ["sum"], keepdims=0))
    model.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, []))
    session, other = compiled(model).session(), FedBack(model)
    before = addresses(session)
    for count in (3, 2, 1):
        inputs = {"x": tokens(count)}
        past = other.past["past_key0"].sum()
        got, total = session.run(inputs)
        np.testing.assert_allclose(got, other.run(inputs), rtol=0, atol=2e-6)
        np.testing.assert_allclose(total, past, rtol=0, atol=1e-5)
    keys, values = zip(before, addresses(session), strict=True)
    assert keys[0] != keys[1] and values[0] == values[1]


def test_branches_stay_as_they_are() -> None:
    model = decoder()

    def branch(operator: str) -> onnx.GraphProto:
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, "seq", WIDTH])
        return helper.make_graph([helper.make_node(operator, ["y0"], ["y"])], operator, [], [y])

    model.graph.input.insert(1, helper.make_tensor_value_info("turned", TensorProto.BOOL, []))
    branches = {"then_branch": branch("Neg"), "else_branch": branch("Identity")}
    model.graph.node.append(helper.make_node("If", ["turned"], ["z"], **branches))
    model.graph.output[0].name = "z"
    session, other = compiled(model).session(), FedBack(model)
    for turn, count in enumerate((3, 1, 2)):
        inputs = {"x": tokens(count), "turned": np.array(turn == 1)}
        np.testing.assert_allclose(session.run(inputs)[0], other.run(inputs), rtol=0, atol=2e-6)


def test_a_number_of_rows_is_the_one_that_calls_find() -> None:
    model = decoder(past=6, seq=1)
    ex = compiled(model)
    assert attentions(ex)
    session = ex.session()
    with pytest.raises(InvalidInputError, match="made for calls on 6 rows of its caches, of which 0 count"):
        session.run({"x": tokens(1)})
    past = {
        name: np.random.default_rng(at).standard_normal((1, HEADS, 6, DEPTH)).astype("float32")
        for at, name in enumerate(states_of(model))
    }
    other = FedBack(model, past)
    inputs = {"x": tokens(1)}
    expected = other.run(inputs)
    session.load(past)
    for _ in range(3):
        np.testing.assert_allclose(session.run(inputs)[0], expected, rtol=0, atol=2e-6)
        assert session.length == 7
        session.rewind(6)


def test_sessions_keep_their_own() -> None:
    model = decoder()
    ex = compiled(model)
    pairs = [(ex.session(), FedBack(model)) for _ in range(4)]
    failed = []

    def work(at: int) -> None:
        session, other = pairs[at]
        try:
            for turn in range(8):
                inputs = feed(1 + at % 2, 0, False, seed=10 * at + turn)
                np.testing.assert_allclose(session.run(inputs)[0], other.run(inputs), rtol=0, atol=2e-6)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_rewinding_goes_on_from_there() -> None:
    model = decoder()
    session, other = compiled(model).session(), FedBack(model)
    check(session, other, (4,))
    kept = dict(other.past)
    check(session, other, (2, 1))
    session.rewind(4)
    other.past = kept
    check(session, other, (3, 1))
    session.rewind()
    assert session.length == 0
    check(session, FedBack(model), (2, 1))


def test_a_mask_of_another_length_is_named() -> None:
    session = compiled(decoder(mask=True)).session()
    session.run(feed(3, 0, True))
    with pytest.raises(
        InvalidInputError, match=r"input mask: .*expected 5 in dimension 3 \(past = 3, seq = 2\)"
    ):
        session.run(feed(2, 4, True))
    assert session.length == 3
    session.run(feed(2, 3, True))


def test_a_cache_that_is_a_result_too_is_not_written_where_the_caller_holds_it() -> None:
    model = decoder()
    again = onnx.ValueInfoProto()
    again.CopyFrom(model.graph.output[1])
    again.name = "again"
    model.graph.node.append(helper.make_node("Identity", ["present_key0"], ["again"]))
    model.graph.output.append(again)
    session = compiled(model).session()
    _, held = session.run({"x": tokens(3)})
    before = held.copy()
    session.rewind(1)
    session.run({"x": tokens(2, 7)})
    np.testing.assert_array_equal(held, before)


def test_full_caches_are_named_and_nothing_is_lost() -> None:
    model = decoder()
    session, other = compiled(model).session(), FedBack(model)
    check(session, other, (14,))
    with pytest.raises(InvalidInputError, match="caches of 16 rows have no room for 17; rewind, or compile"):
        session.run({"x": tokens(3)})
    check(session, other, (2,))


def test_an_exported_library_has_sessions(tmp_path: Any) -> None:
    model = decoder(mask=True)
    compiled(model).export(tmp_path / "decoder.so")
    ex = tvm_mxplan.load(tmp_path / "decoder.so")
    session = ex.session()
    before = addresses(session)
    check(session, FedBack(model), (3, 1, 1), mask=True)
    assert addresses(session) == before


def test_the_cache_of_compilations_tells_states_apart() -> None:
    model = decoder()
    options = {"cache": "on_compile"}
    assert compiled(model, options=options).report.cache.outcome == "miss"
    again = compiled(model, options=options)
    assert again.report.cache.outcome == "hit"
    check(again.session(), FedBack(model), (3, 1))
    plain = tvm_mxplan.compile(model, options=options)
    assert plain.report.cache.outcome == "miss" and not plain.signature.states


def test_every_step_is_right_under_opcheck() -> None:
    model = decoder()
    check(compiled(model, options={"opcheck": True}).session(), FedBack(model), (3, 1, 2))


def test_caches_stay_in_float32_beside_products_in_bfloat16() -> None:
    model = decoder(layers=2)
    ex = compiled(model, options={"precision": "bf16"})
    session = ex.session()
    before = addresses(session)
    check(session, FedBack(model), (5, 1, 1), atol=0.1)
    assert addresses(session) == before and len(attentions(ex)) == 2


def recurrent() -> onnx.ModelProto:
    """A state of its own shape: h1 = tanh(x + h W)."""
    numbers = np.random.default_rng(0).standard_normal((4, 4)).astype("float32")
    nodes = [
        helper.make_node("MatMul", ["h", "w"], ["p"]),
        helper.make_node("Add", ["p", "x"], ["s"]),
        helper.make_node("Tanh", ["s"], ["h1"]),
        helper.make_node("Mul", ["h1", "h1"], ["y"]),
    ]
    shape = [2, 4]
    tensors = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "h", "h1", "y")
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [tensors["x"], tensors["h"]],
        [tensors["y"], tensors["h1"]],
        [numpy_helper.from_array(numbers, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_state_of_one_shape_is_replaced() -> None:
    model = recurrent()
    weights = numpy_helper.to_array(model.graph.initializer[0])
    session = tvm_mxplan.compile(model, states={"h": "h1"}).session()
    h = np.zeros((2, 4))
    for turn in range(4):
        x = np.random.default_rng(turn).standard_normal((2, 4)).astype("float32")
        h = np.tanh(x + h @ weights)
        (y,) = session.run(x)
        np.testing.assert_allclose(y, h * h, rtol=0, atol=2e-6)
        np.testing.assert_allclose(session.state("h"), h, rtol=0, atol=2e-6)
    session.load({"h": np.ones((2, 4), "float32")})
    np.testing.assert_array_equal(session.state("h"), 1)
    session.rewind()
    np.testing.assert_array_equal(session.state("h"), 0)


def test_a_model_of_states_is_called_through_a_session() -> None:
    ex = compiled(decoder())
    for call in (ex, ex.run, ex.bind):
        with pytest.raises(UnsupportedError, match=r"called through a session: ex\.session\(\)"):
            call({"x": tokens(1)})
    with pytest.raises(InvalidInputError, match="keeps nothing from call to call; compile it with states="):
        tvm_mxplan.compile(decoder()).session()


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ({"past": "present_key0"}, "no input 'past'; the inputs are x, past_key0, past_value0"),
        ({"past_key0": "present"}, "no result 'present'; the results are y0, present_key0, present_value0"),
        ({"past_key0": "y0"}, r"'y0' .* cannot be 'past_key0'"),
        ({"past_key0": "present_key0", "past_value0": "present_key0"}, "a result is named for two inputs"),
        (["past_key0"], "states: expected a dict by name, got list"),
    ],
)
def test_mistakes_in_states_are_named(states: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        tvm_mxplan.compile(decoder(), states=states)


def test_what_states_ask_of_a_model_is_named() -> None:
    model = decoder(past=6, seq=1)
    with pytest.raises(InvalidInputError, match="'past_key0' needs 7 rows and has room for 4; state more"):
        tvm_mxplan.compile(model, states=states_of(model), capacity=4)
    with pytest.raises(InvalidInputError, match="capacity: expected a number of rows, at least 1, got 0"):
        tvm_mxplan.compile(model, states=states_of(model), capacity=0)
    named = decoder()
    named.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "batch"
    named.graph.output[1].type.tensor_type.shape.dim[0].dim_param = "batch"
    with pytest.raises(InvalidInputError):
        tvm_mxplan.compile(named, states=states_of(named))


def test_what_is_loaded_is_checked() -> None:
    session = compiled(decoder()).session()
    rows = np.zeros((1, HEADS, 3, DEPTH), "float32")
    for states, message in (
        ({"past": rows}, "no state 'past'; the states are past_key0, past_value0"),
        ({"past_key0": rows}, "load: expected all caches at once"),
        ({"past_key0": rows, "past_value0": rows[:, :, :2]}, "load: expected all caches at once"),
        ({"past_key0": rows, "past_value0": rows.astype("float64")}, "state 'past_value0': expected float32"),
        (
            {"past_key0": np.zeros((1, HEADS, 17, DEPTH), "float32"), "past_value0": rows},
            r"state 'past_key0': expected float32\[1, 2, 16, 4\], got float32\[1, 2, 17, 4\]",
        ),
    ):
        with pytest.raises(InvalidInputError, match=message):
            session.load(states)
    with pytest.raises(InvalidInputError, match="rewind: expected 0 to 0 rows, got 1"):
        session.rewind(1)
