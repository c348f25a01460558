"""Libraries of other distributions, found by their entry points: also by tvmc, which imports none of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import loops_backend
import onnx
import pytest
from onnx import TensorProto, helper

TVMC = [sys.executable, "-m", "tvm_mxplan.tvmc"]


def install(folder: Path, module: str, value: str) -> None:
    """A distribution as installers leave it: its module, and what its metadata announces."""
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[tvm_mxplan.libraries]\n{module} = {module}:{value}\n")
    shutil.copy(loops_backend.__file__, folder / f"{module}.py")


def model(path: Path) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 5]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def compiled(folder: Path, target: str) -> subprocess.CompletedProcess[str]:
    command = [
        *TVMC,
        "compile",
        str(model(folder / "m.onnx")),
        "--target",
        target,
        "-o",
        str(folder / "m.so"),
    ]
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run([*command, "--report"], env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_target_names_an_installed_library(tmp_path: Path) -> None:
    install(tmp_path / "site", "loops", "LIBRARY")
    done = compiled(tmp_path, "loops, dnnl, llvm")
    assert done.returncode == 0, done.stderr
    assert "mxplan_loops" in done.stdout and loops_backend.IMPLEMENTATION in done.stdout


@pytest.mark.slow
def test_without_it_the_name_is_unknown(tmp_path: Path) -> None:
    done = compiled(tmp_path, "loops, dnnl, llvm")
    assert done.returncode != 0 and "unknown part 'loops'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("value, why", [("ABSENT", "has no attribute"), ("NAME", "object has no attribute")])
def test_one_that_fails_is_named_where_it_is_asked_for(tmp_path: Path, value: str, why: str) -> None:
    install(tmp_path / "site", "loops", "LIBRARY")
    install(tmp_path / "site", "broken", value)
    done = compiled(tmp_path, "loops, dnnl, llvm")
    assert done.returncode == 0 and "mxplan_loops" in done.stdout
    done = compiled(tmp_path, "broken, dnnl, llvm")
    assert done.returncode != 0 and "the installed library broken cannot be used: broken:" in done.stderr
    assert why in done.stderr and "leave it out" in done.stderr
