"""Activations that importers and exporters spell out, and libraries have as one: patterns and their checks.

Each row of ``ACTIVATIONS`` is the name that the code generator knows, the pattern with names for what the
check looks at, the check, and what reports call it.  The longest spelling of a function comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from tvm import relax
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.passes.relax_types import dtype_of, scalar_of

Match = Mapping[str, relax.Expr]
_UNIT_ROUNDOFF = 2.0**-24
Pattern = tuple[DFPattern, dict[str, DFPattern]]


def either(operator: str, left: DFPattern, right: DFPattern) -> DFPattern:
    """A call to a commutative operator with its operands in any order."""
    return is_op(operator)(left, right) | is_op(operator)(right, left)


def _number(expr: relax.Expr) -> float | None:
    """A constant's or an attribute's number."""
    scalar = scalar_of(expr)
    return scalar if scalar is not None else float(getattr(expr, "value", "nan"))


def _expect(match: Match, **expected: float) -> str | None:
    """None if the named constants are the expected numbers, up to the rounding of their type."""
    for name, number in expected.items():
        found = _number(match[name])
        if found is None or not (math.isclose(found, number, rel_tol=1e-5) or _rounds(number, found, match)):
            return f"the constant {found}, expected {number:.7g}"
    return None


def _rounds(number: float, found: float, match: Match) -> bool:
    """Whether a number is what float16 makes of another, where that is what the operator computes in."""
    return dtype_of(match["root"]) == "float16" and found == float(np.float16(number))


def _accept(_match: Match) -> str | None:
    return None


# --- swish, hardswish, hardsigmoid ------------------------------------------------------------------------


def _swish() -> Pattern:
    x = wildcard()
    return either("relax.multiply", x, is_op("relax.sigmoid")(x)), {"x": x}


def _relu6_of_x_plus_3() -> tuple[DFPattern, DFPattern, dict[str, DFPattern]]:
    x, three, low, high = wildcard(), is_const(), wildcard(), wildcard()
    clip = is_op("relax.clip")(either("relax.add", x, three), low, high)
    return x, clip, {"x": x, "three": three, "low": low, "high": high}


def _sixth(value: DFPattern) -> tuple[DFPattern, dict[str, DFPattern]]:
    six, sixth = is_const(), is_const()
    pattern = is_op("relax.divide")(value, six) | either("relax.multiply", value, sixth)
    return pattern, {"six": six, "sixth": sixth}


def _hardswish() -> Pattern:
    x, clip, named = _relu6_of_x_plus_3()
    gate, constants = _sixth(clip)
    return either("relax.multiply", x, gate), {**named, **constants}


def _hardswish_product_first() -> Pattern:
    x, clip, named = _relu6_of_x_plus_3()
    root, constants = _sixth(either("relax.multiply", x, clip))
    return root, {**named, **constants}


def _hardsigmoid_sixth() -> Pattern:
    _, clip, named = _relu6_of_x_plus_3()
    root, constants = _sixth(clip)
    return root, {**named, **constants}


def _check_sixth(match: Match) -> str | None:
    scale = {"six": 6.0} if "six" in match else {"sixth": 1 / 6}
    return _expect(match, three=3.0, low=0.0, high=6.0, **scale)


def _clipped_line() -> tuple[DFPattern, DFPattern, dict[str, DFPattern]]:
    x, alpha, beta, low, high = wildcard(), is_const(), is_const(), wildcard(), wildcard()
    line = either("relax.add", either("relax.multiply", x, alpha), beta)
    clip = is_op("relax.clip")(line, low, high)
    return x, clip, {"x": x, "alpha": alpha, "beta": beta, "low": low, "high": high}


def _hardsigmoid() -> Pattern:
    _, clip, named = _clipped_line()
    return clip, named


def _hardswish_line() -> Pattern:
    x, clip, named = _clipped_line()
    return either("relax.multiply", x, clip), named


def _check_line(match: Match) -> str | None:
    if scalar_of(match["alpha"]) is None or scalar_of(match["beta"]) is None:
        return "a factor for each channel"
    return _expect(match, low=0.0, high=1.0)


# --- mish, softplus, elu ----------------------------------------------------------------------------------


def _mish() -> Pattern:
    x, one = wildcard(), is_const()
    soft = is_op("relax.log")(either("relax.add", one, is_op("relax.exp")(x)))
    return either("relax.multiply", x, is_op("relax.tanh")(soft)), {"x": x, "one": one}


def _softplus() -> Pattern:
    x, zero, one = wildcard(), is_const(), is_const()
    decay = is_op("relax.exp")(is_op("relax.negative")(is_op("relax.abs")(x)))
    log = is_op("relax.log")(either("relax.add", one, decay))
    positive = is_op("relax.maximum")(x, zero) | is_op("relax.nn.relu")(x)
    whole = is_op("relax.nn.softplus")(x)
    return either("relax.add", positive, log) | whole, {"x": x, "zero": zero, "one": one, "whole": whole}


def _mish_of_softplus() -> Pattern:
    soft, named = _softplus()
    return either("relax.multiply", named["x"], is_op("relax.tanh")(soft)), named


def check_threshold(softplus: relax.Call) -> str | None:
    """None, or why x above the threshold, off by log(1 + exp(-beta x)) / beta, is no softplus in float32."""
    threshold = float(softplus.attrs.threshold)
    if not math.exp(-threshold) < _UNIT_ROUNDOFF * threshold:
        return f"threshold {threshold}, above which x is not yet softplus in float32"
    return None


def _check_softplus(match: Match) -> str | None:
    if "whole" in match:
        beta = float(match["whole"].attrs.beta)
        return check_threshold(match["whole"]) if beta == 1 else f"beta {beta}, expected 1"
    zero = {"zero": 0.0} if "zero" in match else {}
    return _expect(match, one=1.0, **zero)


def _elu() -> Pattern:
    x, one, alpha = wildcard(), is_const(), is_const()
    negative = is_op("relax.nn.relu")(is_op("relax.subtract")(one, is_op("relax.exp")(x)))
    scaled = either("relax.multiply", alpha, negative)
    return either("relax.add", scaled, is_op("relax.nn.relu")(x)), {"x": x, "one": one, "alpha": alpha}


def _check_elu(match: Match) -> str | None:
    if scalar_of(match["alpha"]) is None:
        return "a factor for each channel"
    return _expect(match, one=1.0)


# --- gelu ---------------------------------------------------------------------------------------------------


def _half_gated(x: DFPattern, gate: DFPattern) -> tuple[DFPattern, dict[str, DFPattern]]:
    """x / 2 * (1 + gate), multiplied in any order."""
    one, half, two = is_const(), is_const(), is_const()
    shifted = either("relax.add", gate, one)

    def halved(value: DFPattern) -> DFPattern:
        return either("relax.multiply", value, half) | is_op("relax.divide")(value, two)

    forms = (
        halved(either("relax.multiply", x, shifted))
        | either("relax.multiply", x, halved(shifted))
        | either("relax.multiply", halved(x), shifted)
    )
    return forms, {"one": one, "half": half, "two": two}


def _gelu_erf() -> Pattern:
    x, root_two, root_half = wildcard(), is_const(), is_const()
    argument = is_op("relax.divide")(x, root_two) | either("relax.multiply", x, root_half)
    root, constants = _half_gated(x, is_op("relax.erf")(argument))
    return root, {"x": x, "root_two": root_two, "root_half": root_half, **constants}


def _check_gelu(match: Match) -> str | None:
    present = {
        name: number
        for name, number in (
            ("two", 2.0),
            ("half", 0.5),
            ("root_two", math.sqrt(2)),
            ("root_half", math.sqrt(0.5)),
            ("three", 3.0),
            ("cubic", 0.044715),
            ("slope", math.sqrt(2 / math.pi)),
        )
        if name in match
    }
    return _expect(match, one=1.0, **present)


def _gelu_tanh() -> Pattern:
    x, three, cubic, slope = wildcard(), is_const(), is_const(), is_const()
    square = is_op("relax.multiply")(x, x) | is_op("relax.square")(x)
    cube = is_op("relax.power")(x, three) | either("relax.multiply", x, square)
    bent = either("relax.add", x, either("relax.multiply", cube, cubic))
    root, constants = _half_gated(x, is_op("relax.tanh")(either("relax.multiply", bent, slope)))
    return root, {"x": x, "three": three, "cubic": cubic, "slope": slope, **constants}


Row = tuple[str, Callable[[], Pattern], Callable[[Match], str | None], str]

ACTIVATIONS: list[Row] = [
    ("gelu_erf", _gelu_erf, _check_gelu, "gelu"),
    ("gelu_tanh", _gelu_tanh, _check_gelu, "gelu, tanh"),
    ("hardswish", _hardswish, _check_sixth, "hardswish"),
    ("hardswish", _hardswish_product_first, _check_sixth, "hardswish"),
    ("hardsigmoid_sixth", _hardsigmoid_sixth, _check_sixth, "hardsigmoid"),
    ("hardswish_line", _hardswish_line, _check_line, "hardswish"),
    ("hardsigmoid", _hardsigmoid, _check_line, "hardsigmoid"),
    ("mish", _mish_of_softplus, _check_softplus, "mish"),
    ("mish", _mish, _check_softplus, "mish"),
    ("softplus_stable", _softplus, _check_softplus, "softplus"),
    ("elu", _elu, _check_elu, "elu"),
    ("swish", _swish, _accept, "swish"),
]
