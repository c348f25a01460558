"""Engines on an NVIDIA GPU: they read the same models of float32, and compute in float16 or with TF32.

Inputs are copied to the GPU once, before timing; a call ends when the GPU has computed its outputs.  Nothing
of them has run on a GPU yet.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np

from .engines import BF16_TOLERANCE, ENGINES, Engine, Inputs, Runner

KINDS = {"f16": "float16", "tf32": "float32"}
"""Names of precisions, and the type of the tensors."""


def device_file(artifact: str) -> Path:
    """The properties of the GPU, beside what is compiled for it."""
    return Path(artifact).with_name("device.json")


def _model(path: str, kind: str) -> Any:
    import onnx
    from _shared.half_models import half

    model = onnx.load(path)
    return half(model) if KINDS[kind] == "float16" else model


def _compile_cudnn(model_path: str, artifact_path: str, kind: str) -> None:
    import tvm_mxplan

    options = {"tf32": kind == "tf32", "cache": "disabled"}
    ex = tvm_mxplan.compile(
        _model(model_path, kind),
        "cudnn, cuda",
        device_properties=device_file(artifact_path),
        options=options,
    )
    ex.export(artifact_path)


def _load_cudnn(artifact_path: str, inputs: Inputs, _threads: int, kind: str) -> Runner:
    from tvm_mxplan import load
    from tvm_mxplan.execution import machine

    executable = load(artifact_path)
    tensors = [machine.tensor_of(value.astype(KINDS[kind]), True) for value in inputs.values()]
    return _on_tvm(lambda: executable(*tensors))


def _compile_tvm(model_path: str, artifact_path: str, kind: str) -> None:
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    target = tvm.target.Target.from_device(tvm.cuda())
    module = from_onnx(_model(model_path, kind))
    with target:
        executable = tvm.compile(module, target, relax_pipeline=relax.get_default_pipeline(target))
    executable.export_library(artifact_path)


def _load_tvm(artifact_path: str, inputs: Inputs, _threads: int, kind: str) -> Runner:
    import tvm
    from tvm import relax

    main = relax.VirtualMachine(tvm.runtime.load_module(artifact_path), tvm.cuda())["main"]
    tensors = [tvm.runtime.tensor(value.astype(KINDS[kind]), tvm.cuda()) for value in inputs.values()]
    return _on_tvm(lambda: main(*tensors))


def _on_tvm(call: Any) -> Runner:
    import tvm

    device = tvm.cuda()

    def run() -> Any:
        answer = call()
        device.sync()
        return answer

    def fetch(answer: Any) -> list[np.ndarray]:
        tensors = [answer] if hasattr(answer, "numpy") else list(answer)
        return [tensor.numpy().astype("float32") for tensor in tensors]

    return Runner(run, fetch)


def _load_torch(model_path: str, inputs: Inputs, _threads: int, kind: str) -> Runner:
    import onnx
    import torch

    from .torch_model import OnnxModule

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(model_path).parent / "inductor")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    dtype = torch.float16 if kind == "f16" else torch.float32
    module = OnnxModule(onnx.load(model_path)).eval().to("cuda", dtype)
    compiled = torch.compile(module, mode="max-autotune")
    tensors = [torch.from_numpy(value).to("cuda", dtype) for value in inputs.values()]

    def run() -> Any:
        with torch.no_grad():
            answer = compiled(*tensors)
        torch.cuda.synchronize()
        return answer

    return Runner(run, lambda answer: [tensor.float().cpu().numpy() for tensor in answer])


def _engines(kind: str) -> list[Engine]:
    def of(function: Any) -> Any:
        return functools.partial(function, kind=kind)

    compiled = of(_load_cudnn), of(_compile_cudnn)
    return [
        Engine(f"cudnn_{kind}", ("tvm_mxplan.execution.executable",), *compiled, tolerance=BF16_TOLERANCE),
        Engine(f"torch_cuda_{kind}", ("torch",), of(_load_torch), tolerance=BF16_TOLERANCE),
        Engine(
            f"tvm_cuda_{kind}",
            ("tvm",),
            of(_load_tvm),
            of(_compile_tvm),
            settings={"TVM_DEVICE_BACKEND_AUTOLOAD": "0"},
            tolerance=BF16_TOLERANCE,
        ),
    ]


GPU_ENGINES = {engine.name: engine for kind in KINDS for engine in _engines(kind)}
EVERY = {**ENGINES, **GPU_ENGINES}
