"""Relax modules that no pass could do anything with get a line that names function and variable."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from textwrap import dedent

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan import InvalidInputError
from tvm_mxplan.frontend.relax.relax_checks import DEEPEST, check_module

Make = Callable[[relax.Expr], relax.Expr]


def module(shape: tuple[object, ...], make: Make) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            inner = builder.emit(make(x), "inner")
            out = builder.emit_output(relax.op.tanh(inner))
        builder.emit_func_output(out)
    return builder.get()


def weights(*shape: int) -> relax.Expr:
    return relax.const(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def convolution(*shape: int, **attributes: object) -> Make:
    return lambda x: relax.op.nn.conv2d(x, weights(*shape), **attributes)


def nested(depth: int) -> tvm.IRModule:
    """tanh(tanh(...(x))) without a single variable."""
    type_ = relax.TensorType((1, 3, 5, 7), "float32")
    x = relax.Var("x", type_)
    body = x
    for _ in range(depth):
        body = relax.op.tanh(body)
    return tvm.IRModule({"main": relax.Function([x], body, type_).with_attr("global_symbol", "main")})


@pytest.mark.parametrize(
    "shape, make, message",
    [
        ((1, 3, -5, 7), relax.op.nn.relu, r"main: parameter 'x' has the shape \[1, 3, -5, 7\]"),
        (
            (1, 3, 5, 7),
            convolution(4, 3, 9, 3),
            r"main: 'inner' \(nn.conv2d\): its result .* \[1, 4, -3, 5\]",
        ),
        (
            (1, 3, 0, 7),
            convolution(4, 3, 1, 1),
            r"main: 'inner' \(nn.conv2d\): its input .* extents of 1 or more",
        ),
        ((1, 3, 5, 7), convolution(4, 3, 3, 3, dilation=0), r"'inner' \(nn.conv2d\): dilation = \[0, 0\]"),
        (
            (1, 3, 5, 7),
            lambda x: relax.op.nn.avg_pool2d(x, (0, 2)),
            r"'inner' \(nn.avg_pool2d\): pool_size = \[0, 2\]",
        ),
        ((2**40, 2**40), relax.op.nn.relu, r"main: parameter 'x' .* more than 2\^63 bytes"),
    ],
)
def test_what_cannot_be(shape: tuple[int, ...], make: Make, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as error:
        tvm_mxplan.compile(module(shape, make), options={"cache": "disabled"})
    assert "\n" not in str(error.value)


def test_symbols_and_empty_tensors_are_fine() -> None:
    check_module(module((tvm.tirx.Var("n", "int64"), 3, 5, 7), convolution(4, 3, 3, 3)))
    check_module(module((1, 0, 5), relax.op.exp))


def test_depth_is_counted_without_recursion() -> None:
    check_module(nested(DEEPEST - 1))
    with pytest.raises(InvalidInputError, match=f"function main: .* more than {DEEPEST} deep; bind each"):
        check_module(nested(DEEPEST + 1))


@pytest.mark.slow
def test_what_ended_the_process_is_an_error_now() -> None:
    """In a process of its own: TVM's recursion is a segmentation fault."""
    code = """
        import sys
        sys.path.insert(0, {folder!r})
        from test_relax_checks import nested
        import tvm_mxplan
        try:
            tvm_mxplan.compile(nested(30_000), options={{"cache": "disabled"}})
        except tvm_mxplan.InvalidInputError as error:
            print(error, flush=True)
            import os
            os._exit(7)  # TVM frees nested expressions by recursion as well
    """
    text = dedent(code).format(folder=__file__.rpartition("/")[0])
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr[-500:]
    assert "more than 400 deep" in done.stdout
