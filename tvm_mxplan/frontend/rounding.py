"""Numbers rounded to bfloat16 where they stay of another type."""

from __future__ import annotations

from tvm import relax, te, tirx

from ..passes.kernels.exact_functions import bits_of_bfloat16
from .origins import OriginBuilder


def round_to_bfloat16(builder: OriginBuilder, tensor: relax.Expr) -> relax.Expr:
    """The tensor, of float32, with each number the nearest one of bfloat16, half to even.

    A cast to bfloat16 alone does not round what is cast back: TVM computes bfloat16 in float32 and leaves the
    two casts out.
    """

    def kernel(tensor: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            bits = bits_of_bfloat16(tensor(*index))
            return tirx.reinterpret("float32", bits << tirx.const(16, "uint32"))

        return te.compute(tensor.shape, element, "rounded")

    return builder.emit_te(kernel, tensor, primfunc_name_hint="round_to_bfloat16")
