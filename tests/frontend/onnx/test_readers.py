"""Results that are only cast to float32 behind a node, wherever they are read."""

from __future__ import annotations

from onnx import TensorProto, helper

from tvm_mxplan.frontend.onnx.readers import cast_to_float

FLOAT = helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)
DOUBLE = helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE)
OTHER = helper.make_node("Neg", ["x"], ["n"])


def branch(name: str) -> object:
    inner = helper.make_graph(
        [helper.make_node("Neg", [name], ["m"])], "g", [], [helper.make_empty_tensor_value_info("m")]
    )
    return helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)


def test_a_result_that_is_cast_alone_is_found() -> None:
    assert cast_to_float([FLOAT], ["f"]) == {"x"}
    assert cast_to_float([FLOAT, FLOAT], ["f"]) == {"x"}


def test_any_other_reader_counts() -> None:
    assert cast_to_float([FLOAT, OTHER], []) == set()
    assert cast_to_float([DOUBLE, FLOAT], []) == set()
    assert cast_to_float([FLOAT], ["x"]) == set()
    assert cast_to_float([FLOAT, branch("x")], []) == set()
    assert cast_to_float([FLOAT, branch("z")], []) == {"x"}
    assert cast_to_float([OTHER], []) == set()
