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
from tvm_mxplan.core.machine.rates import MachineRates
from tvm_mxplan.core.program.program import Program, Step
from tvm_mxplan.core.step_facts import StepFacts

from .backend import Backend, Sharing, Translation
from .translate import Guest, check_numbers, translate_region


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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._leader, name)

    def translate(self, region: relax.Function, name: str) -> Translation:
        guests = {guest.name: Guest(guest.library, _sharing(guest).table) for guest in self._guests}
        program, constants = translate_region(region, name, self._leader.name, self._own.table, guests)
        finished = self._own.finish(program, constants)
        check_numbers(finished.program)
        return finished

    def describe(self, program: Program) -> Description:
        """What the leader says, and guests of their own steps: what names mean, and what is refused."""
        description = self._leader.describe(program)
        pairs = zip(program.steps, description.steps, strict=True)
        return replace(description, steps=tuple(self._told(step, info) for step, info in pairs))

    def _told(self, step: Step, info: StepInfo) -> StepInfo:
        guest = self._by_name.get(step.library)
        if guest is None:
            return info
        return _sharing(guest).judged(info.running(guest.implementation(info.implementation)))

    def implementation(self, name: str) -> Implementation:
        """What the library says whose name stands in front of the implementation's, by default the leader."""
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
