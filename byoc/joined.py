"""Libraries that share regions: one leads, and steps of others stand in its regions.

    joined([OneDNN, Host])    [Joined(OneDNN, (Host,)), Host]

Libraries of one runtime run each other's steps, so that a network with operators of several does not fall
into pieces.  A region with steps of the leader is the leader's in every phase behind ``partition``: its
module is of the leader's kind, and steps of others say whose they are.  A region with steps of guests alone
is theirs.  Whoever plans asks ``Joined`` in the leader's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tvm import relax

from tvm_mxplan.core.description import Description, Implementation, StepInfo
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry, merged
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine.rates import MachineRates
from tvm_mxplan.core.program.program import Program, Reorder, Step, Value
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.core.step_facts import StepFacts, reorder_facts
from tvm_mxplan.errors import UnsupportedError

from .backend import Backend, Hop, Sharing, Translation
from .translate import Guest, check_numbers, translate_region

_ANY_EXTENT = 4
"""Of a symbolic dimension, where only type and layout count."""


def leaders(backends: Sequence[Backend]) -> dict[str, str]:
    """For each guest's code generator that of the library that leads regions of both."""
    found: dict[str, str] = {}
    for guest in backends:
        leader = _leader(guest, backends)
        if leader is not None:
            found[guest.name] = leader.name
    return found


def joined(backends: Sequence[Backend]) -> list[Backend]:
    """The libraries with each leader that has guests as :class:`Joined`, in the same order."""
    found: list[Backend] = []
    for backend in backends:
        guests = tuple(one for one in backends if _leader(one, backends) is backend)
        found.append(Joined(backend, guests) if guests else backend)
    return found


def _leader(guest: Backend, backends: Sequence[Backend]) -> Backend | None:
    """The first library that leads in the runtime of ``guest``, None for one that is no guest."""
    shares = guest.shares
    if shares is None or shares.leads:
        return None
    return next((one for one in backends if _leads(one, shares.runtime)), None)


def _leads(backend: Backend, runtime: str) -> bool:
    return backend.shares is not None and backend.shares.leads and backend.shares.runtime == runtime


class Joined:
    """A leader with its guests, as the leader; see :class:`tvm_mxplan.byoc.backend.Backend`.

    What is not written out here is the leader's.
    """

    def __init__(self, leader: Backend, guests: tuple[Backend, ...]) -> None:
        self._leader = leader
        self._guests = guests
        self._own = _sharing(leader)
        self._by_name = {guest.library: guest for guest in guests}

    @property
    def shares(self) -> Sharing:
        return self._own._replace(hops=self.hops)

    def layout_rules(self, step: Step) -> LayoutRules:
        """The rules of the library that runs the step, in blocks of the leader's size, as its neighbours."""
        guest = self._by_name.get(step.library)
        if guest is None:
            return self._leader.layout_rules(step)
        return replace(guest.layout_rules(step), block=self._leader.layout_rules(step).block)

    def layouts(self) -> LayoutRegistry:
        """Everybody's layouts; between those of two libraries the way is by the standard one."""
        return merged([library.layouts() for library in (self._leader, *self._guests)])

    def hops(self, value: Value, layout: str) -> tuple[Hop, ...]:
        """One conversion by the first library that has it, else two by way of the plain layout.

        Raises
        ------
        UnsupportedError : there is no such way.
        """
        direct = self._converter(value, value.layout, layout)
        if direct is not None:
            return (Hop(direct, layout),)
        plain = plain_layout(len(value.shape))
        first, second = self._converter(value, value.layout, plain), self._converter(value, plain, layout)
        if first is None or second is None:
            raise UnsupportedError(f"{value.name}: no library converts {value.layout} into {layout}")
        return (Hop(first, plain), Hop(second, layout))

    def _converter(self, value: Value, source: str, target: str) -> str | None:
        """The library that converts in one go, '' for the leader; None where none does."""
        shape = tuple(dim if isinstance(dim, int) else _ANY_EXTENT for dim in value.shape)
        question = reorder_facts(shape, value.dtype, source, target).program
        for name in ("", *self._by_name):
            step = replace(question.steps[0], library=name)
            if not self.describe(replace(question, steps=(step,))).steps[0].error:
                return name
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._leader, name)

    def translate(self, region: relax.Function, name: str, machine: MachineRates) -> Translation:
        guests = {guest.name: Guest(guest.library, _sharing(guest).table) for guest in self._guests}
        program, constants = translate_region(region, name, self._leader.name, self._own.table, guests)
        finished = self._own.finish(self._handed_over(self._copied(program)), constants, machine)
        check_numbers(finished.program)
        return finished

    def _copied(self, program: Program) -> Program:
        """The program with copies, which nobody asked a library about, by the first that has the type."""
        values = program.values

        def with_library(step: Step) -> Step:
            if step.library or not isinstance(step.attrs, Reorder):
                return step
            source, result = (values[step.operand(role)] for role in ("src", "dst"))
            return replace(step, library=self._converter(source, source.layout, result.layout) or "")

        return replace(program, steps=tuple(map(with_library, program.steps)))

    def _handed_over(self, program: Program) -> Program:
        """The program with the leader's steps that a guest runs faster, and can, given to it."""
        for guest in self._guests:
            takes_over = _sharing(guest).takes_over
            taken = [None if step.library else takes_over(program, step) for step in program.steps]
            if not any(taken):
                continue
            steps = tuple(
                step if attrs is None else replace(step, attrs=attrs, library=guest.library)
                for step, attrs in zip(program.steps, taken, strict=True)
            )
            told = self.describe(typical(replace(program, steps=steps))).steps
            kept = zip(program.steps, steps, told, strict=True)
            program = replace(program, steps=tuple(own if info.error else given for own, given, info in kept))
        return program

    def describe(self, program: Program) -> Description:
        """Joins the leader's description with guests' of their own steps: meanings of names, and refusals."""
        description = self._leader.describe(program)
        pairs = zip(program.steps, description.steps, strict=True)
        return replace(description, steps=tuple(self._told(step, info) for step, info in pairs))

    def _told(self, step: Step, info: StepInfo) -> StepInfo:
        guest = self._by_name.get(step.library)
        if guest is None:
            return info
        return _sharing(guest).judged(info.running(guest.implementation(info.implementation)))

    def implementation(self, name: str) -> Implementation:
        """Asks the library whose name stands in front of the implementation's, by default the leader."""
        guest = self._by_name.get(name.partition(":")[0], self._leader)
        return guest.implementation(name)

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        return self._by_name.get(facts.step.library, self._leader).cost(facts, machine)

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        for library in (self._leader, *self._guests):
            library.refuse(descriptor, implementation, reason)


def _sharing(backend: Backend) -> Sharing:
    assert backend.shares is not None, "a library that shares no regions is not joined with others"
    return backend.shares
