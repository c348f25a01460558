"""A converter of ours that fails is told as our mistake, TVM's refusals as ever."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tvm import relax

from tvm_mxplan.errors import InternalError, InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.onnx import import_model, importer
from tvm_mxplan.frontend.onnx.converters import table
from tvm_mxplan.frontend.reasons import is_own_mistake


def model(*nodes: onnx.NodeProto, dims: list[int | str] | None = None) -> onnx.ModelProto:
    shape = [1, 4, 5, 5] if dims is None else dims
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


LRN = helper.make_node("LRN", ["x"], ["y"], name="norm", size=3)


def failing(error: Exception) -> Callable[..., list[object]]:
    def of(_node: object) -> list[object]:
        raise error

    return of


@pytest.mark.parametrize(
    "error", [KeyError("axis"), AttributeError("no such"), IndexError("out of range"), AssertionError()]
)
@pytest.mark.parametrize("dims", [None, ["n", 4, 5, 5]])
def test_a_converter_of_ours_that_fails(
    monkeypatch: pytest.MonkeyPatch, error: Exception, dims: list[int | str] | None
) -> None:
    """Also where dimensions are open, which is a reason of TVM's alone."""
    assert import_model(model(LRN, dims=dims))["main"]
    monkeypatch.setattr(importer.converters, "of", failing(error))
    said = rf"node 'norm' \(LRN\): its converter fails \({type(error).__name__}: .*\); please report it"
    with pytest.raises(InternalError, match=said):
        import_model(model(LRN, dims=dims))


def test_what_tvm_refuses_is_the_models() -> None:
    turned = helper.make_node("Transpose", ["x"], ["y"], name="turn", perm=[0, 2, 1])
    with pytest.raises(InvalidInputError, match=r"node 'turn' \(Transpose\)"):
        import_model(model(turned))


def test_errors_of_tvms_operators_and_of_numpy_are_no_mistake_of_ours() -> None:
    x, w = (relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in (("x", (3,)), ("w", (4,))))
    for call in (
        lambda: relax.BlockBuilder().normalize(relax.op.add(x, w)),  # C++
        lambda: relax.op.reshape(x, object()),
        lambda: np.linalg.inv(np.zeros((2, 2))),
    ):
        with pytest.raises(Exception) as caught:
            call()
        assert not is_own_mistake(caught.value), caught.value
    with pytest.raises(KeyError) as missing:
        table.TABLE["", "no such operator"]
    assert not is_own_mistake(missing.value), "a test's"


NODE = helper.make_node


@pytest.mark.parametrize(
    ("nodes", "dims", "said"),
    [
        (
            [NODE("Constant", [], ["at"], value_int=0), NODE("CumSum", ["x", "at"], ["y"], name="n")],
            [],
            "an operand without axes",
        ),
        (
            [NODE("Constant", [], ["k"], value_ints=[1, 2]), NODE("TopK", ["x", "k"], ["y", "i"], name="n")],
            None,
            "",
        ),
        ([NODE("LpPool", ["x"], ["y"], name="n", p=0, kernel_shape=[2, 2])], None, "p=0; expected"),
        (
            [
                NODE("Constant", [], ["l"], value_ints=[1, 1, 1, 1]),
                NODE("ReverseSequence", ["x", "l"], ["y"], name="n", batch_axis=7, time_axis=0),
            ],
            None,
            "batch_axis 7 and time_axis 0",
        ),
        (
            [NODE("Constant", [], ["i"], value_int=0), NODE("GatherElements", ["x", "i"], ["y"], name="n")],
            [],
            "GatherElements requires axis",
        ),
        (
            [
                NODE("Constant", [], ["i"], value_int=0),
                NODE("ScatterElements", ["x", "i", "x"], ["y"], name="n"),
            ],
            [],
            "axis 0 of a tensor of 0 dimensions",
        ),
    ],
)
def test_attributes_that_no_model_may_have(
    nodes: list[onnx.NodeProto], dims: list[int | str] | None, said: str
) -> None:
    """ONNX's inference lets them pass; each was an error of Python's."""
    with pytest.raises(InvalidInputError, match=f"'n'.*{said}"):
        import_model(model(*nodes, dims=dims))


@pytest.mark.parametrize(
    "node",
    [
        NODE("LayerNormalization", ["d", "s"], ["y"], name="n"),
        NODE("MeanVarianceNormalization", ["d"], ["y"], name="n"),
        NODE("BatchNormalization", ["d", "s", "s", "s", "s"], ["y", "m", "v"], name="n", training_mode=1),
        NODE("FusedMatMul", ["d", "d"], ["y"], name="n", domain="com.microsoft"),
        NODE("SimplifiedLayerNormalization", ["d", "s"], ["y"], name="n", domain="com.microsoft"),
    ],
    ids=lambda node: node.op_type,
)
def test_a_rank_that_is_known_only_when_the_model_runs(node: onnx.NodeProto) -> None:
    """Squeeze without axes leaves out those of one element, of which open dimensions may be some."""
    turned = model(NODE("Squeeze", ["x"], ["d"]), node, dims=["a", "b", 4, 4])
    turned.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    turned.graph.initializer.append(helper.make_tensor("s", TensorProto.FLOAT, [4], [1.0] * 4))
    with pytest.raises(UnsupportedError, match=r"'n' .*how many dimensions.*; state numbers for the open"):
        import_model(turned)
    assert import_model(turned, shapes={"x": [2, 4, 4, 4]})["main"]


def test_a_direction_that_no_layer_has() -> None:
    known = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, np.ones(shape, "float32").ravel())
        for name, shape in (("w", (1, 20, 3)), ("r", (1, 20, 5)))
    ]
    broken = model(
        NODE("LSTM", ["x", "w", "r"], ["y"], name="n", hidden_size=5, direction="odd"), dims=[4, 2, 3]
    )
    broken.graph.initializer.extend(known)
    with pytest.raises(InvalidInputError, match=r"'n' \(LSTM\): direction 'odd'; expected one of forward"):
        import_model(broken)
