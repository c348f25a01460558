"""The protocol between the passes and a backend: all that passes know of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.core.description import Description, Implementation, StepInfo
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine import DeviceRates, MachineRates
from tvm_mxplan.core.program.program import Attributes, Program, Step, Value
from tvm_mxplan.core.step_facts import StepFacts

from .translate import Table, translate_composite

Refuse: TypeAlias = Callable[[str, str], None]
"""Is told of an operator, as Relax calls it, that a check refused, and why."""

Fused: TypeAlias = Mapping[str, str]
"""Names of the steps that run inside others, by their own."""


class Translation(NamedTuple):
    """A region as a program, its constants by their index, and the steps that others took in."""

    program: Program
    constants: list[np.ndarray]
    fused: Fused = MappingProxyType({})


class EngineTimes(Protocol):
    """Times of a library's engines on a device, by a text that is the same where the same is computed."""

    def find(self, question: str) -> str | None:
        """The name of the fastest engine, None where it is not known."""
        ...

    def may_measure(self) -> bool:
        """Whether another question may be measured now."""
        ...

    def spending(self) -> AbstractContextManager[None]:
        """Counts the time spent inside as measuring."""
        ...

    def keep(self, question: str, title: str, times: Mapping[str, float], runs: int) -> None:
        """Takes over microseconds by the names of engines, each of so many runs."""
        ...


class DeviceChoice(NamedTuple):
    """A user's statement of the device that a library makes plans for.

    Attributes
    ----------
    properties : path of a file of its properties; None for the device that is here.
    arch : what TVM's target calls it, '' where it does not say.
    tf32, deterministic : as the options of these names.
    spares, replays : as the options ``spare_plans`` and ``cuda_graphs``.
    engines : gives what is known of engines' times on the device that has these facts; None where nothing is
        measured, or was.
    """

    properties: str | None
    arch: str
    tf32: bool
    deterministic: bool
    spares: str = "compiled"
    replays: bool = False
    engines: Callable[[Mapping[str, Any]], EngineTimes] | None = None


def _as_it_is(info: StepInfo) -> StepInfo:
    return info


def _nothing(_program: Program, _step: Step) -> Attributes | None:
    return None


def _as_translated(program: Program, constants: list[np.ndarray], _machine: MachineRates) -> Translation:
    return Translation(program, constants)


class Hop(NamedTuple):
    """One conversion on the way from a layout into another: who runs it, and where it leads."""

    library: str
    layout: str


def directly(_value: Value, layout: str) -> tuple[Hop, ...]:
    """One conversion by the library whose region it is."""
    return (Hop("", layout),)


class Sharing(NamedTuple):
    """The rules by which the libraries of one runtime put steps into each other's regions; see ``joined``.

    Attributes
    ----------
    runtime : its name; libraries of another one share nothing with these.
    leads : whether regions with steps of others too are its own.  A guest leads none.
    table : what its composites become.
    finish : a leader's work on a translated region, which leaves steps of others alone.
    judged : what a guest says of one of its steps, from what the runtime says.
    takes_over : what a guest runs in the place of a leader's step, faster, where it has code for it.
    hops : how a value of a region gets into another layout; by one conversion of its library where that knows
        both layouts and the type.
    """

    runtime: str
    leads: bool
    table: Table
    finish: Callable[[Program, list[np.ndarray], MachineRates], Translation] = _as_translated
    judged: Callable[[StepInfo], StepInfo] = _as_it_is
    takes_over: Callable[[Program, Step], Attributes | None] = _nothing
    hops: Callable[[Value, str], tuple[Hop, ...]] = directly

    def program_of(self, composite: relax.Function) -> Program:
        """One of its composites alone as a program, in plain layouts."""
        return translate_composite(composite, self.table)


class Backend(Protocol):
    """The interface of a library to the planner.

    Attributes
    ----------
    library : what targets, options and reports call it.
    name : name of the external code generator, which regions bear as their attribute ``Codegen``.
    takes_arena : its modules work in an arena that the caller lends, behind inputs and outputs.
    shares : how it shares regions with other libraries; None for one that does not.
    literal : operators that it computes as they stand, by one rounding for each of their sums and no other:
        it keeps them where their digits decide a whole number.
    """

    @property
    def library(self) -> str: ...

    @property
    def name(self) -> str: ...

    def layout_rules(self, step: Step) -> LayoutRules:
        """The tables by which a step is asked for in several layouts."""
        ...

    def layouts(self) -> LayoutRegistry:
        """The layouts it knows by name, with converters between them."""
        ...

    @property
    def takes_arena(self) -> bool: ...

    @property
    def shares(self) -> Sharing | None: ...

    @property
    def literal(self) -> Collection[str]: ...

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        """Composites in order of preference; a check that refuses an operator tells ``refuse`` why."""
        ...

    def translate(self, region: relax.Function, name: str, machine: MachineRates) -> Translation:
        """The region as a program in plain layouts, fused as this library fuses on such a machine."""
        ...

    def describe(self, program: Program) -> Description:
        """Describes the steps of a program: implementations, layouts, bytes; nothing is executed."""
        ...

    def lacks(self, dtype: str) -> str:
        """The reason for not computing in an element type on this machine; '' if it does."""
        ...

    def implementation(self, name: str) -> Implementation:
        """Returns the properties that the name of one of its implementations states."""
        ...

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        """Microseconds of a step on a machine, by the library's own model; nothing is executed.

        A reorder takes what its conversion takes, a concatenation or slice what copying all its pieces does.
        ``byoc.roofline`` has the beginnings of a model.
        """
        ...

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        """Keep steps of this descriptor (``StepInfo.descriptor``) from running an implementation from now on.

        It holds for the process that answers; the next best implementation is taken there.
        """
        ...

    def create_module(
        self, symbol: str, program: Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        """The runtime module that executes the program under the name ``symbol``."""
        ...

    def trial(self, program: Program, constants: list[np.ndarray]) -> Callable[..., object]:
        """A function that executes the program on inputs, then outputs, of their physical shapes.

        It is for a few calls: what it packs is kept for nobody else.
        """
        ...

    def modules_to_export(self, module: tvm.runtime.Module) -> list[tvm.runtime.Module]:
        """A module of :meth:`create_module`, and what is exported beside it: say, its weights as data."""
        ...


class OnDevice(NamedTuple):
    """A library as it plans for one device; TVM calls the device ``arch``, messages ``title``."""

    backend: Backend
    arch: str
    title: str
    rates: DeviceRates


@runtime_checkable
class DeviceBackend(Protocol):
    """A library whose plans are for a device, which need not be in this machine."""

    def for_device(self, choice: DeviceChoice) -> OnDevice:
        """The library as it plans for one device.

        Raises
        ------
        UnsupportedError : nothing here can make plans for it.
        InvalidInputError : the file of its properties.
        """
        ...
