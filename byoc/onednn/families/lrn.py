"""Local response normalization: importers spread it over eight operators, oneDNN has it as one.

    multiply(x, x) -> expand_dims -> avg_pool3d -> squeeze -> multiply(alpha) -> add -> power
    divide(x, that)                                                             ==>  one step, ``lrn``

Only where oneDNN generates code for it: the pieces alone are several times faster than reference code.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tvm import relax
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.spelled_out.activations import either
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.relax_types import scalar_of, shape_of

_LAYOUTS = ("abcd", "acdb", "aBcd8b", "aBcd16b")
_ASSUMED = 8  # of an extent that is not known


def pattern() -> tuple[DFPattern, dict[str, DFPattern]]:
    """The eight operators; named is what the check looks at."""
    x, alpha, bias, beta = wildcard(), is_const(), is_const(), is_const()
    square = is_op("relax.multiply")(x, x)
    expanded = is_op("relax.expand_dims")(square)
    window = is_op("relax.nn.avg_pool3d")(expanded)
    scaled = either("relax.multiply", is_op("relax.squeeze")(window), alpha)
    power = is_op("relax.power")(either("relax.add", scaled, bias), beta)
    named = {"x": x, "alpha": alpha, "bias": bias, "beta": beta, "expanded": expanded, "window": window}
    return is_op("relax.divide")(x, power), named


def check(match: Mapping[str, relax.Expr]) -> str | None:
    """None, or why it is not taken as one step."""
    window, shape = match["window"], shape_of(match["root"])
    size, padding = [int(n) for n in window.attrs.pool_size], [int(n) for n in window.attrs.padding]
    if shape is None or len(shape) != 4 or size[1:] != [1, 1] or size[0] % 2 == 0:
        return f"LRN window {size}, expected an odd number of channels of an image"
    if [int(axis) for axis in match["expanded"].attrs.axis] != [1]:
        return "LRN over another axis than the channels"
    if str(window.attrs.layout) != "NCDHW" or any(int(step) != 1 for step in window.attrs.strides):
        return "LRN with strides or another layout"
    if padding != [size[0] // 2, 0, 0, size[0] // 2, 0, 0] or not bool(window.attrs.count_include_pad):
        return f"LRN padding {padding}, expected a centred window that counts it"
    alpha, bias, beta = (scalar_of(match[name]) for name in ("alpha", "bias", "beta"))
    if alpha is None or bias is None or beta is None:
        return "LRN with parameters that are not numbers"
    if beta != 0.75:
        return f"LRN with beta {beta:.7g}: oneDNN has reference code only, but for 0.75"
    extents = tuple(dim if isinstance(dim, int) else _ASSUMED for dim in shape)
    if not has_code(ir.LRN(size[0], alpha, beta, bias), extents):
        isa = library.isa().removeprefix("cpu_isa_")
        return f"LRN over {size[0]} of {extents[1]} channels: oneDNN has reference code only on {isa}"
    return None


@cache
def has_code(attrs: ir.LRN, shape: tuple[int, ...]) -> bool:
    """Whether oneDNN generates code for this processor, in any layout."""
    for layout in _LAYOUTS:
        values = (
            ir.Value("src", shape, "float32", "input", layout, 0),
            ir.Value("dst", shape, "float32", "output", layout, 0),
        )
        step = ir.Step("lrn", attrs, (ir.Operand("src", 0), ir.Operand("dst", 1)))
        (info,) = library.describe(ir.Program("lrn", values, (step,))).steps
        if not info.error and not info.is_reference:
            return True
    return False
