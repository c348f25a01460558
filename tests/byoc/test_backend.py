"""oneDNN behind the protocol that passes know: what is handed on, and to whom."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN


@pytest.fixture
def unrefused() -> Iterator[None]:
    library.forget_refusals()
    yield
    library.forget_refusals()


@pytest.mark.usefixtures("unrefused")
def test_refusals_reach_the_library() -> None:
    OneDNN().refuse("some step", "some code", "some reason")
    assert library.refusals() == [("some step", "some code", "some reason")]


@pytest.mark.parametrize(
    ("isa", "block"), [("avx512_core_amx", 16), ("avx512_core", 16), ("avx2", 8), ("sse41", 8)]
)
def test_blocks_are_as_wide_as_vectors(monkeypatch: pytest.MonkeyPatch, isa: str, block: int) -> None:
    monkeypatch.setattr(library, "isa", lambda: isa)
    backend = OneDNN()
    assert (backend.isa, backend.block) == (isa, block)


def test_the_library_is_loaded_once() -> None:
    library.load()
    loaded = list(library._loaded)
    library.load()
    assert library._loaded == loaded
