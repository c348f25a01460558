"""Kernels that were verified on a machine, kept in one file: what agreed, and what is refused.

    {"machine": {...}, "mxplan_verified": 1}            a header
    {"agreed": ["<digest>", ...], "check": "..."}       a line for what one compilation checked
    {"refused": {...}, "check": "..."}                  a line for each kernel that differed

``check`` is a digest over the rest of its line: a line that was cut or changed counts as if it were not
there, and its kernels are checked again.  The later of two lines about one kernel holds.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import environment
from ..cache.container import UnusableCache
from ..cache.locked_file import append
from ..cache.safe_file import check_owner
from ..core.decisions.verification import Refusal
from ..tuning.facts import digest_of

VERSION = 1
FOLDER = "verified"
_LIMIT = 64 << 20


@dataclass(frozen=True)
class Known:
    """The content of a file.

    Attributes
    ----------
    agreed : digests of kernels.
    refused : by their digests.
    note : what is to be said about the file, '' if nothing.
    """

    agreed: frozenset[str] = frozenset()
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    note: str = ""


class VerifiedFile:
    """The file of one machine; it is made when there is something to write.

    Parameters
    ----------
    machine : what decides whether a kernel that agreed agrees again.
    """

    def __init__(self, path: Path, machine: Mapping[str, Any]) -> None:
        self.path = path
        self._header = json.dumps({"machine": machine, "mxplan_verified": VERSION}, sort_keys=True) + "\n"

    def state(self) -> tuple[int, ...]:
        """Another one where the file is another; () where there is none."""
        try:
            status = os.stat(self.path)
        except OSError:
            return ()
        return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def load(self) -> Known:
        """Reads the verified kernels; nothing, with a note, where the file cannot be used."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                check_owner(os.fstat(descriptor))
                data = file.read(_LIMIT + 1)
        except FileNotFoundError:
            return Known()
        except (OSError, UnusableCache) as error:
            return Known(note=f"{self.path}: not used ({getattr(error, 'strerror', None) or error})")
        if len(data) > _LIMIT:
            return Known(note=f"{self.path}: not used (more than {_LIMIT:,} bytes)")
        header, _, lines = data.decode("utf-8", "replace").partition("\n")
        if header + "\n" != self._header:
            return Known(note=f"{self.path}: not used (made elsewhere, or damaged)")
        return self._parsed(lines)

    def add(self, agreed: Iterable[str], refused: Mapping[str, Refusal]) -> str:
        """Note kernels; why that could not be, '' if it could."""
        digests = sorted(agreed)
        lines = [_line("agreed", digests)] if digests else []
        lines += [_line("refused", {"digest": digest, **asdict(one)}) for digest, one in refused.items()]
        if not lines:
            return ""
        try:
            append(self.path, "".join(lines), self._header, anew=True)
        except OSError as error:
            return f"{self.path}: not kept ({error.strerror or error})"
        return ""

    def _parsed(self, lines: str) -> Known:
        agreed: set[str] = set()
        refused: dict[str, Refusal] = {}
        damaged = 0
        for line in lines.splitlines():
            try:
                found = json.loads(line)
                if not line or found.pop("check") != _check(found):
                    raise ValueError(line)
                if "agreed" in found:
                    agreed.update(found["agreed"])
                    for digest in refused.keys() & found["agreed"]:
                        del refused[digest]
                else:
                    fields = dict(found["refused"])
                    digest = fields.pop("digest")
                    refused[digest] = Refusal(**fields)
                    agreed.discard(digest)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                damaged += 1
        note = f"{self.path}: {damaged} damaged line(s) left out" if damaged else ""
        return Known(frozenset(agreed), refused, note)


def verified_file(facts: Mapping[str, Any], files: str) -> VerifiedFile | None:
    """That of a machine in the cache folder; None where there is no such folder.

    Parameters
    ----------
    facts : of the machine, and who makes its kernels.
    files : a digest of the plug-in's own files.
    """
    folder = environment.cache_folder()
    if folder is None:
        return None
    facts = {**facts, "files": files}
    return VerifiedFile(folder / FOLDER / f"{digest_of(facts)[:16]}.jsonl", facts)


def _line(name: str, value: Any) -> str:
    fields = {name: value}
    return json.dumps({**fields, "check": _check(fields)}, sort_keys=True) + "\n"


def _check(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]
