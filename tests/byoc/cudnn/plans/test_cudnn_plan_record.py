"""Records of execution plans: every byte counts."""

from __future__ import annotations

import pytest

from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.byoc.cudnn.plans.record import EnginePlan, PlanRecord, digest_of
from tvm_mxplan.errors import InvalidInputError

FIRST = EnginePlan(4096, "eng7_k1=2", (3, 1, 2), ((500, b"\0\0\x80?"),), '{"engineId":7}')
SPARE = EnginePlan(0, "eng1", (1, 2, 3), (), '{"engineId":1}')
RECORD = PlanRecord(91900, 90, 132, 13000, (FIRST, SPARE))


def test_the_runtime_reads_what_was_written() -> None:
    assert library.check_plan(RECORD.encode()) == "eng7_k1=2"


def test_every_flipped_byte_is_noticed() -> None:
    good = RECORD.encode()
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 0x10
        with pytest.raises(InvalidInputError, match="execution plan"):
            library.check_plan(bytes(bad))


def test_every_truncation_and_every_appendix_is_noticed() -> None:
    good = RECORD.encode()
    for end in range(len(good)):
        with pytest.raises(InvalidInputError, match="execution plan"):
            library.check_plan(good[:end])
    with pytest.raises(InvalidInputError, match="execution plan"):
        library.check_plan(good + b"\0")


def test_a_record_of_another_version_is_refused() -> None:
    good = RECORD.encode()
    with pytest.raises(InvalidInputError, match="version"):
        library.check_plan(good[:4] + b"\2\0\0\0" + good[8:])


def test_a_record_without_a_plan_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="without a plan"):
        library.check_plan(PlanRecord(91900, 90, 132, 13000, ()).encode())


def test_the_digest_tells_records_apart() -> None:
    alone = PlanRecord(91900, 90, 132, 13000, (FIRST,))
    assert len(digest_of(RECORD.encode())) == 32
    assert digest_of(RECORD.encode()) != digest_of(alone.encode())
