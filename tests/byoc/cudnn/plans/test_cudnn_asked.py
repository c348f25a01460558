"""The planner's process: questions and answers, and what is said where it ends; no cuDNN is needed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tvm_mxplan.byoc.cudnn import asked
from tvm_mxplan.byoc.cudnn.asked import AskedProcess
from tvm_mxplan.byoc.cudnn.native import serve
from tvm_mxplan.errors import InternalError, UnsupportedError

_SCRIPT = """
import json, os, signal, sys, time
print(json.dumps(HELLO), flush=True)
for line in sys.stdin:
    ((kind, question),) = json.loads(line).items()
    if question == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if question == "leave":
        sys.exit(3)
    if question == "hang":
        time.sleep(60)
    if question == "babble":
        print("no driver", flush=True)
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


def test_a_process_that_gives_no_answer_in_time_is_ended(
    made: AskedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made.ask("plan", 1)["question"] == 1
    hung = made._process
    monkeypatch.setattr(asked, "_ANSWER_SECONDS", 0.5)
    text = "cuDNN's planner gave no answer in 0.5 s"
    assert made.ask("plan", "hang") == {"error": text, "ended": True}
    assert hung is not None and hung.returncode == -9 and hung.stdout is not None and hung.stdout.closed
    monkeypatch.undo()
    assert made.ask("plan", 2)["question"] == 2


def test_a_process_that_does_not_read_its_question_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that fills the pipe is not written before somebody reads of it."""
    script = "import time; print('{\"version\": 1}', flush=True); time.sleep(60)"
    one = AskedProcess("planner", ["-c", script], "install this")
    assert one.hello == {"version": 1}
    monkeypatch.setattr(asked, "_ANSWER_SECONDS", 0.5)
    assert one.ask("plan", "x" * (1 << 20))["ended"]
    assert one._process is None


@pytest.mark.parametrize(
    "hello, said",
    [
        ('print(\'{"error": "no driver"}\', flush=True)', "no driver"),
        ("print('welcome', flush=True)", "began with b'welcome"),
        ("pass", "did not begin in 0.5 s"),
    ],
)
def test_a_process_that_does_not_begin_and_stays_is_ended(
    monkeypatch: pytest.MonkeyPatch, hello: str, said: str
) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*args: object, **kwargs: object) -> subprocess.Popen[bytes]:
        begun.append(popen(*args, **kwargs))  # type: ignore[call-overload]
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(asked, "_START_SECONDS", 0.5 if hello == "pass" else 60.0)
    monkeypatch.setattr(asked, "_END_SECONDS", 0.1)
    one = AskedProcess("planner", ["-c", f"import time; {hello}; time.sleep(60)"], "install this")
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=f"{said}.*; install this"):
            one.ask("plan", 1)
    assert len(begun) == 2
    assert all(process.returncode is not None and process.stdout.closed for process in begun)


def test_an_answer_that_is_no_json_is_a_mistake_of_ours_and_the_next_begins_another(
    made: AskedProcess,
) -> None:
    with pytest.raises(InternalError, match=r"planner answered b'no driver\\n'; expected an object"):
        made.ask("plan", "babble")
    assert made.ask("plan", 1)["question"] == 1


def test_closing_does_not_wait_for_a_question(made: AskedProcess) -> None:
    answers: list[dict[str, object]] = []
    assert made.hello
    thread = threading.Thread(target=lambda: answers.append(made.ask("plan", "hang")), daemon=True)
    thread.start()
    while not made._lock.locked():
        time.sleep(0.01)
    made.close()
    thread.join()  # by itself the question ends with an answer, after a minute
    assert answers == [{"error": "cuDNN's planner ended (signal 9) while it was asked", "ended": True}]


def test_a_question_that_was_closed_before_it_is_sent_begins_no_other_process(
    made: AskedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made.hello
    begun = made._begun

    def closed_first() -> subprocess.Popen[bytes]:
        process = made._process
        made.close()
        assert process is not None
        process.wait()
        return begun()

    monkeypatch.setattr(made, "_begun", closed_first)
    assert made.ask("plan", "hang") == {
        "error": "cuDNN's planner ended (signal 9) while it was asked",
        "ended": True,
    }
    monkeypatch.undo()
    assert made._process is None
    assert made.ask("plan", 1)["question"] == 1


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
