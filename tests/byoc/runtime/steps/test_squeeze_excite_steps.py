"""Squeeze-and-excite in the runtime: sizes around vectors, layouts, types, threads, what follows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

SHORT = np.dtype(ml_dtypes.bfloat16)
NONE = ("linear", 1.0, 0.0)
RELU, SWISH = ("relu", 0.0, 0.0), ("swish", 1.0, 0.0)
SIGMOID, HARD = ("logistic", 0.0, 0.0), ("hardsigmoid", 1 / 6, 0.5)
LAYOUTS = ("abcd", "acdb", "aBcd16b", "aBcd8b")


@dataclass(frozen=True)
class Gates:
    """Products and functions of a step; ``weights`` [M, C], ``gate_weights`` [C, M]."""

    weights: Array
    bias: Array | None
    gate_weights: Array | None
    gate_bias: Array | None
    function: tuple[str, float, float] = RELU
    gate: tuple[str, float, float] = SIGMOID

    @classmethod
    def of(cls, channels: int, middle: int, biased: bool = True) -> Gates:
        weights = 2 * random(middle, channels) / channels**0.5
        gate_weights = 2 * random(channels, middle, seed=1) / middle**0.5
        biases = (random(middle, seed=2), random(channels, seed=3)) if biased else (None, None)
        return cls(weights, biases[0], gate_weights, biases[1])

    @property
    def arrays(self) -> dict[str, Array]:
        named = {
            "weights": self.weights,
            "bias": self.bias,
            "gate_weights": self.gate_weights,
            "gate_bias": self.gate_bias,
        }
        return {role: array for role, array in named.items() if array is not None}

    def short(self) -> Gates:
        second = None if self.gate_weights is None else self.gate_weights.astype(SHORT)
        return replace(self, weights=self.weights.astype(SHORT), gate_weights=second)


def computed(name: str, alpha: float, beta: float, x: Array) -> Array:
    match name:
        case "relu":
            return np.where(x < 0, alpha * x, x)
        case "logistic":
            return 1 / (1 + np.exp(-x))
        case "swish":
            return x / (1 + np.exp(-alpha * x))
        case "hardsigmoid":
            return np.clip(alpha * x + beta, 0, 1)
        case "hardswish":
            return x * np.clip(alpha * x + beta, 0, 1)
        case "tanh":
            return np.tanh(x)
        case "linear":
            return alpha * x + beta
    raise KeyError(name)


def expected(x: Array, gates: Gates) -> Array:
    x = x.astype("float64")
    made = x.reshape(*x.shape[:2], -1).mean(2)
    made = made @ gates.weights.astype("float64").T + (0 if gates.bias is None else gates.bias)
    if gates.gate_weights is not None:
        made = computed(*gates.function, made) @ gates.gate_weights.astype("float64").T
        made = made + (0 if gates.gate_bias is None else gates.gate_bias)
    made = computed(*gates.gate, made)
    return x * made.reshape(*x.shape[:2], *(1,) * (x.ndim - 2))


def step(b: Builder, gates: Gates, post_ops=(), **ids: int) -> None:
    attrs = ir.SqueezeExcite(*gates.function, *gates.gate)
    constants = {role: b.constant(array) for role, array in gates.arrays.items()}
    b.step(attrs, post_ops, **{"src": ids["src"], **constants, "dst": ids["dst"]})


def run(x: Array, gates: Gates, layout: str = "") -> Array:
    """The result, by way of another layout than the plain one if it is named."""
    b = Builder()
    src = b.input(x.shape, "", x.dtype.name)
    if not layout or layout == "abcd":
        step(b, gates, src=src, dst=b.output(x.shape, "", x.dtype.name))
        return b.run(x)
    stored, made = (b.local(x.shape, layout, dtype=x.dtype.name) for _ in range(2))
    b.step(ir.Reorder(), src=src, dst=stored)
    step(b, gates, src=stored, dst=made)
    b.step(ir.Reorder(), src=made, dst=b.output(x.shape, "", x.dtype.name))
    return b.run(x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 3, 8, 16, 17, 40, 64, 72, 100])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 7), (5, 3), (14, 14)])
def test_whatever_the_size(layout: str, channels: int, height: int, width: int) -> None:
    x, gates = random(1, channels, height, width) + 0.5, Gates.of(channels, max(1, channels // 4))
    np.testing.assert_allclose(run(x, gates, layout), expected(x, gates), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("samples", [2, 3, 5, 8, 9])
@pytest.mark.parametrize(("channels", "middle", "pixels"), [(40, 10, 14), (288, 72, 7), (330, 130, 3)])
def test_samples_are_the_same_alone_and_on_many_threads(
    layout: str, samples: int, channels: int, middle: int, pixels: int
) -> None:
    x, gates = random(samples, channels, pixels, pixels) + 0.5, Gates.of(channels, middle)
    got = run(x, gates, layout)
    np.testing.assert_allclose(got, expected(x, gates), rtol=1e-5, atol=2e-6)
    last = run(x[-1:], gates, layout)
    np.testing.assert_allclose(got[-1:], last, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_large_image_is_averaged_accurately(layout: str) -> None:
    x, gates = random(1, 33, 130, 110) + 100.0, Gates.of(33, 8)
    gates = replace(gates, weights=gates.weights / 100)
    np.testing.assert_allclose(run(x, gates, layout), expected(x, gates), rtol=3e-6)


@pytest.mark.parametrize("function", [RELU, SWISH, ("hardswish", 1 / 6, 0.5), ("tanh", 0.0, 0.0), NONE])
@pytest.mark.parametrize("gate", [SIGMOID, HARD, ("tanh", 0.0, 0.0), NONE])
@pytest.mark.parametrize("biased", [True, False])
def test_functions(function, gate, biased: bool) -> None:
    x = random(2, 24, 6, 5) + 0.5
    gates = replace(Gates.of(24, 6, biased), function=function, gate=gate)
    np.testing.assert_allclose(run(x, gates), expected(x, gates), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("biased", [True, False])
def test_one_product_alone(layout: str, biased: bool) -> None:
    x = random(3, 67, 9, 7) + 0.5
    bias = random(67, seed=2) if biased else None
    gates = Gates(random(67, 67) / 4, bias, None, None, NONE, HARD)
    np.testing.assert_allclose(run(x, gates, layout), expected(x, gates), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("samples", "channels"), [(1, 48), (1, 67), (8, 24), (3, 100)])
def test_bfloat16(layout: str, samples: int, channels: int) -> None:
    x = (random(samples, channels, 14, 7) + 0.5).astype(SHORT)
    gates = Gates.of(channels, 12).short()
    got = run(x, gates, layout).astype("float64")
    np.testing.assert_allclose(got, expected(x, gates), rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 20, 31), (2, 20, 3, 4, 5)])
def test_images_of_one_and_three_axes(shape: tuple[int, ...]) -> None:
    x, gates = random(*shape) + 0.5, Gates.of(20, 5)
    np.testing.assert_allclose(run(x, gates), expected(x, gates), rtol=1e-5, atol=2e-6)
    last = f"a{'cde'[: len(shape) - 2]}b"
    np.testing.assert_allclose(run(x, gates, last), expected(x, gates), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("channels", [32, 35])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_follows_is_done_at_once(layout: str, channels: int, dtype: str) -> None:
    """Also a function of which 0, as in channels that fill a block up, is not 0."""
    shape = (2, channels, 5, 7)
    x, more = (random(*shape, seed=seed) for seed in (0, 1))
    gates = Gates.of(channels, 8)
    if dtype == "bfloat16":
        x, more, gates = x.astype(SHORT), more.astype(SHORT), gates.short()
    b = Builder()
    src, other = (b.input(shape, "", dtype) for _ in range(2))
    stored, added, made = (b.local(shape, layout, dtype=dtype) for _ in range(3))
    for one, to in ((src, stored), (other, added)):
        b.step(ir.Reorder(), src=one, dst=to)
    post_ops = [ir.BinaryPostOp("add", added), ir.EltwisePostOp("linear", 2.0, 3.0)]
    step(b, gates, post_ops, src=stored, dst=made)
    b.step(ir.Reorder(), src=made, dst=b.output(shape, "", dtype))
    wanted = 2 * (expected(x, gates) + more.astype("float64")) + 3
    close = {"rtol": 2**-6, "atol": 2**-5} if dtype == "bfloat16" else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(b.run(x, more).astype("float64"), wanted, **close)


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize(("samples", "channels"), [(1, 40), (8, 24), (3, 330)])
def test_the_result_may_stand_where_the_image_did(layout: str, samples: int, channels: int) -> None:
    x, gates = random(samples, channels, 14, 9) + 0.5, Gates.of(channels, 12)
    b = Builder()
    stored = b.local(x.shape, layout)
    made = b.view(stored, x.shape, layout)
    b.step(ir.Reorder(), src=b.input(x.shape), dst=stored)
    step(b, gates, src=stored, dst=made)
    b.step(ir.Reorder(), src=made, dst=b.output(x.shape))
    np.testing.assert_allclose(b.run(x), expected(x, gates), rtol=1e-5, atol=2e-6)


def test_weights_are_read_in_either_order() -> None:
    x, gates = random(1, 20, 6, 6) + 0.5, Gates.of(20, 7)
    b = Builder()
    src = b.input(x.shape)
    turned = {
        "weights": b.constant(gates.weights.T, "ba", gates.weights.shape),
        "gate_weights": b.constant(gates.gate_weights.T, "ba", gates.gate_weights.shape),
    }
    b.step(ir.SqueezeExcite(*RELU, *SIGMOID), src=src, **turned, dst=b.output(x.shape))
    plain = replace(gates, bias=None, gate_bias=None)
    np.testing.assert_allclose(b.run(x), expected(x, plain), rtol=1e-5, atol=2e-6)


def test_gates_too_small_for_a_normal_number_may_be_0() -> None:
    """And opcheck takes that for right, as verification does."""
    x, gates = random(1, 24, 5, 5) + 0.5, Gates.of(24, 6)
    gates = replace(gates, gate_bias=np.linspace(-120, -80, 24, dtype="float32"))
    np.testing.assert_allclose(run(x, gates), expected(x, gates), rtol=1e-4, atol=1e-37)


def test_infinities_and_nan_stay_in_their_samples() -> None:
    x, gates = random(3, 24, 5, 5), replace(Gates.of(24, 6), function=SWISH)
    x[1, 3, 2, 2] = np.nan
    got = run(x, gates)
    assert np.isnan(got[1]).all()
    np.testing.assert_allclose(got[[0, 2]], expected(x[[0, 2]], gates), rtol=1e-5, atol=2e-6)


def test_the_kernels_are_those_of_the_library_s_instruction_set() -> None:
    b = Builder()
    step(b, Gates.of(8, 2), src=b.input((1, 8, 3, 3)), dst=b.output((1, 8, 3, 3)))
    isa = next((one for one in ("avx512", "avx2") if one in library.isa()), "sse2")
    isa += "_bf16" if "bf16" in library.isa() or "amx" in library.isa() else ""
    (found,) = library.describe(b.build()).steps
    assert found.implementation == f"squeeze_excite:{isa}"


def test_other_layouts_and_weights_that_are_no_constants_are_refused() -> None:
    b = Builder()
    step(b, Gates.of(4, 2), src=b.input((1, 4, 3, 5), "adcb"), dst=b.output((1, 4, 3, 5), "adcb"))
    assert "expected channels or pixels side by side" in library.describe(b.build()).steps[0].error
    b = Builder()
    src, weights = b.input((1, 4, 3, 5)), b.input((4, 4))
    b.step(ir.SqueezeExcite(*NONE, *SIGMOID), src=src, weights=weights, dst=b.output((1, 4, 3, 5)))
    assert "weights: expected a constant" in library.describe(b.build()).steps[0].error


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41", "AVX512_CORE"])
def test_other_instruction_sets(isa: str) -> None:
    run_again(__file__, isa, "whatever_the_size or bfloat16 or one_product or follows or the_kernels_are")
