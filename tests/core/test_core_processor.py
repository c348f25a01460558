"""Facts of the processor, read from a text like Linux's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvm_mxplan.core import processor

TEXT = "processor\t: 0\nmodel name\t: A: B\nflags\t\t: fma avx2\n\nprocessor\t: 1\n\nprocessor\t: 2\n"


def fields(monkeypatch: pytest.MonkeyPatch, text: str | None) -> dict[str, str]:
    def read_text(path: Path) -> str:
        assert str(path) == "/proc/cpuinfo"
        if text is None:
            raise FileNotFoundError(path)
        return text

    monkeypatch.setattr(processor.Path, "read_text", read_text)
    return dict(processor.processor_fields.__wrapped__())


def test_the_first_processors_fields_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fields(monkeypatch, TEXT) == {"processor": "0", "model name": "A: B", "flags": "fma avx2"}


def test_a_system_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fields(monkeypatch, None) == {}


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        # user, nice, system, idle, iowait, irq, softirq, steal, and time of guests, which user has, too.
        ("cpu  60 0 0 0 0 0 0 10 7", "cpu  158 0 0 0 0 0 0 12 500", 0.02),
        ("cpu  60 0 0 0 0 0 0 10 7", "cpu  100 0 0 0 0 0 0 20 500", 0.2),
        ("cpu  60 1 2 3 4 5 6 10", "cpu  61 3 5 7 9 11 13 11", 1 / 29),
        ("cpu  60 0 0 0 0 0 0 10 7", "cpu  60 0 0 0 0 0 0 10 7", 0.0),
        ("cpu  1 2 3", "cpu  1 2 3", 0.0),
        ("intr 5", "intr 6", 0.0),
    ],
)
def test_the_share_of_time_that_other_guests_had(before, after, share, tmp_path, monkeypatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(processor, "_STAT", stat)
    stat.write_text(f"{before}\ncpu0 1 1 1 1 1 1 1 1 1\n")
    stolen = processor.StolenTime()
    stat.write_text(f"{after}\ncpu0 9 9 9 9 9 9 9 9 9\n")
    assert stolen.share() == pytest.approx(share)
    assert stolen.disturbs() == (share > 0.02)


def test_nothing_is_stolen_where_the_system_does_not_say(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(processor, "_STAT", tmp_path / "none")
    assert not processor.StolenTime().disturbs()
