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
