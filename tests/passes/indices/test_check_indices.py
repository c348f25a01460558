"""Indices that are out of bounds: errors by the operator's name, and what ONNX says for all others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import helper, numpy_helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.indices import CheckIndices
from tvm_mxplan.passes.indices.operands import _positions
from tvm_mxplan.passes.region import NameOperators

RANDOM = np.random.default_rng(0)
DATA = RANDOM.standard_normal((5, 4, 3)).astype("float32")
OUTSIDE = "an index is out of bounds for axis"


@dataclass(frozen=True)
class Case:
    """An ONNX operator's operands beside ``DATA``, and indices that are not in bounds."""

    attributes: dict[str, int]
    indices: np.ndarray
    wrong: tuple[int, ...]
    updates: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("last", "first", "fits"), [(2, 0, True), (3, 0, False), (2, 1, False), (1, 1, True)]
)
def test_an_index_has_no_more_components_than_there_are_axes(last: int, first: int, fits: bool) -> None:
    data, indices = (
        relax.Var(name, relax.TensorType(shape, dtype))
        for name, shape, dtype in (("d", (5, 4), "float32"), ("i", (5, last), "int64"))
    )
    call = relax.Call(tvm.ir.Op.get("relax.gather_nd"), [data, indices])
    if fits:
        (found,) = _positions(call, first)
        assert found.axes == list(range(first, first + last))
    else:
        with pytest.raises(
            InvalidInputError, match=f"an index has {last} components behind {first} batch axes"
        ):
            _positions(call, first)


CASES = {
    "Gather": Case({"axis": 1}, np.array([[0, -1, 3], [2, -4, 1]]), (4, -5, -8, 10**9)),
    "GatherElements": Case({"axis": 0}, RANDOM.integers(-5, 5, (2, 4, 3)), (5, -6, -10, 10**12)),
    "GatherND": Case({}, np.array([[0, -1], [4, 3]]), (5, -6, -10, 10**12)),
    "ScatterElements": Case(
        {"axis": 0}, np.arange(-2, 2)[None, :, None].repeat(3, 2), (5, -6, 10**12), (1, 4, 3)
    ),
    "ScatterND": Case({}, np.array([[0, -1], [4, 3]]), (5, -6, -10, 10**12), (2, 3)),
}


def model(
    operator: str, case: Case, dtype: str = "int64", dims: tuple[str, ...] = (), constant: Any = None
) -> onnx.ModelProto:
    """``dims`` name the data's dimensions; without them the data is a constant."""
    indices = case.indices.astype(dtype) if constant is None else constant
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [helper.make_tensor_value_info("i", kind, indices.shape)]
    constants = [numpy_helper.from_array(DATA, "d")] if not dims else []
    if dims:
        inputs.append(helper.make_tensor_value_info("d", onnx.TensorProto.FLOAT, dims))
    if constant is not None:
        constants.append(numpy_helper.from_array(indices, "i"))
        inputs = inputs[1:] or [helper.make_tensor_value_info("unused", onnx.TensorProto.FLOAT, [1])]
    names = ["d", "i"]
    if case.updates:
        names.append("u")
        inputs.append(helper.make_tensor_value_info("u", onnx.TensorProto.FLOAT, case.updates))
    node = helper.make_node(operator, names, ["y"], **case.attributes)
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [result], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return onnx.shape_inference.infer_shapes(made)


def expected(made: onnx.ModelProto, **inputs: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def others(case: Case) -> dict[str, np.ndarray]:
    return {"u": RANDOM.standard_normal(case.updates).astype("float32")} if case.updates else {}


@pytest.mark.parametrize("operator", CASES)
@pytest.mark.parametrize("target", ["llvm", "dnnl, llvm"])
def test_onnx_operators(operator: str, target: str) -> None:
    case = CASES[operator]
    made, rest = model(operator, case), others(case)
    ex = tvm_mxplan.compile(made, target, options={"cache": "disabled"})
    indices = case.indices.astype("int64")
    right = expected(made, i=indices, **rest)
    np.testing.assert_array_equal(ex(i=indices, **rest)[0].numpy(), right)
    for number in case.wrong:
        for place in (0, indices.size - 1):
            wrong = indices.copy()
            wrong.flat[place] = number
            with pytest.raises(tvm_mxplan.InvalidInputError, match=rf"^\w+_\d: {OUTSIDE} \d of the data"):
                ex(i=wrong, **rest)
    np.testing.assert_array_equal(ex(i=indices, **rest)[0].numpy(), right)


@pytest.mark.parametrize(("dtype", "target"), [("int32", "llvm"), ("int64", "dnnl, llvm")])
def test_dimensions_that_are_known_at_run_time_alone(dtype: str, target: str) -> None:
    case = CASES["Gather"]
    made = model("Gather", case, dtype, ("n", "k", "m"))
    ex = tvm_mxplan.compile(made, target, options={"cache": "disabled"})
    indices = case.indices.astype(dtype)
    for extent in (4, 7):
        data = RANDOM.standard_normal((2, extent, 3)).astype("float32")
        right = expected(made, d=data, i=indices)
        np.testing.assert_array_equal(ex(d=data, i=indices)[0].numpy(), right)
        for number in (extent, -extent - 1):
            with pytest.raises(tvm_mxplan.InvalidInputError, match=f"take_0: {OUTSIDE} 1 .* to k - 1"):
                ex(d=data, i=np.full_like(indices, number))


def test_in_an_exported_library(tmp_path: Path) -> None:
    case = CASES["Gather"]
    path = tmp_path / "gather.so"
    tvm_mxplan.compile(model("Gather", case), options={"cache": "disabled"}).export(path)
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    good = machine["main"](tvm.runtime.tensor(case.indices)).numpy()
    np.testing.assert_array_equal(good, np.take(DATA, case.indices, 1))
    with pytest.raises(tvm_mxplan.InvalidInputError, match=f"take_0: {OUTSIDE} 1"):
        machine["main"](tvm.runtime.tensor(case.indices + 4))


# --- Relax's own operators ---------------------------------------------------------------------------------


def module(emit: Any, *indices: tuple[tuple[int, ...], str]) -> tvm.IRModule:
    bb = relax.BlockBuilder()
    inputs = [relax.Var(f"i{at}", relax.TensorType(*one)) for at, one in enumerate(indices)]
    with bb.function("main", inputs):
        with bb.dataflow():
            result = bb.emit_output(bb.emit(emit(*inputs)))
        bb.emit_func_output(result)
    return bb.get()


def kernels(mod: tvm.IRModule) -> int:
    """Kernels that check indices."""
    checked = CheckIndices()(NameOperators()(mod))
    return sum(gvar.name_hint.startswith("check_indices") for gvar in checked.functions)


def run(mod: tvm.IRModule, *inputs: np.ndarray) -> np.ndarray:
    return tvm_mxplan.compile(mod, options={"cache": "disabled"})(*inputs)[0].numpy()


def refused(mod: tvm.IRModule, *inputs: np.ndarray) -> bool:
    with pytest.raises(tvm_mxplan.InvalidInputError, match=OUTSIDE):
        run(mod, *inputs)
    return True


def test_take_of_a_flat_tensor() -> None:
    mod = module(lambda i: relax.op.take(relax.op.reshape(relax.const(DATA), (60,)), i), ((2,), "int64"))
    np.testing.assert_array_equal(run(mod, np.array([59, -60])), DATA.reshape(-1)[[59, 0]])
    assert refused(mod, np.array([60, 0]))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_narrow_types(dtype: str) -> None:
    """Comparing in eight bits would find 200 below zero, and no index beyond 300 entries."""
    data = RANDOM.standard_normal((200, 2)).astype("float32")
    mod = module(lambda i: relax.op.take(relax.const(data), i, 0), ((2,), dtype))
    good = np.array([3, 199] if dtype == "uint8" else [3, -2], dtype)
    np.testing.assert_array_equal(run(mod, good), np.take(data, good.astype(int), 0))
    if dtype == "uint8":
        assert refused(mod, np.array([200, 0], dtype))


def test_several_tensors_of_indices() -> None:
    mod = module(
        lambda i, j: relax.op.index_tensor(relax.const(DATA), relax.Tuple([i, j])),
        ((2,), "int64"),
        ((2,), "int64"),
    )
    assert kernels(mod) == 2
    np.testing.assert_array_equal(run(mod, np.array([0, 4]), np.array([-1, 3])), DATA[[0, 4], [-1, 3]])
    assert refused(mod, np.array([5, 4]), np.array([1, 3]))
    assert refused(mod, np.array([0, 4]), np.array([4, 3]))


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_modes_that_say_what_becomes_of_an_index(mode: str) -> None:
    mod = module(lambda i: relax.op.take(relax.const(DATA), i, 0, mode), ((2,), "int64"))
    assert kernels(mod) == 0
    np.testing.assert_array_equal(run(mod, np.array([9, 1])), np.take(DATA, [9, 1], 0, mode=mode))


def test_constants_are_checked_once_and_cost_nothing() -> None:
    def taken(*numbers: int) -> tvm.IRModule:
        indices = relax.const(np.array(numbers))
        return module(lambda x: relax.op.take(x, indices, 0), ((5, 4), "float32"))

    x = RANDOM.standard_normal((5, 4)).astype("float32")
    assert kernels(taken(4, -5)) == 0
    np.testing.assert_array_equal(run(taken(4, -5), x), x[[4, -5]])
    for wrong in (5, -6):
        with pytest.raises(tvm_mxplan.InvalidInputError, match=rf"take_0: {OUTSIDE} 0 .*, got {wrong}"):
            tvm_mxplan.compile(taken(0, wrong), options={"cache": "disabled"})


def test_more_indices_than_data_along_another_axis() -> None:
    indices = relax.const(np.zeros((5, 5, 3), "int64"))
    mod = module(lambda x: relax.op.gather_elements(x, indices, 0), ((5, 4, 3), "float32"))
    with pytest.raises(tvm_mxplan.InvalidInputError, match="5 entries on axis 1, where the data has 4"):
        CheckIndices()(NameOperators()(mod))


def test_a_module_without_indices_stays_as_it_is() -> None:
    mod = module(lambda x: relax.op.nn.relu(x), ((5, 4), "float32"))
    tvm.ir.assert_structural_equal(CheckIndices()(mod), mod)
