"""Products that vary: of two tensors, by filters that are no constant, and gradients of convolutions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import tvm
from cudnn_programs import checked_against_tvm, checked_module, worked_out
from cudnn_stand_in import StandIn
from relax_programs import normal, parse
from tvm import relax

from tvm_mxplan.byoc.cudnn.families.pool_gradients import why_not
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.convolution_gradients import Window, backward_data, backward_weights
from tvm_mxplan.operators.gate import gate
from tvm_mxplan.operators.pooling_gradients import (
    Pool,
    adaptive_average_pool_backward,
    average_pool_backward,
)

IMAGE, FILTERS, CHANNELS = (2, 6, 7, 9), (8, 6, 3, 3), (1, 8, 1, 1)
CONV = "a = R.nn.conv2d(x, z, padding=[1, 1, 1, 1])"
OF_TWO_TENSORS: dict[str, tuple[list[str], dict[str, tuple[int, ...]]]] = {
    "batches": (["a = R.matmul(x, z)"], {"x": (2, 3, 4, 5), "z": (2, 3, 5, 6)}),
    "one matrix, behind it a sum": (
        ["t = R.permute_dims(z, [1, 0])", "a = R.matmul(x, t)", "b = R.add(a, v)", "c = R.nn.gelu(b)"],
        {"x": (3, 4, 5), "z": (6, 5), "v": (6,)},
    ),
    "one matrix for all others": (["a = R.matmul(x, z)"], {"x": (4, 5), "z": (2, 3, 5, 6)}),
    "matrices": (["a = R.matmul(x, z)"], {"x": (4, 5), "z": (5, 6)}),
}


@pytest.mark.parametrize("tf32, kind", [(False, "convolution"), (True, "matmul")])
@pytest.mark.parametrize("case", OF_TWO_TENSORS)
def test_two_tensors_are_multiplied_as_the_digits_allow(
    planner: StandIn, case: str, tf32: bool, kind: str
) -> None:
    lines, shapes = OF_TWO_TENSORS[case]
    assert [step.kind for step in checked_against_tvm(lines, shapes, tf32=tf32)] == [kind]


VARYING: dict[str, tuple[list[str], dict[str, tuple[int, ...]], str]] = {
    # lines, shapes, the kind of the one step
    "convolution": ([CONV], {"x": IMAGE, "z": FILTERS}, "convolution"),
    "convolution in groups, bias": (
        ["a = R.nn.conv2d(x, z, groups=2, strides=[2, 1])", "b = R.add(a, v)"],
        {"x": IMAGE, "z": (8, 3, 3, 3), "v": CHANNELS},
        "convolution",
    ),
    "transposed": (
        ["a = R.nn.conv2d_transpose(x, z, strides=[2, 3], padding=[1, 0, 0, 2])"],
        {"x": (2, 6, 5, 4), "z": (6, 8, 3, 4)},
        "deconvolution",
    ),
}


@pytest.mark.parametrize("case", VARYING)
def test_filters_that_vary_are_turned_in_every_call(planner: StandIn, case: str) -> None:
    lines, shapes, kind = VARYING[case]
    assert [step.kind for step in checked_against_tvm(lines, shapes)] == [kind]


def test_filters_that_vary_are_scaled_behind_the_product(planner: StandIn) -> None:
    lines = [CONV, "b = R.multiply(a, s)", "c = R.add(b, v)"]
    shapes = {"x": IMAGE, "z": FILTERS, "s": CHANNELS, "v": CHANNELS}
    assert [step.kind for step in checked_against_tvm(lines, shapes)] == ["convolution", "binary"]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("least, kept", [(1e-1, False), (1e-4, True)])
def test_scales_that_filters_have_no_digits_for_stay_behind(
    planner: StandIn, least: float, kept: bool, transposed: bool
) -> None:
    """In float16, whose least number with all digits is 6e-5: in one channel of six it does not do."""
    filters = (0.002 * normal(1, 6, 6, 3, 3)).astype("float16")
    scale = np.ones((1, 6, 1, 1), "float16")
    scale[0, 4] = least
    shape = (2, 6, 7, 9)
    called = "conv2d_transpose" if transposed else "conv2d"
    mod = parse(
        f"a = R.nn.{called}(x, w)\nb = R.multiply(a, s)\nreturn b",
        'x: R.Tensor((2, 6, 7, 9), "float16"), w: R.Tensor((6, 6, 3, 3), "float16"), '
        's: R.Tensor((1, 6, 1, 1), "float16")',
    )
    x = (100 * normal(2, *shape)).astype("float16")
    bound = relax.transform.BindParams("main", {"w": filters, "s": scale})(mod)
    program, (result,) = worked_out(bound, {"x": x})
    steps = [step for step in program.steps if not isinstance(step.attrs, ir.Reorder)]
    assert [len(step.post_ops) for step in steps] == [1 if kept else 0]
    plain = relax.transform.BindParams("main", {"w": filters, "s": np.ones_like(scale)})(mod)
    _, (unscaled,) = worked_out(plain, {"x": x})
    expected = unscaled * scale.astype("float64")
    # Rounding filters once: less than 2^-11 of each number, of some that are added with other signs.
    np.testing.assert_allclose(
        result[:, 4], expected[:, 4], rtol=0, atol=2**-10 * np.abs(expected[:, 4]).max()
    )


WINDOWS = [
    Window((1, 1), (1, 1, 1, 1), (1, 1), 1),
    Window((2, 1), (1, 0, 1, 2), (1, 2), 1),
    Window((2, 3), (1, 1, 1, 1), (1, 1), 2),
    Window((2, 2), (0, 0, 0, 0), (1, 1), 6),  # a row is left unread
]


def gradients(window: Window) -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    """All three gradients of a convolution of 6 channels with a ReLU behind it."""
    shape, filters = (2, 6, 8, 9), (12, 6 // window.groups, 3, 2)
    x, w = (relax.Var(name, relax.TensorType(s, "float32")) for name, s in (("x", shape), ("w", filters)))
    before, behind = window.padding[:2], window.padding[2:]
    image = zip(shape[2:], filters[2:], window.strides, before, behind, window.dilation, strict=True)
    result = (2, 12, *((i + p + q - (k - 1) * d - 1) // s + 1 for i, k, s, p, q, d in image))
    z = relax.Var("z", relax.TensorType(result, "float32"))
    y = relax.Var("y", relax.TensorType(result, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, z, y]):
        with builder.dataflow():
            passed = builder.emit(gate(y, z, "gt", 0.0))
            data = builder.emit(backward_data(passed, w, window, shape[2:]))
            weights = builder.emit(backward_weights(x, passed, window, filters[2:]))
            out = builder.emit_output(relax.Tuple([data, weights]))
        builder.emit_func_output(out)
    shapes = {"x": shape, "w": filters, "z": result, "y": result}
    return builder.get(), {name: normal(at, *one) for at, (name, one) in enumerate(shapes.items())}


POOLS = {
    # window, strides, padding, dilation, result, whether padding counts
    "apart": (Pool((2, 3), (2, 3), (0, 0, 0, 0), (1, 1)), (4, 3), False),
    "overlapping": (Pool((3, 3), (2, 1), (0, 0, 0, 0), (1, 1)), (3, 7), False),
    "padded": (Pool((3, 2), (2, 2), (1, 0, 1, 1), (1, 1)), (4, 5), True),
    "dilated": (Pool((2, 2), (1, 2), (0, 0, 0, 0), (3, 2)), (5, 4), True),
}
SIDES = (2, 6, 8, 9)


def gradient_of(
    make: Callable[[tvm.ir.Var, tvm.ir.Var], relax.Call], places: tuple[int, int]
) -> tvm.IRModule:
    x = relax.Var("x", relax.TensorType(SIDES, "float32"))
    z = relax.Var("z", relax.TensorType((*SIDES[:2], *places), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, z]):
        with builder.dataflow():
            out = builder.emit_output(make(x, z))
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize("case", [*POOLS, "adaptive"])
def test_gradients_of_average_pools_are_transposed_convolutions(planner: StandIn, case: str) -> None:
    if case == "adaptive":
        places, make = (4, 3), adaptive_average_pool_backward
    else:
        pool, places, counted = POOLS[case]
        make = partial(average_pool_backward, pool=pool, count_include_pad=counted)
    arrays = {"x": normal(1, *SIDES), "z": normal(2, *SIDES[:2], *places)}
    steps = checked_module(gradient_of(make, places), arrays)
    assert [step.kind for step in steps] == ["deconvolution"] and steps[0].attrs.groups == 6


def test_windows_that_average_fewer_elements_are_tvms(planner: StandIn) -> None:
    padded, places, _ = POOLS["padded"]
    ragged = Pool((3, 3), (3, 3), (0, 0, 1, 1), (1, 1))  # beyond the padding, as ceil_mode has it
    for make, shape in (
        (partial(average_pool_backward, pool=padded, count_include_pad=False), places),
        (partial(average_pool_backward, pool=ragged, count_include_pad=True), (4, 4)),
        (adaptive_average_pool_backward, (3, 4)),
    ):
        (call,) = [one.value for one in gradient_of(make, shape)["main"].body.blocks[0].bindings]
        assert why_not(call) == "windows that average different numbers of elements"


@pytest.mark.parametrize("window", WINDOWS)
def test_gradients_are_what_tvm_computes(planner: StandIn, window: Window) -> None:
    steps = checked_module(*gradients(window))
    assert sorted(step.kind for step in steps) == ["binary", "convolution_backward_weights", "deconvolution"]
