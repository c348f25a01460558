"""tvm_ffi without PyTorch, which it imports where that is installed: two seconds and 165 MB for no use.

PyTorch is kept out only while tvm_ffi is imported, from this thread, and only where nobody has imported it
yet.  Tensors of PyTorch's pass through tvm_ffi all the same once a user imports it, by DLPack; what is
missing then are ``torch.dtype`` as an argument of tvm_ffi's functions and ``tvm_ffi.use_torch_stream``.  Who
wants those imports torch first.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent(MetaPathFinder):
    """Finds for one thread that there is no package of a name; others look on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == self._name and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


@contextlib.contextmanager
def without(name: str) -> Iterator[None]:
    """Within this context, this thread's imports of a package fail, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    finder = _Absent(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _loaded() -> ModuleType:
    if "tvm_ffi" in sys.modules:
        return importlib.import_module("tvm_ffi")
    with without("torch"):
        return importlib.import_module("tvm_ffi")


tvm_ffi = _loaded()
