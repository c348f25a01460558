"""Regions of images that torchvision cuts out and resizes."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...node import Emitter, Node, dtype_of
from ..table import converts


@converts("torchvision.roi_align.default")
def _aligned(emitter: Emitter, node: Node) -> relax.Expr:
    """Averages over parts of regions, which lie half an element of the feature map further where aligned."""
    regions, scale, emit = node["rois"], float(node["spatial_scale"]), emitter.emit
    if node["aligned"]:
        half = np.array([[0.0, *[0.5 / scale] * 4]])
        regions = emit(relax.op.subtract(regions, relax.const(half, dtype_of(regions))))
    return emit(
        relax.op.vision.roi_align(
            node["input"],
            regions,
            (node["pooled_height"], node["pooled_width"]),
            scale,
            node["sampling_ratio"],
            aligned=bool(node["aligned"]),
            layout="NCHW",
            mode="avg",
        )
    )
