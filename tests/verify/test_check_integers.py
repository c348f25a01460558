"""Kernels on integers with scales: right ones agree with exact numbers, rounded; a wrong step is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from single_kernels import LAST, RELU, Array, Faulty, kernel

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.kernel import Kernel
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.verify.check import check

ADD = ir.BinaryPostOp("add", -1)
ROUNDED = [
    ir.EltwisePostOp("linear", 8.0, 0.0),
    ir.EltwisePostOp("round", 0.0, 0.0),
    ir.EltwisePostOp("clip", -120.0, 127.0),
    ir.EltwisePostOp("linear", 0.125, 0.0),
]


def needs_integers() -> None:
    if OneDNN().lacks("int8"):
        pytest.skip(OneDNN().lacks("int8"))


def scaled(
    real: Kernel,
    src: str = "uint8",
    dst: str = "uint8",
    *,
    zeros: bool = True,
    channels: int = 1,
    post_op: str = "float32",
) -> Kernel:
    """The kernel on integers, with one scale of weights or one for each of ``channels``."""
    program, step = real.program, real.step
    values = list(program.values)
    types = {"src": src, "weights": "int8", "dst": dst}
    for operand in step.operands:
        values[operand.value] = replace(
            values[operand.value], dtype=types.get(operand.role, values[operand.value].dtype)
        )
    for one in step.post_ops:
        if isinstance(one, ir.BinaryPostOp):
            values[one.value] = replace(values[one.value], dtype=post_op)
    constants = len(program.of_kind("constant"))
    operands = list(step.operands[:-1])

    def number(role: str, dtype: str, count: int = 1) -> None:
        nonlocal constants
        values.append(ir.Value("", (count,), dtype, "constant", "a", constants))
        constants += 1
        operands.append(ir.Operand(role, len(values) - 1))

    for side, dtype in (("src", src), ("dst", dst)):
        if dtype == "float32":
            continue
        number(f"{side}_scale", "float32")
        if zeros:
            number(f"{side}_zero_point", "int32")
    if any(operand.role == "weights" for operand in step.operands):
        number("weights_scale", "float32", channels)
    changed = replace(step, operands=(*operands, step.operands[-1]), implementation="")
    program = replace(program, values=tuple(values), steps=(changed,))
    info = library.describe(program).steps[0]
    assert not info.error, info.error
    return Kernel(replace(program, steps=(replace(changed, implementation=info.implementation),)))


def convolution(
    channels: tuple[int, int] = (35, 17), groups: int = 1, taps: int = 3, post_ops: tuple[ir.PostOp, ...] = ()
) -> Kernel:
    inputs, outputs = channels
    lead = (groups,) if groups > 1 else ()
    added = {"added": ((2, outputs, 5, 6), LAST)} if ADD in post_ops else {}
    return kernel(
        ir.Convolution((2, 1), (1, 0, 1, 1) if taps > 1 else (0,) * 4, (1, 1), groups),
        (
            (2, outputs, 5, 6 if taps > 1 else 7),
            LAST,
        ),
        post_ops,
        src=((2, inputs, 9, 7), LAST),
        weights=((*lead, outputs // groups, inputs // groups, taps, taps), ""),
        bias=((outputs,), ""),
        **added,
    )


def product(depth: int = 67, columns: int = 35, rank: int = 2) -> Kernel:
    lead = (3,) * (rank - 2)
    return kernel(
        ir.MatMul(),
        ((*lead, 13, columns), ""),
        [RELU],
        src=((*lead, 13, depth), ""),
        weights=((*(1,) * (rank - 2), depth, columns), ""),
        bias=((*(1,) * (rank - 1), columns), ""),
    )


def conversion(shape: tuple[int, ...], source: str, target: str) -> Kernel:
    layouts = source or plain_layout(len(shape)), target or plain_layout(len(shape))
    return kernel(ir.Quantization(0), (shape, layouts[1]), src=(shape, layouts[0]))


KERNELS = {
    "convolution": lambda: scaled(convolution()),
    "per channel": lambda: scaled(convolution(), channels=17),
    "signed": lambda: scaled(convolution(), "int8", "int8", channels=17),
    "without zero points": lambda: scaled(convolution(), zeros=False),
    "signed to unsigned": lambda: scaled(convolution((67, 48)), "int8", "uint8", channels=48),
    "to real": lambda: scaled(convolution(post_ops=(RELU,)), dst="float32", channels=17),
    "pointwise": lambda: scaled(convolution((64, 35), taps=1), channels=35),
    "pointwise, relu": lambda: scaled(convolution((64, 35), taps=1, post_ops=(RELU,)), dst="int8"),
    "groups": lambda: scaled(convolution((34, 51), groups=17), channels=51),
    "depthwise": lambda: scaled(convolution((37, 37), groups=37), channels=37),
    "depthwise signed": lambda: scaled(convolution((48, 48), groups=48), "int8", "int8"),
    "three channels": lambda: scaled(convolution((3, 64)), channels=64),
    "residual": lambda: scaled(convolution((64, 32), post_ops=(*ROUNDED, ADD, RELU)), post_op="uint8"),
    "matmul": lambda: scaled(product(), channels=35),
    "matmul to real": lambda: scaled(product(), dst="float32", channels=35),
    "matmul signed": lambda: scaled(product(768, 96), "int8", "int8"),
    "matmul of many": lambda: scaled(product(rank=3), zeros=False, channels=35),
    "quantise": lambda: scaled(conversion((2, 19, 9, 7), "", LAST), "float32", "uint8"),
    "quantise signed": lambda: scaled(conversion((5, 67), "", ""), "float32", "int8", zeros=False),
    "dequantise": lambda: scaled(conversion((2, 19, 9, 7), LAST, ""), "int8", "float32"),
    "requantise": lambda: scaled(conversion((2, 19, 9, 7), LAST, LAST), "uint8", "int8"),
}


def largest(channels: int, window: int, stride: int, dtype: str) -> Kernel:
    """The maximum over windows of integers as they stand."""
    size = tuple((extent + 2 - window) // stride + 1 for extent in (9, 11))
    made = kernel(
        ir.Pooling("max", (window,) * 2, (stride,) * 2, (1, 1), (1, 1)),
        ((2, channels, *size), LAST),
        src=((2, channels, 9, 11), LAST),
    )
    values = tuple(replace(value, dtype=dtype) for value in made.program.values)
    program = replace(made.program, values=values, steps=(replace(made.step, implementation=""),))
    info = library.describe(program).steps[0]
    assert not info.error, info.error
    return Kernel(replace(program, steps=(replace(made.step, implementation=info.implementation),)))


MAXIMA = {
    "at once": lambda: largest(67, 3, 2, "uint8"),
    "at once signed": lambda: largest(64, 2, 2, "int8"),
    "in turns": lambda: largest(17, 3, 1, "uint8"),
    "in turns signed": lambda: largest(96, 5, 1, "int8"),
    "pixels apart": lambda: largest(3, 3, 2, "int8"),
}


OWN = {
    "pointwise": (lambda: scaled(convolution((67, 48), taps=1)), "integers_1x1:"),
    "pointwise signed": (
        lambda: scaled(convolution((35, 17), taps=1), "int8", "int8", channels=17),
        "integers_1x1:",
    ),
    "pointwise residual": (
        lambda: scaled(
            convolution((64, 65), taps=1, post_ops=(*ROUNDED, RELU)), "int8", "float32", channels=65
        ),
        "integers_1x1:",
    ),
    "windows": (lambda: scaled(convolution((3, 48))), "integers_windows:"),
    "windows signed": (
        lambda: scaled(convolution((17, 40)), "int8", "int8", channels=40),
        "integers_windows:",
    ),
    "depthwise": (lambda: scaled(convolution((40, 40), groups=40)), "integers_dw:"),
    "depthwise signed": (lambda: scaled(convolution((63, 63), groups=63), "int8", "int8"), "integers_dw:"),
}


@pytest.mark.parametrize("name", OWN)
def test_our_kernels_agree_and_a_wrong_step_is_found(name: str) -> None:
    needs_integers()
    make, family = OWN[name]
    given = make()
    found = library.describe(given.program).steps[0].alternatives
    kernels = [one for one in found if one.startswith(family)]
    assert kernels
    for own in kernels:
        attrs = replace(given.step.attrs, preferred=own)  # type: ignore[type-var]
        step = replace(given.step, attrs=attrs, implementation=own)
        made = Kernel(replace(given.program, steps=(step,)))
        backend = Faulty(lambda result: None)
        checked = check(backend, made)
        assert (checked.outcome, checked.reason) == ("agreed", "")
        assert set(backend.ran) == {own}
        assert check(Faulty(spoil), made).outcome == "differs"


def spoil(result: Array) -> None:
    flat = result.reshape(-1)
    flat[flat.size // 2] = flat[flat.size // 2] + 2 if flat[flat.size // 2] < 120 else 3


@pytest.mark.parametrize("name", MAXIMA)
def test_maxima_by_our_kernel_agree_to_the_integer(name: str) -> None:
    made = MAXIMA[name]()
    assert made.implementation.startswith("maxima:")
    backend = Faulty(lambda result: None)
    checked = check(backend, made)
    assert (checked.outcome, checked.reason) == ("agreed", "")
    assert set(backend.ran) == {made.implementation}

    def spoil(result: Array) -> None:
        flat = result.reshape(-1)
        flat[flat.size // 2] = flat[flat.size // 2] + 1 if flat[flat.size // 2] < 120 else 3

    assert check(Faulty(spoil), made).outcome == "differs"


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_agree_with_exact_numbers(name: str) -> None:
    needs_integers()
    made = KERNELS[name]()
    checked = check(OneDNN(), made)
    assert (checked.outcome, checked.reason) == ("agreed", ""), made.implementation


@pytest.mark.parametrize("name", ["convolution", "depthwise", "matmul", "quantise", "requantise", "residual"])
def test_a_result_that_is_off_by_more_than_one_step_is_found(name: str) -> None:
    needs_integers()

    def spoil(result: Array) -> None:
        flat = result.reshape(-1)
        flat[flat.size // 2] = flat[flat.size // 2] + 2 if flat[flat.size // 2] < 120 else 3

    backend = Faulty(spoil)
    checked = check(backend, KERNELS[name]())
    assert backend.ran and checked.outcome == "differs", checked.reason


def test_results_reach_both_ends_of_their_type() -> None:
    needs_integers()
    seen: list[Array] = []
    check(Faulty(lambda result: seen.append(np.array(result))), KERNELS["signed"]())
    assert {-128, 127} <= set(np.unique(np.concatenate([one.reshape(-1) for one in seen])))
