"""The host library's engine: its part of the C++ runtime behind the protocol that all others know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tvm_mxplan.byoc.engine import Ask
from tvm_mxplan.byoc.runtime_engine import RuntimeEngine
from tvm_mxplan.byoc.runtime_functions import RuntimeFunctions

if TYPE_CHECKING:
    from tvm_mxplan.byoc.backend import Backend

NAME = "host"
_KERNELS = "host kernels"


class HostEngine(RuntimeEngine):
    """Plain C++ on OpenMP's threads; see :class:`tvm_mxplan.byoc.engine.Engine`.

    Parameters
    ----------
    load : loads the runtime, which it shares with other libraries.
    """

    name = NAME

    def __init__(self, load: Callable[[], None]) -> None:
        super().__init__(RuntimeFunctions(NAME, load))

    def code(self) -> dict[str, str]:
        return {_KERNELS: str(self._runtime("isa"))}

    def threads(self) -> int:
        return int(self._runtime("threads"))

    def set_threads(self, count: int) -> None:
        self._runtime("set_threads", count)

    def thread_limit(self) -> int:
        return int(self._runtime("thread_limit"))

    def planner_elsewhere(self, ask: Ask, facts: Mapping[str, Any]) -> Backend:
        from .backend import HostElsewhere

        return HostElsewhere(self._runtime, ask)
