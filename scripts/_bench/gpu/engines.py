"""Engines on an NVIDIA GPU: each prepares a case, then answers it again and again.

Inputs are copied to the GPU while an engine prepares.  What an engine needs is imported by the engine, so
that one that is not installed is a reason in the place of its times.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .cases import KINDS, Case

if TYPE_CHECKING:
    from tvm_mxplan.execution.executable import Executable

WARM_UP = 3
"""Calls of PyTorch's engines while they prepare: they compile in the first, and keep graphs in the others."""


@dataclass(frozen=True)
class Runner:
    """A prepared case: ``sync()`` returns when the GPU has computed what ``run()`` began."""

    run: Callable[[], Any]
    sync: Callable[[], None]
    fetch: Callable[[Any], list[np.ndarray]]
    """The arrays of an answer, read before the next call."""
    executable: Executable | None = None
    """Ours only."""
    holds: object = None
    """Tensors of which ``run`` knows the addresses alone."""


@dataclass(frozen=True)
class Engine:
    """One way to compute a model on a GPU."""

    name: str
    prepare: Callable[[Case], Runner]
    """From the model to what can be called; its seconds are those of compilation."""
    ours: bool = False


def _ours(case: Case, **options: object) -> Runner:
    import tvm_mxplan
    from tvm_mxplan.execution import machine

    executable = tvm_mxplan.compile(
        case.model(),
        "cudnn, cuda",
        device_properties=case.device,
        options={"tf32": case.tf32, "cache": "disabled", **options},
    )
    tensors = [machine.tensor_of(value, True) for value in case.feeds()]
    return _on_tvm(lambda: executable(*tensors), executable)


def _tvm(case: Case) -> Runner:
    """TVM's own pipeline for CUDA, without cuDNN."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    target = tvm.target.Target.from_device(tvm.cuda())
    module = from_onnx(case.model())
    with target:
        executable = tvm.compile(module, target, relax_pipeline=relax.get_default_pipeline(target))
    main = relax.VirtualMachine(executable, tvm.cuda())["main"]
    tensors = [tvm.runtime.tensor(value, tvm.cuda()) for value in case.feeds()]
    return _on_tvm(lambda: main(*tensors))


def _on_tvm(run: Callable[[], Any], executable: Executable | None = None) -> Runner:
    import tvm

    def fetch(answer: Any) -> list[np.ndarray]:
        tensors = [answer] if hasattr(answer, "numpy") else list(answer)
        return [tensor.numpy() for tensor in tensors]

    return Runner(run, tvm.cuda().sync, fetch, executable)


def _torch_compile(case: Case, freezing: bool = False) -> Runner:
    """torch.compile with all that it tries out; ``freezing`` folds constants, batch norms among them."""
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = freezing
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(case.folder / "inductor")
    _share_assembler(Path(torch.__file__).parent)
    module, tensors = _torch_module(case)
    compiled = torch.compile(module, mode="max-autotune")

    def run() -> Any:
        with torch.no_grad():
            return compiled(*tensors)

    for _ in range(WARM_UP):
        run()
    torch.cuda.synchronize()
    return Runner(run, torch.cuda.synchronize, _fetch_torch)


def _share_assembler(torch: Path) -> None:
    """Has PyTorch assemble kernels by one program.

    Its processes that compile take the one that it ships, and it itself Triton's: what the former compiled it
    would not find, and compile once more, one after the other.
    """
    if (assembler := torch / "bin" / "ptxas").is_file():
        os.environ.setdefault("TRITON_PTXAS_PATH", str(assembler))


def _torch_graph(case: Case) -> Runner:
    """PyTorch's own kernels, channels last, as one CUDA graph."""
    import torch

    module, tensors = _torch_module(case)
    for parameter in module.parameters():
        parameter.data = _channels_last(parameter.data)
    tensors = [_channels_last(tensor) for tensor in tensors]
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                module(*tensors)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph):
            answer = module(*tensors)

    def run() -> Any:
        graph.replay()
        return answer

    return Runner(run, torch.cuda.synchronize, _fetch_torch, holds=(module, tensors))


def _torch_module(case: Case) -> tuple[Any, list[Any]]:
    """The model and its inputs on the GPU, with cuDNN's engines tried out."""
    import torch

    from ..harness.torch_model import OnnxModule

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = case.tf32
    dtype = getattr(torch, KINDS[case.kind])
    module = OnnxModule(case.source).eval().to("cuda", dtype)
    return module, [torch.from_numpy(value).to("cuda") for value in case.feeds()]


def _channels_last(tensor: Any) -> Any:
    import torch

    return tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def _fetch_torch(answer: Any) -> list[np.ndarray]:
    return [tensor.cpu().numpy() for tensor in answer]


def import_torch_first() -> None:
    """Imports PyTorch, if it is here, before TVM is: ours then takes the CUDA libraries that PyTorch has."""
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401


def release() -> None:
    """Gives back the GPU's memory of cases that nothing holds any more."""
    torch = sys.modules.get("torch")
    if torch is not None and "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    if torch is not None:
        torch.cuda.empty_cache()


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("ours", lambda case: _ours(case, cuda_graphs=True), ours=True),
        Engine("ours_steps", lambda case: _ours(case, cuda_graphs=False), ours=True),
        Engine("ours_tuned", lambda case: _ours(case, cuda_graphs=True, tune="measure"), ours=True),
        Engine("torch", _torch_compile),
        Engine("torch_frozen", lambda case: _torch_compile(case, freezing=True)),
        Engine("torch_graph", _torch_graph),
        Engine("tvm", _tvm),
    )
}
