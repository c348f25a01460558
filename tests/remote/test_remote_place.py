"""``There``: a plan that is only measured goes with little of its weights, and nothing else does."""

from __future__ import annotations

import zlib

import numpy as np
import tvm

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core import program as ir
from tvm_mxplan.remote.place import There
from tvm_mxplan.tuning.facts import machine


class Connection:
    """To a machine like this one."""

    remote = "server"

    def ask(self, name: str) -> dict[str, object]:
        assert name == "machine"
        return {"facts": machine(), "versions": {}, "threads": 2, "cpu": "generic"}


def product(monkeypatch) -> tuple[ir.Program, np.ndarray, list[np.ndarray]]:
    """A matrix product, its weights, and a list of those that modules are made with."""
    shapes = (("input", (2, 300)), ("constant", (300, 70)), ("output", (2, 70)))
    values = tuple(ir.Value("", shape, "float32", kind, "ab", 0) for kind, shape in shapes)
    operands = tuple(ir.Operand(role, n) for n, role in enumerate(("src", "weights", "dst")))
    used: list[np.ndarray] = []
    monkeypatch.setattr(OneDNN, "create_module", lambda *of: used.append(of[-1][0].numpy()))
    weights = np.random.default_rng(0).standard_normal((300, 70)).astype(np.float32)
    return ir.Program("", values, (ir.Step("", ir.MatMul(), operands),)), weights, used


def test_weights_that_are_only_measured_repeat(monkeypatch):
    program, weights, used = product(monkeypatch)
    there = There(Connection())
    backend = there.backend("onednn")
    tensors = [tvm.runtime.tensor(weights)]
    with there.only_measured():
        backend.create_module("m", program, tensors)
    backend.create_module("m", program, tensors)
    measured, real = used
    assert measured.shape == weights.shape
    flat, own = measured.reshape(-1), weights.reshape(-1)
    for start in range(0, flat.size, 4096):
        part = flat[start : start + 4096]
        np.testing.assert_array_equal(part, own[: part.size])
    assert len(zlib.compress(measured.tobytes(), 1)) < weights.nbytes / 3
    np.testing.assert_array_equal(real, weights)
