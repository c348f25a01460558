"""scripts/random_graphs: cases follow from their numbers, wrong results are found and made small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("onnxruntime")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from _random_graphs import drawing, judging, main, shrinking, trial
from _shared.workers import Worker

from tvm_mxplan.byoc.onednn.backend import OneDNN

FIXED = [("f32", 2), ("bf16", 3), ("sym", 2), ("host", 3), ("int8", 1)]
"""A mode, and numbers of seed 7 in it, from 0."""


def operators(case: drawing.Case) -> list[str]:
    return [node.op_type for node in case.model.graph.node]


@pytest.mark.parametrize("mode", drawing.MODES)
def test_a_number_gives_the_same_case(mode: str) -> None:
    one, other = (drawing.draw(mode, 5, 11) for _ in range(2))
    assert one.model.SerializeToString() == other.model.SerializeToString()
    assert one.options == other.options and len(one.feeds) == (3 if mode == "sym" else 1)
    assert drawing.draw(mode, 5, 12).model != one.model


def test_cases_are_models_of_many_operators() -> None:
    """Each runs in onnxruntime, and its results have the shapes that were worked out for it."""
    seen: set[str] = set()
    telling = 0
    for number in range(40):
        case = drawing.draw(drawing.MODES[number % 5], 6, number)
        onnx.checker.check_model(case.model)
        reference = judging.Reference(case.model)
        for feed in case.feeds:
            results = reference.results(feed)
            telling += judging.is_telling(results)
            for value, result in zip(case.model.graph.output, results, strict=True):
                stated = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
                assert all(a == b or not a for a, b in zip(stated, result.shape, strict=True))
        seen |= set(operators(case))
    assert telling > 45
    assert seen >= {"Conv", "MatMul", "Concat", "Split", "Reshape", "Transpose", "Softmax", "QuantizeLinear"}
    assert len(seen) > 60


def test_blocks_shapes_and_versions_of_all_kinds_are_drawn() -> None:
    """Of many cases: operators, versions of ONNX, ranks of inputs, tensors without elements, axes below 0."""
    cases = [drawing.draw(mode, 3, number) for mode in ("f32", "sym", "host") for number in range(100)]
    seen = {name for case in cases for name in operators(case)}
    assert seen >= {
        "And", "ArgMax", "ConstantOfShape", "CumSum", "Expand", "GatherElements", "GatherND", "If", "LSTM",
        "Mod", "OneHot", "Or", "Range", "Resize", "ScatterElements", "ScatterND", "Shape", "Trilu", "Xor",
    }  # fmt: skip
    assert {case.model.opset_import[0].version for case in cases} >= set(range(11, 23))
    ranks = {array.ndim for case in cases for feed in case.feeds for array in feed.values()}
    assert ranks >= {0, 1, 2, 3, 4, 5}
    axes = [
        a.i for case in cases for node in case.model.graph.node for a in node.attribute if a.name == "axis"
    ]
    assert min(axes) < 0 < max(axes)
    shapes = [onnx.shape_inference.infer_shapes(case.model).graph.value_info for case in cases[:100]]
    dims = [d for one in shapes for value in one for d in value.type.tensor_type.shape.dim]
    assert any(dim.HasField("dim_value") and dim.dim_value == 0 for dim in dims)


def test_what_subgraphs_read_counts() -> None:
    branch = helper.make_graph([helper.make_node("Add", ["x", "inner"], ["y"])], "b", [], [])
    branch.node.insert(0, helper.make_node("Neg", ["z"], ["inner"]))
    node = helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)
    assert shrinking.reads(node) == {"c", "x", "z"}


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "count"), FIXED)
def test_a_few_of_each_mode(mode: str, count: int) -> None:
    answers = [trial.tried({"mode": mode, "seed": 7, "number": number}) for number in range(count)]
    assert [answer["status"] for answer in answers if answer["status"] not in ("pass", "dull")] == []
    assert sum(answer.get("steps", 0) for answer in answers) > 0, answers
    wanted = {"bf16": "bfloat16", "int8": "int8"}.get(mode)
    if not (wanted and OneDNN().lacks(wanted)):
        assert sum(answer.get("special", 0) for answer in answers) > 0, answers


# --- what is wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "status"), [(1.0, "pass"), (1 + 1e-6, "pass"), (1.001, "wrong"), (float("nan"), "wrong")]
)
def test_results_that_are_off_are_wrong(factor: float, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = trial.tvm_mxplan.compile

    def off(*given: object, **named: object) -> SimpleNamespace:
        made = compiled(*given, **named)
        call = lambda **feed: [array * np.float32(factor) for array in trial._arrays(made(**feed))]  # noqa: E731
        wrapped = lambda **feed: [SimpleNamespace(numpy=lambda a=a: a) for a in call(**feed)]  # noqa: E731
        return _Called(wrapped, made)

    monkeypatch.setattr(trial.tvm_mxplan, "compile", off)
    answer = trial.tried({"mode": "f32", "seed": 7, "number": 0})
    assert answer["status"] == status and answer["steps"] > 0


class _Called:
    def __init__(self, call: object, made: object) -> None:
        self._call, self.report, self.module = call, made.report, made.module  # type: ignore[attr-defined]

    def __call__(self, **feed: object) -> object:
        return self._call(**feed)  # type: ignore[operator]


def test_rounding_of_graphs_that_cancel_is_seen() -> None:
    """(x + 1e4) - 1e4 has half of its digits left."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in "xy")
    far = onnx.numpy_helper.from_array(np.float32(1e4), "far")
    nodes = [helper.make_node("Add", ["x", "far"], ["s"]), helper.make_node("Sub", ["s", "far"], ["y"])]
    graph = helper.make_graph(nodes, "cancels", [x], [y], [far])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    feed = {"x": np.random.default_rng(0).standard_normal(64).astype("float32")}
    reference = judging.Reference(model)
    expected = reference.results(feed)

    def status(actual: np.ndarray, by: object = reference) -> tuple[str, bool]:
        told = judging.judge(by, feed, [actual], expected, judging.RULES["f32"])  # type: ignore[arg-type]
        return told.status, told.apart

    assert 5e-5 < judging.distance(feed["x"], expected[0]) < 1e-3
    assert status(expected[0]) == status(feed["x"]) == ("", False)
    assert status(feed["x"] * np.float32(1.5)) == ("wrong", False)
    # Where noise explains nothing, ONNX's reference may.
    steady = SimpleNamespace(spread=lambda *_: [1e-9], exact=lambda _: [feed["x"].astype("float64")])
    assert status(feed["x"], steady) == ("", True)
    assert status(feed["x"] * np.float32(1.5), steady) == ("wrong", False)
    chaos = SimpleNamespace(spread=lambda *_: [0.1], exact=lambda _: None)
    assert status(feed["x"], chaos) == ("dull", False)
    assert judging.distance(np.float32([1, 2]), np.float32([1, 2.2])) == pytest.approx(
        0.2 / np.hypot(1, 2.2), 1e-3
    )
    assert judging.distance(np.float32([1, np.inf]), np.float32([1, 2])) == float("inf")
    assert judging.distance(np.float32([1, np.nan]), np.float32([1, np.nan])) == 0


# --- smaller models, other processes ---------------------------------------------------------------------


def test_a_model_shrinks_to_what_is_wrong(tmp_path: Path) -> None:
    number = next(
        n for n in range(50) if "Conv" in (found := operators(drawing.draw("f32", 8, n))) and len(found) > 12
    )
    case = replace(drawing.draw("f32", 8, number), options={"cache": "disabled", "layouts": "plain"})

    def tell(task: str) -> dict[str, str]:
        asked = json.loads(task)
        smaller = trial.read(Path(asked["folder"]))
        judging.Reference(smaller.model).results(smaller.feeds[0])  # a model that runs
        return {"status": "wrong" if "Conv" in operators(smaller) else "pass", "reason": ""}

    smallest, _ = shrinking.shrink(case, "f32", {"status": "wrong", "reason": ""}, tell)
    assert operators(smallest) == ["Conv"] and smallest.options == {"cache": "disabled"}
    (line,) = main.pictured(smallest.model)
    assert "= Conv(" in line and "kernel" not in line.split("Conv")[0]


def test_a_process_that_ends_is_a_finding_and_the_next_case_runs() -> None:
    text = (
        "import os, sys\n"
        "for line in sys.stdin:\n"
        "    os.abort() if 'bad' in line else print('{\"status\": \"pass\"}', flush=True)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    started = []

    def start() -> subprocess.Popen[bytes]:
        started.append(1)
        return subprocess.Popen([sys.executable, "-c", text], env=dict(os.environ), **pipes)  # type: ignore[call-overload]

    with Worker(start, 600.0) as worker:
        assert [worker.answer(task)["status"] for task in ("a", "bad", "b", "c")] == [
            "pass",
            "crash",
            "pass",
            "pass",
        ]
    assert len(started) == 2


def test_failures_and_missing_steps_are_no_success() -> None:
    good = [{"status": "pass"}] * 30
    assert main._is_good([*good, {"status": "bare"}, {"status": "dull"}])
    assert not main._is_good([*good, {"status": "bare"}, {"status": "bare"}])
    assert not main._is_good([*good, {"status": "crash"}])
    assert not main._is_good([{"status": "dull"}])
