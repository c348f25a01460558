"""Finding oneDNN and the runtime, and refusing what does not fit."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo, ValueInfo


def loading(
    monkeypatch: pytest.MonkeyPatch, present: str, *, installed: bool = True
) -> tuple[list[str], object]:
    """The files that are tried, and what comes of it where only one of them can be loaded."""
    tried: list[str] = []

    def cdll(name: str) -> str:
        tried.append(name)
        if not name.endswith(present):
            raise OSError(f"{name}: no such file")
        return f"loaded {name}"

    def files(_distribution: str) -> list[SimpleNamespace]:
        if not installed:
            raise importlib.metadata.PackageNotFoundError
        names = ("dnnl.h", "libdnnl.so.3", "libdnnl.so")
        return [SimpleNamespace(name=name, locate=lambda name=name: f"/packages/{name}") for name in names]

    monkeypatch.setattr(library.ctypes, "CDLL", cdll)
    monkeypatch.setattr(library.importlib.metadata, "files", files)
    try:
        return tried, library._load_onednn()
    except library.LibraryError as error:
        return tried, error


def test_the_distributions_own_file_comes_first(monkeypatch) -> None:
    tried, loaded = loading(monkeypatch, "packages/libdnnl.so.3")
    assert (tried, loaded) == (["/packages/libdnnl.so.3"], "loaded /packages/libdnnl.so.3")


@pytest.mark.parametrize("installed", [True, False])
def test_then_the_environments_and_the_systems(monkeypatch, installed) -> None:
    own = ["/packages/libdnnl.so.3"] if installed else []
    prefix = str(Path(sys.prefix) / "lib" / "libdnnl.so.3")
    tried, loaded = loading(monkeypatch, prefix, installed=installed)
    assert (tried, loaded) == ([*own, prefix], f"loaded {prefix}")
    tried, error = loading(monkeypatch, "nothing", installed=installed)
    assert tried == [*own, prefix, "libdnnl.so.3"]
    assert all(name in str(error) for name in tried) and "install onednn-cpu-gomp" in str(error)


@pytest.mark.parametrize(
    ("stamp", "installed", "fits"),
    [
        ("0.1.14", "0.1.14.post0", True),
        ("0.1.14", "0.1.14", True),
        ("0.1.14", "0.1.15", False),
        ("0.1.1", "0.1.14", False),
        ("", "0.1.14", False),
    ],
)
def test_the_runtime_belongs_to_one_version_of_tvm_ffi(monkeypatch, tmp_path, stamp, installed, fits) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"\x7fELF" + b"x" * 100 + (f"mxplan-tvm-ffi={stamp};" if stamp else "").encode() + b"y")
    monkeypatch.setattr(library.importlib.metadata, "version", lambda _name: installed)
    if fits:
        library._check_tvm_ffi(path)
    else:
        with pytest.raises(library.LibraryError, match=f"{stamp or 'unknown'}.*installed is {installed}"):
            library._check_tvm_ffi(path)


def test_a_description_as_text() -> None:
    text = (
        '{"steps": [{"implementation": "jit", "scratchpad_bytes": 64, "weights_bytes": 8, "error": "", '
        '"relative_error": 1e-06, "alternatives": ["a", "b"], '
        '"refused": [], "descriptor": "d"}], "values": [{"layout": "acdb", "nbytes": 72}]}'
    )
    found = library.read_description(text)
    assert found.steps == (StepInfo("jit", 64, 8, "", 1e-6, ("a", "b"), (), "d", "jit"),)
    assert found.values == (ValueInfo("acdb", 72),)


def test_numbers_of_threads() -> None:
    before = library.threads()
    try:
        library.set_threads(3)
        assert library.threads() == 3
    finally:
        library.set_threads(before)
    assert library.threads() == before
    assert library.thread_limit() >= before
