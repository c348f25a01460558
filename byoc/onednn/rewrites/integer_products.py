"""Products of quantised models that multiply integers of 8 bits, by the machine's instruction set.

With VNNI oneDNN has kernels for all of them.  Without it, what it has for bytes saturates on the way, and its
reference code is right and slow.  With AVX2 alone kernels of our own take those that are listed here; what is
fused into them has to be what they take, since nothing else would run it.  All others compute with the real
numbers that integers stand for.
"""

from __future__ import annotations

from enum import Enum

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape

from ..element_types import missing_type, multiplies_words
from .squeeze_excite import FUNCTIONS

_MOST_WINDOW, _MOST_STRIDE = 16, 8
"""As in ``byoc/runtime/onednn/integers``."""
_FUNCTIONS = FUNCTIONS | {"round", "gelu_tanh", "gelu_erf"}
_BINARY = frozenset(("add", "sub", "mul", "div", "min", "max"))
"""Functions of two tensors that kernels of our own apply to results (``byoc/runtime/onednn/post_ops``)."""


class IntegerProducts(Enum):
    """Products of integers that there are kernels for: none, those of our own, or all."""

    NONE = "none"
    OWN = "own"
    ALL = "all"

    @classmethod
    def of(cls, isa: str) -> IntegerProducts:
        """Those of an instruction set as oneDNN names it."""
        if not missing_type("int8", isa):
            return cls.ALL
        return cls.OWN if multiplies_words(isa) else cls.NONE

    def takes(self, graph: Graph, step: ir.Step) -> bool:
        """Whether a product of integers, which has no post-ops yet, is one of them."""
        if self is not IntegerProducts.OWN:
            return self is IntegerProducts.ALL
        if graph.constant(step.operand("weights")) is None:
            return False
        if isinstance(step.attrs, ir.Convolution):
            return _takes_windows(graph, step, step.attrs)
        if isinstance(step.attrs, ir.MatMul):
            return _takes_rows(graph, step)
        return isinstance(step.attrs, ir.InnerProduct)

    def takes_eltwise(self, step: ir.Step, algorithm: str) -> bool:
        """Whether a step's kernels apply a function to what they sum up, as far as it multiplies integers."""
        return not self._is_own(step) or algorithm in _FUNCTIONS

    def takes_binary(self, step: ir.Step, algorithm: str, operand: Shape, dst: Shape) -> bool:
        """The same of a function of it and of another tensor."""
        if not self._is_own(step):
            return True
        channels = len(dst) - 1 if isinstance(step.attrs, ir.MatMul) else 1
        each = tuple(extent if axis == channels else 1 for axis, extent in enumerate(dst))
        return algorithm in _BINARY and operand in (dst, each)

    def _is_own(self, step: ir.Step) -> bool:
        return self is IntegerProducts.OWN and step.is_quantized


def _takes_windows(graph: Graph, step: ir.Step, attrs: ir.Convolution) -> bool:
    src, dst = graph.values[step.operand("src")].shape, graph.values[step.dst].shape
    window = graph.values[step.operand("weights")].shape[-2:]
    if len(dst) != 4 or attrs.groups not in (1, src[1]) or (attrs.groups > 1 and dst[1] != src[1]):
        return False
    if window == (1, 1) and attrs.groups == 1 and not any(attrs.padding):
        return True
    padding = (*zip(attrs.padding[:2], window, strict=True), *zip(attrs.padding[2:], window, strict=True))
    return (
        all(extent <= _MOST_WINDOW for extent in window)  # type: ignore[operator]
        and all(stride <= _MOST_STRIDE for stride in attrs.strides)
        and attrs.dilation == (1, 1)
        and all(pad < extent for pad, extent in padding)  # type: ignore[operator]
    )


def _takes_rows(graph: Graph, step: ir.Step) -> bool:
    """Rows times one matrix, which ``merge_rows`` makes one product of."""
    src, weights = graph.values[step.operand("src")], graph.values[step.operand("weights")]
    dst = graph.values[step.dst]
    one = all(extent == 1 for extent in weights.shape[:-2])
    rows = src.shape[:-1] == dst.shape[:-1] and src.shape[-1] == weights.shape[-2]
    plain = all(value.layout == plain_layout(len(value.shape)) for value in (src, dst))
    return len(dst.shape) >= 2 and one and rows and plain
