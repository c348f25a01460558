"""A model as the cache sees it: the same by whichever way it comes, and its weights by their digests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper, numpy_helper
from tvm import relax

from tvm_mxplan.cache.container import UnusableCache
from tvm_mxplan.cache.key import known_files, model_source
from tvm_mxplan.cache.store import Store
from tvm_mxplan.core.fingerprint import content_digest

FIRST = np.arange(12, dtype=np.float32).reshape(3, 4)
SECOND = -np.arange(5, dtype=np.float32)


def model(second: np.ndarray = SECOND, size: int = 0) -> onnx.ModelProto:
    """(x + first) * second[0], with some bytes more that nothing reads."""
    arrays = {"first": FIRST, "second": second, "rest": np.zeros(size, np.uint8)}
    nodes = [
        helper.make_node("Add", ["x", "first"], ["a"]),
        helper.make_node("Slice", ["second", "zero", "one"], ["s"]),
        helper.make_node("Mul", ["a", "s"], ["y"]),
    ]
    arrays |= {"zero": np.array([0]), "one": np.array([1])}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, (3, 4))],
        [helper.make_tensor_value_info("y", 1, (3, 4))],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", 1 << 30)


def source_of(
    model: object, store: Store, shapes: dict[str, list[int]] | None = None
) -> model_source.ModelSource:
    found = model_source.model_source(model, shapes, store)
    assert found is not None
    return found


def test_a_file_and_what_was_read_from_it_are_one_model(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    by_path, in_memory = source_of(path, store), source_of(model(), store)
    assert by_path.fingerprint == in_memory.fingerprint == source_of(str(path), store).fingerprint
    for found in (by_path, in_memory):
        assert len(found.initializers) == 5
        for array in (FIRST, SECOND):
            digest = content_digest(array.tobytes())
            assert bytes(found.initializer(digest)) == array.tobytes()
        with pytest.raises(KeyError):
            found.initializer(b"0" * 32)


def test_weights_and_shapes_count(store: Store) -> None:
    asked = [(model(), None), (model(SECOND + 1), None), (model(), {"x": [3, 4]}), (model(), {"x": [3, 5]})]
    assert len({source_of(one, store, shapes).fingerprint for one, shapes in asked}) == 4


def test_a_file_may_change_meanwhile(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    found = source_of(path, store)
    assert found.unchanged()
    path.unlink()
    onnx.save(model(size=3), path)
    assert not found.unchanged()
    assert source_of(model(), store).unchanged()


def test_weights_of_a_file_that_is_known_are_read_when_they_are_wanted(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(size=5 << 20), path)
    later = known_files.time.time_ns() + 10**10
    monkeypatch.setattr(known_files.time, "time_ns", lambda: later)
    first = source_of(path, store)
    reads: list[object] = []
    real = model_source.split_file
    monkeypatch.setattr(model_source, "split_file", lambda file: reads.append(file) or real(file))
    again = source_of(path, store)
    assert (again.fingerprint, set(again.initializers)) == (first.fingerprint, set(first.initializers))
    assert reads == []
    for array in (FIRST, SECOND):
        assert bytes(again.initializer(content_digest(array.tobytes()))) == array.tobytes()
    assert len(reads) == 1
    gone = source_of(path, store)
    path.write_bytes(b"no model any more")
    with pytest.raises(UnusableCache, match="the model's file changed while it was read"):
        gone.initializer(content_digest(FIRST.tobytes()))


def test_what_compile_refuses_is_no_model(tmp_path: Path, store: Store) -> None:
    text = tmp_path / "text.onnx"
    text.write_text("no model")
    for nothing in (None, 7, b"bytes", text, tmp_path / "missing.onnx"):
        assert model_source.model_source(nothing, None, store) is None


def test_a_model_with_its_weights_elsewhere_is_not_cached(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path, save_as_external_data=True, location="weights", size_threshold=0)
    assert model_source.model_source(path, None, store) is None
    bare = onnx.load(path, load_external_data=False)
    with pytest.raises(UnusableCache, match="keeps tensors in other files"):
        model_source.model_source(bare, None, store)


def test_a_relax_module(store: Store) -> None:
    def module(array: np.ndarray) -> tvm.IRModule:
        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType((3, 4), "float32"))
        with builder.function("main", [x]):
            builder.emit_func_output(builder.emit(relax.op.add(x, relax.const(array))))
        return builder.get()

    found = source_of(module(FIRST), store)
    assert bytes(found.initializer(content_digest(FIRST.tobytes()))) == FIRST.tobytes()
    assert found.unchanged()
    assert found.fingerprint == source_of(module(FIRST), store).fingerprint
    assert found.fingerprint != source_of(module(FIRST + 1), store).fingerprint
