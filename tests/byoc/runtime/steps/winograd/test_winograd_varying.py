"""Winograd's convolutions of filters that change between calls, in any layout."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCKED
from program_builder import call, convolution, grouped, random
from winograd_cases import ALGORITHMS, RELU, Case, filters, run_with_less

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.testing.reference import relative_l2

PLAIN, TURNED = "abcd", "bacd"
BLOCKS = ["ABcd16b16a", "ABcd16a16b", "BAcd16a16b", "Acdb16a", "ABcd8b8a", "Abcd16a"]
SHAPES = [
    ((2, 32, 9, 10), 48, 3),
    ((1, 3, 5, 5), 17, 3),
    ((3, 67, 7, 10), 35, 3),
    ((1, 1, 3, 3), 1, 3),
    ((1, 200, 19, 21), 190, 3),  # filters too large for a core's cache: threads share chunks
    ((2, 19, 9, 10), 33, 5),
]


@pytest.mark.parametrize("layout", [PLAIN, TURNED, "cdba", *BLOCKS])
@pytest.mark.parametrize("src, outputs, size", SHAPES)
def test_filters_in_any_layout(src, outputs, size, layout, threads):
    for algorithm in ALGORITHMS[: 1 if size == 5 else 2]:
        case = Case(algorithm, src, outputs, size=size, varying=layout).convolve(RELU)
        case.check(np.maximum(case.direct(), 0))
        assert case.info().weights_bytes == 0


@pytest.mark.parametrize("layout", ["abcde", "acbde", "aBCde16c16b"])
@pytest.mark.parametrize(
    "src, outputs, size, groups", [((2, 96, 9, 10), 64, 3, 2), ((1, 51, 9, 12), 69, 5, 3)]
)
def test_filters_of_groups(src, outputs, size, groups, layout, threads):
    case = Case("winograd_f2", src, outputs, size=size, groups=groups, varying=layout).convolve()
    case.check(case.direct())


@pytest.mark.parametrize("images", [("acdb", BLOCKED), (BLOCKED, BLOCKED)])
def test_other_filters_in_each_call(images):
    case = Case("winograd_f4", (2, 35, 9, 10), 40, layouts=images, varying=PLAIN).convolve()
    module, found = case.builder.module(), np.empty(case.shape, "float32")
    for seed in range(3):
        w = filters(40, 35) if seed == 0 else random(40, 35, 3, 3, seed=seed)
        call(module, "case", case.x, w, found)
        assert relative_l2(found, convolution(case.x, w, case.attrs, case.bias)) < 5e-6
    assert library.stats(module)["packed_weight_bytes"] == 0


@pytest.mark.parametrize("groups, size", [(1, 3), (2, 3), (2, 5)])
def test_memory_under_watch(groups, size):
    layouts = ("acdb", "acdb")
    case = Case(
        "winograd_f2", (1, 102, 19, 21), 70, (1,) * 4, layouts, size, groups, "abcde"[: 4 + (groups > 1)]
    )
    case.convolve(RELU)
    library.set_debug(True)
    try:
        case.check(np.maximum(case.direct(), 0))
    finally:
        library.set_debug(False)


@pytest.mark.parametrize("algorithm, size", [("winograd_f2", 3), ("winograd_f4", 3), ("winograd_f2", 5)])
@pytest.mark.parametrize("channels", [64, 512, 2048])
def test_the_stated_error_holds_beside_that_of_the_direct_sum(algorithm, size, channels):
    src = (1, channels, 8, 8)
    direct = Case("direct", src, 32, size=size).convolve()
    fast = Case(algorithm, src, 32, size=size, varying=PLAIN).convolve()
    expected = fast.direct()
    rounding = relative_l2(direct.builder.run(direct.x), expected)
    error = relative_l2(fast.builder.run(fast.x, grouped(fast.w, 1)), expected)
    assert error <= rounding + fast.info().relative_error


SCRIPT = """
import numpy as np
from winograd_cases import Case
from tvm_mxplan.byoc.onednn import library
for layout in ("abcd", "bacd", "ABcd8b8a", "ABcd16b16a"):
    for algorithm, size in (("winograd_f2", 3), ("winograd_f4", 3), ("winograd_f2", 5)):
        case = Case(algorithm, (2, 19, 11, 9), 37, size=size, varying=layout).convolve()
        case.check(case.direct())
print(library.isa())
"""


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa):
    run_with_less(SCRIPT, isa)
