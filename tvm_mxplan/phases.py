"""``Phase``, a row of the pipeline's table, and ``Compilation``, which runs the rows in order.

The loop over phases is outside, the loop over libraries inside a phase: every library has done its part of
one phase before any begins with the next.  Tuning runs slices of the table by the names of their ends, with
another preference, another way to decide, or a recorder of its own.

The table itself is in ``pipeline``; nothing in here knows a pass but ``VerifyKernels``, which runs others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import tvm

from .byoc.backend import Backend, DeviceBackend
from .core.decisions.choices import Choices
from .core.machine import MachineRates
from .errors import InvalidInputError
from .options import Options
from .passes.costs.model import ModelCost
from .passes.costs.source import CostSource
from .passes.devices.sides import Beside
from .passes.dispatch import VerifyKernels
from .passes.dispatch.implementations import Preference
from .passes.sizes import NamedBatch
from .report.phase_dump import PhaseDump
from .report.recorder import Recorder
from .tuning.candidates import PlanCandidate
from .tuning.tuning import Tuning
from .verify.verifier import Verifier

Passes: TypeAlias = list[tvm.transform.Pass]


@dataclass(frozen=True)
class Phase:
    """A row of the table.

    Attributes
    ----------
    name : by which slices begin and end, and by which what it hands on is asked for.
    takes, hands_on : a module between phases, in words.
    passes : of one compilation, for all its libraries.
    verified : whether it is part of a turn: ``VerifyKernels`` runs such phases again, on what came into the
        first of them, where a kernel of what the last of them hands on is wrong.
    """

    name: str
    takes: str
    hands_on: str
    passes: Callable[[Compilation], Passes]
    verified: bool = False


@dataclass(frozen=True)
class Compilation:
    """All that the phases of one compilation go by, and where they note what they did.

    Attributes
    ----------
    phases : the whole table.
    backends : libraries, by the target's order.
    target : TVM's.
    way : how algorithms and layouts are decided.
    choices : decisions that are replayed, and those that are made.
    machine : what the machine that is compiled for can do.
    beside : the device beside the CPU that ``target`` is; None for one device.
    batch : a named batch that functions are made for the sizes of; None where one function serves all.
    tuning : measures, or knows what was measured; None where costs are the model's.
    verifier : checks the kernels of the plan; None leaves them unchecked.
    dump : is shown what phases hand on; None where nobody wants to see it.
    """

    phases: tuple[Phase, ...]
    backends: tuple[Backend, ...]
    options: Options
    target: tvm.target.Target
    preference: Preference
    way: PlanCandidate
    recorder: Recorder
    choices: Choices
    machine: MachineRates
    beside: Beside | None = None
    batch: NamedBatch | None = None
    tuning: Tuning | None = None
    verifier: Verifier | None = None
    dump: PhaseDump | None = None

    def but(self, **changed: Any) -> Compilation:
        """The same compilation with other fields, and shown to nobody."""
        return replace(self, **{"dump": None, **changed})

    def run(self, mod: tvm.IRModule, first: str = "", last: str = "") -> tvm.IRModule:
        """The module behind phase ``last``, from one that phase ``first`` takes; both ends are included.

        By default from the first phase to the last one.
        """
        for verified, phases in groupby(self._slice(first, last), key=lambda phase: phase.verified):
            turn = tuple(phases)
            if verified and self.verifier is not None:
                plan = partial(self._turn, turn)
                here = [one for one in self.backends if not isinstance(one, DeviceBackend)]
                verify: tvm.transform.Pass = VerifyKernels(here, self.verifier, plan, self.recorder.journal)
                mod = verify(mod)
            else:
                mod = self._in_order(turn, mod)
        return mod

    def cost(self, backend: Backend, timed: bool) -> CostSource:
        """Returns the source of the costs of a library's steps; ``timed``: as far as can be measured."""
        model = ModelCost(backend, self.machine)
        return model if self.tuning is None or not timed else self.tuning.cost(backend, model)

    def known_cost(self, backend: Backend) -> CostSource:
        """Returns the source of the costs that are known without measuring anything."""
        model = ModelCost(backend, self.machine)
        return model if self.tuning is None else self.tuning.known_cost(backend, model)

    def _turn(self, phases: Iterable[Phase], mod: tvm.IRModule) -> tvm.IRModule:
        self.recorder.journal.begin_turn()
        self.choices.begin_turn()
        return self._in_order(phases, mod)

    def _in_order(self, phases: Iterable[Phase], mod: tvm.IRModule) -> tvm.IRModule:
        for phase in phases:
            mod = tvm.transform.Sequential(phase.passes(self), name=phase.name)(mod)
            if self.dump is not None:
                self.dump.show(phase.name, mod)
        return mod

    def _slice(self, first: str, last: str) -> tuple[Phase, ...]:
        names = [phase.name for phase in self.phases]
        begin = names.index(first) if first else 0
        end = names.index(last) + 1 if last else len(names)
        return self.phases[begin:end]


def check_names(wanted: Iterable[str], phases: Iterable[Phase]) -> None:
    """InvalidInputError for the first name that no phase has."""
    names = [phase.name for phase in phases]
    for name in wanted:
        if name not in names:
            known = ", ".join(names)
            raise InvalidInputError(f"option dump_after: no phase {name!r}; expected all, or one of {known}")
