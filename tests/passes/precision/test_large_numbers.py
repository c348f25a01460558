"""Masks of -3.4e38 in networks computed in bfloat16: rows that are all masked have the numbers of float32."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tvm_mxplan
from tvm_mxplan.byoc.onednn.backend import OneDNN

needs_bf16 = pytest.mark.skipif(
    bool(OneDNN().lacks("bfloat16")), reason="oneDNN multiplies no bfloat16 on this machine"
)
WANTED = "matmul=bf16,softmax=bf16,multiply=bf16,add=bf16"
COMPUTED = """<ir_version: 9, opset_import: ["": 17]>
agraph (float[2, 3, 17, 33] q, float[2, 3, 33, 17] k, float[2, 1, 1, 17] kept, float[2, 3, 17, 35] v)
        => (float[2, 3, 17, 35] y) <float one = {1.0}, float far = {-3.4028234663852886e38}> {
    s = MatMul (q, k)
    m = Sub (one, kept)
    n = Mul (m, far)
    t = Add (s, n)
    p = Softmax <axis = -1> (t)
    y = MatMul (p, v)
}"""
GIVEN = """<ir_version: 9, opset_import: ["": 17]>
agraph (float[2, 3, 17, 33] q, float[2, 3, 33, 17] k, float[2, 1, 1, 17] mask, float[2, 3, 17, 35] v)
        => (float[2, 3, 17, 35] y) {
    s = MatMul (q, k)
    t = Add (s, mask)
    p = Softmax <axis = -1> (t)
    y = MatMul (p, v)
}"""


@needs_bf16
@pytest.mark.parametrize("text", [COMPUTED, GIVEN])
@pytest.mark.parametrize("masked", [5, 17])
def test_masked_rows_are_those_of_float32(text: str, masked: int) -> None:
    rng = np.random.default_rng(11)
    shapes = ((2, 3, 17, 33), (2, 3, 33, 17), (2, 3, 17, 35))
    q, k, v = (rng.standard_normal(shape, "float32") for shape in shapes)
    kept = np.ones((2, 1, 1, 17), "float32")
    kept[1, ..., 17 - masked :] = 0
    mask = kept if text == COMPUTED else (1 - kept) * np.finfo("float32").min
    model = onnx.parser.parse_model(text)
    options = {"cache": "disabled", "machine": "default", "precision": "bf16", "precision_for": WANTED}
    short = tvm_mxplan.compile(model, options=options)
    types = {step.name: step.types for region in short.report.regions for step in region.steps}
    assert types["matmul_0"][0] == "bf16"
    scores = q.astype("float64") @ k + (mask if text == GIVEN else (1 - kept) * np.finfo("float32").min)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    expected = exponentials / exponentials.sum(-1, keepdims=True) @ v
    found = short(q, k, mask, v)[0].numpy()
    assert np.isfinite(found).all()
    # Where all is masked, float32 loses the scores beside the mask, and every key counts the same.
    if masked == 17:
        found, expected = found[:1], expected[:1]
    assert np.linalg.norm(found - expected) < 2e-2 * np.linalg.norm(expected)
