"""A file of tuning records: read, grown a line at a time, merged; safe against other processes and kills.

Merging writes a new file in the place of the old one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..cache.locked_file import append, locked
from ..errors import InvalidInputError
from ..export.files import whole_file
from .records import Record, Records, UnusableRecords, header_line, parse, record_line

_LIMIT = 256 << 20


class RecordFile:
    """Records of one machine at a path; the file is made when there is something to write.

    Parameters
    ----------
    machine : what records depend on; a file made under other circumstances is an UnusableRecords.
    """

    def __init__(self, path: Path, machine: Mapping[str, Any]) -> None:
        self.path = path
        self._machine = machine

    def load(self) -> tuple[Records, int]:
        """Records, and the number of damaged lines; UnusableRecords where there is no file."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                data = file.read(_LIMIT + 1)
        except FileNotFoundError:
            raise UnusableRecords("no such file") from None
        except OSError as error:
            raise UnusableRecords(f"cannot be read ({error.strerror})") from None
        if len(data) > _LIMIT:
            raise UnusableRecords(f"more than {_LIMIT:,} bytes")
        return parse(data.decode("utf-8", "replace"), self._machine)

    def append(self, record: Record) -> None:
        """Add a line; OSError where that cannot be."""
        append(self.path, record_line(record), header_line(self._machine))

    def merge(self, records: Iterable[Record]) -> Records:
        """Write the better supported of what is there and ``records``; an unusable file is replaced.

        Raises
        ------
        InvalidInputError : it cannot be written.
        """
        try:
            with locked(self.path):
                try:
                    merged, _ = self.load()
                except UnusableRecords:
                    merged = Records()
                merged.merge(records)
                text = header_line(self._machine) + "".join(map(record_line, merged))
                with whole_file(self.path) as partial:
                    partial.touch(mode=0o600)
                    partial.write_text(text)
        except OSError as error:
            raise InvalidInputError(f"{self.path}: cannot be written ({error.strerror or error})") from error
        return merged
