"""``RuntimeEngine``: the engine's side that all libraries of the C++ runtime have alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import runtime_functions
from .engine import Engine, Observer
from .runtime_functions import RuntimeFunctions


class RuntimeEngine(Engine):
    """An engine whose modules are the runtime's; see :class:`tvm_mxplan.byoc.engine.Engine`.

    Parameters
    ----------
    runtime : the runtime's functions under the library's name.
    """

    def __init__(self, runtime: RuntimeFunctions) -> None:
        self._runtime = runtime

    def load(self) -> None:
        self._runtime.load()

    def set_debug(self, memory: bool) -> None:
        self._runtime.set_debug(memory)

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
