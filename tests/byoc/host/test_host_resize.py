"""The host library's resize against TVM's kernel, by all its rules, and against exact fractions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tvm
from host_steps import ran
from tvm import relax

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references.images.resize import resize
from tvm_mxplan.opcheck.references.operands import Operands

RNG = np.random.default_rng(11)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn")
SIZES = [((5, 7), (9, 4)), ((6, 8), (3, 16)), ((1, 4), (5, 1))]


def rules(target: tuple[int, int]) -> list[tuple[str, str, str]]:
    """Methods, coordinates and roundings that TVM has a kernel for."""
    modes = [mode for mode in COORDINATES if mode != "align_corners" or 1 not in target]
    nearest = itertools.product(["nearest_neighbor"], modes, ["round", "floor", "ceil"])
    return [*nearest, *itertools.product(["linear", "cubic"], modes, [""])]


def module(size: tuple[int, int], target: tuple[int, int]) -> tvm.IRModule:
    """All rules at once, a result for each."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3, *size), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            results = [
                builder.emit(
                    relax.op.image.resize2d(
                        x,
                        target,
                        method=method,
                        coordinate_transformation_mode=mode,
                        rounding_method=rounding,
                    )
                )
                for method, mode, rounding in rules(target)
            ]
            result = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.slow
@pytest.mark.parametrize("size, target", SIZES)
def test_as_tvm_does(size: tuple[int, int], target: tuple[int, int]) -> None:
    x = RNG.standard_normal((2, 3, *size), np.float32)
    ours = tvm_mxplan.compile(module(size, target), "host, llvm", options={"cache": "disabled"})
    kinds = [step.kind for region in ours.report.regions for step in region.steps]
    assert kinds.count("resize") == len(rules(target))
    theirs = tvm_mxplan.compile(module(size, target), "llvm", options={"cache": "disabled"})(x)
    for rule, found, expected in zip(rules(target), ours(x), theirs, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=2e-5, err_msg=str(rule))


RULES = [
    ir.Resize("nearest", "half_pixel", "round_prefer_floor", 0.0, False),
    ir.Resize("nearest", "asymmetric", "round_prefer_even", 0.0, False),
    ir.Resize("linear", "half_pixel", "floor", 0.0, False),
    ir.Resize("linear", "align_corners", "floor", 0.0, False),
    ir.Resize("cubic", "half_pixel", "floor", -0.75, False),
    ir.Resize("cubic", "asymmetric", "floor", -0.5, True),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.algorithm}-{rule.coordinates}")
@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd8b", "aBcd5b"])
def test_in_layouts(rule: ir.Resize, layout: str) -> None:
    x = RNG.standard_normal((2, 19, 23, 17), np.float32)
    shape = (2, 19, 40, 9)
    found = ran(rule, [("src", x)], shape, layouts=[layout, layout])
    exact = resize(rule, Operands({"src": [x.astype("float64")]}, shape))
    assert (np.abs(found - exact.value) <= exact.error + 1e-12).all()


@pytest.mark.parametrize("layout", ["abcde", "acdeb"])
@pytest.mark.parametrize("rule", [RULES[0], RULES[2], RULES[4]], ids=lambda rule: rule.algorithm)
def test_volumes(rule: ir.Resize, layout: str) -> None:
    x = RNG.standard_normal((1, 3, 4, 5, 7), np.float32)
    shape = (1, 3, 9, 3, 8)
    found = ran(rule, [("src", x)], shape, layouts=[layout, layout])
    exact = resize(rule, Operands({"src": [x.astype("float64")]}, shape))
    assert (np.abs(found - exact.value) <= exact.error + 1e-12).all()


def test_what_is_no_number_spreads_no_further_than_its_neighbours() -> None:
    x = np.ones((1, 1, 8, 8), np.float32)
    x[0, 0, 0, 0], x[0, 0, 7, 7] = np.nan, np.inf
    for rule in (RULES[0], RULES[2]):
        found = ran(rule, [("src", x)], (1, 1, 16, 16))
        assert np.isfinite(found[0, 0, 4:12]).all()
        assert np.isnan(found[0, 0, 0, 0]) and not np.isfinite(found[0, 0, 15, 15])


def between(
    channels: int, size: tuple[int, int], *, behind: bool = False, added: bool = False
) -> tvm.IRModule:
    """A convolution to some channels of 12x12, a linear resize of them, and what comes behind it."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16, 12, 12), "float32"))
    weights = relax.const(RNG.standard_normal((channels, 16, 3, 3), np.float32))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, weights, padding=1))
            y = builder.emit(relax.op.image.resize2d(y, size, method="linear"))
            if added:
                y = builder.emit(relax.op.nn.relu(y))
            if behind:
                pointwise = relax.const(RNG.standard_normal((8, channels, 1, 1), np.float32))
                y = builder.emit(relax.op.nn.conv2d(y, pointwise))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    return builder.get()


@pytest.mark.parametrize("channels, size", [(1, (24, 64)), (21, (96, 96)), (40, (13, 70))])
def test_growing_into_a_result_is_taken_over(channels: int, size: tuple[int, int]) -> None:
    x = RNG.standard_normal((1, 16, 12, 12), np.float32)
    mod, options = between(channels, size), {"cache": "disabled", "verify": "all"}
    ex = tvm_mxplan.compile(mod, options=options)
    alone = tvm_mxplan.compile(mod, "dnnl, llvm", options=options)
    kinds = [[s.kind for r in e.report.regions for s in r.steps if s.kind != "reorder"] for e in (ex, alone)]
    assert kinds == [["convolution", "resize"], ["convolution", "resampling"]]
    opcheck.check(ex, x).raise_first()
    np.testing.assert_allclose(ex(x)[0].numpy(), alone(x)[0].numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "size, settings",
    [((96, 96), {"behind": True}), ((96, 96), {"added": True}), ((6, 96), {}), ((24, 24), {})],
    ids=["read again", "with an operator behind it", "fewer rows", "short rows"],
)
def test_other_resamplings_stay(size: tuple[int, int], settings: dict[str, bool]) -> None:
    ex = tvm_mxplan.compile(between(24, size, **settings), options={"cache": "disabled"})
    kinds = [step.kind for region in ex.report.regions for step in region.steps]
    assert "resampling" in kinds and "resize" not in kinds
