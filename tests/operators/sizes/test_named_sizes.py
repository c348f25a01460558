"""Named sizes that reach regions inside expressions, and sizes at which libraries refuse or leave undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from onnx_node import Graph, computing, onnxruntime_outputs, tolerance
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan.testing.reference import relative_l2


@dataclass(frozen=True)
class Named:
    """A graph, names for axes of its inputs, what is offloaded, and sizes to run it at."""

    build: Callable[[Graph], str]
    names: Sequence[Mapping[int, str]]
    steps: Mapping[str, int]
    sizes: Sequence[Mapping[str, int]]


IMAGE = {2: "h", 3: "w"}
IMAGES = [{"h": 9, "w": 10}, {"h": 1, "w": 1}, {"h": 16, "w": 5}]


def strided(g: Graph) -> str:
    x = g.op("Erf", g.conv(g.input(1, 3, 8, 8), 3, 17, strides=[2, 2]))
    return g.conv(g.op("Erf", g.conv(x, 17, 16, strides=[2, 2])), 16, 5)


def pyramid(g: Graph) -> str:
    """Pooled, padded and joined sizes, each behind an operator of TVM's own."""
    x = g.op(
        "Erf", g.op("MaxPool", g.input(1, 3, 8, 8), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    )
    x = g.op("Erf", g.op("Pad", x, g.ints(0, 0, 1, 2, 0, 0, 0, 1)))
    return g.conv(g.op("Concat", x, x, axis=2), 3, 5)


def flattened(g: Graph) -> str:
    """[b, t, 8] -> [b * t, 8], which a region sees as a product only."""
    rows = g.op("Erf", g.op("Reshape", g.input(2, 5, 8), g.ints(-1, 8)))
    return g.op("Relu", g.op("MatMul", rows, g.constant(8, 5)))


def joined(g: Graph) -> str:
    """Sequences of two lengths one behind the other."""
    both = g.op("Erf", g.op("Concat", g.input(2, 5, 8), g.input(2, 3, 8), axis=1))
    return g.op("Softmax", g.op("MatMul", both, g.constant(8, 5)), axis=-1)


def instance_norm(g: Graph) -> str:
    x = g.op("Erf", g.conv(g.input(1, 3, 8, 8), 3, 17, strides=[2, 2]))
    return g.op("InstanceNormalization", x, g.vector(17), g.constant(17))


CASES = [
    Named(strided, [IMAGE], {"convolution": 3}, IMAGES),
    Named(pyramid, [IMAGE], {"pooling": 1, "pad": 1, "concat": 1, "convolution": 1}, IMAGES),
    Named(flattened, [{0: "b", 1: "t"}], {"matmul": 1}, [{"b": 2, "t": 5}, {"b": 1, "t": 1}]),
    Named(
        joined,
        [{0: "b", 1: "t"}, {0: "b", 1: "s"}],
        {"concat": 1, "matmul": 1, "softmax": 1},
        [{"b": 2, "t": 5, "s": 3}, {"b": 1, "t": 1, "s": 1}],
    ),
    Named(
        instance_norm,
        [IMAGE],
        {"convolution": 1, "layer_normalization": 1, "binary": 1},
        [{"h": 9, "w": 10}, {"h": 16, "w": 5}],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.build.__name__)
def test_sizes_inside_expressions(case: Named):
    g = Graph()
    model = g.model(case.build(g))
    del model.graph.value_info[:]
    for value, names in zip(model.graph.input, case.names, strict=True):
        for axis, name in names.items():
            value.type.tensor_type.shape.dim[axis].dim_param = name
    ex = tvm_mxplan.compile(model, "dnnl, llvm")
    steps = Counter(step.kind for step in computing(ex.report))
    assert steps == Counter(case.steps), str(ex.report)
    for sizes in case.sizes:
        inputs = {
            name: g._normal(
                [sizes[names[axis]] if axis in names else size for axis, size in enumerate(array.shape)]
            )
            for (name, array), names in zip(g.inputs.items(), case.names, strict=True)
        }
        (expected,) = onnxruntime_outputs(model, inputs, optimise=False)
        assert relative_l2(ex(*inputs.values())[0].numpy(), expected) <= tolerance(153), sizes


@pytest.mark.slow
def test_upsampling_to_named_sizes_is_offloaded():
    n, h, w = (tirx.Var(name, "int64") for name in "nhw")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([n, 3, h, w], "float32"))
    weights = np.random.default_rng(0).standard_normal((17, 3, 3, 3)).astype("float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            larger = x
            for factor in (2, 4):
                larger = builder.emit(
                    relax.op.image.resize2d(
                        builder.emit(relax.op.erf(larger)),
                        relax.ShapeExpr([h * factor, w * factor]),
                        layout="NCHW",
                        method="linear",
                        coordinate_transformation_mode="half_pixel",
                    )
                )
            y = builder.emit_output(relax.op.nn.conv2d(larger, relax.const(weights), padding=1))
        builder.emit_func_output(y)
    mod = builder.get()
    ours, stock = tvm_mxplan.compile(mod, "dnnl, llvm"), tvm_mxplan.compile(mod, "llvm")
    assert Counter(step.kind for step in computing(ours.report)) == {"resampling": 2, "convolution": 1}
    for shape in ((2, 3, 5, 7), (1, 3, 1, 1)):
        data = np.random.default_rng(1).standard_normal(shape).astype("float32")
        assert relative_l2(ours(data)[0].numpy(), stock(data)[0].numpy()) <= tolerance(27)


@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"])
def test_reductions_over_one_element(kind: str):
    g = Graph(opset=11)
    x = g.op("Relu", g.input(2, 3, 4, 5))
    y = g.op("Exp", g.op("Mul", g.op(kind, x, axes=[2, 3]), g.scalar(0.5)))
    model = g.model(y)
    del model.graph.value_info[:]
    for axis, name in IMAGE.items():
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    ex = tvm_mxplan.compile(model)
    assert [step.kind for step in computing(ex.report)][:2] == ["eltwise", "reduction"], str(ex.report)
    for sizes in ((4, 5), (1, 5), (1, 1)):
        inputs = {"x0": g._normal((2, 3, *sizes))}
        (expected,) = onnxruntime_outputs(model, inputs, optimise=False)
        assert relative_l2(ex(*inputs.values())[0].numpy(), expected) <= tolerance(20), sizes


def _empty_cases() -> list[tuple[str, Callable[[Graph], str], Sequence[Mapping[int, str]]]]:
    batch = [{0: "n"}]
    return [
        ("convolution", lambda g: g.conv(g.input(2, 3, 6, 6), 3, 17, strides=[2, 2]), [{0: "n", **IMAGE}]),
        (
            "pooling",
            lambda g: g.op("AveragePool", g.input(2, 3, 6, 6), kernel_shape=[3, 3], strides=[2, 2]),
            batch,
        ),
        ("softmax", lambda g: g.op("Softmax", g.input(2, 5), axis=-1), batch),
        ("matmul", lambda g: g.op("Relu", g.op("MatMul", g.input(2, 4, 8), g.constant(8, 5))), batch),
        ("binary", lambda g: g.op("Add", g.input(2, 17, 3), g.constant(1, 17, 1)), batch),
        ("reduction", lambda g: g.op("ReduceMin", g.input(2, 4, 5), axes=[2]), batch),
        ("concat", lambda g: g.op("Concat", g.conv(g.input(2, 3, 5, 5), 3, 16), "x0", axis=1), batch),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "build", "names"), _empty_cases(), ids=lambda item: str(item)[:12])
def test_empty_tensors(kind: str, build: Callable[[Graph], str], names: Sequence[Mapping[int, str]]):
    g = Graph()
    model = g.model(build(g))
    del model.graph.value_info[:]
    for axis, name in names[0].items():
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    ex = tvm_mxplan.compile(model)
    assert kind in {step.kind for step in computing(ex.report)}, str(ex.report)
    for axis in names[0]:
        shape = [0 if at == axis else size for at, size in enumerate(g.inputs["x0"].shape)]
        (stock,) = tvm_mxplan.compile(model, "llvm")(np.zeros(shape, "float32"))
        (ours,) = ex(np.zeros(shape, "float32"))
        assert ours.numpy().shape == stock.numpy().shape
        assert ours.numpy().size == 0
    full = g.inputs["x0"]
    (expected,) = onnxruntime_outputs(model, {"x0": full}, optimise=False)
    assert relative_l2(ex(full)[0].numpy(), expected) <= tolerance(153)


def test_a_sum_over_nothing_is_zero():
    """TVM alone leaves memory as it was; the sum over no products is 0, and the bias is added to it."""
    g = Graph()
    bias = g.constant(7)
    y = g.op("Add", g.op("MatMul", g.input(2, 4), g.input(4, 7)), bias)
    model = g.model(y)
    del model.graph.value_info[:]
    for value, axis in zip(model.graph.input, (1, 0), strict=True):
        value.type.tensor_type.shape.dim[axis].dim_param = "k"
    ex = tvm_mxplan.compile(model)
    assert [step.kind for step in computing(ex.report)] == ["matmul"], str(ex.report)
    (answer,) = ex(np.zeros((2, 0), "float32"), np.zeros((0, 7), "float32"))
    np.testing.assert_array_equal(answer.numpy(), np.broadcast_to(g.constants[bias], (2, 7)))


def test_numbers_without_rank():
    """Rank 0 beside regions: as inputs, between regions, into and out of [1], as results, as constants."""
    g = Graph()
    scale = g.input(data=np.array(0.75, "float32"))
    x = g.conv(g.input(1, 3, 8, 8), 3, 17)
    largest = g.op("ReduceMax", x, keepdims=0)
    y = g.conv(g.op("Div", g.op("Mul", x, scale), largest), 17, 5)
    one = g.op("Reshape", g.op("Reshape", largest, g.ints(1)), g.constant(data=np.zeros(0, "int64")))
    model = g.model(y, one, g.op("Add", scale, g.scalar(0.25)))
    ex = tvm_mxplan.compile(model)
    assert len([step for step in computing(ex.report) if step.kind == "convolution"]) == 2
    inputs = g.inputs
    expected = onnxruntime_outputs(model, inputs, optimise=False)
    for ours, theirs in zip(ex(*inputs.values()), expected, strict=True):
        assert ours.numpy().shape == theirs.shape
        assert relative_l2(ours.numpy(), theirs) <= tolerance(153)


def test_clip_between_inputs():
    g = Graph()
    x = g.op(
        "Clip",
        g.conv(g.input(1, 3, 8, 8), 3, 17),
        g.input(data=np.array(-0.5, "float32")),
        g.input(data=np.array(0.5, "float32")),
    )
    model = g.model(g.conv(x, 17, 5))
    ex = tvm_mxplan.compile(model)
    assert [step.kind for step in computing(ex.report)] == ["convolution", "convolution"], str(ex.report)
    (expected,) = onnxruntime_outputs(model, g.inputs, optimise=False)
    assert relative_l2(ex(*g.inputs.values())[0].numpy(), expected) <= tolerance(153)


def test_branches_of_named_sizes_between_regions():
    """A branch's result has a shape that the regions behind it know, by names alone."""
    import onnx
    from onnx import TensorProto, helper

    random = np.random.default_rng(4)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"])]
    nodes += [helper.make_node("MatMul", ["x", "first"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    nodes += [helper.make_node("ReduceMean", ["z"], ["m"], keepdims=0)]
    nodes += [helper.make_node("Greater", ["m", "bound"], ["test"])]
    branches = {}
    for key, operator in (("then_branch", "Tanh"), ("else_branch", "Neg")):
        value = helper.make_tensor_value_info(operator, TensorProto.FLOAT, None)
        branches[key] = helper.make_graph([helper.make_node(operator, ["z"], [operator])], key, [], [value])
    nodes += [helper.make_node("If", ["test"], ["r"], **branches)]
    nodes += [helper.make_node("Concat", ["r", "z"], ["both"], axis=-1)]
    nodes += [
        helper.make_node("MatMul", ["both", "second"], ["s"]),
        helper.make_node("Softmax", ["s"], ["out"]),
    ]
    constants = {
        "table": random.standard_normal((11, 16)),
        "first": random.standard_normal((16, 12)),
        "second": random.standard_normal((24, 7)),
        "bound": np.float32(0.5),
    }
    graph = helper.make_graph(
        nodes,
        "branches",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", "t"])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", "t", 7])],
        [onnx.numpy_helper.from_array(np.asarray(a, "float32"), name) for name, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ex = tvm_mxplan.compile(model)
    assert [step.kind for step in computing(ex.report)].count("matmul") == 2, str(ex.report)
    for shape in ((1, 1), (3, 5), (2, 9)):
        ids = random.integers(0, 11, shape)
        (expected,) = onnxruntime_outputs(model, {"ids": ids}, optimise=False)
        assert relative_l2(ex(ids)[0].numpy(), expected) <= tolerance(24)
