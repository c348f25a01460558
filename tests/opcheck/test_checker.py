"""Every injected fault is caught, and the step that has it is named; right programs have nothing to say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import tvm_ffi
from blocks import BLOCK, BLOCKED

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.opcheck import OpCheck, checking

SHAPE = (1, 17, 9, 9)
WEIGHTS = np.random.default_rng(0).standard_normal((17, 17, 3, 3), np.float32) / 12
X = np.random.default_rng(1).standard_normal(SHAPE, np.float32)
SAME = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)


def network(layout: str = BLOCKED) -> ir.Program:
    """x -> reorder -> convolution + relu -> max pooling -> y = (that - x) -> reorder."""
    values = [
        ir.Value("x", SHAPE, "float32", "input", "abcd", 0),
        ir.Value("y", SHAPE, "float32", "output", "abcd", 0),
        ir.Value("w", WEIGHTS.shape, "float32", "constant", "abcd", 0),
        *(ir.Value(name, SHAPE, "float32", "local", layout) for name in ("a", "b", "c", "d")),
    ]

    def step(name: str, attrs: ir.Attributes, *post_ops: ir.PostOp, **operands: int) -> ir.Step:
        return ir.Step(name, attrs, tuple(ir.Operand(r, v) for r, v in operands.items()), post_ops)

    steps = (
        step("in", ir.Reorder(), src=0, dst=3),
        step("conv", SAME, ir.EltwisePostOp("relu", 0.0, 0.0), src=3, weights=2, dst=4),
        step("pool", ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), src=4, dst=5),
        step("sub", ir.Binary("sub"), src=5, src1=3, dst=6),
        step("out", ir.Reorder(), src=6, dst=1),
    )
    return ir.Program("net", tuple(values), steps)


def run(program: ir.Program, *inputs: np.ndarray, weights: np.ndarray = WEIGHTS, folder=None) -> OpCheck:
    module = library.create_module(program.name, program, [weights])
    out = np.zeros(SHAPE, np.float32)
    with checking(folder) as checker:
        module[program.name](*(tvm_ffi.from_dlpack(array) for array in (*(inputs or (X,)), out)))
    return checker.result()


@pytest.mark.parametrize("layout", ["abcd", "acdb", BLOCKED])
def test_a_right_program_has_nothing_to_say(layout):
    result = run(network(layout))
    assert (result.steps, result.first) == (5, None)
    assert "5 steps agree" in str(result)
    assert 0 < result.worst < 1, "some step rounds, and none by more than allowed"


def doctored(monkeypatch: pytest.MonkeyPatch, change: Callable[[ir.Step], ir.Step], name: str) -> OpCheck:
    """The runtime runs a program in which one step is not the one that is checked against."""
    right = network()
    wrong = replace(right, steps=tuple(change(step) if step.name == name else step for step in right.steps))
    assert wrong != right
    monkeypatch.setattr(codec, "decode", lambda _: right)
    return run(wrong)


def swap(step: ir.Step) -> ir.Step:
    first, second, dst = step.operands
    operands = (replace(first, value=second.value), replace(second, value=first.value), dst)
    return replace(step, operands=operands)


def wrong_attributes(**changes: object) -> Callable[[ir.Step], ir.Step]:
    return lambda step: replace(step, attrs=replace(step.attrs, **changes))


FAULTS = {
    "a dilated window": ("conv", wrong_attributes(padding=(2, 2, 2, 2), dilation=(2, 2))),
    "a shifted window": ("conv", wrong_attributes(padding=(0, 1, 2, 1))),
    "a lost post-op": ("conv", lambda step: replace(step, post_ops=())),
    "another post-op": ("conv", lambda step: replace(step, post_ops=(ir.EltwisePostOp("abs", 0.0, 0.0),))),
    "another pooling": ("pool", wrong_attributes(algorithm="avg_include_padding")),
    "another window": ("pool", wrong_attributes(padding=(0, 1))),
    "operands that are swapped": ("sub", swap),
    "another operator": ("sub", wrong_attributes(algorithm="max")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_step_is_named(monkeypatch, fault):
    name, change = FAULTS[fault]
    result = doctored(monkeypatch, change, name)
    assert result.first is not None
    assert result.first.name == name
    assert result.first.finding.kind == "values"
    assert {difference.name for difference in result.differences} == {name}
    first = result.first
    assert first.step == [step.name for step in network().steps].index(name)
    assert first.finding.actual != first.finding.expected
    assert f"dst: {BLOCKED}" in first.layouts
    assert name in str(result)


def test_one_wrong_weight_is_found():
    """The weights change after they were packed: what runs is not what the region holds."""
    weights = WEIGHTS.copy()
    program = network()
    module = library.create_module("net", program, [weights])
    module["mxplan.prepare"]()
    weights[5, 11, 1, 1] += 0.05
    with checking() as checker:
        module["net"](tvm_ffi.from_dlpack(X), tvm_ffi.from_dlpack(np.zeros(SHAPE, np.float32)))
    first = checker.result().first
    assert first is not None
    assert (first.name, first.finding.index[1]) == ("conv", 5)


def test_a_tail_that_is_not_zero_is_found():
    program = network()
    program = replace(program, values=(replace(program.values[0], layout=BLOCKED), *program.values[1:]))
    x = np.zeros((1, -(-17 // BLOCK), 9, 9, BLOCK), np.float32)
    x[:, :-1], x[:, -1, ..., :1] = 1, 1
    assert run(program, x).first is None
    x[0, -1, 4, 4, 7] = 1e-30
    first = run(program, x).first
    assert first is not None
    assert (first.name, first.finding.kind, first.finding.value, first.finding.count) == (
        "in",
        "tail",
        "x",
        1,
    )
    assert "1 elements in the padding of x are not zero" in str(first)


def test_a_value_off_its_alignment_is_refused():
    program = network()
    nbytes = 2 * 16 * 81 * 4  # whole blocks of 8 or 16, and whole lines of caches
    values = [
        replace(v, offset=(at - 3) * nbytes, nbytes=nbytes) if v.kind == "local" else v
        for at, v in enumerate(program.values)
    ]
    planned = replace(program, values=tuple(values), arena_bytes=4 * nbytes + 64)
    assert run(planned).first is None
    with pytest.raises(InvalidInputError, match="value d: expected an offset that is a multiple of 64"):
        run(planned.with_value(6, offset=3 * nbytes + 4))


def test_numbers_that_are_missing_rightly_are_no_difference():
    x = X.copy()
    x[0, 3, 4, 4] = np.inf
    result = run(network(), x)
    assert result.first is None, result
    assert "in" in result.not_finite
    assert "not finite, as expected: in" in str(result)


def test_a_number_lost_is_a_difference(monkeypatch):
    """The logarithm of what may be negative, where there should be a ReLU."""
    log = ir.EltwisePostOp("log", 0.0, 0.0)
    first = doctored(monkeypatch, lambda step: replace(step, post_ops=(log,)), "conv").first
    assert first is not None
    assert (first.name, first.finding.kind) == ("conv", "not finite")
    assert "nan" in str(first)


def test_symbolic_shapes_at_their_numbers():
    program = network("acdb")
    n = Symbol("n")
    values = [replace(v, shape=(n, *v.shape[1:])) if v.name != "w" else v for v in program.values]
    program = replace(program, values=tuple(values), symbols=(ir.SymbolBinding("n", 0, 0),))
    module = library.create_module("net", program, [WEIGHTS])
    for batch in (1, 3):
        x, out = X.repeat(batch, 0), np.zeros((batch, *SHAPE[1:]), np.float32)
        with checking() as checker:
            module["net"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(out))
        result = checker.result()
        assert (result.steps, result.first) == (5, None)


def test_nothing_is_watched_outside_and_an_inner_check_leaves_the_calls_to_the_outer():
    program = network()
    with checking() as outer:
        inner = run(program)
    assert (inner.steps, outer.result().steps) == (0, 5)
    assert "nothing checked" in str(inner)
    library.create_module("net", program, [WEIGHTS])["net"](
        tvm_ffi.from_dlpack(X), tvm_ffi.from_dlpack(np.zeros(SHAPE, np.float32))
    )
    assert outer.result().steps == 5


def test_other_threads_are_not_watched():
    module = library.create_module("net", network(), [WEIGHTS])

    def call() -> None:
        module["net"](tvm_ffi.from_dlpack(X), tvm_ffi.from_dlpack(np.zeros(SHAPE, np.float32)))

    with checking() as checker:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        assert checker.result().steps == 0
        call()
    assert checker.result().steps == 5


def test_the_check_sees_what_the_codec_wrote():
    """Not a copy of the program made elsewhere: a loaded library is checked by its own bytes."""
    module = library.create_module("net", network(), [WEIGHTS])
    loaded = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.mxplan_onednn")(module["mxplan.save"]())
    assert codec.decode(bytes(loaded["mxplan.program"]())) == network()
    with checking() as checker:
        loaded["net"](tvm_ffi.from_dlpack(X), tvm_ffi.from_dlpack(np.zeros(SHAPE, np.float32)))
    assert (checker.result().steps, checker.result().first) == (5, None)
