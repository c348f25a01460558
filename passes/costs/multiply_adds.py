"""Counting the multiply-adds of operators, the measure of how much of a model is offloaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tvm
from tvm import relax

from tvm_mxplan.core.program.dims import Shape, at_ones
from tvm_mxplan.operators.attention import NAME as ATTENTION
from tvm_mxplan.operators.attention.caches import CACHED_ATTENTION
from tvm_mxplan.operators.convolution_gradients import BACKWARD_DATA, BACKWARD_WEIGHTS
from tvm_mxplan.operators.products.grouped_product import GROUPED_PRODUCT
from tvm_mxplan.operators.recurrent import GATES, NEEDED, PREFIX
from tvm_mxplan.operators.recurrent_training import BACKWARD, TRAINING

from ..relax_types import shape_of


def of_function(function: relax.Function) -> int:
    """Multiply-adds of convolutions, products and recurrent layers in a function; symbols count as 1."""
    total = 0

    def visit(expr: relax.Expr) -> None:
        nonlocal total
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            total += of_call(expr, at_ones)

    relax.analysis.post_order_visit(function, visit)
    return total


def of_call(call: relax.Call, sized: Callable[[Shape], Sequence[int]]) -> int:
    """Multiply-adds of one operator; ``sized`` puts numbers in the place of symbols."""
    name = call.op.name
    if name.startswith("relax.nn.conv"):
        weights, transposed = shape_of(call.args[1]), "transpose" in name
        positions = shape_of(call.args[0] if transposed else call)
        if weights is not None and positions is not None:
            return math.prod(sized(positions)) * math.prod(sized(weights)[1:])
    elif name.removeprefix(PREFIX) in GATES:
        data, weights, recurrence = (shape_of(arg) for arg in call.args[:NEEDED])
        if data is not None and weights is not None and recurrence is not None:
            return math.prod(sized(data)[:2]) * (math.prod(sized(weights)) + math.prod(sized(recurrence)))
    elif name in (BACKWARD_DATA.full_name, BACKWARD_WEIGHTS.full_name):
        grad, weights = (
            (call.args[0], call.args[1]) if name == BACKWARD_DATA.full_name else (call.args[1], call)
        )
        shapes = shape_of(grad), shape_of(weights)
        if shapes[0] is not None and shapes[1] is not None:
            return math.prod(sized(shapes[0])) * math.prod(sized(shapes[1])[1:])
    elif name in (TRAINING.full_name, BACKWARD.full_name):
        outputs, recurrence = shape_of(call.args[0]), shape_of(call.args[1])
        if outputs is not None and recurrence is not None:
            return math.prod(sized(outputs)[:2]) * math.prod(sized(recurrence))
    elif name in (ATTENTION, CACHED_ATTENTION.full_name):
        # All rows of caches, as if they were full.
        at = (0, 1, 2) if name == ATTENTION else (0, 3, 4)
        query, key, value = (shape_of(call.args[number]) for number in at)
        if query is not None and key is not None and value is not None:
            return math.prod(sized(query[:3])) * sized(key)[2] * sum(sized((query[3], value[3])))
    elif name in ("relax.matmul", GROUPED_PRODUCT.full_name):
        left, out = shape_of(call.args[0]), shape_of(call)
        if left is not None and out is not None:
            return math.prod(sized(out)) * math.prod(sized(left)[-1:])
    return 0
