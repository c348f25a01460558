"""``Place``: the machine that measures and is measured; ``Here`` is this one, ``remote`` has another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeAlias

from ..byoc import registry
from ..byoc.backend import Backend
from ..cache.key.surroundings import shared_surroundings
from ..core.decisions.verification import Checked
from ..core.kernel import Kernel
from ..core.machine import MachineRates
from ..core.program import program as ir
from ..execution.determinism import Determinism
from ..execution.threads import threads as threads_here
from ..execution.threads import with_threads
from ..passes.layout.measure import Sample, time_alone
from ..rates.kept import rates_here
from .compare import instance
from .facts import machine
from .values import Port, energy_counters, random_arguments, sampler

Sampler: TypeAlias = Callable[[Any], Callable[[], float]]
"""Makes, of what ``relax.build`` gave, a function that takes one sample."""


class Place(Protocol):
    """The place where measurements are made.

    Attributes
    ----------
    facts : what records depend on; see :func:`tvm_mxplan.tuning.facts.machine`.
    versions : of what makes plans and runs them, which the records of plans depend on.
    threads : of libraries.
    elsewhere : why what is compiled for it cannot run in this process, '' if it can.
    """

    @property
    def facts(self) -> Mapping[str, Any]: ...

    @property
    def versions(self) -> Mapping[str, str]: ...

    @property
    def threads(self) -> int: ...

    @property
    def elsewhere(self) -> str: ...

    def rates(self, kept: bool) -> MachineRates:
        """Returns the rates of the machine; ``kept``: measurements are kept over there, and used again."""
        ...

    def backend(self, library: str) -> Backend:
        """The library as it answers over there."""
        ...

    def only_measured(self) -> AbstractContextManager[None]:
        """Marks what is built inside as measured, and thrown away: its numbers do not count."""
        ...

    def determinism(self, measured: bool) -> Determinism:
        """Returns the conditions that the bits of results rest on over there."""
        ...

    def check(self, strategy: str) -> None:
        """UnsupportedError where the machine lacks what ``strategy`` needs."""
        ...

    def time(self, backend: Backend, question: ir.Program, threads: int | None) -> Sample:
        """Microseconds of a program alone; ``threads`` in place of the machine's number."""
        ...

    def check_kernel(self, backend: Backend, kernel: Kernel) -> Checked:
        """Whether a kernel agrees with an independent implementation over there."""
        ...

    def sampler(self, strategy: str, ports: Sequence[Port]) -> Sampler:
        """Values of whole plans under ``strategy``, called with tensors for ``ports``."""
        ...


class Here:
    """This process."""

    elsewhere = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        return machine()

    @property
    def versions(self) -> Mapping[str, str]:
        found: Mapping[str, str] = shared_surroundings()["versions"]
        return found

    @property
    def threads(self) -> int:
        return threads_here()

    def rates(self, kept: bool) -> MachineRates:
        return rates_here(kept)

    def backend(self, library: str) -> Backend:
        return registry.planner(library)

    def only_measured(self) -> AbstractContextManager[None]:
        return nullcontext()

    def determinism(self, measured: bool) -> Determinism:
        return Determinism.here(measured)

    def check(self, strategy: str) -> None:
        if strategy == "joules":
            energy_counters()

    def time(self, backend: Backend, question: ir.Program, threads: int | None) -> Sample:
        with with_threads(threads):
            return time_alone(backend, question)

    def check_kernel(self, backend: Backend, kernel: Kernel) -> Checked:
        from ..verify.check import check  # with scipy, which plans of known kernels do not need

        return check(backend, kernel)

    def sampler(self, strategy: str, ports: Sequence[Port]) -> Sampler:
        make, arguments = sampler(strategy), random_arguments(ports)
        return lambda module: make(lambda: instance(module, arguments))
