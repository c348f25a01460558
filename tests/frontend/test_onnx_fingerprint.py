"""Two ONNX models are one by structure, edges, attributes, types, bytes and names of nodes, not of values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tvm_mxplan.core.fingerprint import content_digest
from tvm_mxplan.frontend.onnx_file import skeleton_of
from tvm_mxplan.frontend.onnx_fingerprint import onnx_fingerprint

W = np.arange(16, dtype=np.float32).reshape(4, 4)


def model(
    edges: tuple[str, str] = ("a", "b"),
    weights: tuple[str, str] = ("w", "v"),
    prefix: str = "",
    branch: float = 1.0,
    order: int = 1,
) -> onnx.ModelProto:
    """``If(flag, x * w - x + v, constant)`` in several spellings; ``prefix`` changes the values' names."""
    name = lambda text: prefix + text  # noqa: E731
    then = helper.make_graph(
        [helper.make_node("Identity", [name("d")], [name("t")], name="copy")],
        name("then"),
        [],
        [helper.make_tensor_value_info(name("t"), 1, (4, 4))],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", [name("k")], [name("e")], name="constant")],
        name("else"),
        [],
        [helper.make_tensor_value_info(name("e"), 1, (4, 4))],
        [numpy_helper.from_array(np.full((4, 4), branch, np.float32), name("k"))],
    )
    nodes = [
        helper.make_node("Mul", ["x", name(weights[0])], [name("a")], name="scale"),
        helper.make_node("Add", ["x", name(weights[1])], [name("b")], name="shift"),
        helper.make_node("Sub", [name(edge) for edge in edges], [name("d")], name="both"),
        helper.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
    ]
    graph = helper.make_graph(
        nodes,
        name("graph"),
        [helper.make_tensor_value_info("x", 1, (4, 4)), helper.make_tensor_value_info("flag", 9, ())],
        [helper.make_tensor_value_info("y", 1, (4, 4))],
        [numpy_helper.from_array(W, name("w")), numpy_helper.from_array(-W, name("v"))][::order],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def digest(proto: onnx.ModelProto, shapes: dict[str, tuple[int, ...]] | None = None) -> str:
    digests = [content_digest(tensor.raw_data) for tensor in proto.graph.initializer]
    return onnx_fingerprint(skeleton_of(proto), digests, shapes)


def edited(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    proto = model()
    change(proto)
    return proto


def test_names_of_values_order_of_initializers_and_texts_do_not_count():
    onnx.checker.check_model(model())
    expected = digest(model())
    assert digest(model(prefix="other")) == expected
    assert digest(model(order=-1)) == expected
    assert digest(edited(lambda proto: setattr(proto, "doc_string", "text"))) == expected
    assert digest(edited(lambda proto: setattr(proto, "producer_name", "someone"))) == expected


@pytest.mark.parametrize(
    "other",
    [
        model(edges=("b", "a")),
        model(edges=("a", "a")),
        model(weights=("v", "w")),
        model(branch=2.0),
        edited(lambda proto: proto.opset_import.add(domain="x", version=1)),
        edited(lambda proto: setattr(proto.opset_import[0], "version", 13)),
        edited(lambda proto: setattr(proto.graph.node[2], "op_type", "Add")),
        edited(lambda proto: setattr(proto.graph.node[2], "domain", "x")),
        edited(lambda proto: proto.graph.node[2].attribute.append(helper.make_attribute("k", 0))),
        edited(lambda proto: setattr(proto.graph.input[0].type.tensor_type.shape.dim[0], "dim_param", "n")),
        edited(lambda proto: setattr(proto.graph.input[0].type.tensor_type, "elem_type", 10)),
        edited(lambda proto: setattr(proto.graph.initializer[0], "data_type", 6)),
        edited(lambda proto: proto.graph.initializer[0].dims.__setitem__(slice(None), [2, 8])),
    ],
)
def test_everything_else_counts(other):
    assert digest(other) != digest(model())


def test_names_of_nodes_count_and_results_stand_for_those_that_are_missing():
    digests = {
        digest(edited(lambda proto: setattr(proto.graph.node[0], "name", "other"))),
        digest(edited(lambda proto: setattr(inner(proto).node[0], "name", "other"))),
        digest(edited(lambda proto: proto.graph.node[0].ClearField("name"))),
        digest(model()),
    }
    assert len(digests) == 4

    def nameless(prefix: str) -> onnx.ModelProto:
        proto = model(prefix=prefix)
        proto.graph.node[0].ClearField("name")
        return proto

    assert digest(nameless("")) != digest(nameless("other"))


def inner(proto: onnx.ModelProto) -> onnx.GraphProto:
    """The branch that is taken."""
    return proto.graph.node[3].attribute[0].g


def test_names_of_outputs_and_stated_shapes_count():
    other = model()
    other.graph.output[0].name = other.graph.node[3].output[0] = "z"
    texts = {digest(model()), digest(other), digest(model(), {"x": (4, 4)}), digest(model(), {"x": (4, 5)})}
    assert len(texts) == 4


def test_attributes_of_every_type():
    values = [
        1,
        2,
        1.0,
        1.5,
        "a",
        "b",
        b"c",
        [1, 2],
        [1, 3],
        [1.0, 2.0],
        ["a"],
        helper.make_tensor("t", 1, [1], [2.0]),
    ]
    texts = {
        digest(edited(lambda proto, v=v: proto.graph.node[2].attribute.append(helper.make_attribute("k", v))))
        for v in values
    }
    assert len(texts) == len(values)
