"""Loading and running a compiled model imports no PyTorch, though it is installed."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_mxplan
from tvm_mxplan.execution.ffi import without

LOAD = """
import sys
import numpy as np
import tvm_mxplan
executable = tvm_mxplan.load(sys.argv[1])
result = executable(np.full((2, 3), -1.5, "float32"))[0].numpy()
assert result.tolist() == [[0.0] * 3] * 2, result
assert "tvm_ffi" in sys.modules and "tvm" not in sys.modules
print("torch" in sys.modules)
import torch
print(torch.MARK)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path_factory.mktemp("library") / "model.so"
    tvm_mxplan.compile(onnx.ModelProto.FromString(model.SerializeToString())).export(path)
    return path


def test_a_library_is_loaded_and_run_without_torch(library: Path, tmp_path: Path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("MARK = 'imported'\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{LOAD}", str(library)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "imported"]


def test_a_package_is_kept_out_of_one_thread_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("hidden_here", "seen_there"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    found: list[str] = []

    def other() -> None:
        found.append(importlib.import_module("hidden_here").__name__)
        del sys.modules["hidden_here"]

    before = list(sys.meta_path)
    with without("hidden_here"):
        with pytest.raises(ImportError):
            importlib.import_module("hidden_here")
        importlib.import_module("seen_there")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == ["hidden_here"] and sys.meta_path == before
    importlib.import_module("hidden_here")


def test_what_is_imported_already_stays():
    with without("numpy"):
        import numpy

        assert numpy is np
