"""The number of threads changes between calls: each call gets primitives and memory made for its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from program_builder import Builder, call, check, convolution, output_shape, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

COUNTS = (1, 4, 2, 1, 3, 4)
SAME = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
WINOGRAD = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1, "winograd_f4")
X, W = random(2, 24, 19, 19), random(40, 24, 3, 3)


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    before = library.threads()
    library.set_debug(True)
    yield
    library.set_debug(False)
    library.set_threads(before)


def convolve(attrs: ir.Convolution, layout: str) -> Builder:
    b = Builder("threads")
    dst = b.local(output_shape(X.shape, W.shape, attrs), layout)
    b.step(attrs, src=b.reorder(b.input(X.shape), layout), weights=b.constant(W), dst=dst)
    b.finish(dst)
    return b


def scratchpads(b: Builder) -> list[int]:
    return [step.scratchpad_bytes for step in library.describe(b.build()).steps]


@pytest.mark.parametrize(("attrs", "layout"), [(SAME, "abcd"), (SAME, "acdb"), (WINOGRAD, "acdb")])
def test_each_call_stays_within_its_memory(attrs: ir.Convolution, layout: str) -> None:
    b = convolve(attrs, layout)
    module = b.module()
    expected = convolution(X, W, attrs)
    needed = []
    for threads in COUNTS:
        library.set_threads(threads)
        needed.append(scratchpads(b)[1])
        out = np.full(expected.shape, np.nan, "float32")
        call(module, "threads", X, out)
        check(out, expected, 24 * 9 * (16 if attrs is WINOGRAD else 1))
        alone = np.full(expected.shape, np.nan, "float32")
        call(convolve(attrs, layout).module(), "threads", X, alone)
        np.testing.assert_array_equal(out, alone)
    made = library.stats(module)["specializations"]
    assert [entry["threads"] for entry in made] == [1, 4, 2, 3]
    assert [entry["calls"] for entry in made] == [2, 2, 1, 1]
    per_step = [entry["steps"][1]["scratchpad_bytes"] for entry in made]
    assert per_step == [needed[COUNTS.index(entry["threads"])] for entry in made]
    if layout == "abcd":
        assert len(set(per_step)) > 1, "the case needs a scratchpad that grows with the threads"
