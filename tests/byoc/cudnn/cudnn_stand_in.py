"""A planner that answers as cuDNN's would, for machines without cuDNN, and small models for the GPU."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tvm_mxplan.core.element_types import numpy_type

DEVICES = Path(__file__).resolve().parent / "devices"


@dataclass
class StandIn:
    """Notes what it is asked, and answers with a plan that no cuDNN would take.

    Attributes
    ----------
    workspace : what each plan asks for, in bytes.
    error : the answer to everything, unless it is empty.
    names : of the engines that every graph has.
    """

    requests: list[dict[str, Any]] = field(default_factory=list)
    workspace: int = 4096
    error: str = ""
    names: tuple[str, ...] = ("eng7_k1=2", "eng0")

    def plan(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(json.loads(json.dumps(request)))
        if self.error:
            return {"error": self.error}
        names = [name for name in self.names if not any(one in name for one in request["refused"])]
        names = [name for name in names if request.get("only", name) == name]
        if not names:
            return {"error": "no engine builds a plan"}
        stored = [one["uid"] for one in request["tensors"] if not one.get("virtual")]
        numbers = {one["uid"]: one["number"] for one in request["tensors"] if "number" in one}
        made = {
            "workspace": self.workspace,
            "uids": sorted(stored),
            "scalars": [
                {"uid": uid, "bytes": struct.pack("<f", number).hex()} for uid, number in numbers.items()
            ],
        }
        texts = [json.dumps({"engine": name, "nodes": request["nodes"]}) for name in names]
        several = request.get("candidates", 0)
        named = zip(names[: max(1, several)], texts, strict=False)
        engines = [
            {
                "name": name,
                "error": "",
                "workspace": self.workspace,
                **({**made, "plan": text} if several else {}),
            }
            for name, text in named
        ]
        return {**made, "engines": engines, "chosen": 0, "plan": texts[0]}


def small_network(dtype: str = "float16", residual: bool = True) -> onnx.ModelProto:
    """Two convolutions of odd channels, a residual, a pool over the image and a dense layer."""
    random = np.random.default_rng(3)
    made = numpy_type(dtype)
    kind = helper.np_dtype_to_tensor_dtype(made)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((random.standard_normal(shape) * 0.2).astype(made), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2", "b2"], ["c"], pads=[1, 1, 1, 1], name="second"),
        helper.make_node("Add", ["c", "b"] if residual else ["c", "one"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "w3", "b3"], ["y"], transB=1, name="dense"),
    ]
    constants = [
        weights("w1", 17, 3, 3, 3), weights("b1", 17), weights("w2", 17, 17, 3, 3), weights("b2", 17),
        weights("w3", 5, 17), weights("b3", 5), weights("one", 1),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", kind, [2, 3, 14, 10])],
        [helper.make_tensor_value_info("y", kind, [2, 5])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
