"""Finding oneDNN and the runtime, and refusing what does not fit."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tvm_ffi

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import Description, StepInfo, ValueInfo
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir


def loading(
    monkeypatch: pytest.MonkeyPatch, present: str, *, installed: bool | str = True
) -> tuple[list[str], object]:
    """The files that are tried, and what comes of it where only one of them can be loaded."""
    tried: list[str] = []

    def cdll(name: str) -> str:
        tried.append(name)
        if not name.endswith(present):
            raise OSError(f"{name}: no such file")
        return f"loaded {name}"

    def files(_distribution: str) -> list[SimpleNamespace] | None:
        if installed == "without a list":
            return None
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


@pytest.mark.parametrize("installed", [True, False, "without a list"])
def test_then_the_environments_and_the_systems(monkeypatch, installed) -> None:
    own = ["/packages/libdnnl.so.3"] if installed is True else []
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Stands in the place of the runtime's functions: notes calls, answers with ``ANSWERS``."""
    found: list[object] = []
    monkeypatch.setattr(library, "load", lambda: found.append("load"))

    def function(name: str) -> object:
        def call(*arguments: object) -> object:
            found.append((name, *arguments))
            return ANSWERS.get(name)

        return call

    monkeypatch.setattr(library.runtime, "function", function)
    return found


PROGRAM = ir.Program("p", (), ())
ANSWERS = {
    "refusals": '[{"descriptor": "d", "implementation": "i", "reason": "r"}]',
    "errata": '[{"name": "one"}]',
    "cache_counters": {"hits": 3},
    "describe": '{"steps": [], "values": []}',
    "version": "3.2.0",
    "isa": "avx2",
    "create": "module",
    "load_packed": "region",
}


@pytest.mark.parametrize(
    ("call", "expected", "answer"),
    [
        (lambda: library.set_cache_capacity("weights", 3, 4), ("set_cache_capacity", "weights", 3, 4), None),
        (lambda: library.cache_counters("weights"), ("cache_counters", "weights"), {"hits": 3}),
        (lambda: library.set_debug(True), ("set_debug", 1), None),
        (lambda: library.set_debug(False), ("set_debug", 0), None),
        (lambda: library.set_errata(True), ("set_errata", 1), None),
        (lambda: library.set_errata(False), ("set_errata", 0), None),
        (lambda: library.refuse("d", "i", "r"), ("refuse", "d", "i", "r"), None),
        (library.refusals, ("refusals",), [("d", "i", "r")]),
        (library.forget_refusals, ("forget_refusals",), None),
        (library.errata, ("errata",), [{"name": "one"}]),
        (lambda: library.observe(None), ("observe", None, None, None), None),
        (
            lambda: library.observe(SimpleNamespace(begin=1, before=2, after=3)),  # type: ignore[arg-type]
            ("observe", 1, 2, 3),
            None,
        ),
        (lambda: library.describe(b"p", [7]), ("describe", b"p", [7]), Description((), ())),  # type: ignore[arg-type]
        (lambda: library.describe(PROGRAM), ("describe", codec.encode(PROGRAM), []), Description((), ())),
        (lambda: library.create_module("s", b"p"), ("create", "s", b"p", []), "module"),
        (lambda: library.load_packed(b"h", [], True), ("load_packed", b"h", [], True), "region"),
        (library.version, ("version",), "3.2.0"),
        (library.isa, ("isa",), "avx2"),
    ],
)
def test_what_the_runtime_is_asked(asked: list[object], call, expected, answer) -> None:
    assert call() == answer
    assert asked == ["load", expected]


def test_constants_are_handed_over_as_they_are(asked: list[object]) -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    tensor = tvm_ffi.from_dlpack(array)
    library.create_module("s", b"p", [array, tensor])
    library.load_packed(b"h", [array], False)
    (_, _, _, (first, second)), (_, _, (third,), mapped) = asked[1], asked[3]  # type: ignore[misc]
    assert second is tensor and mapped is False
    for one in (first, third):
        assert isinstance(one, tvm_ffi.Tensor)
        np.testing.assert_array_equal(np.from_dlpack(one), array)


@pytest.mark.parametrize(("dynamic", "limit"), [(0, 7), (1, 1)])
def test_the_most_threads(monkeypatch: pytest.MonkeyPatch, dynamic: int, limit: int) -> None:
    openmp = SimpleNamespace(omp_get_dynamic=lambda: dynamic, omp_get_thread_limit=lambda: 7)
    monkeypatch.setattr(library, "_loaded", [openmp])
    assert library.thread_limit() == limit


@pytest.mark.parametrize("sized_by_user", [True, False])
def test_what_happens_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sized_by_user: bool) -> None:
    """oneDNN and the runtime are opened, and oneDNN's own cache is small unless a user said how large."""
    happened: list[object] = []
    path = tmp_path / "lib.so"

    @contextmanager
    def spinning() -> Iterator[None]:
        happened.append("brief spinning")
        yield
        happened.append("as before")

    monkeypatch.setattr(library, "_loaded", [])
    monkeypatch.setattr(library, "library_path", lambda: path)
    with pytest.raises(library.LibraryError, match=r"lib\.so does not exist; build it"):
        library.load()
    path.write_bytes(b"")
    monkeypatch.setattr(library, "_check_tvm_ffi", happened.append)
    monkeypatch.setattr(library, "_load_onednn", lambda: happened.append("oneDNN") or "oneDNN")
    monkeypatch.setattr(library.environment, "settle_pool", lambda: happened.append("pool"))
    monkeypatch.setattr(library.environment, "brief_spinning", spinning)
    monkeypatch.setattr(library.errors, "register", lambda: happened.append("errors"))
    function = lambda name: lambda *given: happened.append((name, *given))  # noqa: E731
    monkeypatch.setattr(library.runtime, "function", function)
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    if sized_by_user:
        monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "1024")

    def failing(_name: str) -> None:
        raise OSError("damaged")

    monkeypatch.setattr(library.ctypes, "CDLL", failing)
    with pytest.raises(library.LibraryError, match=r"cannot load .*lib\.so: damaged"):
        library.load()
    assert library._loaded == []
    happened.clear()
    monkeypatch.setattr(library.ctypes, "CDLL", lambda name: f"opened {name}")
    library.load()
    library.load()
    assert library._loaded == ["oneDNN", f"opened {path}"]
    before = [path, "pool", "brief spinning", "oneDNN", "as before", "errors"]
    assert happened == [*before, *([] if sized_by_user else [("set_library_cache", 64)])]
