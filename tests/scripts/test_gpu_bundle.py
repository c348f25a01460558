"""scripts/gpu_bundle: parts are bounded and checked, what is unpacked is what was packed."""

from __future__ import annotations

import argparse
import importlib.metadata
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi.libinfo

pytest.importorskip("packaging")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from _bench.gpu import main as bench_gpu
from _gpu_bundle import contents, main, run, unpack
from _gpu_bundle.closure import closure
from _gpu_bundle.parts import PartWriter

MOST = 1 << 16


def bundle(folder: Path, **files: bytes) -> Path:
    """A bundle of files in parts of 64 KiB."""
    sources = folder.parent / f"{folder.name}_files"
    sources.mkdir()
    for name, data in files.items():
        (sources / name).write_bytes(data)
    main.pack(folder, ((sources / name, f"held/{name}") for name in files), MOST, {})
    return folder


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    return bundle(tmp_path / "packed", a=random.bytes(200_000), b=b"", c=random.bytes(70_001))


def contents_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_parts_are_bounded_and_give_back_what_was_packed(packed: Path, tmp_path: Path) -> None:
    parts = sorted(packed.glob("part-*"))
    assert len(parts) >= 5 and all(path.stat().st_size <= MOST for path in parts)
    unpack.unpack(packed, tmp_path / "target")
    sources = contents_of(tmp_path / "packed_files")
    assert len(sources) == 3
    assert contents_of(tmp_path / "target") == {f"held/{name}": data for name, data in sources.items()}


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 25])
def test_a_stream_of_any_length_is_parts(tmp_path: Path, length: int) -> None:
    data = bytes(range(length))
    writer = PartWriter(tmp_path, 10)
    for at in range(0, length, 7):
        writer.write(data[at : at + 7])
    writer.close()
    written = [(tmp_path / str(one["name"])).read_bytes() for one in writer.parts]
    assert b"".join(written) == data
    assert [len(part) for part in written] == [one["bytes"] for one in writer.parts]
    assert len(written) == -(-length // 10)


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (lambda folder: (folder / "part-001").unlink(), "part-001: missing"),
        (lambda folder: flip(folder / "part-002"), "part-002: damaged"),
        (lambda folder: cut(folder / "part-003"), "part-003: damaged"),
        (lambda folder: cut(folder / "bundle.json"), "bundle.json: damaged"),
        (lambda folder: (folder / "bundle.json").unlink(), "bundle.json: No such file"),
        (lambda folder: set_python(folder, 2, 7), "its wheels are for Python 2.7"),
        (lambda folder: rename_part(folder, "../part-000"), "a part '../part-000'"),
    ],
)
def test_a_damaged_bundle_is_one_line_and_nothing_is_written(
    packed: Path, tmp_path: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    spoil(packed)
    target = tmp_path / "target"
    command = [sys.executable, str(packed / "unpack.py"), str(target)]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 1 and reason in answer.stderr and len(answer.stderr.splitlines()) == 1
    assert not target.exists()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def set_python(folder: Path, *version: int) -> None:
    listed = json.loads((folder / "bundle.json").read_bytes())
    (folder / "bundle.json").write_text(json.dumps({**listed, "python": version}))


def rename_part(folder: Path, name: str) -> None:
    listed = json.loads((folder / "bundle.json").read_bytes())
    listed["parts"][0]["name"] = name
    (folder / "bundle.json").write_text(json.dumps(listed))


@pytest.mark.parametrize("kind, name", [(tarfile.REGTYPE, "../outside"), (tarfile.SYMTYPE, "link")])
def test_what_would_stand_elsewhere_is_refused(tmp_path: Path, kind: bytes, name: str) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    writer = PartWriter(folder, MOST)
    with tarfile.open(fileobj=writer, mode="w|") as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc"
        archive.addfile(member, io.BytesIO())
    writer.close()
    (folder / "bundle.json").write_text(json.dumps({"parts": writer.parts, "python": sys.version_info[:2]}))
    with pytest.raises(unpack.BundleError, match="no file below its target"):
        unpack.unpack(folder, tmp_path / "target")
    assert not (tmp_path / "outside").exists()


def test_a_folder_in_use_is_refused(packed: Path) -> None:
    with pytest.raises(unpack.BundleError, match="not empty"):
        main.pack(packed, iter(()), MOST, {})


@pytest.mark.slow
def test_the_wheels_are_installed_without_network(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    write_wheel(wheel, {"tiny.py": b"ANSWER = 42\n"})
    folder, target = tmp_path / "bundle", tmp_path / "target"
    main.pack(folder, iter([(wheel, f"wheels/{wheel.name}")]), MOST, {})
    command = [sys.executable, str(folder / "unpack.py"), str(target)]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "pytest -m gpu" in answer.stdout
    asked = [str(target / ".venv/bin/python"), "-c", "import tiny; print(tiny.ANSWER)"]
    assert subprocess.run(asked, capture_output=True, text=True).stdout == "42\n"


@pytest.mark.slow
def test_a_bundle_stands_beside_what_is_installed(tmp_path: Path) -> None:
    """Compressed, of wheels that are stored; the Python that it makes has both."""
    wheels, folder, target = tmp_path / "wheels", tmp_path / "bundle", tmp_path / "target"
    wheels.mkdir()
    wheel = wheels / "tiny-1.0-py3-none-any.whl"
    write_wheel(wheel, {"tiny.py": b"ANSWER = 42\n" + b"# nothing\n" * 9000})
    contents.store(wheels)
    assert wheel.stat().st_size > 90_000
    main.pack(folder, iter([(wheel, f"wheels/{wheel.name}")]), 1 << 20, {}, compress=True)
    assert sum(path.stat().st_size for path in folder.glob("part-*")) < 9_000
    command = [sys.executable, str(folder / "unpack.py"), str(target), "--beside"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    asked = [str(target / ".venv/bin/python"), "-c", "import tiny, numpy; print(tiny.ANSWER)"]
    assert subprocess.run(asked, capture_output=True, text=True).stdout == "42\n"


def test_the_data_of_wheels_stands_beside_too(tmp_path: Path) -> None:
    """Libraries of a folder lib, which pip leaves out: oneDNN's.  The Python that it makes loads them."""
    wheel, folder, target = tmp_path / "tiny-1.0-py3-none-any.whl", tmp_path / "bundle", tmp_path / "target"
    held = Path(tvm_ffi.libinfo.find_libtvm_ffi()).read_bytes()
    write_wheel(wheel, {"tiny.py": b"ANSWER = 42\n", "tiny-1.0.data/data/lib/libtiny.so.3": held})
    main.pack(folder, iter([(wheel, f"wheels/{wheel.name}")]), 1 << 20, {})
    command = [sys.executable, str(folder / "unpack.py"), str(target), "--beside"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert (target / "site/lib/libtiny.so.3").read_bytes() == held
    loaded = "import ctypes, tiny; ctypes.CDLL('libtiny.so.3'); print(tiny.ANSWER)"
    asked = [str(target / ".venv/bin/python"), "-c", loaded]
    assert subprocess.run(asked, capture_output=True, text=True).stdout == "42\n"


def write_wheel(path: Path, files: dict[str, bytes]) -> None:
    """A wheel of the distribution tiny, deflated."""
    made = {
        **files,
        "tiny-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/RECORD": "".join(f"{name},,\n" for name in files).encode(),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in made.items():
            archive.writestr(name, data)


def test_what_nothing_runs_stays_out_of_stored_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "NOT_RUN", {"tiny": ("tiny/headers/",)})
    files = {
        "tiny/__init__.py": b"ANSWER = 42\n",
        "tiny/headers/a.h": b"int a;\n",
        "headers/b.h": b"int b;\n",
    }
    write_wheel(tmp_path / "tiny-1.0-py3-none-any.whl", files)
    contents.store(tmp_path)
    with zipfile.ZipFile(tmp_path / "tiny-1.0-py3-none-any.whl") as archive:
        assert "tiny/headers/a.h" not in archive.namelist()
        assert {"tiny/__init__.py", "headers/b.h"} <= set(archive.namelist())
        assert archive.read("tiny-1.0.dist-info/RECORD") == b"tiny/__init__.py,,\nheaders/b.h,,\n"


def steps(**codes: str) -> list[run.Step]:
    return [run.Step(name, ("-c", code), 60) for name, code in codes.items()]


def test_steps_run_in_their_order_and_results_are_there(tmp_path: Path) -> None:
    given = steps(first="print(1)", second="raise SystemExit(3)", third="print('{results}')")
    assert not run.run(tmp_path, given, 600)
    assert (tmp_path / "first.log").read_text() == "1\n"
    assert (tmp_path / "third.log").read_text() == f"{tmp_path}\n"
    lines = (tmp_path / "summary.txt").read_text().splitlines()
    assert [line.rpartition(" ")[0].rpartition(" ")[0] for line in lines] == [
        "first: status 0,", "second: status 3,", "third: status 0,",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_same_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_LEAST", 0.0)
    given = steps(
        first="print(1)", slow="import time; print(2, flush=True); time.sleep(600)", last="print(3)"
    )
    run.run(tmp_path, given, 3)
    assert (tmp_path / "slow.log").read_text() == "2\n", "what it wrote is there"
    assert "slow: cut off" in (tmp_path / "summary.txt").read_text()
    assert not (tmp_path / "last.log").exists()
    (tmp_path / "first.log").unlink()
    assert run.run(tmp_path, steps(first="print(1)", slow="print(4)", last="print(3)"), 600)
    assert not (tmp_path / "first.log").exists(), "what has ended does not run again"
    assert (tmp_path / "slow.log").read_text() == "4\n" and (tmp_path / "last.log").read_text() == "3\n"


def test_a_step_of_its_own_length_is_ended_and_the_next_begins(tmp_path: Path) -> None:
    slow = run.Step("slow", ("-c", "import time; time.sleep(600)"), 1)
    assert not run.run(tmp_path, [slow, *steps(last="print(3)")], 600)
    assert "slow: took longer" in (tmp_path / "summary.txt").read_text()
    assert (tmp_path / "last.log").read_text() == "3\n"


def test_answers_come_before_times() -> None:
    names = [step.name for step in run.STEPS]
    benched = [at for at, step in enumerate(run.STEPS) if "_bench" in step.arguments]
    assert names[:3] == ["device", "network", "patterns"] and min(benched) == 3
    for step in run.STEPS:
        for path in (word for word in step.arguments if word.endswith(".py")):
            assert (contents.ROOT / path).is_file()
    parsed = {at: bench_gpu._parse(run.STEPS[at].arguments[3:]) for at in benched}
    quick = [at for at in range(len(names)) if at not in parsed or "torch" not in parsed[at].engines]
    assert sum(run.STEPS[at].seconds for at in quick) <= 60 * run.MINUTES
    assert quick == list(range(len(quick))), "torch.compile takes what is left"
    for at, options in parsed.items():
        assert 0 < options.seconds < run.STEPS[at].seconds, "its last case has some time"


def test_a_step_has_settings_of_its_own(tmp_path: Path) -> None:
    code = "import os; print(os.environ['OMP_NUM_THREADS'])"
    assert run.run(tmp_path, [run.Step("one", ("-c", code), 60, {"OMP_NUM_THREADS": "2"})], 600)
    assert (tmp_path / "one.log").read_text() == "2\n"


def test_the_closure_has_what_an_installation_needs_and_no_more() -> None:
    found = closure(["pytest"])
    assert {"pytest", "pluggy", "iniconfig", "packaging"} <= found.keys()
    assert "numpy" not in found
    assert found["pytest"] == importlib.metadata.version("pytest")
    assert "pluggy" not in closure(["pytest"], without=["Pluggy"])
    assert {"apache-tvm", "numpy", "pytest"} <= contents.requirements(("test",)).keys()


def test_the_checkout_travels_without_our_sources() -> None:
    if not (contents.ROOT / ".git").exists():
        pytest.skip("no checkout")
    names = {name for _, name in contents.checkout_files()}
    assert {"tests/conftest.py", "scripts/gpu_bundle", "pyproject.toml"} <= names
    assert not any(name.startswith(("tvm_mxplan/", "byoc/", "passes/")) for name in names)


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "WITH", ("no-such-distribution",))
    with pytest.raises(unpack.BundleError, match="no-such-distribution is not installed here"):
        given = {"folder": tmp_path / "bundle", "model": [], "most": 1, "python": (3, 12), "there": []}
        main._pack(argparse.Namespace(**given, compress=False))
    assert not (tmp_path / "bundle").exists()
