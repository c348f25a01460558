"""The host library's engine: its part of the C++ runtime behind the protocol that all others know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm_mxplan.byoc import runtime_functions
from tvm_mxplan.byoc.engine import Ask, Engine, Observer
from tvm_mxplan.byoc.runtime_functions import RuntimeFunctions

if TYPE_CHECKING:
    from tvm_mxplan.byoc.backend import Backend

NAME = "host"
_KERNELS = "host kernels"


class HostEngine(Engine):
    """Plain C++ on OpenMP's threads; see :class:`tvm_mxplan.byoc.engine.Engine`.

    Parameters
    ----------
    load : loads the runtime, which it shares with other libraries.
    """

    name = NAME

    def __init__(self, load: Callable[[], None]) -> None:
        self._runtime = RuntimeFunctions(NAME, load)

    def load(self) -> None:
        self._runtime.load()

    def code(self) -> dict[str, str]:
        return {_KERNELS: str(self._runtime("isa"))}

    def set_debug(self, memory: bool) -> None:
        self._runtime("set_debug", int(memory))

    def threads(self) -> int:
        return int(self._runtime("threads"))

    def set_threads(self, count: int) -> None:
        self._runtime("set_threads", count)

    def thread_limit(self) -> int:
        return int(self._runtime("thread_limit"))

    def create_module(self, symbol: str, program: bytes, constants: Sequence[Any]) -> Any:
        return self._runtime.create_module(symbol, program, constants)

    def stats(self, module: Any) -> dict[str, Any]:
        return runtime_functions.stats(module)

    def split_weights(self, module: Any) -> Any:
        return runtime_functions.split_weights(module)

    def export_packed(self, module: Any, packed: bool) -> None:
        runtime_functions.export_packed(module, packed)

    def save_packed(self, module: Any) -> tuple[bytes, list[memoryview]]:
        return runtime_functions.save_packed(module)

    def load_packed(self, head: bytes, weights: Sequence[Any], mapped: bool) -> Any:
        return self._runtime.load_packed(head, weights, mapped)

    def observe(self, observer: Observer | None) -> None:
        self._runtime.observe(observer)

    def description_text(self, program: bytes) -> str:
        return self._runtime.description_text(program)

    def planner_elsewhere(self, ask: Ask, facts: Mapping[str, Any]) -> Backend:
        from .backend import HostElsewhere

        return HostElsewhere(self._runtime, ask)
