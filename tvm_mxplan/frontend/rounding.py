"""Numbers rounded to bfloat16 where they stay of another type."""

from __future__ import annotations

from tvm import relax, te, tirx

from .origins import OriginBuilder


def round_to_bfloat16(builder: OriginBuilder, tensor: relax.Expr) -> relax.Expr:
    """The tensor, of float32, with each number the nearest one of bfloat16, half to even.

    A cast to bfloat16 alone does not round what is cast back: TVM computes bfloat16 in float32 and leaves the
    two casts out.
    """

    def kernel(tensor: te.Tensor) -> te.Tensor:
        def element(*index: tirx.Var) -> tirx.Expr:
            bits = tirx.reinterpret("uint32", tensor(*index))
            one = tirx.const(1, "uint32")
            even = bits + tirx.const(0x7FFF, "uint32") + ((bits >> tirx.const(16, "uint32")) & one)
            kept = tirx.reinterpret("float32", even & tirx.const(0xFFFF0000, "uint32"))
            return tirx.Select(tirx.isnan(tensor(*index)), tensor(*index), kept)

        return te.compute(tensor.shape, element, "rounded")

    return builder.emit_te(kernel, tensor, primfunc_name_hint="round_to_bfloat16")
