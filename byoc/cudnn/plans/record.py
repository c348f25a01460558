"""The bytes of a step's execution plans as it carries them, which ``runtime/cudnn/plan.h`` describes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import library

_MAGIC, _VERSION = b"MXEP", 4


@dataclass(frozen=True)
class EnginePlan:
    """The execution plan of one engine.

    Attributes
    ----------
    workspace : bytes.
    uids : of tensors, in the order in which they are bound.
    scalars : uids and bytes of numbers that executions are handed from the host's memory.
    text : the plan as cuDNN wrote it.
    """

    workspace: int
    engine: str
    uids: Sequence[int]
    scalars: Sequence[tuple[int, bytes]]
    text: str

    def encode(self) -> bytes:
        body = struct.pack("<q", self.workspace) + _string(self.engine)
        body += struct.pack(f"<I{len(self.uids)}q", len(self.uids), *self.uids)
        body += struct.pack("<I", len(self.scalars))
        for uid, data in self.scalars:
            body += struct.pack("<qI", uid, len(data)) + data
        return body + _string(self.text)


@dataclass(frozen=True)
class PlanRecord:
    """A step's execution plans, and what they were made for.

    Attributes
    ----------
    cudnn, sm, multiprocessors, driver : versions and device; cuDNN takes its plans nowhere else.
    plans : the one that runs, then those that wait for one that fails.
    replays : whether the steps of the region may be kept as one CUDA graph.
    """

    cudnn: int
    sm: int
    multiprocessors: int
    driver: int
    plans: Sequence[EnginePlan]
    replays: bool = False

    def encode(self) -> bytes:
        head = struct.pack("<4q", self.cudnn, self.sm, self.multiprocessors, self.driver)
        head += struct.pack("<2I", self.replays, len(self.plans))
        body = head + b"".join(plan.encode() for plan in self.plans)
        return _MAGIC + struct.pack("<I", _VERSION) + library.plan_digest(body) + body


def engine_plan(answer: Mapping[str, Any]) -> EnginePlan:
    """The plan of an answer of the planner's."""
    engine = answer["engines"][answer["chosen"]]
    scalars = {one["uid"]: bytes.fromhex(one["bytes"]) for one in answer["scalars"]}
    uids = [uid for uid in answer["uids"] if uid not in scalars]
    return EnginePlan(answer["workspace"], engine["name"], uids, sorted(scalars.items()), answer["plan"])


def digest_of(record: bytes) -> str:
    """The digest that a record holds, in hexadecimal digits."""
    return record[8:24].hex()


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data
