"""A wheel built here installs into a fresh environment and runs there, away from the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
import tvm_mxplan
assert "site-packages" in tvm_mxplan.__file__, tvm_mxplan.__file__
w = np.full((8, 3, 3, 3), 0.5, "float32")
graph = helper.make_graph(
    [helper.make_node("Conv", ["x", "w"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 6, 6])],
    [numpy_helper.from_array(w, "w")])
ex = tvm_mxplan.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
assert ex.report.offloaded == 1.0 and len(ex.report.regions) == 1
ex.export("model.so")
(y,) = tvm_mxplan.load("model.so")(np.ones((1, 3, 8, 8), "float32"))
np.testing.assert_allclose(y.numpy(), 13.5, rtol=1e-6)
"""


@pytest.mark.slow
def test_wheel_runs_in_a_fresh_environment(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("tvm_mxplan-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, *pip[1:], "install", str(wheel)], check=True)
    subprocess.run([python, "-c", PROGRAM], cwd=tmp_path, check=True)
    tvmc = [python.parent / "tvmc", "show", "model.so"]
    shown = subprocess.run(tvmc, cwd=tmp_path, check=True, capture_output=True)
    assert b"conv2d_0" in shown.stdout
