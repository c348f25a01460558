"""Prints the parts of the zoo's networks that cuDNN plans, as docs/cudnn.md shows them; no GPU is needed.

scripts/cudnn_networks tests/byoc/cudnn/devices/h200.json [--exports FOLDER]
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
    # name, element type, whether TF32 may stand for float32
    ("resnet50", "float16", False),
    ("resnet50", "float32", False),
    ("mobilenet_v2", "float16", False),
    ("vgg19", "float16", False),
    ("densenet121", "float16", False),
)
EXPORTS = (
    ("unet", "float16", False),
    ("unet", "float32", False),
    ("vit_small", "float16", False),
    ("vit_small", "float32", False),
    ("vit_small", "float32", True),
)
_FLOAT, _HALF = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16


def network(name: str, dtype: str, folder: Path | None) -> onnx.ModelProto:
    """A network of the zoo, or of a folder, with weights, inputs and outputs of a type."""
    path = None if folder is None else folder / f"{name}.onnx"
    model = zoo.load(name) if path is None or not path.exists() else onnx.load(str(path))
    return model if dtype == "float32" else half(model)


def half(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in float16, which is changed in place."""
    attributes = [one.t for node in model.graph.node for one in node.attribute if one.HasField("t")]
    for tensor in [*model.graph.initializer, *attributes]:
        if tensor.data_type == _FLOAT:
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name))
    for node in model.graph.node:
        for one in node.attribute if node.op_type == "Cast" else ():
            if one.name == "to" and one.i == _FLOAT:
                one.i = _HALF
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        if value.type.tensor_type.elem_type == _FLOAT:
            value.type.tensor_type.elem_type = _HALF
    return model


def row(name: str, dtype: str, device: Path, folder: Path | None, tf32: bool) -> str:
    """One network, compiled, exported and loaded again."""
    options = {"cache": "disabled", "tf32": tf32}
    model = network(name, dtype, folder)
    ex = tvm_mxplan.compile(model, "cudnn, cuda", device_properties=device, options=options)
    with tempfile.TemporaryDirectory() as folder:
        ex.export(Path(folder) / "model.so")
        loaded = tvm_mxplan.load(Path(folder) / "model.so")
        plans = [step for one in decoded_programs(loaded.module) for step in one.steps if step.prepared]
    share = str(loaded.report).partition(" of")[0]
    (arena,) = [one for one in loaded.report.memory if one.region == "main"]
    engines = len({step.implementation for step in plans})
    sizes = f"{arena.height:,} | {arena.lower_bound:,}"
    kind = "TF32" if tf32 else dtype
    return f"| {name} {kind} | {share} | {len(plans)} | {engines} | {sizes} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", type=Path, help="a file of device properties")
    parser.add_argument("--exports", type=Path, help="the folder that _cudnn.exports wrote, for its networks")
    given = parser.parse_args()
    for name, dtype, tf32 in (*NETWORKS, *(EXPORTS if given.exports else ())):
        print(row(name, dtype, given.device, given.exports, tf32), flush=True)


if __name__ == "__main__":
    main()
