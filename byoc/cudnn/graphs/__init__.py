"""Operation graphs: a step of a program as cuDNN's planner is asked for it (``native/planner.cc``).

One function for each kind of step, by the class of its attributes; each builds tensors and nodes, and raises
UnsupportedError where no graph is made of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .. import layout_rules
from .attention import attention
from .convolutions import backward_weights, convolution, deconvolution
from .integers import quantization
from .norms import batch_norm, batch_norm_backward, layer_norm
from .pointwise import binary, eltwise
from .pools import pooling
from .products import matmul
from .reductions import reduction
from .tensors import GraphBuilder

GRAPHS: dict[type, Callable[[GraphBuilder, Any], dict[str, Any]]] = {
    ir.Convolution: convolution,
    ir.Deconvolution: deconvolution,
    ir.ConvolutionBackwardWeights: backward_weights,
    ir.MatMul: matmul,
    ir.Attention: attention,
    ir.Pooling: pooling,
    ir.LayerNormalization: layer_norm,
    ir.BatchNormalizationTraining: batch_norm,
    ir.BatchNormalizationBackward: batch_norm_backward,
    ir.Reduction: reduction,
    ir.Eltwise: eltwise,
    ir.Binary: binary,
    ir.Quantization: quantization,
}


def graph_of(program: ir.Program, step: ir.Step) -> dict[str, Any]:
    """Tensors, nodes and types of a step; UnsupportedError where no graph is made of it."""
    make = GRAPHS.get(type(step.attrs))
    if make is None:
        raise UnsupportedError(f"cuDNN is given no {step.kind}")
    reason = layout_rules.why_not(program, step)
    if reason:
        raise UnsupportedError(reason)
    return make(GraphBuilder(program, step), step.attrs)
