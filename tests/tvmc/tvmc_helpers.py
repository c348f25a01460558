"""Helpers of the command line's tests: a small model, a command's outcome, the files of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Result:
    """The outcome of one command."""

    code: int
    out: str
    err: str

    def error(self, code: int = 1) -> str:
        """The one line on stderr of a command that failed with ``code`` and printed nothing else."""
        assert (self.code, self.out) == (code, "")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err


def small_model(batch: int | str = 1) -> onnx.ModelProto:
    """image -> convolution, ReLU -> features, with odd channels."""
    weights = np.random.default_rng(0).standard_normal((17, 3, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (batch, 3, 9, 9))],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, (batch, 17, 9, 9))],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def listing(folder: Path) -> list[str]:
    """Names in a folder, to see that nothing was left behind."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
