"""ONNX models that are broken in one way each, and what the refusal must say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import InvalidInputError
from tvm_mxplan.frontend.onnx import import_model

Change = Callable[[onnx.ModelProto], None]


def model() -> onnx.ModelProto:
    """x -> conv -> relu -> y, with odd channels; it compiles."""
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"], "relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 9, 7))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def refused(change: Change, kind: type[Exception] = InvalidInputError) -> str:
    """The error for the changed model, which is one line and names the source first."""
    changed = model()
    change(changed)
    with pytest.raises(kind) as error:
        import_model(changed, source="net.onnx")
    text = str(error.value)
    assert text.startswith("net.onnx: ") and "\n" not in text and len(text) < 600
    return text.removeprefix("net.onnx: ")


def attribute(node: int, **values: object) -> Change:
    def change(changed: onnx.ModelProto) -> None:
        named = changed.graph.node[node]
        kept = [one for one in named.attribute if one.name not in values]
        del named.attribute[:]
        named.attribute.extend(kept)
        named.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())

    return change


def node(operator: str, sources: Sequence[str], results: Sequence[str], **attributes: object) -> Change:
    """One more node, behind the others, that works on the model's values."""

    def change(changed: onnx.ModelProto) -> None:
        changed.graph.node.append(helper.make_node(operator, sources, results, "added", **attributes))

    return change


def weights(*shape: int) -> Change:
    def change(changed: onnx.ModelProto) -> None:
        changed.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(shape, np.float32), "w"))

    return change


def extent(axis: int, value: int) -> Change:
    def change(changed: onnx.ModelProto) -> None:
        changed.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = value

    return change


def several(*changes: Change) -> Change:
    def change(changed: onnx.ModelProto) -> None:
        for one in changes:
            one(changed)

    return change


def constant(name: str, numbers: Sequence[int]) -> Change:
    return lambda changed: changed.graph.initializer.append(
        numpy_helper.from_array(np.array(numbers, np.int64), name)
    )


def setting(path: Callable[[onnx.ModelProto], object], name: str, value: object) -> Change:
    return lambda changed: setattr(path(changed), name, value)


def cycle(changed: onnx.ModelProto) -> None:
    changed.graph.node[0].input[0] = "y"


def swapped(changed: onnx.ModelProto) -> None:
    nodes = list(changed.graph.node)[::-1]
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)


def nested(changed: onnx.ModelProto) -> None:
    """Branches inside of branches, 20 deep."""
    value = helper.make_tensor_value_info("r", TensorProto.FLOAT, None)
    inner = helper.make_graph([helper.make_node("Identity", ["y"], ["r"], "leaf")], "leaf", [], [value])
    for level in range(20):
        branch = helper.make_node("If", ["b"], ["r"], f"if{level}", then_branch=inner, else_branch=inner)
        if level > 2:  # twice as many with each level otherwise
            branch.attribute[1].g.CopyFrom(
                helper.make_graph([helper.make_node("Identity", ["y"], ["r"], "e")], "other", [], [value])
            )
        inner = helper.make_graph([branch], f"level{level}", [], [value])
    changed.graph.input.append(helper.make_tensor_value_info("b", TensorProto.BOOL, ()))
    changed.graph.node.append(
        helper.make_node("If", ["b"], ["z"], "outer", then_branch=inner, else_branch=inner)
    )


def recursive(changed: onnx.ModelProto) -> None:
    body = [helper.make_node("Again", ["a"], ["b"], "self", domain="own")]
    imports = [helper.make_opsetid("own", 1), helper.make_opsetid("", 17)]
    changed.functions.append(helper.make_function("own", "Again", ["a"], ["b"], body, imports))
    changed.opset_import.append(helper.make_opsetid("own", 1))
    changed.graph.node.append(helper.make_node("Again", ["y"], ["z"], "call", domain="own"))


def split(sizes: Sequence[int]) -> Change:
    parts = [f"part{at}" for at in range(len(sizes))]
    return several(constant("sizes", sizes), node("Split", ["y", "sizes"], parts, axis=1))


first_input = lambda changed: changed.graph.input[0]  # noqa: E731


first_node = lambda changed: changed.graph.node[0]  # noqa: E731


first_tensor = lambda changed: changed.graph.initializer[0]  # noqa: E731


CONV, RELU, ADDED = "node 'conv' (Conv): ", "node 'relu' (Relu): ", "node 'added' "


BROKEN: dict[str, tuple[Change, str, str]] = {
    # what it is: the change, how the line begins, what else is in it
    "future opset": (
        setting(lambda m: m.opset_import[0], "version", 999),
        "opset 999; expected 1 to",
        "export",
    ),
    "future IR": (setting(lambda m: m, "ir_version", 999), "IR version 999; expected 3 to", "export"),
    "no outputs": (lambda m: m.graph.ClearField("output"), "graph 'net' has no outputs", "one or more"),
    "output of nothing": (
        setting(lambda m: m.graph.output[0], "name", "q"),
        "output 'q': nothing makes it",
        "",
    ),
    "two inputs": (lambda m: m.graph.input.append(m.graph.input[0]), "input 'x' is declared twice", ""),
    "two weights": (
        lambda m: m.graph.initializer.append(m.graph.initializer[0]),
        "initializer 'w' is",
        "twice",
    ),
    "input without type": (lambda m: m.graph.input[0].ClearField("type"), "input 'x' has no type", "tensor"),
    "two producers": (
        node("Abs", ["c"], ["y"]),
        ADDED + "(Abs): makes 'y', which node 'relu' (Relu) makes",
        "name of its own",
    ),
    "an input made again": (node("Abs", ["c"], ["x"]), ADDED + "(Abs): makes 'x', which is an input", "own"),
    "missing value": (
        node("Abs", ["q"], ["z"]),
        ADDED + "(Abs): reads 'q', which nothing makes",
        "initializer",
    ),
    "missing weights": (lambda m: m.graph.ClearField("initializer"), CONV + "reads 'w', which nothing", ""),
    "cycle": (cycle, CONV + "reads 'y', which node 'relu' (Relu) makes of this", "without cycles"),
    "unsorted": (swapped, RELU + "reads 'c', which node 'conv' (Conv) makes only later", "sort the nodes"),
    "deep": (nested, "graph 'level", "at most 16"),
    "unknown attribute": (attribute(1, colour=3), RELU + "Unrecognized attribute: colour", "opset 17"),
    "type of attribute": (attribute(0, strides=1.5), CONV, "strides"),
    "attribute twice": (
        lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0]),
        CONV + "attribute 'pads' is given twice",
        "once",
    ),
    "operands": (lambda m: m.graph.node[1].input.append("x"), RELU, "opset 17"),
    "negative extent": (extent(2, -5), "input 'x': dimension 2 is -5", "[1, 3, -5, 7]"),
    "no extent": (extent(3, 0), CONV + "gets [1, 3, 9, 0]", "extents of 1 or more"),
    "absurd extents": (several(extent(2, 2**40), extent(3, 2**40)), "input 'x': its shape takes", "2^63"),
    "kernel": (weights(4, 3, 12, 3), CONV + "gets [1, 3, 9, 7] and [4, 3, 12, 3]", "[1, 4, 0, 7]"),
    "pool": (
        node("MaxPool", ["y"], ["z"], kernel_shape=[10, 2]),
        ADDED + "(MaxPool): gets [1, 4, 9, 7] and would make 'z' of shape [1, 4, 0, 6]",
        "extents of 1 or more",
    ),
    "dilated pool": (
        node("MaxPool", ["y"], ["z"], kernel_shape=[3, 3], dilations=[8, 1]),
        ADDED + "(MaxPool): gets [1, 4, 9, 7]",
        "[1, 4, -7, 5]",
    ),
    "stride 0": (attribute(0, strides=[0, 1]), CONV + "strides = [0, 1]", "from 1 to"),
    "dilation 0": (attribute(0, dilations=[1, 0]), CONV + "dilations = [1, 0]", "from 1 to"),
    "padding": (attribute(0, pads=[2**31, 0, 0, 0]), CONV + "pads = [2147483648, 0, 0, 0]", "2^31"),
    "group 0": (attribute(0, group=0), CONV + "group = 0", "from 1 to"),
    "groups": (
        several(weights(4, 1, 3, 3), attribute(0, group=3)),
        CONV + "weights [4, 1, 3, 3] cannot",
        "3",
    ),
    "channels": (weights(4, 5, 3, 3), CONV + "expected 5 input channels", "got 3"),
    "rank of weights": (weights(4, 3, 3), CONV, ""),
    "bias": (
        several(
            lambda m: m.graph.initializer.append(numpy_helper.from_array(np.ones(5, np.float32), "b")),
            lambda m: m.graph.node[0].input.append("b"),
        ),
        CONV + "expected a bias of shape [4], got [5]",
        "",
    ),
    "split": (split([1, 2]), ADDED + "(Split): Mismatch between the sum of 'split' (3)", "dimension"),
    "negative split": (split([6, -2]), ADDED + "(Split): ", ""),
    "broadcast": (node("Add", ["y", "w"], ["z"]), ADDED + "(Add): Incompatible dimensions", ""),
    "concat": (node("Concat", ["x", "w"], ["z"], axis=1), ADDED + "(Concat): ", ""),
    "axis": (node("Softmax", ["y"], ["z"], axis=7), ADDED + "(Softmax): ", "7"),
    "reshape": (
        several(constant("s", [5, 7]), node("Reshape", ["y", "s"], ["z"])),
        ADDED + "(Reshape): ",
        "",
    ),
    "type of weights": (setting(first_tensor, "data_type", 77), "initializer 'w': element type 77", "ONNX"),
    "negative weights": (
        lambda m: m.graph.initializer[0].dims.__setitem__(0, -4),
        "initializer 'w': expected extents of 0 or more, got the shape [-4, 3, 3, 3]",
        "",
    ),
    "short weights": (
        lambda m: setattr(m.graph.initializer[0], "raw_data", b"1234"),
        "initializer 'w': expected 432 bytes for its shape [4, 3, 3, 3], got 4",
        "",
    ),
    "few numbers": (
        lambda m: m.graph.initializer[0].CopyFrom(
            TensorProto(name="w", dims=[4, 3, 3, 3], data_type=1, float_data=[1, 2, 3])
        ),
        "initializer 'w': expected 108 numbers for its shape [4, 3, 3, 3], got 3",
        "",
    ),
    "absurd weights": (
        lambda m: m.graph.initializer[0].dims.extend([2**40, 2**40]),
        "initializer 'w': its shape [4, 3, 3, 3, 1099511627776, 1099511627776] takes more than 2^63 bytes",
        "",
    ),
    "absurd result": (
        several(constant("s", [2**31, 2**31, 2**30]), node("ConstantOfShape", ["s"], ["z"])),
        ADDED + "(ConstantOfShape): would make 'z'",
        "2^63",
    ),
    "external weights": (
        lambda m: m.graph.initializer[0].__setattr__("data_location", TensorProto.EXTERNAL),
        "initializer 'w': its data is in another file",
        "onnx.load",
    ),
    "huge name": (setting(first_node, "name", "n" * 10**6), "node 'nnnn", "(1,000,000 characters)"),
}


BROKEN["huge name"] = (several(BROKEN["huge name"][0], cycle), *BROKEN["huge name"][1:])
