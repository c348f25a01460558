"""Compiles a step whose arena fits a budget: the option ``memory_budget``.

The step is compiled as it is.  Where its arena is too large, operators are chosen to run again
(``core/recomputation``), by bytes of tensors that are not planned yet and of scratchpads that are; how the
arena of the step as it is compares with them says what to ask for.  What comes out is compiled and looked at:
where the plan still takes too much, less is asked for, and more where it takes far less than it may, a few
times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import tvm
from tvm import relax

from ...core.decisions.recomputation import Recomputation
from ...core.machine import MachineRates
from ...core.program.dims import static_shape
from ...core.recomputation import Choice, choose, simulated
from ...errors import InvalidInputError
from ...execution.executable import Executable
from ...passes.costs import multiply_adds
from ...passes.costs.kept_times import kind_of
from .recompute import Traced, bytes_of, rewritten, traced
from .scratch import with_scratch

Compile = Callable[[tvm.IRModule], Executable]
_MOST_TRIES = 4
_MARGIN = 0.98
_CLOSE, _CHEAP = 0.95, 1.02
"""A plan of this share of the budget, or a step of so much more time, is not made better by another try."""


def compiled_within(
    mod: tvm.IRModule, budget: float, compile_step: Compile, machine: MachineRates
) -> tuple[Executable, Recomputation | None]:
    """The step, and what runs twice in it, compiled so that its arena keeps to a budget.

    Parameters
    ----------
    budget : bytes, or below 1 the share of what the arena takes without.

    Raises
    ------
    InvalidInputError : no plan that fits was found, and the message has the bytes of the smallest; or TVM
        alone runs the step, which plans no arena.
    """
    whole = compile_step(mod)
    if not whole.report.memory:
        raise InvalidInputError(
            f"option memory_budget={budget}: the step has no arena to keep small; give a target with a "
            "library"
        )
    before = _height(whole)
    allowed = int(before * budget if budget < 1 else budget)
    if before <= allowed:
        return whole, None
    found = with_scratch(traced(mod["main"], lambda call: _us(call, machine)), whole.report)
    peak = simulated(found.problem, frozenset()).peak
    goal, least = peak * allowed / before, before
    best: tuple[Executable, Recomputation] | None = None
    small, large = 0.0, _MARGIN * peak
    for _ in range(_MOST_TRIES):
        choice = choose(found.problem, int(goal))
        if not choice.run.again:
            break
        made = compile_step(rewritten(mod, found, choice.run))
        height = _height(made)
        if height <= allowed:
            told = _told(found, choice, allowed, whole, made)
            if best is None or told.us_after < best[1].us_after:
                best = made, told
            if height >= _CLOSE * allowed or told.factor <= _CHEAP:
                break
            # More than was needed runs again, and is paid for in each step.
            small = goal
            goal = min(_MARGIN * goal * allowed / height, (small + large) / 2)
        elif best is not None:
            large = goal
            goal = (small + large) / 2
        else:
            least, large = min(least, height), goal
            if not choice.fits:
                break
            goal = _MARGIN * min(goal, choice.run.peak) * allowed / height
    if best is not None:
        return best
    raise InvalidInputError(
        f"option memory_budget={budget}: {allowed:,} bytes; the step takes {before:,} as it is, and the "
        f"smallest arena that was found {least:,}"
    )


def _told(found: Traced, choice: Choice, allowed: int, whole: Executable, made: Executable) -> Recomputation:
    again = [found.operations[operation].value for operation in choice.run.again]
    return Recomputation(
        allowed,
        _height(whole),
        _height(made),
        dict(Counter(kind_of(call) for call in again)),
        whole.report.estimated_us,
        made.report.estimated_us,
        choice.least_us,
        choice.run.us,
        choice.exact,
    )


def _height(executable: Executable) -> int:
    """Bytes of the step's arena: the last that the report has is the function's."""
    return executable.report.memory[-1].height


def _us(call: relax.Call, machine: MachineRates) -> float:
    """Microseconds of an operator: the longer of computing and of moving what it reads and writes."""
    products = multiply_adds.of_call(call, static_shape)
    moved = sum(bytes_of(arg.ty) for arg in call.args) + bytes_of(call.ty)
    computing = 2 * products / machine.gflops("float32") / 1e3
    return machine.start_us + max(computing, machine.copying_us(moved))
