"""Files that appear whole or not at all, and the check that they can appear before any work is done."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InvalidInputError

_PREFIX = ".mxplan-"


def check_destination(path: str | os.PathLike[str], suffix: str) -> Path:
    """``path`` as a Path; InvalidInputError unless a file that ends in ``suffix`` can be written there."""
    path = Path(path)
    if path.suffix != suffix:
        raise InvalidInputError(f"{path}: expected a name that ends in {suffix}")
    try:
        if path.is_dir():
            raise InvalidInputError(f"{path}: is a directory; expected the name of a file")
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written ({error.strerror or error})") from error
    if not path.parent.is_dir():
        raise InvalidInputError(f"{path}: there is no folder {path.parent}; create it first")
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=_PREFIX):
            return path
    except OSError as error:
        raise InvalidInputError(
            f"{path}: cannot write to the folder {path.parent} ({error.strerror or error})"
        ) from error


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to, on the same file system; what is there takes the place of ``path`` at the end.

    Where the block raises, ``path`` stays as it was and nothing else is left.
    """
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=_PREFIX) as folder:
            partial = Path(folder) / path.name
            yield partial
            os.replace(partial, path)
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written ({error.strerror or error})") from error
