"""Links what TVM built into a shared library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import UnsupportedError


def write_library(built: Any, path: Path, name: object) -> None:
    """Link what ``relax.build`` gave into a library at ``path``, which errors call ``name``.

    Raises
    ------
    UnsupportedError : no compiler to link with, or it fails.
    """
    from tvm.support.cc import get_cc

    if get_cc() is None:
        raise UnsupportedError(f"{name}: no C compiler to link with; install g++ or name one in CXX")
    try:
        built.export_library(str(path))
    except RuntimeError as error:
        raise UnsupportedError(f"{name}: linking with {get_cc()} failed ({error})") from error
