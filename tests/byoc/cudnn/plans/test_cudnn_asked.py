"""The planner's process: questions and answers, and what is said where it ends; no cuDNN is needed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tvm_mxplan.byoc.cudnn.asked import AskedProcess
from tvm_mxplan.byoc.cudnn.native import serve
from tvm_mxplan.errors import UnsupportedError

_SCRIPT = """
import json, os, signal, sys
print(json.dumps(HELLO), flush=True)
for line in sys.stdin:
    ((kind, question),) = json.loads(line).items()
    if question == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if question == "leave":
        sys.exit(3)
    print(json.dumps({"kind": kind, "question": question, "arguments": sys.argv[1:]}), flush=True)
"""


def planner(folder: Path, hello: object = None) -> AskedProcess:
    script = folder / "script.py"
    script.write_text(_SCRIPT.replace("HELLO", repr(hello or {"version": 91900, "driver": "stand-in"})))
    return AskedProcess("planner", ["-I", str(script), "a", "b"], "install this")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[AskedProcess]:
    one = planner(tmp_path)
    yield one
    one.close()


def test_questions_are_answered_by_one_process(made: AskedProcess) -> None:
    assert made.hello == {"version": 91900, "driver": "stand-in"}
    for question in ({"sm": 90}, 7):
        assert made.ask("plan", question) == {"kind": "plan", "question": question, "arguments": ["a", "b"]}


@pytest.mark.parametrize("question, said", [("die", "signal 9"), ("leave", "status 3")])
def test_a_question_that_ends_the_process_is_an_error_and_the_next_begins_another(
    made: AskedProcess, question: str, said: str
) -> None:
    text = f"cuDNN's planner ended ({said}) while it was asked"
    assert made.ask("plan", question) == {"error": text, "ended": True}
    assert made.ask("plan", 1)["question"] == 1


@pytest.mark.parametrize("hello, said", [({"error": "no such library"}, "no such library"), ([], "status 0")])
def test_a_process_that_does_not_begin_says_the_way_out(tmp_path: Path, hello: object, said: str) -> None:
    one = planner(tmp_path, hello)
    if not hello:
        (tmp_path / "script.py").write_text("")
    with pytest.raises(UnsupportedError, match=f"{said}.*; install this"):
        one.ask("plan", 1)


_WHICH = """
import ctypes, importlib.util, sys
spec = importlib.util.spec_from_file_location("serve", sys.argv[1])
serve = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve)
found = serve._load_driver(sys.argv[2])
print(found, ctypes.CDLL(serve.DRIVER).cuDriverGetVersion(ctypes.byref(ctypes.c_int())))
"""


@pytest.mark.slow
def test_the_stand_in_is_a_driver_without_a_device_where_there_is_none(tmp_path: Path) -> None:
    """It is not loaded where a driver is found: here, one that the path of libraries leads to."""
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    folder = Path(serve.__file__).resolve().parents[1] / "no_driver"
    if not (folder / "no_driver.cc").exists():
        pytest.skip("an installed wheel, which has no sources")
    stand_in, other = tmp_path / "libstand_in.so", tmp_path / "real" / "libcuda.so.1"
    link = ["g++", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*link, folder / "no_driver.cc", "-o", stand_in], check=True)
    other.parent.mkdir()
    source = tmp_path / "other.cc"
    source.write_text('extern "C" int cuDriverGetVersion(int*) { return 77; }')
    subprocess.run([*link, source, "-o", other], check=True)

    def which(**environment: str) -> str:
        command = [sys.executable, "-c", _WHICH, serve.__file__, stand_in]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return answer.stdout.strip()

    assert which(LD_LIBRARY_PATH=str(other.parent)) == "system 77"
    try:
        ctypes.CDLL(serve.DRIVER)
    except OSError:
        assert which() == "stand-in 0"
