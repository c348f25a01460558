"""A CPU and a GPU in one function: who runs what, what crosses, arenas of both, in a library and back.

cuDNN's planner is played by a stand-in, and no GPU is there: answers of functions on two devices are held in
``tests/passes/devices``, the calls of copies in ``tests/cpp/programs/cudnn_movement.cc``.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from cudnn_stand_in import DEVICES, StandIn, small_network
from onnx import helper, numpy_helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc.region_module import modules_under
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.report.inspection import region_modules

TARGET = "cudnn, cuda -arch=sm_90, dnnl, llvm"
STATED = {"machine": "default", "verify": "off"}


def embedded(between: str = "Relu") -> onnx.ModelProto:
    """Rows of a table as an image, two convolutions that are worth a GPU, an operator between them."""
    random = np.random.default_rng(5)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((random.standard_normal(shape) * 0.05).astype("float32"), name)

    nodes = [
        helper.make_node("Gather", ["table", "at"], ["rows"], axis=0, name="look"),
        helper.make_node("Reshape", ["rows", "image"], ["x"]),
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], name="first"),
        helper.make_node(between, ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1], name="second"),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = [
        weights("table", 20_000, 64 * 8),
        weights("w1", 256, 64, 3, 3),
        weights("w2", 64, 256, 3, 3),
        numpy_helper.from_array(np.array([1, 64, 56, 56], "int64"), "image"),
    ]
    graph = helper.make_graph(
        nodes,
        "embedded",
        [helper.make_tensor_value_info("at", onnx.TensorProto.INT64, [392])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 64, 56, 56])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(
    model: onnx.ModelProto | tvm.IRModule, target: str = TARGET, **options: object
) -> tvm_mxplan.Executable:
    properties = DEVICES / "h200.json"
    return tvm_mxplan.compile(model, target, device_properties=properties, options={**STATED, **options})


def kinds(ex: tvm_mxplan.Executable) -> set[str]:
    return {str(module.kind) for module in region_modules(ex.module)}


def dumped(folder: Path) -> str:
    (path,) = folder.glob("*copies*")
    return path.read_text()


def test_heavy_products_are_the_gpus_and_a_large_table_stays(planner: StandIn, tmp_path: Path) -> None:
    ex = compiled(embedded(), dump_after=("copies",), dump_folder=str(tmp_path))
    assert "mxplan_cudnn" in kinds(ex)
    text = dumped(tmp_path)
    copies = [line for line in text.splitlines() if "devices.copy" in line]
    # The rows go there and the image comes back; the table of 40 MB is read where it is.
    assert len(copies) == 2 and sum("cuda" in line for line in copies) == 1
    assert all("20000" not in line for line in copies)
    (taken,) = [line for line in text.splitlines() if "R.take" in line]
    assert "cuda" not in taken


def test_kernels_of_tvm_are_compiled_for_the_device_that_they_are_on(
    planner: StandIn, tmp_path: Path
) -> None:
    ex = compiled(embedded("Sin"), dump_after=("copies",), dump_folder=str(tmp_path))
    (sine,) = [line for line in dumped(tmp_path).splitlines() if "R.sin" in line]
    assert "cuda" in sine and dumped(tmp_path).count("devices.copy") == 2
    assert {"cuda", "llvm"} <= {str(module.kind) for module in modules_under(ex.module.mod)}


def test_little_work_is_not_worth_the_way(planner: StandIn) -> None:
    ex = compiled(small_network("float32"))
    assert kinds(ex) and "mxplan_cudnn" not in kinds(ex)
    assert "the other device runs it" in str(ex.report.dispatch)


def test_operators_go_where_the_user_wants_them(planner: StandIn, tmp_path: Path) -> None:
    ex = compiled(
        small_network("float32"),
        prefer={"conv2d_1": "cudnn"},
        dump_after=("copies",),
        dump_folder=str(tmp_path),
    )
    assert {"mxplan_cudnn", "mxplan_onednn"} <= kinds(ex)
    assert dumped(tmp_path).count("devices.copy") == 2  # there and back
    whole = compiled(embedded(), prefer={"conv2d": "onednn"})
    assert "mxplan_cudnn" not in kinds(whole)


def test_each_device_has_an_arena(planner: StandIn, tmp_path: Path) -> None:
    planner.workspace = 1 << 20
    ex = compiled(embedded(), dump_after=("lower",), dump_folder=str(tmp_path))
    (path,) = tmp_path.glob("*lower*")
    arenas = [line for line in path.read_text().splitlines() if re.search(r"arena\w*: .*alloc_storage", line)]
    devices = {re.search(r"\]\), (?:R.prim_value\()?(\d)", line)[1] for line in arenas}  # type: ignore[index]
    assert len(arenas) == 2 and devices == {"0", "1"}
    (memory,) = [one for one in ex.report.memory if one.region == "main"]
    assert memory.height == memory.lower_bound > 1 << 20


def test_it_travels_in_a_library(planner: StandIn, tmp_path: Path) -> None:
    ex = compiled(embedded())
    ex.export(tmp_path / "model.so")
    planner.requests.clear()
    loaded = tvm_mxplan.load(tmp_path / "model.so")
    assert kinds(loaded) == kinds(ex) and planner.requests == []
    assert loaded.report.to_json()["regions"] == ex.report.to_json()["regions"]
    with pytest.raises(UnsupportedError, match="NVIDIA H200"):
        loaded(np.zeros(392, "int64"))


def test_the_first_device_is_preferred(planner: StandIn) -> None:
    from tvm_mxplan.targets import parse_target

    for text, first in ((TARGET, True), ("dnnl, llvm, cudnn, cuda -arch=sm_90", False)):
        target = parse_target(text)
        assert target.device is not None and target.device_first is first
        assert target.order[-1] == "llvm" and not target.is_gpu and target.has_gpu
    with pytest.raises(InvalidInputError, match="more than one TVM target"):
        parse_target("cudnn, cuda, cuda -arch=sm_80, llvm")
    with pytest.raises(UnsupportedError, match="no library for it"):
        compiled(small_network("float32"), "dnnl, llvm, cuda -arch=sm_90")


def test_devices_that_a_relax_module_states_are_kept(planner: StandIn, tmp_path: Path) -> None:
    built = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 8, 20, 20), "float32"))
    filters = np.random.default_rng(7).standard_normal((16, 8, 3, 3)).astype("float32")
    with built.function("main", [x]):
        with built.dataflow():
            product = built.emit(relax.op.nn.conv2d(x, relax.const(filters), padding=1))
            hinted = built.emit(relax.op.hint_on_device(product, tvm.cuda(0)))
            result = built.emit_output(relax.op.nn.relu(hinted))
        built.emit_func_output(result)
    module = built.get()
    devices = [relax.VDevice({"kind": "llvm"}), relax.VDevice({"kind": "cuda", "arch": "sm_90"})]
    module.update_global_info("vdevice", devices)
    ex = compiled(module, dump_after=("copies",), dump_folder=str(tmp_path))
    assert kinds(ex) == {"mxplan_cudnn"}  # too little work for a GPU, unless it is asked for
    assert dumped(tmp_path).count("devices.copy") == 2
