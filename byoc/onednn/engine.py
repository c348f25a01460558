"""oneDNN's engine: the functions of ``library`` behind the protocol that the rest of the house knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm_mxplan import environment
from tvm_mxplan.byoc.engine import Ask
from tvm_mxplan.byoc.runtime_engine import RuntimeEngine

from . import library

if TYPE_CHECKING:
    from tvm_mxplan.byoc.backend import Backend
    from tvm_mxplan.core.machine import MachineRates

INSTRUCTION_SET = "instruction set"
_KERNEL_VARIABLES = ("MAX_CPU_ISA", "CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE")
"""By which it changes its kernels; it reads each in two spellings."""


class OneDNNEngine(RuntimeEngine):
    """oneDNN on the CPU; see :class:`tvm_mxplan.byoc.engine.Engine`."""

    name = "onednn"
    variables = (
        *(f"ONEDNN_{name}" for name in _KERNEL_VARIABLES),
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
        "ONEDNN_VERBOSE",
    )

    def __init__(self) -> None:
        super().__init__(library.runtime)

    def absent(self) -> str:
        return ""  # a CPU is everywhere

    def device_properties(self) -> str:
        return super().device_properties()  # a CPU is asked through its own machine

    def code(self) -> dict[str, str]:
        return {INSTRUCTION_SET: library.isa(), **self.versions()}

    def versions(self) -> dict[str, str]:
        return {"oneDNN": library.version()}

    def facts(self) -> dict[str, Any]:
        return {**self.code(), "oneDNN threads": library.threads()}

    def kernel_environment(self) -> dict[str, dict[str, str]]:
        names = [f"{prefix}_{name}" for prefix in ("ONEDNN", "DNNL") for name in _KERNEL_VARIABLES]
        return {"oneDNN environment": environment.those_set(names)}

    def machine_rates(self) -> tuple[MachineRates, bool]:
        from .costs.measure import measure_machine

        return measure_machine()

    def threads(self) -> int:
        return library.threads()

    def set_threads(self, count: int) -> None:
        library.set_threads(count)

    def thread_limit(self) -> int | None:
        return library.thread_limit()

    def cache_counters(self, cache: str) -> dict[str, int]:
        return library.cache_counters(cache)

    def set_cache_capacity(self, cache: str, entries: int, bytes: int) -> None:
        library.set_cache_capacity(cache, entries, bytes)

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        library.refuse(descriptor, implementation, reason)

    def planner_elsewhere(self, ask: Ask, facts: Mapping[str, Any]) -> Backend:
        from .elsewhere import OneDNNElsewhere

        return OneDNNElsewhere(ask, str(facts[INSTRUCTION_SET]))
