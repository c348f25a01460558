"""Operators that this project adds to Relax are steps of oneDNN's regions."""

from __future__ import annotations

import numpy as np
import pytest
from test_patterns import steps_of_module
from tvm import relax

from tvm_mxplan.operators.attention import Attention, attention
from tvm_mxplan.operators.recurrent import USUAL, Layer, recurrent


@pytest.mark.parametrize("kind", ["lstm", "attention"])
def test_operators_of_ours_with_any_number_of_operands_are_one_step(kind):
    shapes = {"lstm": (5, 2, 3), "attention": (2, 3, 4, 6)}
    x = relax.Var("x", relax.TensorType(shapes[kind], "float32"))
    if kind == "lstm":
        weights = {"weights": (1, 16, 3), "recurrence": (1, 16, 4), "bias": (1, 32)}
        constants = {name: relax.const(np.ones(shape, "float32")) for name, shape in weights.items()}
        call = recurrent(Layer("lstm", "forward", USUAL["lstm"]), {"data": x, **constants})
    else:
        call = attention(Attention(0.5), x, x, x)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit(call)
            result = builder.emit(relax.TupleGetItem(result, 0)) if kind == "lstm" else result
            y = builder.emit_output(relax.op.abs(result))
        builder.emit_func_output(y)
    kinds = [step.kind for step in steps_of_module(builder.get())]
    assert kinds == [{"lstm": "recurrent"}.get(kind, kind), "eltwise"]
