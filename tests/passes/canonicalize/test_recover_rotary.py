"""``RecoverRotary``: every way of writing rotary places is one operator; what is only like it stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from dataflow_text import calls
from test_recover_rms_norms import Emit, function, number, run_by_tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.operators.attention import ROTARY
from tvm_mxplan.passes.canonicalize import RecoverRotary

op = relax.op
N, H, S, D = 2, 3, 7, 16
WHOLE, PAIRS = (1, 1, S, D), (S, D // 2)
Halves = Callable[[Emit, relax.Expr], tuple[relax.Expr, relax.Expr]]


def sliced(emit: Emit, x: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    last, extent = len(x.ty.shape.values) - 1, int(x.ty.shape.values[-1])
    first = emit(op.strided_slice(x, [last], [0], [extent // 2]))
    return first, emit(op.strided_slice(x, [last], [extent // 2], [2**31]))


def neighbours(emit: Emit, x: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    return tuple(emit(op.strided_slice(x, [3], [at], [D], [2])) for at in (0, 1))  # type: ignore[return-value]


def seen_as_pairs(emit: Emit, x: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    apart = emit(op.reshape(x, (N, H, S, D // 2, 2)))
    return tuple(emit(op.take(apart, relax.const(at, "int64"), 4)) for at in (0, 1))  # type: ignore[return-value]


def seen_as_halves(emit: Emit, x: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    apart = emit(op.reshape(x, (N, H, S, 2, D // 2)))
    one = (emit(op.strided_slice(apart, [3], [at], [at + 1])) for at in (0, 1))
    return tuple(emit(op.squeeze(part, [3])) for part in one)  # type: ignore[return-value]


def side_by_side(emit: Emit, first: relax.Expr, second: relax.Expr) -> relax.Expr:
    return emit(op.concat([first, second], -1))


def in_turn(emit: Emit, first: relax.Expr, second: relax.Expr) -> relax.Expr:
    return emit(op.reshape(emit(op.stack([first, second], -1)), (N, H, S, D)))


def in_turn_by_axes(emit: Emit, first: relax.Expr, second: relax.Expr) -> relax.Expr:
    apart = [emit(op.expand_dims(one, -1)) for one in (first, second)]
    return emit(op.reshape(emit(op.concat(apart, -1)), (N, H, S, D)))


def turned(
    halves: Halves, joined: Callable[..., relax.Expr], swapped: bool = False
) -> Callable[..., relax.Expr]:
    def write(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
        a, b = halves(emit, x)
        minus = emit(op.multiply(b, number(-1.0)) if swapped else op.negative(b))
        products = [[x, cosines], [joined(emit, minus, a), sines]]
        if swapped:
            products = [two[::-1] for two in products[::-1]]
        return emit(op.add(*(emit(op.multiply(*two)) for two in products)))

    return write


def apart(
    halves: Halves, joined: Callable[..., relax.Expr], swapped: bool = False
) -> Callable[..., relax.Expr]:
    def write(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
        a, b = halves(emit, x)
        first = emit(op.subtract(emit(op.multiply(a, cosines)), emit(op.multiply(sines, b))))
        terms = [emit(op.multiply(b, cosines)), emit(op.multiply(a, sines))]
        return joined(emit, first, emit(op.add(*(terms[::-1] if swapped else terms))))

    return write


FORMS: dict[str, tuple[Callable[..., relax.Expr], tuple[int, ...]]] = {
    "halves": (turned(sliced, side_by_side), WHOLE),
    "halves, other way round": (turned(sliced, side_by_side, swapped=True), WHOLE),
    "tables of fewer axes": (turned(sliced, side_by_side), (S, D)),
    "tables of samples": (turned(sliced, side_by_side), (N, 1, S, D)),
    "neighbours": (turned(neighbours, in_turn), WHOLE),
    "neighbours by axes": (turned(neighbours, in_turn_by_axes), WHOLE),
    "pairs apart": (turned(seen_as_pairs, in_turn), WHOLE),
    "halves apart": (turned(seen_as_halves, side_by_side), WHOLE),
    "numbers of halves": (apart(sliced, side_by_side), PAIRS),
    "numbers of halves, other way round": (apart(sliced, side_by_side, swapped=True), PAIRS),
    "numbers of neighbours": (apart(neighbours, in_turn), PAIRS),
    "numbers of pairs": (apart(seen_as_pairs, in_turn_by_axes), PAIRS),
}


def written(write: Callable[..., relax.Expr], table: tuple[int, ...], extent: int = D) -> tvm.IRModule:
    return function(write, (N, H, S, extent), table, table)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_one_operator(name: str) -> None:
    mod = written(*FORMS[name])
    found = RecoverRotary()(mod)
    names = [str(call.op.name).removeprefix("relax.") for call in calls(found)]
    assert [one for one in names if one != "expand_dims"] == ["mxplan.rotary"]
    random = np.random.default_rng(5)
    shapes = ((N, H, S, D), FORMS[name][1], FORMS[name][1])
    arrays = [random.standard_normal(shape).astype("float32") for shape in shapes]
    wanted = run_by_tvm(mod, arrays)
    np.testing.assert_allclose(run_by_tvm(found, arrays), wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", ["halves", "numbers of neighbours"])
def test_it_runs_as_one_step(name: str) -> None:
    mod = written(*FORMS[name])
    random = np.random.default_rng(5)
    shapes = ((N, H, S, D), FORMS[name][1], FORMS[name][1])
    arrays = [random.standard_normal(shape).astype("float32") for shape in shapes]
    executable = tvm_mxplan.compile(mod)
    assert executable.report.offloaded == 1
    (got,) = executable(*arrays)
    np.testing.assert_allclose(got.numpy(), run_by_tvm(mod, arrays), rtol=0, atol=2e-6)


def partly(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
    """The first half of each row is turned."""
    begun, rest = sliced(emit, x)
    return emit(op.concat([turned(sliced, side_by_side)(emit, begun, cosines, sines), rest], -1))


@pytest.mark.slow
def test_what_stays_of_a_row_is_part_of_the_operator() -> None:
    mod = written(partly, (1, 1, S, D // 2))
    found = RecoverRotary()(mod)
    (call,) = calls(found)
    assert ROTARY.is_called(call) and int(call.attrs["width"]) == D // 2
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(s).astype("float32") for s in ((N, H, S, D), *[(1, 1, S, D // 2)] * 2)]
    np.testing.assert_allclose(run_by_tvm(found, arrays), run_by_tvm(mod, arrays), rtol=0, atol=2e-6)


def wrong_sign(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
    a, b = sliced(emit, x)
    joined = emit(op.concat([b, emit(op.negative(a))], -1))
    return emit(op.add(emit(op.multiply(x, cosines)), emit(op.multiply(joined, sines))))


def wrong_halves(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
    a, b = sliced(emit, x)
    joined = emit(op.concat([emit(op.negative(a)), b], -1))
    return emit(op.add(emit(op.multiply(x, cosines)), emit(op.multiply(joined, sines))))


def other_source(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
    a, b = sliced(emit, emit(op.abs(x)))
    joined = emit(op.concat([emit(op.negative(b)), a], -1))
    return emit(op.add(emit(op.multiply(x, cosines)), emit(op.multiply(joined, sines))))


def mixed_pairs(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
    """Halves that become neighbours."""
    return turned(sliced, in_turn)(emit, x, cosines, sines)


def two_tables(emit: Emit, x: relax.Expr, cosines: relax.Expr, sines: relax.Expr) -> relax.Expr:
    """The second numbers are turned another way."""
    a, b = sliced(emit, x)
    first = emit(op.subtract(emit(op.multiply(a, cosines)), emit(op.multiply(b, sines))))
    second = emit(op.add(emit(op.multiply(b, sines)), emit(op.multiply(a, cosines))))
    return emit(op.concat([first, second], -1))


def in_front(emit: Emit, first: relax.Expr, second: relax.Expr) -> relax.Expr:
    """One behind the other, though of two numbers each, as pairs of neighbours are."""
    return emit(op.reshape(emit(op.stack([first, second], 3)), (N, H, S, 4)))


def test_two_numbers_behind_two_others_are_no_neighbours() -> None:
    def two(emit: Emit, x: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
        return tuple(emit(op.strided_slice(x, [3], [at], [4], [2])) for at in (0, 1))  # type: ignore[return-value]

    found = RecoverRotary()(written(turned(two, in_front), (1, 1, S, 4), 4))
    assert not any(ROTARY.is_called(call) for call in calls(found))


@pytest.mark.parametrize(
    ("write", "table"),
    [
        (wrong_sign, WHOLE), (wrong_halves, WHOLE), (other_source, WHOLE), (mixed_pairs, WHOLE),
        (two_tables, PAIRS), (turned(sliced, side_by_side), (1, 1, S, 1)),
    ],
)  # fmt: skip
def test_what_is_only_like_it_stays(write: Callable[..., relax.Expr], table: tuple[int, ...]) -> None:
    found = RecoverRotary()(written(write, table))
    assert not any(ROTARY.is_called(call) for call in calls(found))
