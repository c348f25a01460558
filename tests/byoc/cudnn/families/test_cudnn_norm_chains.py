"""Means, variances and powers that models spread norms over, as one step or as a few."""

from __future__ import annotations

import pytest
from cudnn_programs import checked_against_tvm, on_h200
from cudnn_stand_in import StandIn
from relax_programs import parse
from tvm import relax

INSTANCE = [
    "m = R.mean(x, axis=[2, 3], keepdims=True)",
    "v = R.variance(x, axis=[2, 3], keepdims=True)",
    "c = R.subtract(x, m)",
    "e = R.add(v, R.const(1e-3))",
    "d = R.sqrt(e)",
    "n = R.divide(c, d)",
    "s = R.multiply(n, u)",
    "a = R.add(s, w)",
]
LAYER = [
    "m = R.mean(x, axis=[-1], keepdims=True)",
    "c = R.subtract(x, m)",
    "p = R.power(c, R.const(2.0))",
    "v = R.mean(p, axis=[-1], keepdims=True)",
    "e = R.add(v, R.const(1e-3))",
    "d = R.sqrt(e)",
    "a = R.divide(c, d)",
]
SQUARED = [LAYER[0], LAYER[1], "p = R.multiply(c, c)", *LAYER[3:]]
ROOT_MEAN_SQUARE = [
    "p = R.power(x, R.const(2.0))",
    "m = R.mean(p, axis=[-1], keepdims=True)",
    "e = R.add(m, R.const(1e-3))",
    "d = R.sqrt(e)",
    "r = R.divide(R.const(1.0), d)",
    "n = R.multiply(x, r)",
    "a = R.multiply(n, w)",
]
IMAGE, CHANNELS = (2, 6, 3, 5), (1, 6, 1, 1)
CASES: dict[str, tuple[list[str], dict[str, tuple[int, ...]], tuple[str, ...]]] = {
    # lines, shapes of what they name (x is an input, all else is constant), kinds of steps
    "instance norm": (
        INSTANCE,
        {"x": IMAGE, "u": CHANNELS, "w": CHANNELS},
        ("layer_normalization", "binary"),
    ),
    "layer norm": (LAYER, {"x": (3, 5, 7)}, ("layer_normalization",)),
    "layer norm by a product": (SQUARED, {"x": (3, 5, 7)}, ("layer_normalization",)),
    "root mean square": (
        ROOT_MEAN_SQUARE,
        {"x": (3, 5, 8), "w": (8,)},
        ("eltwise", "pooling", "eltwise", "binary"),
    ),
    "a power of three factors": (["a = R.power(x, R.const(3.0))"], {"x": (3, 5)}, ("eltwise",)),
    "a power of four": (["a = R.power(x, R.const(4.0))"], {"x": (3, 5)}, ("eltwise",)),
    "mean of what stands in front of channels": (
        ["a = R.mean(x, axis=[1])"],
        {"x": (2, 7, 6)},
        ("pooling",),
    ),
    "mean of an image's pixels, channels last": (
        ["a = R.mean(x, axis=[1, 2], keepdims=True)", "b = R.add(a, z)"],
        {"x": (2, 3, 5, 6), "z": (2, 1, 1, 6)},
        ("pooling", "binary"),
    ),
    "the largest of it": (["a = R.max(x, axis=[-2])"], {"x": (2, 7, 6)}, ("pooling",)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_norms_are_spread_over(planner: StandIn, case: str) -> None:
    lines, shapes, kinds = CASES[case]
    assert tuple(step.kind for step in checked_against_tvm(lines, shapes)) == kinds


def test_a_root_is_cudnns_power(planner: StandIn) -> None:
    lines = ["p = R.multiply(x, x)", "q = R.add(p, R.const(1.0))", "a = R.power(q, R.const(0.75))"]
    checked_against_tvm(lines, {"x": (3, 5)})
    assert any(node.get("mode") == "POW" for one in planner.requests for node in one["nodes"])


@pytest.mark.parametrize(
    "line, words",
    [
        ("a = R.power(x, R.const(-3.0))", "a power of -3"),
        ('a = R.power(x, R.const(float("inf")))', "a power of inf"),
        ("a = R.power(x, z)", "an exponent that is no number"),
    ],
)
def test_powers_that_are_left_to_tvm(planner: StandIn, line: str, words: str) -> None:
    mod = parse(f"{line}\nreturn a", 'x: R.Tensor((3, 5), "float32"), z: R.Tensor((3, 5), "float32")')
    told: list[str] = []
    patterns = on_h200().patterns(lambda operator, reason: told.append(f"{operator}: {reason}"))
    dataflow = relax.transform.ConvertToDataflow(1)(mod)
    found = relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(dataflow)
    assert not [f for f in found.functions.values() if f.attrs and "Composite" in f.attrs]
    assert any(words in one for one in told), told
