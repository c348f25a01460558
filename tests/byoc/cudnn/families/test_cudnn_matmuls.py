"""Products of permuted tensors, and attention in its parts: rows that see nothing, heads that share keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import tvm
from cudnn_programs import checked_module, worked_out
from cudnn_stand_in import StandIn
from relax_programs import normal, parse
from tvm import relax

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention import Attention, attention

ROWS, COLUMNS, WIDTH, HEADS = 5, 7, 8, 3
LINES = [
    "q = R.permute_dims(x, [0, 2, 1, 3])",
    "k = R.permute_dims(z, [0, 2, 3, 1])",
    "a = R.matmul(q, k)",
    "return a",
]


@pytest.mark.parametrize("batch, copies", [(1, 0), (2, 2)])
def test_matrices_that_no_number_sets_apart_are_copied(planner: StandIn, batch: int, copies: int) -> None:
    shapes = {"x": (batch, ROWS, HEADS, WIDTH), "z": (batch, COLUMNS, HEADS, WIDTH)}
    parameters = ", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in shapes.items())
    arrays = {name: normal(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    mod = parse("\n".join(LINES), parameters)
    assert [step.kind for step in checked_module(mod, arrays, tf32=True)] == ["matmul"]
    program, _ = worked_out(mod, arrays, tf32=True)
    assert sum(isinstance(step.attrs, ir.Reorder) for step in program.steps) == copies


@dataclass(frozen=True)
class Case:
    """Attention as an operator, of two images."""

    kind: Attention
    dtype: str = "float32"
    rows: int = ROWS
    heads: int = HEADS
    groups: int = HEADS
    mask: tuple[int, ...] = ()
    constant: np.ndarray | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        shared = dict.fromkeys(("k", "v"), (2, self.groups, COLUMNS, WIDTH))
        return {"q": (2, self.heads, self.rows, WIDTH), **shared, **({"m": self.mask} if self.mask else {})}

    def module(self) -> tvm.IRModule:
        builder = relax.BlockBuilder()
        params = [relax.Var(name, relax.TensorType(shape, self.dtype)) for name, shape in self.shapes.items()]
        constant = (
            [] if self.constant is None else [relax.const(self.constant.astype(numpy_type(self.dtype)))]
        )
        with builder.function("main", params):
            with builder.dataflow():
                out = builder.emit_output(attention(self.kind, *params, *constant))
            builder.emit_func_output(out)
        return builder.get()

    def arrays(self) -> dict[str, np.ndarray]:
        """Numbers, of which the mask hides all from some of the rows and one column from all."""
        found = {name: normal(at, *shape) for at, (name, shape) in enumerate(self.shapes.items())}
        if self.mask:
            found["m"][..., 2] = -np.inf
            found["m"][0, :, 1] = -np.inf
        return {name: array.astype(numpy_type(self.dtype)) for name, array in found.items()}


def kinds(program: ir.Program) -> list[str]:
    return [step.kind for step in program.steps if not isinstance(step.attrs, ir.Reorder)]


GUARDED = Attention(0.25, "no", nan_is_zero=True)
MASKS = {
    "a mask for all": (1, 1, ROWS, COLUMNS),
    "one for each image": (2, 1, ROWS, COLUMNS),
    "one for each head": (2, HEADS, ROWS, COLUMNS),
}


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("case", MASKS)
def test_rows_that_see_nothing_are_zero(planner: StandIn, case: str, tf32: bool) -> None:
    one = Case(GUARDED, mask=MASKS[case])
    arrays = one.arrays()
    steps = checked_module(one.module(), arrays, tf32=tf32)
    assert {"softmax", "binary"} <= {step.kind for step in steps}
    _, (result,) = worked_out(one.module(), arrays, tf32=tf32)
    dead = np.isneginf(arrays["m"]).all(-1)
    assert dead.any() and (result[np.broadcast_to(dead, result.shape[:-1])] == 0).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rows_that_see_nothing_are_zero_in_16_bits(planner: StandIn, dtype: str) -> None:
    one = Case(GUARDED, dtype, mask=(2, 1, ROWS, COLUMNS))
    arrays = one.arrays()
    program, (result,) = worked_out(one.module(), arrays)
    assert "attention" not in kinds(program) and kinds(program).count("matmul") == 2
    q, k, v, m = (arrays[name].astype("float64") for name in "qkvm")
    scores = q @ k.swapaxes(-1, -2) * 0.25 + m
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = np.nan_to_num(weights / weights.sum(-1, keepdims=True))
    np.testing.assert_allclose(result, weights @ v, rtol=1e-12, atol=1e-12)  # worked out in float64
    assert (result[0, :, 1] == 0).all()


SEEN = np.where(np.arange(COLUMNS) > 2, -np.inf, 1.0)
NEVER_EMPTY = {
    "no mask": Case(GUARDED, "float16"),
    "rows that see those before them": Case(Attention(0.25, "last", True), "float16"),
    "a constant mask that leaves each row some": Case(GUARDED, "float16", constant=SEEN[None, None, None]),
    "both": Case(Attention(0.25, "first", True), "float16", constant=SEEN[None, None, None]),
}


@pytest.mark.parametrize("case", NEVER_EMPTY)
def test_rows_that_see_something_need_no_guard(planner: StandIn, case: str) -> None:
    one = NEVER_EMPTY[case]
    program, _ = worked_out(one.module(), one.arrays())
    assert kinds(program) == ["attention"]
    (step,) = (step for step in program.steps if isinstance(step.attrs, ir.Attention))
    assert not step.attrs.nan_is_zero


EMPTY = {
    "more rows than columns": Case(Attention(0.25, "last", True), rows=9),
    "a constant mask that hides the first column": Case(
        Attention(0.25, "first", True), constant=SEEN[::-1].copy()[None, None, None]
    ),
}


@pytest.mark.parametrize("case", EMPTY)
def test_constant_masks_that_hide_all_are_guarded(planner: StandIn, case: str) -> None:
    one = EMPTY[case]
    steps = checked_module(one.module(), one.arrays())
    assert [step.kind for step in steps].count("softmax") == 1
    assert any(step.attrs == ir.Binary("ge") for step in steps)
    _, (result,) = worked_out(one.module(), one.arrays())
    assert (result == 0).all(-1).any()


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_heads_share_keys_in_float32(planner: StandIn, groups: int, tf32: bool) -> None:
    one = Case(Attention(0.25, "last"), heads=4, groups=groups)
    steps = checked_module(one.module(), one.arrays(), tf32=tf32)
    found = [step.kind for step in steps]
    assert found.count("concat") == 2 and found.count("softmax") == 1
