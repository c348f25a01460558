"""Prints the parts of networks that cuDNN plans, as docs/figures/cudnn.md shows them; no GPU is needed.

scripts/cudnn networks tests/byoc/cudnn/devices/h200.json [--exports FOLDER] [--only "vit_small float16" ...]

Networks are compiled, exported and loaded again; all is counted in what was loaded.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import onnx
from _bench.inputs.quantized import quantized
from _shared.half_models import half

import tvm_mxplan
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.report.report import Report
from tvm_mxplan.testing import zoo

ZOO = ("resnet50", "mobilenet_v2", "vgg19", "densenet121")
EXPORTED = ("unet", "vit_small")
"""Networks that ``scripts/cudnn exports`` writes."""
KINDS = {
    "float16": ("float16", False),
    "float32": ("float32", False),
    "TF32": ("float32", True),
    "int8": ("int8", False),
}
"""The type of a network's tensors, and whether TF32 may stand for float32.

Those in int8 are quantised by onnxruntime's tools, with a scale for each tensor.
"""
TITLES = (
    "network", "multiply-adds in regions", "left to TVM", "regions", "plans inside", "engines",
    "arena, bytes", "lower bound", "ratio", "seconds to compile",
)  # fmt: skip


def network(name: str, dtype: str, folder: Path | None) -> onnx.ModelProto:
    """A network of the zoo, or of a folder, with weights, inputs and outputs of a type."""
    path = None if folder is None else folder / f"{name}.onnx"
    model = zoo.load(name) if path is None or not path.exists() else onnx.load(str(path))
    if dtype == "int8":
        return quantized(model)
    return model if dtype == "float32" else half(model)


def row(name: str, kind: str, device: Path, folder: Path | None) -> str:
    """One network, compiled, exported and loaded again."""
    dtype, tf32 = KINDS[kind]
    model = network(name, dtype, folder)
    options = {"cache": "disabled", "tf32": tf32}
    start = time.perf_counter()
    ex = tvm_mxplan.compile(model, "cudnn, cuda", device_properties=device, options=options)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as exported:
        ex.export(Path(exported) / "model.so")
        loaded = tvm_mxplan.load(Path(exported) / "model.so")
        programs = decoded_programs(loaded.module)
    plans = [step for program in programs for step in program.steps if step.prepared]
    arenas = [one for one in loaded.report.memory if not one.stands_in]
    height, bound = sum(one.height for one in arenas), sum(one.lower_bound for one in arenas)
    cells = (
        f"{name} {kind}",
        f"{100 * loaded.report.offloaded:.1f} %",
        _left(loaded.report),
        f"{len(programs)}",
        f"{len(plans)}",
        f"{len({step.implementation.partition('_')[0] for step in plans})}",
        f"{height:,}",
        f"{bound:,}",
        f"{height / bound:.3f}",
        f"{seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def _left(report: Report) -> str:
    """Operators that TVM keeps, as ``2 nn.avg_pool2d``."""
    kept = (f"{one.count} {one.operator.removeprefix('relax.')}" for one in report.fallbacks)
    return ", ".join(kept) or "nothing"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scripts/cudnn networks", description=__doc__)
    parser.add_argument("device", type=Path, help="a file of device properties")
    parser.add_argument("--exports", type=Path, help="the folder that scripts/cudnn exports wrote")
    parser.add_argument("--only", nargs="+", default=[], help='rows, such as "resnet50 float16"')
    given = parser.parse_args(arguments)
    print(f"| {' | '.join(TITLES)} |\n" + "| --- " * len(TITLES) + "|")
    for name in (*ZOO, *(EXPORTED if given.exports else ())):
        for kind in KINDS:
            if not given.only or f"{name} {kind}" in given.only:
                print(row(name, kind, given.device, given.exports), flush=True)


if __name__ == "__main__":
    main()
