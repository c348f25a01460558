"""The right answer of a case, from the first way that has all of its operators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np

from tvm_mxplan.testing.float64 import float64_outputs
from tvm_mxplan.testing.reference import onnxruntime_outputs

from .cases import Case, of_file

Way = Callable[[Case], list[np.ndarray]]


def right_answer(case: Case) -> list[np.ndarray]:
    """Float64 by PyTorch on the GPU; without, float64 on the CPU, or float32 for models of files.

    A way that fails is said on stderr, with what takes its place.

    Raises
    ------
    RuntimeError : no way has an answer.
    """
    reasons: list[str] = []
    for title, way in _ways(of_file(case.name)).items():
        if reasons:
            print(f"bench gpu: {case.title}: {reasons[-1]}; held against {title}", file=sys.stderr)
        try:
            return way(case)
        except Exception as error:  # PyTorch may be missing, or lack an operator, or run out of memory
            reasons.append(f"{title}: {reason(error)}")
    raise RuntimeError("nothing to hold answers against: " + "; ".join(reasons))


def reason(error: BaseException) -> str:
    """An error on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:300]


def _ways(file: bool) -> Mapping[str, Way]:
    if file:
        return {"float64 on the GPU": by_torch, "onnxruntime in float32": by_onnxruntime}
    return {"float64 on the GPU": by_torch, "float64 on the CPU": by_numpy}


def by_torch(case: Case) -> list[np.ndarray]:
    """Float64 on the GPU."""
    import torch

    from ..harness.torch_model import OnnxModule

    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch knows no GPU")
    torch.backends.cudnn.benchmark = False
    module = OnnxModule(case.source).eval().double().to("cuda")
    tensors = [torch.from_numpy(value).to("cuda") for value in case.inputs.values()]
    with torch.no_grad():
        answer = module(*[tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors])
    return [tensor.cpu().numpy() for tensor in answer]


def by_numpy(case: Case) -> list[np.ndarray]:
    return float64_outputs(case.source, case.inputs)


def by_onnxruntime(case: Case) -> list[np.ndarray]:
    return onnxruntime_outputs(case.source, case.inputs)
