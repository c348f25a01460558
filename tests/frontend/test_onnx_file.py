"""Reading an ONNX file in place gives what onnx itself reads, or nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tvm_mxplan.frontend.onnx_file import keeps_data_elsewhere, skeleton_of, split_file
from tvm_mxplan.testing import zoo


@pytest.fixture(scope="module")
def tiny() -> onnx.ModelProto:
    return zoo.load("tiny")


def joined(path: Path) -> onnx.ModelProto | None:
    """The model put together again from its two parts."""
    split = split_file(path)
    if split is None:
        return None
    skeleton, raw = split
    model = onnx.load_from_string(skeleton)
    for tensor, data in zip(model.graph.initializer, raw, strict=True):
        assert not tensor.HasField("raw_data")
        if len(data):
            tensor.raw_data = bytes(data)
    return model


def test_a_model_in_two_parts(tiny, tmp_path):
    path = tmp_path / "tiny.onnx"
    onnx.save(tiny, path)
    skeleton, raw = split_file(path)
    assert sum(map(len, raw)) > 0.9 * path.stat().st_size > 0.9 * 1000
    assert len(skeleton) < path.stat().st_size - sum(map(len, raw)) + 1
    assert skeleton_of(tiny) == skeleton
    assert joined(path) == tiny


def test_initializers_without_raw_data(tiny, tmp_path):
    other = onnx.ModelProto()
    other.CopyFrom(tiny)
    for tensor in other.graph.initializer[::2]:
        array = numpy_helper.to_array(tensor)
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.ClearField("raw_data")
            tensor.float_data.extend(array.reshape(-1).tolist())
    onnx.save(other, tmp_path / "typed.onnx")
    assert joined(tmp_path / "typed.onnx") == other


def test_what_is_left_to_the_usual_reader(tiny, tmp_path):
    assert split_file(tmp_path / "missing.onnx") is None
    assert split_file(tmp_path) is None
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert split_file(tmp_path / "empty.onnx") is None
    onnx.save(tiny, tmp_path / "external.onnx", save_as_external_data=True, size_threshold=0)
    assert split_file(tmp_path / "external.onnx") is None


def test_repeated_fields_are_merged_as_protobuf_does(tmp_path):
    """The last raw_data counts, and the initializers of two graphs are those of one."""
    first, second = (onnx.TensorProto(name=name, dims=[2], data_type=2, raw_data=b"ab") for name in "xy")
    twice = first.SerializeToString() + onnx.TensorProto(raw_data=b"cd").SerializeToString()
    graphs = [twice, second.SerializeToString()]
    message = b""
    for tensor in graphs:
        graph = b"\x2a" + bytes([len(tensor)]) + tensor
        message += b"\x3a" + bytes([len(graph)]) + graph
    path = tmp_path / "merged.onnx"
    path.write_bytes(message)
    expected = onnx.load_from_string(message)
    assert [tensor.raw_data for tensor in expected.graph.initializer] == [b"cd", b"ab"]
    assert joined(path) == expected


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_are_read_as_onnx_reads_them_or_not_at_all(tiny, tmp_path, data):
    good = tiny.SerializeToString()
    changed = bytearray(good[: data.draw(st.integers(0, len(good)))] if data.draw(st.booleans()) else good)
    for _ in range(data.draw(st.integers(0, 3))):
        if changed:
            changed[data.draw(st.integers(0, min(len(changed), 3000) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.onnx"
    path.write_bytes(changed)
    try:
        model = joined(path)
    except DecodeError:
        with pytest.raises(DecodeError):
            onnx.load_from_string(bytes(changed))
        return
    if model is not None:
        expected = onnx.load_from_string(bytes(changed))
        for tensor in [*model.graph.initializer, *expected.graph.initializer]:
            if not tensor.raw_data:
                tensor.ClearField("raw_data")
        assert model == expected


def _external(tensor: onnx.TensorProto) -> onnx.TensorProto:
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    return tensor


def _tensor(external: bool) -> onnx.TensorProto:
    tensor = numpy_helper.from_array(np.full((3, 5), 0.5, np.float32), "t")
    return _external(tensor) if external else tensor


def _sparse(external: bool) -> onnx.SparseTensorProto:
    indices = numpy_helper.from_array(np.array([1, 4], np.int64), "i")
    values = numpy_helper.from_array(np.array([0.5, 1.5], np.float32), "v")
    return helper.make_sparse_tensor(_external(values) if external else values, indices, [3, 5])


def _branches(external: bool) -> onnx.NodeProto:
    """An `if` whose branches have a tensor as initializer, and one as attribute."""
    constant = helper.make_node("Constant", [], ["e"], value=_tensor(external))
    graphs = [
        helper.make_graph([helper.make_node("Identity", ["t"], ["o"])], "a", [], [], [_tensor(external)]),
        helper.make_graph([constant], "b", [], []),
    ]
    return helper.make_node("If", ["c"], ["y"], then_branch=graphs[0], else_branch=graphs[1])


def _function(external: bool) -> onnx.FunctionProto:
    node = helper.make_node("Constant", [], ["y"], value=_tensor(external))
    return helper.make_function("mine", "F", [], ["y"], [node], [helper.make_opsetid("", 17)])


def _with(external: bool, where: str) -> onnx.ModelProto:
    nodes = {
        "attribute": helper.make_node("Constant", [], ["y"], value=_tensor(external)),
        "branches": _branches(external),
        "sparse attribute": helper.make_node("Constant", [], ["y"], sparse_value=_sparse(external)),
        "list of tensors": helper.make_node("Mine", [], ["y"], tensors=[_tensor(False), _tensor(external)]),
    }
    node = nodes.get(where, helper.make_node("Identity", ["x"], ["y"]))
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    if where == "initializer":
        model.graph.initializer.append(_tensor(external))
    if where == "sparse initializer":
        model.graph.sparse_initializer.append(_sparse(external))
    if where == "function":
        model.functions.append(_function(external))
    return model


PLACES = (
    "initializer",
    "attribute",
    "list of tensors",
    "branches",
    "sparse attribute",
    "sparse initializer",
    "function",
)


@pytest.mark.parametrize("where", PLACES)
def test_tensors_in_other_files_are_found_wherever_they_stand(where, tmp_path):
    for external in (False, True):
        model = _with(external, where)
        assert keeps_data_elsewhere(skeleton_of(model)) == external
        (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
        assert (split_file(tmp_path / "model.onnx") is None) == external
