"""``on_device``: a tensor as it is, which has to be on a device of a function that runs on two."""

from __future__ import annotations

import tvm
from tvm import relax

from .registration import Operator


def _infer(call: relax.Call) -> tvm.ir.Type:
    return call.args[0].ty


def _legalize(_builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    return call.args[0]


ON_DEVICE = Operator("on_device", "A tensor that has to be on a device.", _infer, _legalize)


def on_device(value: relax.Expr, device: str, *, moved: bool) -> relax.Call:
    """``value`` on the device that TVM's targets call ``device``; ``moved`` there from anywhere."""
    return ON_DEVICE.call(value, device=device, moved=moved)


def is_moved(call: relax.Call) -> bool:
    return bool(call.attrs["moved"])


def device_of(call: relax.Call) -> str:
    return str(call.attrs["device"])
