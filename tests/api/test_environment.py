"""Variables of ours that say nothing we know: the error names the variable, its text and what is expected."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tvm_mxplan
from tvm_mxplan import environment
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.execution import machine
from tvm_mxplan.testing import zoo

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "said", "read", "expected"),
    [
        ("TVM_MXPLAN_DEBUG", "memroy", environment.debug_memory, "memory, opcheck, or memory,opcheck"),
        (
            "TVM_MXPLAN_DEBUG",
            "memory opcheck",
            environment.debug_opcheck,
            "memory, opcheck, or memory,opcheck",
        ),
        ("TVM_MXPLAN_CACHE_BYTES", "1G", environment.cache_bytes, "a whole number from 0"),
        ("TVM_MXPLAN_CACHE_BYTES", "-1", environment.cache_bytes, "a whole number from 0"),
        ("TVM_MXPLAN_CACHE_DIR", "relative/cache", environment.cache_folder, "an absolute path"),
        ("TVM_MXPLAN_CACHE_DIR", "~/cache", environment.cache_folder, "an absolute path"),
        ("TVM_MXPLAN_PRIMITIVE_CACHE", "all", environment.primitive_cache, "a whole number from 0"),
        ("TVM_MXPLAN_WEIGHTS_CACHE", "1.5", environment.weights_cache_mib, "a whole number from 0"),
        ("TVM_MXPLAN_DISABLE", "no", environment.disabled, "0 or 1"),
        ("TVM_MXPLAN_FEWER_THREADS", "off", environment.check_fewer_threads, "0 or 1"),
        ("TVM_MXPLAN_AUTOTUNE", "3", environment.autotune, r"0 \(off\), 1 \(model\) or 2 \(measure\)"),
    ],
)
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, said: str, read: Callable[[], object], expected: str
) -> None:
    monkeypatch.setenv(name, said)
    with pytest.raises(InvalidInputError, match=f"^{name}='{said}'; expected {expected}"):
        read()


def test_what_is_right_and_what_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert not environment.debug_memory() and not environment.debug_opcheck() and not environment.disabled()
    assert environment.cache_bytes() == 4 << 30
    folder = environment.cache_folder()
    assert folder is None or folder.is_absolute()
    environment.check_fewer_threads()
    monkeypatch.setenv("TVM_MXPLAN_DEBUG", "memory, opcheck")
    monkeypatch.setenv("TVM_MXPLAN_CACHE_BYTES", "1000")
    monkeypatch.setenv("TVM_MXPLAN_DISABLE", "1")
    assert environment.debug_memory() and environment.debug_opcheck() and environment.disabled()
    assert environment.cache_bytes() == 1000


def test_all_of_ours_are_in_the_documents() -> None:
    """The page that the module's text names lists them."""
    options = (ROOT / "docs" / "using" / "options.md").read_text()
    assert "docs/using/options.md" in (environment.__doc__ or "")
    ours = [name for name in environment.VARIABLES if name.startswith("TVM_MXPLAN_")]
    assert len(ours) >= 10
    assert [name for name in ours if f"`{name}" not in options] == []


@pytest.mark.parametrize(
    ("name", "said", "options"),
    [
        ("TVM_MXPLAN_DEBUG", "memroy", {}),
        ("TVM_MXPLAN_CACHE_BYTES", "1G", {"cache": "on_compile"}),
        ("TVM_MXPLAN_CACHE_DIR", "relative", {"cache": "on_compile"}),
        ("TVM_MXPLAN_DISABLE", "yes", {}),
    ],
)
def test_a_compilation_does_not_go_on_without_it(
    monkeypatch: pytest.MonkeyPatch, name: str, said: str, options: dict[str, str]
) -> None:
    monkeypatch.setenv(name, said)
    with pytest.raises(InvalidInputError, match=f"^{name}='{said}'; expected"):
        tvm_mxplan.compile(zoo.load(zoo.TINY), options=options)


@pytest.mark.slow
def test_a_library_is_loaded_with_a_warning_but_not_run_unchecked(tmp_path: Path) -> None:
    """A new process: the runtime reads the variables once, when it is loaded."""
    tvm_mxplan.compile(zoo.load(zoo.TINY)).export(tmp_path / "tiny.so")
    code = "import sys, tvm_mxplan; tvm_mxplan.load(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "tiny.so")]
    for name, said, status in (("TVM_MXPLAN_DEBUG", "memroy", 1), ("TVM_MXPLAN_FEWER_THREADS", "off", 0)):
        variables = {**os.environ, name: said}
        answer = subprocess.run(command, capture_output=True, text=True, env=variables)
        assert answer.returncode == status, answer.stderr
        assert f"Failed to autoload tvm backend 'tvm_mxplan': {name}={said!r}; expected" in answer.stderr
        assert status == 0 or f"InvalidInputError: {name}={said!r}; expected" in answer.stderr


def test_what_is_wrong_once_is_wrong_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_ours", [])
    monkeypatch.setenv("TVM_MXPLAN_WEIGHTS_CACHE", "all")
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="TVM_MXPLAN_WEIGHTS_CACHE"):
            machine.start_ours()
    assert machine._ours == []
