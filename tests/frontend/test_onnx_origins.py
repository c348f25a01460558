"""The names of ONNX nodes on the operators that they become, until operators get names of their own."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import tvm
from onnx import numpy_helper
from onnx_models import model, normal
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origin
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.frontend.origins import OriginBuilder
from tvm_mxplan.options import Options
from tvm_mxplan.passes.origins import origin_table, origins_of
from tvm_mxplan.pipeline import compilation


def origins(parsed: onnx.ModelProto) -> dict[str, list[str]]:
    """The origins of the canonical model's operators, in order."""
    made = compilation([], Options(), tvm.target.Target("llvm"))
    mod = made.run(import_model(parsed), last="name")
    return {name: [str(one) for one in found] for name, found in origin_table(mod).items()}


def calls(mod: tvm.IRModule) -> list[tuple[str, list[str]]]:
    """Operators as they are imported, with their origins."""
    found = list[tuple[str, list[str]]]()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            found.append((expr.op.name.removeprefix("relax."), [str(one) for one in origins_of(expr)]))

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return found


def with_weights(parsed: onnx.ModelProto, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """The model with inputs that become random weights, positive ones where they are variances."""
    for name, shape in shapes.items():
        array = np.abs(normal(*shape)) + 1 if name == "variance" else normal(*shape)
        parsed.graph.initializer.append(numpy_helper.from_array(array, name))
        value = next(value for value in parsed.graph.input if value.name == name)
        parsed.graph.input.remove(value)
    return parsed


BLOCK = """agraph (float[2, 5, 7, 7] x, float[5, 5, 3, 3] w, float[5] b, float[5] scale, float[5] shift,
                   float[5] mean, float[5] variance) => (float[2, 5, 7, 7] y) {
    ["/block/conv"] c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
    ["/block/bn"] n = BatchNormalization (c, scale, shift, mean, variance)
    ["/block/add"] a = Sum (n, x)
    ["/block/relu"] y = Relu (a)
}"""


def test_a_residual_block_keeps_the_names_of_its_nodes():
    five = dict.fromkeys(("b", "scale", "shift", "mean", "variance"), (5,))
    assert origins(with_weights(model(BLOCK), w=(5, 5, 3, 3), **five)) == {
        "conv2d_0": ["Conv /block/conv"],
        "add_0": ["Conv /block/conv"],
        "multiply_0": ["BatchNormalization /block/bn"],
        "add_1": ["BatchNormalization /block/bn"],
        "add_2": ["Sum /block/add"],
        "relu_0": ["Relu /block/relu"],
    }


def test_what_tvm_decomposes_comes_from_the_same_node():
    """A batch norm whose parameters are computed is taken apart by a pass of TVM."""
    found = origins(with_weights(model(BLOCK), w=(5, 5, 3, 3), b=(5,)))
    made = [name for name, nodes in found.items() if nodes == ["BatchNormalization /block/bn"]]
    assert len(made) > 4 and "sqrt_0" in made
    assert found["conv2d_0"] == ["Conv /block/conv"] and found["relu_0"] == ["Relu /block/relu"]


def test_several_nodes_that_become_one_operator_are_all_named():
    text = """agraph (float[2, 6, 4, 4] x) => (float[2, 8, 4, 4] y) <
        int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] axis = {1}
    > {
        ["first"] a = Slice (x, zero, two, axis)
        ["second"] b = Slice (x, two, four, axis)
        ["round"] r = Floor (b)
        ["last"] c = Slice (x, two, four, axis)
        ["joined"] y = Concat <axis = 1> (a, b, c, r)
    }"""
    found = origins(model(text))
    assert found["strided_slice_0"] == ["Slice second"]  # the rounding still reads it
    assert found["strided_slice_1"] == ["Slice last"]
    assert found["strided_slice_2"] == ["Concat joined"]  # the first two as one
    assert found["concat_0"] == ["Slice first", "Slice second", "Concat joined"]


def test_what_is_read_besides_is_not_named():
    """Looking at the definition of an operand is not taking it in."""
    text = """agraph (float[2, 3] x) => (float[2, 3] y) {
        ["left"] a = Exp (x)
        ["right"] b = Floor (x)
        ["both"] y = Sum (a, b, x)
    }"""
    assert origins(model(text)) == {
        "exp_0": ["Exp left"],
        "floor_0": ["Floor right"],
        "add_0": ["Sum both"],
        "add_1": ["Sum both"],
    }


def test_branches_of_an_if_are_named_inside_of_it():
    text = """agraph (float[2, 3] x, bool flag) => (float[2, 3] y) {
        ["choose"] y = If (flag) <
            then_branch = yes () => (float[2, 3] a) { ["inner"] t = Floor (x)  a = Add (t, x) },
            else_branch = no () => (float[2, 3] b) { ["other"] b = Neg (x) }
        >
    }"""
    assert origins(model(text)) == {
        "floor_0": ["Floor choose/inner"],
        "add_0": ["Add choose/a"],
        "negative_0": ["Neg choose/other"],
    }


FUNCTION = """<ir_version: 9, opset_import: ["": 18, "own": 1]>
agraph (float[2, 3] x) => (float[2, 3] y) {
    ["first"] a = own.twice (x)
    ["second"] y = own.twice (a)
}
<domain: "own", opset_import: ["": 18]>
twice (v) => (r) {
    ["round"] t = Floor (v)
    r = Add (t, v)
}"""


def test_a_function_of_the_model_is_named_by_its_calls():
    """An operator without a name inside goes by the call: names of values in there mean nothing to a user."""
    parsed = onnx.parser.parse_model(FUNCTION)
    onnx.checker.check_model(parsed)
    assert origins(parsed) == {
        "floor_0": ["Floor first/round"],
        "add_0": ["twice first"],
        "floor_1": ["Floor second/round"],
        "add_1": ["twice second"],
    }


def test_an_operator_that_onnx_defines_by_others_has_one_name():
    node = '["mvn"] y = MeanVarianceNormalization <axes = [1]> (x)'
    text = f"agraph (float[2, 3] x) => (float[2, 3] y) {{ {node} }}"
    found = origins(model(text))
    assert len(found) > 3
    assert {tuple(nodes) for nodes in found.values()} == {("MeanVarianceNormalization mvn",)}


def test_turns_of_a_loop_have_the_same_names_unrolled_or_not():
    loop = """agraph (float[3] x COUNT) => (float[3] last) <MOST bool go = {1}> {
        ["loop"] last = Loop (most, go, x) <
            body = turn (int64 i, bool c, float[3] state) => (bool again, float[3] next) {
                again = Identity (c)
                ["grow"] next = Mul (state, x)
            }>
    }"""
    unrolled = origins(model(loop.replace("COUNT", "").replace("MOST", "int64 most = {3},")))
    assert unrolled == {f"multiply_{at}": ["Mul loop/grow"] for at in range(3)}
    run = origins(model(loop.replace("COUNT", ", int64 most").replace("MOST", "")))
    assert run["multiply_0"] == ["Mul loop/grow"]
    assert run["less_0"] == ["Loop loop"]


def test_a_node_without_a_name_goes_by_its_first_result():
    text = "agraph (float[2, 3] x) => (float[2, 3] y) { halfway = Floor (x)  y = Exp (halfway) }"
    assert origins(model(text)) == {"floor_0": ["Floor halfway"], "exp_0": ["Exp y"]}


@pytest.mark.parametrize("opset", [9, 18])
def test_nested_expressions_are_named_and_emitted_once(opset):
    """TVM's converter of BatchNormalization gives three results of one call."""
    five = dict.fromkeys(("b", "scale", "shift", "mean", "variance"), (5,))
    imported = import_model(with_weights(model(BLOCK, opset), w=(5, 5, 3, 3), **five))
    found = calls(imported)
    assert [kind for kind, _ in found].count("nn.batch_norm") == 1
    assert all(len(names) == 1 for _, names in found), found


def test_a_builder_names_what_is_inside_of_a_call():
    builder = OriginBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            with builder.importing(Origin("inner", "Sum")):
                shared = relax.op.exp(x)
                pair = relax.op.concat([shared, shared], 0)
                y = builder.emit(relax.op.add(pair, relax.op.tile(relax.op.floor(shared), (2, 1))))
            result = builder.emit_output(relax.op.abs(y))
        builder.emit_func_output(result)
    assert calls(builder.get()) == [
        ("exp", ["Sum inner"]),
        ("concat", ["Sum inner"]),
        ("floor", ["Sum inner"]),
        ("tile", ["Sum inner"]),
        ("add", ["Sum inner"]),
        ("abs", []),
    ]
