"""Engines that run a case: TVM alone, TVM with us, and other engines where they are installed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import tvm_ffi

Run = Callable[[Sequence[Any]], list[Any]]


def _tvm(model: onnx.ModelProto) -> Run:
    """TVM's importer, its default pipeline and its virtual machine, and nothing of ours."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(model)
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return lambda inputs: _flat(machine["main"](*[_tensor(array) for array in inputs]))


def _ours(model: onnx.ModelProto) -> Run:
    import tvm_mxplan

    executable = tvm_mxplan.compile(model, "dnnl, llvm")
    return lambda inputs: _flat(executable(*[_tensor(array) for array in inputs]))


def _onnxruntime(model: onnx.ModelProto) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_inputs()]
    return lambda inputs: list(session.run(None, dict(zip(names, inputs, strict=False))))


def _openvino(model: onnx.ModelProto) -> Run:
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", settings)
    return lambda inputs: list(compiled(list(inputs)).to_tuple())


ENGINES: dict[str, Callable[[onnx.ModelProto], Run]] = {
    "tvm": _tvm,
    "ours": _ours,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}


def installed() -> list[str]:
    """The engines that there are here; those that are no dependency may be missing."""
    return [name for name in ENGINES if name in ("tvm", "ours") or importlib.util.find_spec(name)]


def environment(engine: str) -> dict[str, str]:
    """The environment that an engine's process runs in."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}
    return {**settings, "TVM_DEVICE_BACKEND_AUTOLOAD": "0"} if engine == "tvm" else settings


def _tensor(array: Any) -> Any:
    import tvm

    return tvm.runtime.tensor(array) if isinstance(array, np.ndarray | np.generic) else array


def _flat(result: Any) -> list[Any]:
    """Results of TVM's virtual machine, nested or not, as arrays in a row."""
    if hasattr(result, "numpy"):
        return [result.numpy()]
    if isinstance(result, int | float | bool):
        return [np.asarray(result)]
    if isinstance(result, tvm_ffi.Shape):
        return [np.array(list(result), "int64")]
    return [array for part in result for array in _flat(part)]
