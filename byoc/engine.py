"""``Engine``: the side of a library that whoever runs, measures, checks, caches or exports talks to.

    the process      load, code, facts, kernel_environment, set_debug, machine_rates
    its device       absent, device_properties, device_libraries
    threads          threads, set_threads, thread_limit
    caches           cache_counters, set_cache_capacity
    plans            keeps_plans, kept_plans, add_plans, plan_title, plan_versions, failed_plans
    modules          create_module, stats, split_weights, export_packed, save_packed, load_packed
    observation      observe
    other machines   description_text, refuse, planner_elsewhere

The planner's side is ``backend.Backend``.  The answers here are those of a library that has nothing of the
kind: no threads of its own, no caches, no weights to pack.  A library overrides what it has.  Nothing in here
imports TVM: a compiled library runs without its Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tvm_mxplan.errors import UnsupportedError

if TYPE_CHECKING:
    from tvm_mxplan.core.machine import MachineRates
    from tvm_mxplan.core.program.program import Program

    from .backend import Backend

Ask = Callable[..., Any]
"""Asks another machine's engine: the name of a method, then its arguments; plain data both ways."""


class Observer(Protocol):
    """An object that is shown steps; tensors of bytes are good until the method returns, padding included."""

    def begin(self, module: Any, symbols: Sequence[int]) -> None:
        """A run of ``module`` begins, with numbers for the symbols of its program."""

    def before(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        """A step is about to run; the values that it reads."""

    def after(self, step: int, values: Sequence[int], tensors: Sequence[Any]) -> None:
        """A step has written ``values``."""


class FailedPlan(NamedTuple):
    """A plan that did not run here.

    Attributes
    ----------
    step : the one it is of.
    implementation, reason : what failed, and with which words.
    successor : what ran in its place, '' where nothing did.
    """

    step: str
    implementation: str
    reason: str
    successor: str

    def __str__(self) -> str:
        instead = f"{self.successor} runs in its place" if self.successor else "nothing runs in its place"
        return f"{self.step}: {self.implementation} failed ({self.reason}); {instead}"


class Engine:
    """A library that runs; see the module's text.

    Attributes
    ----------
    name : of the library, as in the registry.
    variables : environment variables that it reads by itself, which ``tvmc show-config`` shows.
    """

    name = ""
    variables: tuple[str, ...] = ()

    # --- the process ------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load what the library needs, once; errors say the way out."""

    def absent(self) -> str:
        """Returns the reason why its modules cannot run here, '' if they can: a device that is not there."""
        return ""

    def device_properties(self) -> str:
        """The properties of the device that is here, as text for another machine to plan by."""
        raise UnsupportedError(f"library {self.name}: it plans for no device but this machine")

    def device_libraries(self) -> list[str]:
        """Returns paths of libraries that TVM's runtime for the device looks for by their names alone."""
        return []

    def code(self) -> dict[str, str]:
        """Returns the properties of its machine code, by their usual names: versions, the instruction set."""
        return {}

    def versions(self) -> dict[str, str]:
        """The part of :meth:`code` that another installation changes."""
        return {}

    def facts(self) -> dict[str, Any]:
        """:meth:`code`, and what else its times depend on, such as its number of threads."""
        return {**self.code()}

    def kernel_environment(self) -> dict[str, dict[str, str]]:
        """The environment variables by which it chooses kernels, under a name for all of them."""
        return {}

    def set_debug(self, memory: bool) -> None:
        """Whether runs that begin from now on check every step's memory."""

    def machine_rates(self) -> tuple[MachineRates, bool]:
        """Measures now the rates at which this machine computes and moves with the calling thread's threads.

        It takes about two seconds at most.

        Returns
        -------
        rates, disturbed : not rounded; whether other processes took so much that it had better be done again.
        """
        raise UnsupportedError(f"library {self.name}: it does not measure machines")

    # --- threads ----------------------------------------------------------------------------------------

    def threads(self) -> int:
        """Returns the number of threads that calls of the calling thread use."""
        return 1

    def set_threads(self, count: int) -> None:
        """Set what :meth:`threads` says, for the calling thread, where the library has a say in it."""

    def thread_limit(self) -> int | None:
        """The most threads that it can be given; None where there is no limit."""
        return None

    # --- caches of the process --------------------------------------------------------------------------

    def cache_counters(self, cache: str) -> dict[str, int]:
        """Counters and capacity of a cache (``tvm_mxplan.execution.caches``), empty without one."""
        return {}

    def set_cache_capacity(self, cache: str, entries: int, bytes: int) -> None:
        """Limits what a cache may keep beyond use; 0 of either switches it off."""

    # --- plans that are made ahead, for a device ----------------------------------------------------------

    keeps_plans = False
    """Whether plans that were made can be kept for other processes."""

    def kept_plans(self) -> dict[str, bytes]:
        """The plans that this process made or was given, by digests of all that they are for."""
        return {}

    def add_plans(self, plans: Mapping[str, bytes]) -> None:
        """Take plans that another process kept; whoever asks for one of them gets it."""

    def plan_title(self, plan: bytes) -> dict[str, Any]:
        """A kept plan in words, for who reads a file of them."""
        return {}

    def plan_versions(self) -> dict[str, str]:
        """The versions that plans are good for, all of them together."""
        return {}

    def failed_plans(self, program: Program) -> list[FailedPlan]:
        """Plans of a region's program that failed in this process, in the order in which they did."""
        return []

    # --- modules of its regions, and of their weights ---------------------------------------------------

    def create_module(self, symbol: str, program: bytes, constants: Sequence[Any]) -> Any:
        """The module of a program in its bytes, as the planner's side makes it."""
        raise UnsupportedError(f"library {self.name}: modules are not made from bytes")

    def stats(self, module: Any) -> dict[str, Any]:
        """Returns what a module has made, under ``specializations`` for each assignment of its symbols."""
        return {"specializations": []}

    def split_weights(self, module: Any) -> Any:
        """A module that exports the weights of ``module`` as data, beside it."""
        raise UnsupportedError(f"library {self.name}: weights stay in their modules")

    def export_packed(self, module: Any, packed: bool) -> None:
        """Whether split weights are exported as this machine's kernels want them."""

    def save_packed(self, module: Any) -> tuple[bytes, list[memoryview]]:
        """A region as bytes and, beside them, its weights as this machine's kernels want them."""
        raise UnsupportedError(f"library {self.name}: weights are not packed")

    def load_packed(self, head: bytes, weights: Sequence[Any], mapped: bool) -> Any:
        """The region that :meth:`save_packed` wrote; ``mapped``: weights are pages of a file."""
        raise UnsupportedError(f"library {self.name}: weights are not packed")

    # --- observation ------------------------------------------------------------------------------------

    def observe(self, observer: Observer | None) -> None:
        """Show every step that the calling thread runs from now on; None: no more."""

    # --- as the planner's side on another machine -------------------------------------------------------

    def description_text(self, program: bytes) -> str:
        """``Backend.describe`` as text, for who asks from another machine."""
        raise UnsupportedError(f"library {self.name}: it does not answer other machines")

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        """``Backend.refuse``, for who asks from another machine."""
        raise UnsupportedError(f"library {self.name}: it does not answer other machines")

    def planner_elsewhere(self, ask: Ask, facts: Mapping[str, Any]) -> Backend:
        """The planner's side as the library would answer on another machine.

        Parameters
        ----------
        ask : that machine's engine.
        facts : what it says of itself.
        """
        raise UnsupportedError(f"library {self.name}: it is not asked on other machines")
