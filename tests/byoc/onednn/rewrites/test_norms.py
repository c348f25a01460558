"""Layer norms of whole images: which are taken in the order of channels last, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from small_programs import Small, fused, kinds, run

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.rewrites import fusion
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts

IMAGE = (2, 16, 5, 7)
ROWS = (2, 560)


def normalized(b: Small, src: int, rows: tuple[int, ...] = ROWS) -> int:
    """The image ``src`` with the mean and the variance of each sample removed."""
    norm = b.step("layer_norm", ir.LayerNormalization(1e-5), rows, [("src", b.reshape(src, rows))])
    return b.reshape(norm, b.shape(src))


def scaled(b: Small, src: int) -> int:
    return b.binary(b.binary(src, b.numbers(1, 16, 1, 1), "mul"), b.numbers(1, 16, 1, 1), "add")


def block(rows: tuple[int, ...] = ROWS) -> tuple[Small, int]:
    """A convolution, a norm of one group, and a sum of both."""
    b = Small(IMAGE, (2, 3, 5, 7))
    x = b.conv(b.inputs[0], 16)
    return b, b.conv(b.binary(scaled(b, normalized(b, x, rows)), x), 16)


@pytest.mark.parametrize("rows", [ROWS, (2, 1, 560)], ids=["rows", "rows of one group"])
def test_a_norm_of_an_image_needs_no_reorder_where_channels_are_last(rows: tuple[int, ...]) -> None:
    b, y = block(rows)
    after = fused(b, y)
    assert kinds(after).count("layer_normalization") == 1
    planned = infer_layouts(after, OneDNN()).program
    (norm,) = (step for step in planned.steps if step.kind == "layer_normalization")
    inside = [step.kind for step in planned.steps[1:-1]]  # behind the input, in front of the output
    assert "reorder" not in inside, inside
    assert planned.values[norm.operand("src")].shape == rows


def test_the_numbers_stay_in_channels_last() -> None:
    b, y = block()
    b.write_output(y, b.output)
    before, constants = b.finish(), list(b.constants)
    after, changed, _ = fusion.fuse(before, constants)
    planned = infer_layouts(after, OneDNN()).program
    np.testing.assert_allclose(run(planned, changed), run(before, constants), rtol=1e-4, atol=1e-4)


def test_a_norm_that_is_read_as_rows_stays() -> None:
    b = Small(ROWS, IMAGE)
    x = b.eltwise(b.inputs[0], "tanh")
    norm = b.step("layer_norm", ir.LayerNormalization(1e-5), ROWS, [("src", b.reshape(x, ROWS))])
    assert "reorder" not in kinds(fused(b, b.eltwise(norm, "tanh")))


def test_a_norm_of_several_groups_stays() -> None:
    b = Small(IMAGE, IMAGE)
    groups = (8, 140)
    assert "reorder" not in kinds(fused(b, scaled(b, normalized(b, b.eltwise(b.inputs[0], "tanh"), groups))))


def test_a_norm_of_an_input_stays() -> None:
    b = Small(IMAGE, IMAGE)
    assert "reorder" not in kinds(fused(b, scaled(b, normalized(b, b.inputs[0]))))
