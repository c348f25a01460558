"""Attention in the runtime: masks, heads in groups, layouts, rows that see nothing; held against float64."""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir

MISSING = OneDNN().lacks("bfloat16")
"""The reason that nothing runs in bfloat16, '' if something does."""


@dataclass(frozen=True)
class Case:
    """Sizes by the letters of ``ir.Attention``, and the mask's own shape; () for none."""

    n: int = 1
    h: int = 3
    g: int = 3
    s: int = 67
    t: int = 67
    d: int = 17
    w: int = 17
    mask: tuple[int, ...] = ()
    causal: ir.AttentionCausal = "no"
    nan_is_zero: bool = False
    layout: str = "acbd"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        heads = (self.n, self.g, self.t)
        shapes = {"src": (self.n, self.h, self.s, self.d), "key": (*heads, self.d), "value": (*heads, self.w)}
        return shapes | ({"mask": self.mask} if self.mask else {})

    def arrays(self) -> dict[str, Array]:
        return {
            role: random(*shape, seed=place) * (3.0 if role == "src" else 1.0)
            for place, (role, shape) in enumerate(self.shapes.items())
        }

    def builder(self) -> Builder:
        b = Builder()
        ids = {role: b.input(shape, self.stored(role)) for role, shape in self.shapes.items()}
        dst = b.output((self.n, self.s, self.h, self.w))
        b.step(ir.Attention(self.d**-0.5, self.causal, self.nan_is_zero), **ids, dst=dst)
        return b

    def stored(self, role: str) -> str:
        return "abcd" if role == "mask" else self.layout

    def run(self, arrays: dict[str, Array]) -> Array:
        """The result, as heads of rows; it has been held against its reference."""
        order = {role: ["abcd".index(letter) for letter in self.stored(role)] for role in arrays}
        stored = [np.ascontiguousarray(array.transpose(order[role])) for role, array in arrays.items()]
        return self.builder().run(*stored).swapaxes(1, 2)


def expected(case: Case, arrays: dict[str, Array]) -> Array:
    """Written apart from the reference of opcheck, one head at a time."""
    out = np.empty((case.n, case.h, case.s, case.w))
    mask = np.broadcast_to(arrays.get("mask", np.zeros(1)), (case.n, case.h, case.s, case.t))
    for n, h in np.ndindex(case.n, case.h):
        key, value = (arrays[role][n, h * case.g // case.h].astype(np.float64) for role in ("key", "value"))
        scores = arrays["src"][n, h] @ key.T / np.sqrt(case.d) + mask[n, h]
        if case.causal != "no":
            scores[
                ~np.tri(case.s, case.t, case.t - case.s if case.causal == "last" else 0, dtype=bool)
            ] = -np.inf
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        out[n, h] = (np.nan_to_num(weights, nan=0.0) if case.nan_is_zero else weights) @ value
    return out


def check(case: Case, arrays: dict[str, Array] | None = None) -> Array:
    arrays = case.arrays() if arrays is None else arrays
    got = case.run(arrays)
    np.testing.assert_allclose(got, expected(case, arrays), rtol=0, atol=4e-6)
    return got


CASES = {
    "odd": Case(),
    "samples": Case(n=3, h=5, g=5, s=7, t=19),
    "one row": Case(s=1, t=70, d=64, w=64),
    "a few rows of many keys": Case(h=1, g=1, s=5, t=601, d=48, w=19),
    "vectors and one row": Case(n=2, s=49, t=49, d=32, w=32),
    "many rows": Case(h=1, g=1, s=131, t=33, d=8, w=40),
    "several blocks of keys": Case(h=1, g=1, s=35, t=700, d=16, w=16),
    "one key": Case(s=9, t=1),
    "groups": Case(n=2, h=6, g=2, s=11, t=13),
    "one head of keys, one row": Case(h=8, g=1, s=1, t=90, d=32, w=32),
    "plain": Case(layout="abcd"),
    "mask": Case(n=2, mask=(2, 3, 67, 67)),
    "mask of keys": Case(n=2, s=20, mask=(2, 1, 1, 67)),
    "mask of heads": Case(n=2, h=4, g=2, s=20, mask=(1, 4, 1, 67)),
    "mask of rows": Case(s=20, mask=(1, 3, 20, 1)),
    "mask of one row": Case(s=1, mask=(1, 1, 1, 67)),
    "first": Case(s=40, t=61, causal="first"),
    "last": Case(s=21, t=300, causal="last"),
    "last, one row": Case(s=1, t=41, causal="last"),
    "last, masked": Case(s=21, t=35, causal="last", mask=(1, 1, 21, 35)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    case = CASES[name]
    assert np.isfinite(check(case)).all()


def test_the_kernels_are_those_of_the_library_s_instruction_set():
    program = Case().builder().build()
    (step,) = library.describe(program).steps
    wanted = {"avx512": "attention:avx512", "avx2": "attention:avx2"}
    isa = library.isa()
    assert step.implementation == next(
        (name for start, name in wanted.items() if start in isa), "attention:sse2"
    )


def in_bfloat16(case: Case) -> ir.Program:
    """The case's step with all but its mask in bfloat16."""
    program = case.builder().build()
    mask = {o.value for o in program.steps[0].operands if o.role == "mask"}
    values = tuple(
        value if number in mask else replace(value, dtype="bfloat16")
        for number, value in enumerate(program.values)
    )
    return replace(program, values=values)


Shorts = dict[str, np.ndarray]


def rounded(case: Case) -> Shorts:
    return {
        role: array if role == "mask" else array.astype(ml_dtypes.bfloat16)
        for role, array in case.arrays().items()
    }


def run_in_bfloat16(case: Case, arrays: Shorts) -> Array:
    """The result in float64, as heads of rows."""
    order = {role: ["abcd".index(letter) for letter in case.stored(role)] for role in arrays}
    stored = [np.ascontiguousarray(array.transpose(order[role])) for role, array in arrays.items()]
    out = np.zeros((case.n, case.s, case.h, case.w), ml_dtypes.bfloat16)
    library.trial(in_bfloat16(case), [])(*stored, out)
    return out.astype("float64").swapaxes(1, 2)


def check_in_bfloat16(case: Case, arrays: Shorts | None = None) -> Array:
    """Weights are rounded once, and so is the result."""
    arrays = rounded(case) if arrays is None else arrays
    got = run_in_bfloat16(case, arrays)
    wide = {role: array.astype("float32") for role, array in arrays.items()}
    exact = expected(case, wide)
    terms = expected(case, {**wide, "value": np.abs(wide["value"])})
    near = np.abs(got - exact) <= 2.0**-8 * (terms + np.abs(exact)) + 1e-5
    assert (near | (np.isnan(got) & np.isnan(exact))).all()
    return got


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("name", CASES)
def test_in_bfloat16_against_float64(name):
    (step,) = library.describe(in_bfloat16(CASES[name])).steps
    tiles = "amx" in library.isa()
    assert step.implementation == ("attention:avx512_amx" if tiles else "attention:avx512_bf16")
    assert np.isfinite(check_in_bfloat16(CASES[name])).all()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("depths", [(1, 1), (31, 33), (64, 48), (80, 7), (130, 64)])
def test_in_bfloat16_with_any_number_of_rows_and_keys(depths):
    """Rows and keys that fill no vector, no tile and no block of keys, and see a part of them."""
    d, w = depths
    for s, t in ((1, 70), (12, 1), (13, 33), (16, 16), (17, 5), (33, 70), (48, 257), (70, 31), (129, 300)):
        check_in_bfloat16(Case(h=2, g=1, s=s, t=t, d=d, w=w))
        check_in_bfloat16(Case(h=2, g=2, s=s, t=t, d=d, w=w, causal="first"))
        if s <= t:
            check_in_bfloat16(Case(h=1, g=1, s=s, t=t, d=d, w=w, causal="last", mask=(1, 1, 1, t)))


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("nan_is_zero", [False, True])
@pytest.mark.parametrize("far", [-np.inf, float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)])
def test_in_bfloat16_masks_hide_keys_of_a_tile_and_all_of_a_row(far, nan_is_zero):
    """Windows of keys that move with the rows, over several blocks; one row sees nothing, or all the same."""
    case = Case(h=1, g=1, s=100, t=620, mask=(1, 1, 100, 620), nan_is_zero=nan_is_zero)
    arrays = rounded(case)
    hidden = np.ones((case.s, case.t), bool)
    for row in range(case.s):
        hidden[row, 5 * row : 5 * row + 100] = row == 70
    arrays["mask"] = np.where(hidden, np.float32(far), np.float32(0))[None, None]
    got = check_in_bfloat16(case, arrays)
    assert np.isnan(got[0, 0, 70]).all() == (far == -np.inf and not nan_is_zero)
    assert np.isfinite(np.delete(got[0, 0], 70, 0)).all()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_in_bfloat16_what_is_no_number_stays_in_its_row(number):
    """Of queries; of values in their column; nothing that stands behind the last key reaches a result."""
    case = Case(s=45, t=45)
    arrays = rounded(case)
    arrays["src"][0, 1, 20, 3] = number
    got = run_in_bfloat16(case, arrays)
    assert np.isnan(got[0, 1, 20]).all()
    got[0, 1, 20] = 0
    assert np.isfinite(got).all()
    arrays = rounded(case)
    arrays["value"][0, 1, 5, 2] = np.nan
    got = run_in_bfloat16(case, arrays)
    assert np.isnan(got[0, 1, :, 2]).all()
    got[0, 1, :, 2] = 0
    assert np.isfinite(got).all()


@pytest.mark.skipif(not MISSING, reason="the processor computes in bfloat16")
def test_bfloat16_is_refused_where_there_is_none():
    (step,) = library.describe(in_bfloat16(Case())).steps
    assert "attention is computed in float32, and in bfloat16 with avx512_bf16" in step.error


def test_types_that_differ_are_refused_by_role():
    program = Case(mask=(1, 1, 67, 67)).builder().build()
    values = list(program.values)
    key = program.steps[0].operand("key")
    values[key] = replace(values[key], dtype="bfloat16")
    (step,) = library.describe(replace(program, values=tuple(values))).steps
    assert "key in another type than expected" in step.error


@pytest.mark.parametrize("nan_is_zero", [False, True])
@pytest.mark.parametrize("s", [1, 37])
def test_rows_that_see_nothing(nan_is_zero, s):
    """Not a number, or 0, and the other rows as ever."""
    case = Case(s=s, t=300, mask=(1, 1, s, 300), nan_is_zero=nan_is_zero)
    arrays = case.arrays()
    arrays["mask"][:, :, s // 2] = -np.inf
    got = check(case, arrays)
    dead = got[:, :, s // 2]
    assert (dead == 0).all() if nan_is_zero else np.isnan(dead).all()
    assert np.isfinite(np.delete(got, s // 2, 2)).all()


@pytest.mark.parametrize("far", [-np.inf, float(np.finfo(np.float32).min), -1e9, -1e4])
@pytest.mark.parametrize("few", [False, True])
def test_masked_keys_count_nothing(far, few):
    case = Case(s=1 if few else 50, t=290, mask=(1, 1, 1 if few else 50, 290))
    arrays = case.arrays()
    seen = np.zeros((case.s, 290), bool)
    for row in range(case.s):
        seen[row, row : 20 + 5 * row] = True
    arrays["mask"] = np.where(seen, np.float32(0), np.float32(far))[None, None]
    check(case, arrays)


def test_a_row_whose_mask_leaves_the_least_is_the_mean():
    """All keys count the same in rows whose terms swallow their scores; the rows beside see some."""
    case = Case(s=20, t=40, mask=(1, 1, 20, 40))
    arrays = case.arrays()
    arrays["mask"] = np.zeros(case.mask, "float32")
    arrays["mask"][:, :, :, 9:] = arrays["mask"][:, :, 4] = np.finfo(np.float32).min
    got = case.run(arrays)
    np.testing.assert_allclose(got[0, :, 4], arrays["value"][0].mean(1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("s", [1, 20])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_number_stays_in_its_row(number, s):
    """A row of queries spoils its own result alone; values spoil their column."""
    case = Case(s=max(s, 2), t=33) if s > 1 else Case(n=2, s=1, t=33)
    arrays = case.arrays()
    arrays["src"][0, 1, 0, 3] = number
    got = case.run(arrays)
    assert np.isnan(got[0, 1, 0]).all()
    got[0, 1, 0] = 0
    assert np.isfinite(got).all()
    arrays = case.arrays()
    arrays["value"][0, 1, 5, 2] = np.nan
    got = case.run(arrays)
    assert np.isnan(got[0, 1, :, 2]).all()
    got[0, 1, :, 2] = 0
    assert np.isfinite(got).all()


def test_exponentials_are_exact_to_their_last_digits():
    """One key of score 0 beside one that lies below it: their weights tell e to that power."""
    below = np.linspace(-86.0, 0.0, 4001, dtype="float32")
    case = Case(h=1, g=1, s=len(below), t=2, d=1, w=1)
    arrays = {
        "src": below.reshape(1, 1, -1, 1),
        "key": np.array([1.0, 0.0], "float32").reshape(1, 1, 2, 1),
        "value": np.array([1.0, 0.0], "float32").reshape(1, 1, 2, 1),
    }
    power = np.exp(below.astype(np.float64))
    got = case.run(arrays).reshape(-1)
    np.testing.assert_allclose(got, power / (1 + power), rtol=4e-7)


def test_layouts_whose_rows_do_not_stand_together_are_refused():
    b = Case().builder()
    b.values[0] = replace(b.values[0], layout="abdc")
    (step,) = library.describe(b.build()).steps
    assert "src in layout abdc, expected one whose last axis is innermost" in step.error


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa):
    run_again(__file__, isa, "against_float64 or see_nothing or -inf or the_kernels_are")


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_vectors_where_tiles_are_the_first_choice():
    run_again(__file__, "AVX512_CORE_FP16", "bfloat16 and not refused or the_kernels_are")
