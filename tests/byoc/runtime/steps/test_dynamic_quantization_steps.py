"""Dynamic quantization in the runtime: sizes around vectors, threads, layouts; held against numpy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from program_builder import Array, Builder, call, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck import checking


def builder(shape: tuple[int, ...], layout: str = "", **types: str) -> Builder:
    b = Builder()
    src = b.input(shape, layout, types.get("src", "float32"))
    dst = b.output(shape, layout, types.get("dst", "uint8"))
    scale = b.output((1,), "", types.get("made_scale", "float32"))
    zero = b.output((1,), "", types.get("made_zero_point", "int32"))
    b.step(ir.DynamicQuantization(), src=src, dst=dst, made_scale=scale, made_zero_point=zero)
    return b


def run(x: Array, layout: str = "") -> tuple[Array, float, int]:
    """The three results; opcheck has looked at each."""
    b = builder(x.shape, layout)
    out, scale, zero = np.zeros(x.shape, "uint8"), np.zeros(1, "float32"), np.zeros(1, "int32")
    with checking() as checker:
        call(b.module(), b.name, x, out, scale, zero)
    result = checker.result()
    assert result.steps == 1 and result.first is None, result
    return out, float(scale[0]), int(zero[0])


def expected(x: Array) -> tuple[Array, float, int]:
    """ONNX's definition, each operation in float32."""
    least, largest = min(np.float32(0), x.min()), max(np.float32(0), x.max())
    scale = (largest - least) / np.float32(255) if largest > least else np.float32(1)
    zero = np.rint(-least / scale)
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype("uint8"), float(scale), int(zero)


@pytest.mark.parametrize("count", [1, 3, 15, 16, 17, 63, 64, 65, 127, 129, 1000, 70_001, 300_007])
@pytest.mark.parametrize("middle", [0.0, 3.0, -3.0, 0.4])
def test_numbers_are_those_of_the_definition_whatever_the_size(count: int, middle: float) -> None:
    x = random(count, seed=count) + np.float32(middle)
    got, right = run(x), expected(x)
    assert got[1:] == right[1:] and np.array_equal(got[0], right[0])
    if count > 1000:
        assert len(np.unique(right[0])) > 100


@pytest.mark.parametrize("at", [0, 17, 31, 40_000, 69_998])
def test_an_end_counts_wherever_it_stands(at: int) -> None:
    x = random(70_001)
    x[at], x[at + 1] = 50.0, -70.0
    out, scale, zero = run(x)
    assert scale == np.float32(120) / np.float32(255)
    assert zero == 149 and out[at] == 255 and out[at + 1] == 0


def test_halves_go_to_the_even_integer() -> None:
    x = np.array([0.0, 0.5, 1.5, 2.5, 3.5, 255.0], "float32")
    assert run(x)[0].tolist() == [0, 0, 2, 2, 4, 255]


@pytest.mark.parametrize("number", [0.0, 2.0, -2.0])
def test_one_number_throughout(number: float) -> None:
    x = np.full(100, number, "float32")
    got, right = run(x), expected(x)
    assert got[1:] == right[1:] and np.array_equal(got[0], right[0])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_no_finite_number_ends_nothing(number: float) -> None:
    x = random(100)
    x[7] = number
    b, out = builder(x.shape), np.zeros(x.shape, "uint8")
    scale, zero = np.zeros(1, "float32"), np.zeros(1, "int32")
    call(b.module(), b.name, x, out, scale, zero)
    assert 0 <= zero[0] <= 255
    if np.isnan(number):  # stays out of the range
        assert np.isfinite(scale[0]) and out[7] == 0


def test_numbers_in_any_order_of_axes() -> None:
    x = random(2, 7, 3, 5)
    b, out = builder((2, 5, 7, 3), "acdb"), np.zeros(x.shape, "uint8")
    scale, zero = np.zeros(1, "float32"), np.zeros(1, "int32")
    call(b.module(), b.name, x, out, scale, zero)
    assert (scale[0], zero[0]) == expected(x)[1:] and np.array_equal(out, expected(x)[0])


def test_more_threads_give_the_same(tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np; sys.path[:0] = ['tests/byoc', 'tests/byoc/runtime/steps'];"
        "from test_dynamic_quantization_steps import *;"
        "x = random(200_003); got, right = run(x), expected(x);"
        "assert got[1:] == right[1:] and np.array_equal(got[0], right[0]); print('same')"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True,
        cwd=Path(__file__).parents[4], check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "same", done.stderr[-2000:]


def test_a_layout_with_blocks_is_refused() -> None:
    (info,) = library.describe(builder((2, 20, 3, 3), "aBcd16b").build()).steps
    assert "expected one layout, without blocks or gaps" in info.error
