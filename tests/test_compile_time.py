"""Work over the number of operators, counted in calls of Python functions: no clock is asked."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm.relax.dpl import is_op, is_tuple, wildcard

import tvm_mxplan
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.dispatch.pattern_operators import may_match, operators_of
from tvm_mxplan.pipeline import Given, build_pipeline
from tvm_mxplan.report.recorder import Recorder
from tvm_mxplan.testing import large_graphs

WARM, FEW, MANY = 12, 60, 240
PLACES = {
    str(Path(package.__file__).parent) for package in (tvm_mxplan, sys.modules["tvm_mxplan.passes"])
} | {str(Path(sys.modules["tvm_mxplan.byoc.onednn.backend"].__file__).parent)}


def calls(family: str, operators: int) -> Counter[str]:
    """Calls in each file of this project, while a graph is imported, planned and lowered."""
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            counts[frame.f_code.co_filename] += 1

    model, target, recorder = large_graphs.build(family, operators), tvm.target.Target("llvm"), Recorder()
    sys.setprofile(count)
    try:
        mod = import_model(model)
        with target:
            build_pipeline([OneDNN()], Options(), target, Given(recorder))(mod)
        report = str(recorder.report)
    finally:
        sys.setprofile(None)
    assert recorder.report.regions and recorder.report.regions[0].name in report
    own = {name: number for name, number in counts.items() if name.startswith(tuple(PLACES))}
    # The search for offsets tries more plans where the first is above the bound, up to limits of its own.
    return Counter({name: number for name, number in own.items() if "allocation" not in Path(name).parts})


@pytest.mark.slow
@pytest.mark.parametrize("family", ["elementwise", "residual", "wide", "alternating"])
def test_four_times_the_operators_are_about_four_times_the_work(family: str) -> None:
    calls(family, WARM)  # what is asked of the library once is known now
    few, many = calls(family, FEW), calls(family, MANY)
    assert len(many) > 30, "the count sees this project's files"
    growth = {
        Path(name).name: round(many[name] / max(1, few[name]), 1) for name in many if many[name] > 20 * MANY
    }
    assert growth, "something takes more than a few calls for each operator"
    too_much = {name: factor for name, factor in growth.items() if factor > 6}
    assert not too_much, too_much
    assert sum(many.values()) < 5 * sum(few.values())


def test_patterns_of_operators_that_a_module_does_not_have_are_not_tried() -> None:
    mod = import_model(large_graphs.build("elementwise", 4))
    operators = operators_of(mod)
    assert operators == {"relax.abs", "relax.tanh"}
    patterns = OneDNN().patterns(lambda *_: None)
    tried = [pattern.name for pattern in patterns if may_match(pattern.pattern, operators)]
    assert tried == ["mxplan_onednn.eltwise", "mxplan_onednn.eltwise"]
    assert len(patterns) > 50


def test_parts_of_patterns_count() -> None:
    chain = is_op("relax.add")(is_op("relax.exp")(wildcard()), wildcard())
    assert may_match(chain, {"relax.add", "relax.exp"})
    assert not may_match(chain, {"relax.add"})
    assert may_match(chain | is_op("relax.add")(wildcard(), wildcard()), {"relax.add"})
    assert not may_match(is_op("relax.concat")(is_tuple([chain])), {"relax.concat", "relax.add"})
    assert may_match(wildcard(), set())


@pytest.mark.slow
def test_chains_longer_than_pythons_recursion() -> None:
    """1,200 views, each of the one before it, in one region."""
    depth = sys.getrecursionlimit() + 200
    nodes, shapes = [], [np.array([1, 5, 7]), np.array([1, 7, 5])]
    nodes.append(helper.make_node("Relu", ["x"], ["v0"]))
    for at in range(depth):
        nodes.append(helper.make_node("Reshape", [f"v{at}", f"s{at % 2}"], [f"v{at + 1}"]))
    nodes.append(helper.make_node("Relu", [f"v{depth}"], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 7, 5)) for name in ("x", "y")]
    if depth % 2:
        ends[1].type.tensor_type.shape.dim[1].dim_value, ends[1].type.tensor_type.shape.dim[2].dim_value = (
            5,
            7,
        )
    weights = [numpy_helper.from_array(shape, f"s{at}") for at, shape in enumerate(shapes)]
    graph = helper.make_graph(nodes, "views", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ex = tvm_mxplan.compile(model, options={"cache": "disabled"})
    assert ex.report.regions
    x = np.random.default_rng(0).standard_normal((1, 7, 5), np.float32)
    np.testing.assert_array_equal(ex(x)[0].numpy().ravel(), np.maximum(x, 0).ravel())
