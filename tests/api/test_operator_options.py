"""Options that name operators by the nodes they come from."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import tvm

import tvm_mxplan
from tvm_mxplan import InvalidInputError, Options
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.operator_options import with_operators
from tvm_mxplan.pipeline import compilation
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

TEXT = """<ir_version: 9, opset_import: ["": 17]>
agraph (float[2, 5, 9, 9] x) => (float[2, 7, 9, 9] y) <float[7, 5, 3, 3] w, float[7] b> {
    ["/stem/conv"] c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
    ["/stem/relu"] r = Relu (c)
    ["/head/relu_1"] s = Tanh (r)
    ["/head/add"] a = Add (s, r)
    ["/tail/add"] y = Add (a, s)
}"""


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    parsed, random = onnx.parser.parse_model(TEXT), np.random.default_rng(5)
    del parsed.graph.initializer[:]
    for name, shape in (("w", (7, 5, 3, 3)), ("b", (7,))):
        array = random.standard_normal(shape).astype("float32")
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return parsed


@pytest.fixture(scope="module")
def named(model) -> tvm.IRModule:
    return compilation([], Options(), tvm.target.Target("llvm")).run(import_model(model), last="name")


def layers(named: tvm.IRModule, **given: str) -> dict[str, str]:
    return dict(with_operators(Options(layers=given["layers"]), named).layers)


def test_a_node_stands_for_all_operators_that_come_from_it(named):
    assert layers(named, layers="/stem/conv=off") == {"conv2d_0": "off", "add_0": "off"}


def test_the_last_part_of_a_name_will_do(named):
    assert layers(named, layers="conv=nhwc") == {"conv2d_0": "nhwc", "add_0": "nhwc"}


def test_names_of_operators_come_first(named):
    """The tanh has the name of a relu."""
    assert layers(named, layers="relu_0=off,/head/relu_1=off") == {"relu_0": "off", "tanh_0": "off"}
    assert layers(named, layers="relu_1=off") == {"tanh_0": "off"}
    assert layers(named, layers="conv=off,add_0=nhwc") == {"conv2d_0": "off", "add_0": "nhwc"}


def test_a_name_that_several_nodes_have_is_refused(named):
    told = (
        r"option layers: 'add' may be Add /head/add, Add /tail/add; give a whole name, or operators such as"
    )
    with pytest.raises(InvalidInputError, match=told):
        layers(named, layers="add=off")


@pytest.mark.parametrize(("name", "nearest"), [("/stem/cow", "/stem/conv"), ("conv2d_7", "conv2d_0")])
def test_a_name_that_the_model_does_not_have_is_one_line(named, name, nearest):
    with pytest.raises(InvalidInputError, match=f"option layers: .* no operator '{name}'; .*{nearest}"):
        layers(named, layers=f"{name}=off")


def test_kinds_stay_kinds(named):
    options = Options(prefer={"relu": "llvm", "/stem/relu": "dnnl", "tanh_0": "llvm", "conf2d": "llvm"})
    assert dict(with_operators(options, named).prefer) == {
        "relu": "llvm",
        "relu_0": "onednn",
        "tanh_0": "llvm",
        "conf2d": "llvm",  # which dispatch refuses: Relax has no such operator
    }


def test_options_by_node_reach_the_plan(model):
    options = {"layers": {"/stem/relu": "off"}, "prefer": {"/head/add": "llvm"}}
    ex = tvm_mxplan.compile(model, options=options)
    kept = {one.operator: one.reason for one in ex.report.kept}
    assert kept["relu_0"] == "switched off by option: relu_0"
    assert ex.report.dispatch["conv2d_0"].chosen.backend == "onednn"
    assert [str(one) for one in ex.report.dispatch["add_1"].origins] == ["Add /head/add"]
    assert kept["add_1"] == "option prefer: add_1=llvm"
    x = np.random.default_rng(6).standard_normal((2, 5, 9, 9)).astype("float32")
    (actual,), (expected,) = ex(x), onnxruntime_outputs(model, {"x": x})
    assert relative_l2(actual.numpy(), expected) <= 1e-5


def test_a_demand_that_cannot_be_is_refused(model):
    with pytest.raises(InvalidInputError, match="'/stem/cow'"):
        tvm_mxplan.compile(model, options={"prefer": {"/stem/cow": "llvm"}})
