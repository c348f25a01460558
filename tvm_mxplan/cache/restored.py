"""A compilation from the cache in TVM's own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.relax.vm_build import VMExecutable

from ..execution.machine import retyped


class RestoredExecutable(VMExecutable):
    """Runs the library that was linked once, and exports the object from which it was linked."""

    def __init__(self, runnable: Any, exportable: Callable[[], Any]) -> None:
        super().__init__(runnable)
        self._exportable = exportable

    def export_library(self, file_name: str, **options: Any) -> Any:
        return VMExecutable(retyped(self._exportable())).export_library(file_name, **options)
