"""Prints the parts of the zoo's networks that cuDNN plans, as docs/cudnn.md shows them; no GPU is needed.

scripts/cudnn_networks tests/byoc/cudnn/devices/h200.json
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import tvm_mxplan
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo

NETWORKS = (
    ("resnet50", "float16"),
    ("resnet50", "float32"),
    ("mobilenet_v2", "float16"),
    ("vgg19", "float16"),
    ("densenet121", "float16"),
)
_FLOAT, _HALF = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16


def network(name: str, dtype: str) -> onnx.ModelProto:
    """A network of the zoo with weights, inputs and outputs of a type."""
    model = zoo.load(name)
    if dtype == "float32":
        return model
    attributes = [one.t for node in model.graph.node for one in node.attribute if one.HasField("t")]
    for tensor in [*model.graph.initializer, *attributes]:
        if tensor.data_type == _FLOAT:
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name))
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        if value.type.tensor_type.elem_type == _FLOAT:
            value.type.tensor_type.elem_type = _HALF
    return model


def row(name: str, dtype: str, device: Path) -> str:
    """One network, compiled, exported and loaded again."""
    options = {"cache": "disabled"}
    model = network(name, dtype)
    ex = tvm_mxplan.compile(model, "cudnn, cuda", device_properties=device, options=options)
    with tempfile.TemporaryDirectory() as folder:
        ex.export(Path(folder) / "model.so")
        loaded = tvm_mxplan.load(Path(folder) / "model.so")
        plans = [step for one in decoded_programs(loaded.module) for step in one.steps if step.prepared]
    share = str(loaded.report).partition(" of")[0]
    (arena,) = [one for one in loaded.report.memory if one.region == "main"]
    engines = len({step.implementation for step in plans})
    sizes = f"{arena.height:,} | {arena.lower_bound:,}"
    return f"| {name} {dtype} | {share} | {len(plans)} | {engines} | {sizes} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", type=Path, help="a file of device properties")
    device = parser.parse_args().device
    for name, dtype in NETWORKS:
        print(row(name, dtype, device), flush=True)


if __name__ == "__main__":
    main()
