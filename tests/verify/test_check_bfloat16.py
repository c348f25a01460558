"""Kernels in bfloat16: right ones agree with exact numbers rounded once, and a wrong element is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from single_kernels import GELU, LAST, RELU, RELU6, Array, Faulty, convolution, kernel

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.kernel import Kernel
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.verify.check import check

if reason := OneDNN().lacks("bfloat16"):
    pytest.skip(reason, allow_module_level=True)

BLOCKED = f"aBcd{OneDNN().block}b"
IMAGE = (2, 19, 9, 7)
ADD = ir.BinaryPostOp("add", -1)
SHORT, WIDE = "bfloat16", "float32"
PRODUCT = {"src": SHORT, "weights": SHORT, "dst": SHORT}
TO_WIDE = {**PRODUCT, "dst": WIDE}
SAME = {"src": SHORT, "dst": SHORT}


def typed(wide: Kernel, types: Mapping[str, str]) -> Kernel:
    """The kernel with the types of some of its roles changed, as the library runs it then."""
    program = wide.program
    values = list(program.values)
    for operand in wide.step.operands:
        values[operand.value] = replace(values[operand.value], dtype=types.get(operand.role, WIDE))
    for post_op in wide.step.post_ops:
        if isinstance(post_op, ir.BinaryPostOp):
            values[post_op.value] = replace(values[post_op.value], dtype=types.get("post_op", WIDE))
    program = replace(program, values=tuple(values))
    info = library.describe(program).steps[0]
    assert not info.error, info.error
    return Kernel(replace(program, steps=(replace(wide.step, implementation=info.implementation),)))


def depthwise() -> Kernel:
    return kernel(
        ir.Convolution((2, 1), (1, 1, 0, 2), (1, 1), 37),
        ((2, 37, 5, 13), LAST),
        [RELU6],
        src=((2, 37, 10, 12), LAST),
        weights=((37, 1, 1, 3, 3), ""),
    )


def winograd(algorithm: ir.ConvolutionAlgorithm, layout: str) -> Kernel:
    return kernel(
        ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1, algorithm),
        ((1, 40, 19, 13), layout),
        [RELU],
        src=((1, 33, 19, 13), layout),
        weights=((40, 33, 3, 3), ""),
    )


def pair() -> Kernel:
    """A pointwise convolution with a depthwise one behind it."""
    behind = [RELU6, ir.DepthwisePostOp(3, 1, 1)]
    return kernel(
        ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1),
        ((1, 48, 9, 7), LAST),
        behind,
        src=((1, 16, 9, 7), LAST),
        weights=((48, 16, 1, 1), ""),
        depthwise_weights=((48, 1, 1, 3, 3), ""),
        depthwise_bias=((48,), ""),
    )


def product(rows: int, post_ops: list[ir.PostOp]) -> Kernel:
    added = {"added": ((rows, 67), "")} if ADD in post_ops else {}
    operands = {"src": ((rows, 131), ""), "weights": ((131, 67), ""), **added}
    return kernel(ir.MatMul(), ((rows, 67), ""), post_ops, **operands)


def layer_norm() -> Kernel:
    vectors = dict.fromkeys(("scale", "shift"), ((67,), ""))
    return kernel(ir.LayerNormalization(1e-5), ((3, 7, 67), ""), src=((3, 7, 67), ""), **vectors)


KERNELS: dict[str, tuple[Callable[[], Kernel], Mapping[str, str]]] = {
    "convolution": (convolution, PRODUCT),
    "convolution to float32": (convolution, TO_WIDE),
    "convolution blocked": (lambda: convolution(layout=BLOCKED, batch=3), PRODUCT),
    "convolution + gelu": (lambda: convolution(post_ops=[GELU]), PRODUCT),
    "convolution + sum": (lambda: convolution(post_ops=[ir.SumPostOp(), RELU]), PRODUCT),
    "short bias": (convolution, {**PRODUCT, "bias": SHORT}),
    "depthwise": (depthwise, PRODUCT),
    "pointwise and depthwise": (pair, {**PRODUCT, "depthwise_weights": SHORT}),
    "one row": (lambda: product(1, [RELU]), PRODUCT),
    "rows + short": (lambda: product(9, [ADD, GELU]), {**PRODUCT, "post_op": SHORT}),
    "rows to float32": (lambda: product(9, [ADD]), TO_WIDE),
    "max pooling": (
        lambda: kernel(
            ir.Pooling("max", (3, 3), (2, 2), (1, 1), (1, 1)), ((2, 19, 5, 4), BLOCKED), src=(IMAGE, BLOCKED)
        ),
        SAME,
    ),
    "tanh": (lambda: kernel(ir.Eltwise("tanh", 0.0, 0.0), (IMAGE, LAST), src=(IMAGE, LAST)), SAME),
    "binary": (
        lambda: kernel(ir.Binary("mul"), (IMAGE, LAST), src=(IMAGE, LAST), src1=((2, 19, 1, 1), LAST)),
        {**SAME, "src1": SHORT},
    ),
    "softmax to float32": (
        lambda: kernel(ir.Softmax("softmax", 1), ((5, 101), ""), src=((5, 101), "")),
        {"src": SHORT},
    ),
    "layer norm": (layer_norm, SAME),
    "layer norm to bfloat16": (layer_norm, {"dst": SHORT}),
    "pad": (lambda: kernel(ir.Pad((0, 0, 1, 2), 0.5), ((2, 19, 11, 10), ""), src=(IMAGE, "")), SAME),
    "pad blocked": (
        lambda: kernel(ir.Pad((0, 0, 1, 2), 0.3), ((2, 19, 11, 10), BLOCKED), src=(IMAGE, BLOCKED)),
        SAME,
    ),
    "winograd F2": (lambda: winograd("winograd_f2", LAST), PRODUCT),
    "winograd F4": (lambda: winograd("winograd_f4", LAST), PRODUCT),
    "winograd F4 blocked": (lambda: winograd("winograd_f4", BLOCKED), PRODUCT),
    "cast to bfloat16": (lambda: kernel(ir.Reorder(), (IMAGE, BLOCKED), src=(IMAGE, "")), {"dst": SHORT}),
    "cast to float32": (lambda: kernel(ir.Reorder(), (IMAGE, LAST), src=(IMAGE, "")), {"src": SHORT}),
}


@pytest.mark.parametrize(("make", "types"), KERNELS.values(), ids=KERNELS)
def test_a_right_kernel_agrees_and_a_wrong_element_is_found(
    make: Callable[[], Kernel], types: Mapping[str, str]
) -> None:
    right = typed(make(), types)
    backend = Faulty(lambda out: None)
    checked = check(backend, right)
    assert (checked.outcome, checked.reason) == ("agreed", "")
    assert backend.ran and set(backend.ran) == {right.implementation}

    def last(out: Array) -> None:  # the last element that is no padding
        assert out.dtype.name == types.get("dst", WIDE)
        flat = out.reshape(-1)
        at = np.flatnonzero(flat.astype(np.float32))[-1]
        flat[at] = flat[at] * 1.5 + 1

    checked = check(Faulty(last), right)
    assert checked.outcome == "differs", checked


def test_a_result_off_by_one_in_its_last_place_is_found() -> None:
    """Rounding is held to the bit where sums are exact."""

    def next_up(out: Array) -> None:
        bits = out.reshape(-1).view(np.uint16)
        bits[np.flatnonzero(bits)[3]] += 1

    assert check(Faulty(next_up), typed(convolution(post_ops=()), PRODUCT)).outcome == "differs"


@pytest.mark.parametrize("types", [PRODUCT, TO_WIDE, {"weights": SHORT}, {"src": SHORT, "dst": SHORT}])
def test_the_row_product_agrees_and_a_wrong_one_is_found(types: Mapping[str, str]) -> None:
    row = typed(product(1, []), types)
    assert row.implementation == "row_product"
    checked = check(OneDNN(), row)
    assert (checked.outcome, checked.reason) == ("agreed", "")

    def spoil(result: Array) -> None:
        flat = result.reshape(-1)
        flat[flat.size // 2] += flat.dtype.type(1)

    assert check(Faulty(spoil), row).outcome == "differs"


def channels_scaled() -> Kernel:
    vector = ((1, 32, 1, 1), "")
    return kernel(ir.Binary("mul"), ((2, 32, 9, 7), LAST), src=((2, 32, 9, 7), LAST), src1=vector)


OWN = {
    "channelwise": lambda: typed(channels_scaled(), {"src": SHORT, "dst": SHORT}),
    "depthwise": lambda: typed(
        kernel(
            ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 40),
            ((2, 40, 9, 7), LAST),
            src=((2, 40, 9, 7), LAST),
            weights=((40, 1, 1, 3, 3), ""),
        ),
        {**SAME, "weights": SHORT},
    ),
    "maxima": lambda: typed(
        kernel(
            ir.Pooling("max", (3, 3), (2, 2), (1, 1), (1, 1)),
            ((2, 19, 6, 6), LAST),
            src=((2, 19, 11, 11), LAST),
        ),
        SAME,
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_our_own_kernels_agree_and_a_wrong_one_is_found(name: str) -> None:
    made = OWN[name]()
    assert made.implementation.startswith(f"{name}:")
    checked = check(OneDNN(), made)
    assert (checked.outcome, checked.reason) == ("agreed", "")

    def spoil(result: Array) -> None:
        flat = result.reshape(-1)
        flat[flat.size // 2] += flat.dtype.type(1)

    assert check(Faulty(spoil), made).outcome == "differs"
