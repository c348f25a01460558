"""Weights in other files: read when the graph is imported, once, into what Relax's constants are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.frontend.aligned import aligned_bytes
from tvm_mxplan.frontend.constants import constant
from tvm_mxplan.frontend.onnx import import_model, read_model
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

BLOCK = 128
"""Rows that are written at once."""


def layers(folder: Path, count: int, width: int, dtype: type = np.float32) -> Path:
    """A model of ``count`` matrix products, whose weights stand one behind the other in one file."""
    random, offset = np.random.default_rng(3), 0
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes, tensors = [], []
    with (folder / "weights.bin").open("wb") as file:
        for layer in range(count):
            name, nbytes = f"w{layer}", width * width * np.dtype(dtype).itemsize
            tensor = TensorProto(name=name, data_type=element, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            stated = {"location": "weights.bin", "offset": str(offset), "length": str(nbytes)}
            for key, value in stated.items():
                tensor.external_data.add(key=key, value=value)
            for start in range(0, width, BLOCK):
                rows = random.standard_normal((min(BLOCK, width - start), width), np.float32)
                file.write((rows / np.sqrt(width)).astype(dtype).tobytes())
            offset += nbytes
            tensors.append(tensor)
            nodes.append(helper.make_node("MatMul", [f"h{layer}", name], [f"h{layer + 1}"], f"dense{layer}"))
    ends = [helper.make_tensor_value_info(name, element, [3, width]) for name in ("h0", f"h{count}")]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    path = folder / "layers.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def constants(mod: object) -> list[tvm.ir.GenericConst]:
    found: list[tvm.ir.GenericConst] = []
    relax.analysis.post_order_visit(
        mod["main"], lambda expr: found.append(expr) if isinstance(expr, tvm.ir.GenericConst) else None
    )
    return found


def test_large_weights_stay_in_their_file_until_they_are_imported(tmp_path: Path) -> None:
    path = layers(tmp_path, 2, 257)
    model = read_model(path)
    assert all(tensor.data_location == TensorProto.EXTERNAL for tensor in model.graph.initializer)
    assert not any(tensor.raw_data for tensor in model.graph.initializer)
    found = constants(import_model(model, None, "layers", tmp_path))
    stored = np.fromfile(tmp_path / "weights.bin", np.float32).reshape(2, 257, 257)
    assert [np.array_equal(one.value.numpy(), stored[at]) for at, one in enumerate(found)] == [True, True]


def test_small_ones_are_in_the_model_for_the_checks(tmp_path: Path) -> None:
    model = read_model(layers(tmp_path, 2, 17))
    assert all(tensor.data_location == TensorProto.DEFAULT for tensor in model.graph.initializer)
    assert all(len(tensor.raw_data) == 17 * 17 * 4 for tensor in model.graph.initializer)


def test_they_give_what_onnxruntime_gives(tmp_path: Path) -> None:
    path = layers(tmp_path, 3, 203)
    x = np.random.default_rng(1).standard_normal((3, 203), np.float32)
    ex = tvm_mxplan.compile(path, options={"cache": "disabled"})
    assert ex.report.offloaded == 1.0
    expected = onnxruntime_outputs(onnx.load(path), {"h0": x})[0]
    assert relative_l2(ex(x)[0].numpy(), expected) < 1e-6


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.float32])
def test_other_types(tmp_path: Path, dtype: type) -> None:
    path = layers(tmp_path, 1, 211, dtype)
    (weight,) = constants(import_model(read_model(path), None, "layers", tmp_path))
    stored = np.fromfile(tmp_path / "weights.bin", dtype).reshape(211, 211)
    assert np.array_equal(weight.value.numpy(), stored)


def test_a_constant_shares_an_aligned_array_and_copies_another() -> None:
    room = aligned_bytes(4 * 200 * 200)
    array = room.view(np.float32).reshape(200, 200)
    array[:] = np.random.default_rng(2).standard_normal((200, 200))
    shared, copied = constant(array), constant(array[1:, 1:])
    array[1, 1] = 41.5
    assert shared.value.numpy()[1, 1] == 41.5
    assert copied.value.numpy()[0, 0] != 41.5


def test_a_file_that_shrinks_between_the_checks_and_the_import(tmp_path: Path) -> None:
    path = layers(tmp_path, 2, 131)
    model = read_model(path)
    (tmp_path / "weights.bin").write_bytes(bytes(131 * 131 * 4 + 40))
    with pytest.raises(InvalidInputError, match=r"weights.bin: is truncated: .*'w1' .*got 40; copy it again"):
        import_model(model, None, "layers", tmp_path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = layers(tmp_path, 1, 131)
    (tmp_path / "weights.bin").rename(tmp_path / "elsewhere")
    (tmp_path / "weights.bin").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInputError, match=r"weights.bin: the data of initializer 'w0' cannot be read"):
        import_model(read_model(path), None, "layers", tmp_path)


@pytest.mark.slow
def test_an_import_takes_little_more_memory_than_the_weights(tmp_path: Path) -> None:
    path = layers(tmp_path, 16, 2048)
    size = (tmp_path / "weights.bin").stat().st_size
    assert size == 1 << 28
    code = (
        "import sys; from pathlib import Path\n"
        "from tvm_mxplan.frontend.onnx import import_model, read_model\n"
        "line = lambda: next(row for row in open('/proc/self/status') if row.startswith('VmHWM'))\n"
        "peak = lambda: 1024 * int(line().split()[1])\n"
        "path = Path(sys.argv[1]); before = peak()\n"
        "mod = import_model(read_model(path), None, 'layers', path.parent)\n"
        "print(peak() - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert 0.9 * size < int(run.stdout) < 1.15 * size
