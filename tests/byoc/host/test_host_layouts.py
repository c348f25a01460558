"""The host library's own layout: its converters in the registry, and in regions shared with oneDNN."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.joined import Joined, joined
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.layout.layout_arrays import pack
from tvm_mxplan.core.layout.layout_names import layout_named
from tvm_mxplan.core.layout.layout_registry import STANDARD
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck import checking

RNG = np.random.default_rng(8)
OWN = "nChw12c"


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(2, 17, 5, 7), (1, 12, 3, 3), (3, 40, 1, 2)])
def test_there_and_back(shape: tuple[int, ...], dtype: str) -> None:
    layouts = registry.planner("host").layouts()
    array = (RNG.standard_normal(shape) * 9).astype(dtype)
    stored = layouts.convert(array, shape, STANDARD, OWN)
    np.testing.assert_array_equal(stored, pack(array, layout_named(OWN)))
    np.testing.assert_array_equal(layouts.convert(stored, shape, OWN, STANDARD), array)


def test_from_another_librarys_layout_in_two_hops() -> None:
    (both, _) = joined([registry.planner("onednn"), registry.planner("host")])
    layouts = both.layouts()
    assert layouts.path("nhwc", OWN) == ("nhwc", STANDARD, OWN)
    array = RNG.standard_normal((2, 19, 5, 7), np.float32)
    stored = layouts.convert(pack(array, layout_named("nhwc")), array.shape, "nhwc", OWN)
    np.testing.assert_array_equal(stored, pack(array, layout_named(OWN)))


def network() -> tvm.IRModule:
    """A resize that oneDNN has not got between two convolutions."""
    rng = np.random.default_rng(0)
    weights = [relax.const(rng.standard_normal(s, np.float32) / 5) for s in ((24, 3, 3, 3), (32, 24, 3, 3))]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3, 20, 20), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, weights[0], padding=1))
            y = builder.emit(
                relax.op.image.resize2d(
                    y, (31, 33), method="linear", coordinate_transformation_mode="align_corners"
                )
            )
            y = builder.emit_output(relax.op.nn.conv2d(y, weights[1], padding=1))
        builder.emit_func_output(y)
    return builder.get()


@pytest.mark.parametrize("layout", ["nhwc", OWN, "nchw"])
def test_a_step_between_those_of_another_library(layout: str) -> None:
    layers = {"resize2d_0": layout, "conv2d_0": "nhwc", "conv2d_1": "nhwc"}
    ex = tvm_mxplan.compile(network(), "dnnl, host, llvm", options={"layers": layers, "cache": "disabled"})
    (region,) = ex.report.regions
    steps = {step.name: step for step in region.steps}
    assert steps["resize2d_0"].implementation.startswith("host:")
    converters = [step for step in region.steps if step.kind == "reorder"]
    between = 0 if layout == "nhwc" else 2
    # Those at the region's ends are oneDNN's, and so are those that it knows both layouts of.
    by_host = [step.name for step in converters if step.implementation.startswith("host:")]
    assert len(by_host) == (2 if layout == OWN else 0)
    assert len(converters) >= between
    x = RNG.standard_normal((1, 3, 20, 20), np.float32)
    with checking() as checker:
        found = ex(x)[0].numpy()
    assert not checker.result().differences, str(checker.result())
    expected = tvm_mxplan.compile(network(), "llvm")(x)[0].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_two_hops_are_steps_of_the_region_and_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion that no library makes at once is two, by way of the plain layout."""
    known = Joined._converter

    def to_or_from_plain(self: Joined, value: ir.Value, source: str, target: str) -> str | None:
        plain = plain_layout(len(value.shape))
        return known(self, value, source, target) if plain in (source, target) else None

    layers = {"resize2d_0": OWN, "conv2d_0": "nhwc", "conv2d_1": "nhwc"}
    x = RNG.standard_normal((1, 3, 20, 20), np.float32)
    expected = tvm_mxplan.compile(network(), "llvm")(x)[0].numpy()
    found = []
    for at_once in (True, False):
        if not at_once:
            monkeypatch.setattr(Joined, "_converter", to_or_from_plain)
        ex = tvm_mxplan.compile(
            network(), "dnnl, host, llvm", options={"layers": layers, "cache": "disabled"}
        )
        with checking() as checker:
            np.testing.assert_allclose(ex(x)[0].numpy(), expected, rtol=1e-4, atol=1e-4)
        (region,) = ex.report.regions
        assert not checker.result().differences and checker.result().steps == len(region.steps)
        assert len(region.reorders) == sum(step.kind == "reorder" for step in region.steps)
        found.append([(one.source_layout, one.target_layout) for one in region.reorders])
    direct, hops = found
    channels_last, own, plain = "acdb", "aBcd12b", "abcd"
    for source, target in ((channels_last, own), (own, channels_last)):
        assert (source, target) in direct and (source, target) not in hops
        assert ((source, plain), (plain, target)) in pairwise(hops)
    assert len(hops) == len(direct) + 2
