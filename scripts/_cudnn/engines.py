"""Prints each pattern's engine on each device, as docs/figures/cudnn.md shows it; no GPU is needed.

scripts/cudnn engines tests/byoc/cudnn/devices/*.json [--kinds int8 ...] [--only "batch norm in training" ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tvm_mxplan.byoc.backend import DeviceChoice
from tvm_mxplan.byoc.cudnn.backend import Cudnn
from tvm_mxplan.byoc.cudnn.device import read_device

from .cases import CASES, AnyCase

KINDS = {
    "f16": ("float16", False),
    "bf16": ("bfloat16", False),
    "f32": ("float32", False),
    "TF32": ("float32", True),
    "int8": ("int8", False),
}
"""Element types, and whether TF32 may stand for float32."""


def _stands_in(case: AnyCase, dtype: str) -> bool:
    """Whether a row is asked for in a type; in bfloat16 where it is in float16."""
    return ("float16" if dtype == "bfloat16" else dtype) in case.types


def engine_of(case: AnyCase, dtype: str, tf32: bool, device: Path) -> str:
    """The engine and its workspace; a dash where it is not asked for."""
    if not _stands_in(case, dtype):
        return "-"
    backend = Cudnn().for_device(DeviceChoice(str(device), "", tf32, False)).backend
    (info,) = backend.describe(case.program(dtype)).steps
    if info.error:
        return "none"
    name = info.implementation.partition("_")[0]
    return name if not info.scratchpad_bytes else f"{name}, {info.scratchpad_bytes / 1024:,.0f} KiB"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scripts/cudnn engines", description=__doc__)
    parser.add_argument("devices", nargs="+", type=Path, help="files of device properties")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["f16", "f32", "TF32"], help="columns")
    parser.add_argument("--only", nargs="+", default=[], help="names of rows")
    given = parser.parse_args(arguments)
    devices, kinds = given.devices, {kind: KINDS[kind] for kind in given.kinds}
    titles = [f"SM {read_device(path).sm}" for path in devices]
    columns = [f"{title} {kind}" for kind in kinds for title in titles]
    print("| | " + " | ".join(columns) + " |")
    print("| --- " * (1 + len(columns)) + "|")
    for case in CASES:
        if not any(_stands_in(case, dtype) for dtype, _ in kinds.values()):
            continue
        if given.only and case.name not in given.only:
            continue
        cells = [engine_of(case, *kind, path) for kind in kinds.values() for path in devices]
        print(f"| {case.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
