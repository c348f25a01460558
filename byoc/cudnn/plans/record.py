"""The bytes of an execution plan as a step carries them, which ``runtime/cudnn/plan.h`` describes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from .. import library

_MAGIC, _VERSION = b"MXEP", 2


@dataclass(frozen=True)
class PlanRecord:
    """An execution plan, and what it was made for.

    Attributes
    ----------
    cudnn, sm, multiprocessors, driver : versions and device; cuDNN takes its plans nowhere else.
    workspace : bytes.
    uids : of tensors, in the order in which they are bound.
    scalars : uids and bytes of numbers that executions are handed from the host's memory.
    text : the plan as cuDNN wrote it.
    """

    cudnn: int
    sm: int
    multiprocessors: int
    driver: int
    workspace: int
    engine: str
    uids: Sequence[int]
    scalars: Sequence[tuple[int, bytes]]
    text: str

    def encode(self) -> bytes:
        facts = (self.cudnn, self.sm, self.multiprocessors, self.driver, self.workspace)
        body = struct.pack("<5q", *facts) + _string(self.engine)
        body += struct.pack(f"<I{len(self.uids)}q", len(self.uids), *self.uids)
        body += struct.pack("<I", len(self.scalars))
        for uid, data in self.scalars:
            body += struct.pack("<qI", uid, len(data)) + data
        body += _string(self.text)
        return _MAGIC + struct.pack("<I", _VERSION) + library.plan_digest(body) + body


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data
