"""Whether a file is a whole library of TVM's, found out without loading it.

The dynamic loader maps a truncated library and dies on a bus error, and it runs the initializers of a
foreign one.  So the ELF headers are read first: every segment and the table of sections must lie inside
the file, and TVM's symbol must be among the dynamic ones.  What is inside is left to TVM's loader.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

from ..errors import InvalidInputError

_SYMBOL = b"\0__tvm_ffi__library_bin\0"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC_SYMBOLS = 11
_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"


def check_library(path: Path) -> None:
    """Raise InvalidInputError unless ``path`` is a complete shared library that TVM wrote."""
    if path.is_dir():
        raise InvalidInputError(f"{path}: is a directory; expected a compiled model (.so)")
    try:
        with path.open("rb") as file:
            problem = _problem(file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: no such file; expected a compiled model (.so)") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror or error})") from error
    if problem:
        raise InvalidInputError(f"{path}: {problem}; expected a compiled model (.so)")


def _problem(file: BinaryIO, size: int) -> str:
    """Describes the error in the file, '' if there is none."""
    start = file.read(_HEADER.size)
    if not start.startswith(_ELF64_LITTLE_ENDIAN):
        return "not a shared library" if start else "an empty file"
    if len(start) < _HEADER.size:
        return "a truncated library"
    fields = _HEADER.unpack(start)
    segments_at, sections_at = fields[5], fields[6]
    segment_count, section_count = fields[10], fields[12]
    ends = [segments_at + segment_count * _SEGMENT.size, sections_at + section_count * _SECTION.size]
    if max(ends) > size:
        return "a truncated library"
    for segment in _table(file, segments_at, segment_count, _SEGMENT):
        if segment[2] + segment[5] > size:
            return "a truncated library"
    names = _dynamic_names(file, _table(file, sections_at, section_count, _SECTION))
    return "" if names is None or _SYMBOL in names else "a shared library, but none of TVM's"


def _table(file: BinaryIO, offset: int, count: int, entry: struct.Struct) -> list[tuple[int, ...]]:
    file.seek(offset)
    return list(entry.iter_unpack(file.read(count * entry.size)))


def _dynamic_names(file: BinaryIO, sections: list[tuple[int, ...]]) -> bytes | None:
    """The names of dynamic symbols; None for a file without a table of sections, as some strippers leave."""
    for section in sections:
        if section[1] == _DYNAMIC_SYMBOLS and section[6] < len(sections):
            names = sections[section[6]]
            file.seek(names[4])
            return file.read(names[5])
    return None
