"""Batch norms in training on a GPU: steps, the graphs that cuDNN is asked for, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from cudnn_programs import on_h200, run_program
from cudnn_stand_in import StandIn
from tvm import relax

from tvm_mxplan.byoc.cudnn.graphs import graph_of
from tvm_mxplan.byoc.cudnn.layout_rules import forms
from tvm_mxplan.byoc.translate import translate_composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.operators.batch_norm import (
    BACKWARD,
    BATCH_NORM,
    Normalization,
    batch_norm,
    batch_norm_backward,
)
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts

EPSILON = 1e-3


def _function(call: relax.Call, *params: relax.Var) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    with builder.function("main", list(params)):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(call))
        builder.emit_func_output(result)
    return builder.finalize()


def _module(shape: tuple[int, ...], backward: bool, dtype: str = "float32") -> tvm.IRModule:
    BATCH_NORM.register()
    BACKWARD.register()
    image = relax.Var("x", relax.TensorType(shape, dtype))
    rows = [relax.Var(f"v{at}", relax.TensorType((shape[1],), dtype)) for at in range(4)]
    if backward:
        gradient = relax.Var("g", relax.TensorType(shape, dtype))
        operands = [image, gradient, *rows[:3]]
        return _function(batch_norm_backward(operands, EPSILON), *operands)
    return _function(batch_norm([image, *rows], Normalization(EPSILON, 0.1, True)), image, *rows)


def _composite(mod: tvm.IRModule) -> relax.Function:
    preference = preference_of([on_h200()])
    dispatched = DispatchOperators(preference)(mod)
    found = [one for one in dispatched.functions.values() if one.attrs and "Composite" in one.attrs]
    assert len(found) == 1, "it is taken"
    return found[0]


def _results(mod: tvm.IRModule, arrays: list[np.ndarray]) -> list[np.ndarray]:
    backend = on_h200()
    program = translate_composite(_composite(mod), backend._table)
    laid_out = infer_layouts(program, backend).program
    return run_program(laid_out, [], arrays)


@pytest.mark.parametrize("shape", [(3, 5, 4, 7), (6, 5), (3, 5, 9), (2, 5, 3, 2, 4)])
def test_statistics_and_running_ones_are_the_batch_s(planner: StandIn, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(2)
    x, scale, shift, mean, variance = (
        random.standard_normal(one).astype("float32") for one in (shape, *[(5,)] * 4)
    )
    variance = np.abs(variance)
    found = _results(_module(shape, backward=False), [x, scale, shift, mean, variance])
    axes = (0, *range(2, len(shape)))
    row = (1, 5, *(1,) * (len(shape) - 2))
    wide = x.astype("float64")
    terms = x.size // 5
    expected = [
        (wide - wide.mean(axes, keepdims=True))
        / np.sqrt(wide.var(axes, keepdims=True) + EPSILON)
        * scale.reshape(row)
        + shift.reshape(row),
        wide.mean(axes),
        wide.var(axes),
        0.9 * mean + 0.1 * wide.mean(axes),
        0.9 * variance + 0.1 * wide.var(axes) * terms / (terms - 1),
    ]
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-6, atol=1e-6)


def test_gradients_are_those_of_differences(planner: StandIn) -> None:
    shape = (2, 3, 4, 3)
    random = np.random.default_rng(4)
    x, gradient = random.standard_normal((2, *shape))
    scale = random.standard_normal(3)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    found = _results(_module(shape, backward=True), [x, gradient, mean, variance, scale])

    def loss(image: np.ndarray, factor: np.ndarray) -> float:
        centred = image - image.mean((0, 2, 3), keepdims=True)
        normal = centred / np.sqrt(image.var((0, 2, 3), keepdims=True) + EPSILON)
        return float((normal * factor.reshape(1, 3, 1, 1) * gradient).sum())

    step = 1e-6
    for at in [(0, 0, 0, 0), (1, 2, 3, 2), (0, 1, 2, 1)]:
        moved = x.copy()
        moved[at] += step
        np.testing.assert_allclose(found[0][at], (loss(moved, scale) - loss(x, scale)) / step, rtol=1e-3)
    for at in range(3):
        moved = scale.copy()
        moved[at] += step
        np.testing.assert_allclose(found[1][at], (loss(x, moved) - loss(x, scale)) / step, rtol=1e-3)
    np.testing.assert_allclose(found[2], gradient.sum((0, 2, 3)))


def test_a_graph_has_one_node_with_three_results(planner: StandIn) -> None:
    program = translate_composite(_composite(_module((3, 5, 4, 7), backward=False)), on_h200()._table)
    (step,) = [one for one in program.steps if isinstance(one.attrs, ir.BatchNormalizationTraining)]
    (form,) = forms(program, step)
    (node,) = graph_of(form, form.steps[0])["nodes"]
    assert node["kind"] == "batch_norm" and len(node["out"]) == 3
    tensors = {one["uid"]: one for one in graph_of(form, form.steps[0])["tensors"]}
    assert [tensors[uid]["dim"] for uid in node["out"]] == [(3, 5, 4, 7), (1, 5, 1, 1), (1, 5, 1, 1)]
    assert tensors[node["out"][0]]["stride"] == (140, 1, 35, 5), "channels last"


def test_a_variance_is_no_operand_of_cudnn_s(planner: StandIn) -> None:
    program = translate_composite(_composite(_module((3, 5, 4, 7), backward=False)), on_h200()._table)
    (step,) = [one for one in program.steps if isinstance(one.attrs, ir.BatchNormalizationTraining)]
    (form,) = forms(program, step)
    other = ir.Step(step.name, ir.BatchNormalizationTraining(EPSILON), form.steps[0].operands)
    with pytest.raises(UnsupportedError, match="1 / deviation"):
        graph_of(form, other)


def test_other_types_are_refused(planner: StandIn) -> None:
    dispatched = DispatchOperators(preference_of([on_h200()]))(_module((3, 5, 4, 7), False, "float16"))
    assert not [one for one in dispatched.functions.values() if one.attrs and "Composite" in one.attrs]
