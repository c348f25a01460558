"""Compiles, loads and runs an ONNX model with an engine. Runs inside a worker; imports no engine at the top.

All take float32, and compute in it but those named ``_bf16``, which multiply in bfloat16 where they like, and
``_int8``, which do that beside the integers that a model asks for: one that asks for none is refused.
They read the model from a file and get their input once, before timing.
What a call returns stays with the engine; `Runner.fetch` makes arrays of it, outside any timing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Inputs = Mapping[str, np.ndarray]
FLOAT_TOLERANCE, BF16_TOLERANCE, INTEGER_TOLERANCE = 1e-4, 5e-2, 0.5
"""Relative L2 against the reference: float32 sums in another order differ by 1e-6 or so, bfloat16 by 1e-2.

Quantised networks end in few distinct numbers, and a step of one is a large part of it: beyond half of the
result they are wrong.  How many elements differ, and by how many steps, is told apart.
"""


@dataclass(frozen=True)
class Runner:
    """A loaded model: ``fetch(call())`` are its outputs."""

    call: Callable[[], Any]
    fetch: Callable[[Any], list[np.ndarray]]


@dataclass(frozen=True)
class Engine:
    """One way to run a model."""

    name: str
    modules: tuple[str, ...]
    """Imported first and timed apart; an engine whose modules are missing is not installed."""
    load: Callable[[str, Inputs, int], Runner]
    """From the path of the model, or of the artifact if there is ``compile``; with inputs and threads."""
    compile: Callable[[str, str], None] | None = None
    """Ahead of time, in another process: from the path of the model to the path of an artifact."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its processes."""
    tolerance: float = FLOAT_TOLERANCE
    """Of its answers."""


def _compile_ours(model_path: str, artifact_path: str) -> None:
    import tvm_mxplan

    tvm_mxplan.compile(model_path).export(artifact_path)


def _compile_ours_bf16(model_path: str, artifact_path: str) -> None:
    import tvm_mxplan

    tvm_mxplan.compile(model_path, options={"precision": "bf16"}).export(artifact_path)


_OF_INTEGERS = (
    "QuantizeLinear",
    "DequantizeLinear",
    "ConvInteger",
    "MatMulInteger",
    "DynamicQuantize",
    "QLinear",
)
"""Parts of the names of quantised operators; QGemm and the like stand with others."""


def _expect_integers(model_path: str) -> None:
    """Raise ValueError for a model without quantised operators, whose times would be those of its floats."""
    import onnx

    graph = onnx.load(model_path, load_external_data=False).graph
    if not any(part in node.op_type for node in graph.node for part in _OF_INTEGERS):
        raise ValueError(
            f"{Path(model_path).name} has no quantised operators, which engines ending in _int8 are for; "
            "scripts/bench integers makes quantised models"
        )


def _compile_ours_int8(model_path: str, artifact_path: str) -> None:
    _expect_integers(model_path)
    _compile_ours_bf16(model_path, artifact_path)


def _load_openvino_int8(model_path: str, inputs: Inputs, threads: int) -> Runner:
    _expect_integers(model_path)
    return _load_openvino_bf16(model_path, inputs, threads)


def _load_onnxruntime_int8(model_path: str, inputs: Inputs, threads: int) -> Runner:
    _expect_integers(model_path)
    return _load_onnxruntime(model_path, inputs, threads)


def _load_ours(artifact_path: str, inputs: Inputs, threads: int) -> Runner:
    from tvm_mxplan import load
    from tvm_mxplan.execution import machine

    executable = load(artifact_path)
    tensors = [machine.tensor_of(value) for value in inputs.values()]
    return Runner(lambda: executable(*tensors), _fetch_tensors)


def _states(model_path: str) -> dict[str, str]:
    """A decoder's results by the inputs that they become: those behind the first one, in their order."""
    import onnx

    graph = onnx.load(model_path, load_external_data=False).graph
    past = [value.name for value in graph.input if value.name.startswith("past")]
    results = [value.name for value in graph.output][1:]
    if not past or len(past) != len(results):
        raise ValueError(f"{Path(model_path).name} has no inputs named past, with a result for each")
    return dict(zip(past, results, strict=True))


def _compile_ours_kept(model_path: str, artifact_path: str) -> None:
    import tvm_mxplan

    tvm_mxplan.compile(model_path, states=_states(model_path)).export(artifact_path)


def _load_ours_kept(artifact_path: str, inputs: Inputs, threads: int) -> Runner:
    """A session that is put back before each call to the rows that the inputs state."""
    from tvm_mxplan import load
    from tvm_mxplan.execution import machine

    executable = load(artifact_path)
    session = executable.session()
    kept = [executable.signature.inputs[state.input].name for state in executable.signature.states]
    session.load({name: inputs[name] for name in kept})
    length = session.length
    tensors = [machine.tensor_of(value) for name, value in inputs.items() if name not in kept]

    def call() -> Any:
        session.rewind(length)
        return session(*tensors)

    return Runner(call, lambda answer: [*_fetch_tensors(answer), *map(session.state, kept)])


def _compile_stock_tvm(model_path: str, artifact_path: str) -> None:
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    host = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": host})
    module = from_onnx(onnx.load(model_path))
    with target:
        executable = tvm.compile(module, target, relax_pipeline=relax.get_default_pipeline(target))
    executable.export_library(artifact_path)


def _load_stock_tvm(artifact_path: str, inputs: Inputs, threads: int) -> Runner:
    import tvm
    from tvm import relax

    main = relax.VirtualMachine(tvm.runtime.load_module(artifact_path), tvm.cpu())["main"]
    tensors = [tvm.runtime.tensor(value) for value in inputs.values()]
    return Runner(lambda: main(*tensors), _fetch_tensors)


def _fetch_tensors(answer: Any) -> list[np.ndarray]:
    return [answer.numpy()] if hasattr(answer, "numpy") else [tensor.numpy() for tensor in answer]


def _load_onnxruntime(model_path: str, inputs: Inputs, threads: int, optimise: bool = True) -> Runner:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])
    feeds = dict(inputs)
    return Runner(lambda: session.run(None, feeds), list)


def _load_reference(model_path: str, inputs: Inputs, threads: int) -> Runner:
    return _load_onnxruntime(model_path, inputs, threads, optimise=False)


def _load_openvino_bf16(model_path: str, inputs: Inputs, threads: int) -> Runner:
    return _load_openvino(model_path, inputs, threads, "bf16")


def _load_openvino(model_path: str, inputs: Inputs, threads: int, precision: str = "f32") -> Runner:
    import openvino

    config = {
        "INFERENCE_PRECISION_HINT": precision,  # its own choice is bfloat16 where the CPU has it
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }
    compiled = openvino.Core().compile_model(model_path, "CPU", config)
    request = compiled.create_infer_request()
    for name, value in inputs.items():
        request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
    outputs = range(len(compiled.outputs))
    return Runner(
        request.infer, lambda _: [np.array(request.get_output_tensor(index).data) for index in outputs]
    )


def _load_torch(model_path: str, inputs: Inputs, threads: int) -> Runner:
    import torch
    from torch._inductor import config

    # With the model, so that loading is compiling, and nothing stays.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(model_path).parent / "inductor")
    torch.set_num_threads(threads)
    config.freezing = True
    compiled = torch.compile(_torch_module(Path(model_path).resolve()).eval())
    tensors = [torch.from_numpy(value) for value in inputs.values()]

    def call() -> Any:
        with torch.no_grad():
            return compiled(*tensors)

    def fetch(answer: Any) -> list[np.ndarray]:
        return [one.numpy() for one in ([answer] if isinstance(answer, torch.Tensor) else answer)]

    return Runner(call, fetch)


def _torch_module(path: Path) -> Any:
    """The module that a network of today was exported from; for other files one of the model's nodes."""
    from _exports.tables import TABLES, file_of

    table = path.parent.name
    for number, network in enumerate(TABLES[table]() if table in TABLES else ()):
        if path.name in (file_of(network, "new"), file_of(network, "old")):
            from _exports.export import made_again

            return made_again(table, number)
    import onnx

    from .torch_model import OnnxModule

    return OnnxModule(onnx.load(path))


REFERENCE = Engine("reference", ("onnxruntime",), _load_reference)
"""The engine whose answers all others must match: onnxruntime without its graph optimisations."""

ENGINES = {
    engine.name: engine
    for engine in (
        Engine("ours", ("tvm_mxplan.execution.executable",), _load_ours, _compile_ours),
        Engine(
            "ours_bf16",
            ("tvm_mxplan.execution.executable",),
            _load_ours,
            _compile_ours_bf16,
            tolerance=BF16_TOLERANCE,
        ),
        Engine(
            "ours_held",
            ("tvm_mxplan.execution.executable",),
            _load_ours,
            _compile_ours,
            settings={"TVM_MXPLAN_FEWER_THREADS": "0"},
        ),  # to its threads, whoever keeps them waiting
        Engine(
            "ours_kept", ("tvm_mxplan.execution.executable",), _load_ours_kept, _compile_ours_kept
        ),  # decoders alone, whose caches stay from call to call
        Engine("onnxruntime", ("onnxruntime",), _load_onnxruntime),
        Engine("openvino", ("openvino",), _load_openvino),
        Engine("openvino_bf16", ("openvino",), _load_openvino_bf16, tolerance=BF16_TOLERANCE),
        Engine(
            "ours_int8",
            ("tvm_mxplan.execution.executable",),
            _load_ours,
            _compile_ours_int8,
            tolerance=INTEGER_TOLERANCE,
        ),
        Engine("openvino_int8", ("openvino",), _load_openvino_int8, tolerance=INTEGER_TOLERANCE),
        Engine("onnxruntime_int8", ("onnxruntime",), _load_onnxruntime_int8, tolerance=INTEGER_TOLERANCE),
        Engine("torch", ("torch",), _load_torch),
        Engine(
            "tvm",
            ("tvm",),
            _load_stock_tvm,
            _compile_stock_tvm,
            settings={"TVM_DEVICE_BACKEND_AUTOLOAD": "0"},
        ),
        REFERENCE,
    )
}
