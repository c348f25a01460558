"""A stream of bytes as numbered files of a bounded size, with a list of their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

NAME = "part-{:03}"
_CHUNK = 1 << 20


class PartWriter:
    """A file to write to, whose bytes go to ``part-000``, ``part-001``, ... in a folder.

    Parameters
    ----------
    most : bytes of one part.
    """

    def __init__(self, folder: Path, most: int) -> None:
        if most < 1:
            raise ValueError(f"parts of {most} bytes")
        self._folder, self._most = folder, most
        self._file: BinaryIO | None = None
        self._left = 0
        self._digest = hashlib.sha256()
        self.parts: list[dict[str, object]] = []

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        while view:
            if self._left == 0:
                self._begin()
            taken = view[: min(self._left, _CHUNK)]
            assert self._file is not None
            self._file.write(taken)
            self._digest.update(taken)
            self._left -= len(taken)
            view = view[len(taken) :]
        return len(data)

    def close(self) -> None:
        """Ends the last part; ``parts`` then has the name, bytes and digest of each."""
        if self._file is None:
            return
        self._file.close()
        entry = {"bytes": self._most - self._left, "sha256": self._digest.hexdigest()}
        self.parts.append({"name": NAME.format(len(self.parts)), **entry})
        self._file, self._left, self._digest = None, 0, hashlib.sha256()

    def _begin(self) -> None:
        self.close()
        self._file = (self._folder / NAME.format(len(self.parts))).open("xb")
        self._left = self._most
