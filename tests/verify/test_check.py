"""Kernels against their reference: right ones of every kind agree, faults of many shapes are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from single_kernels import GELU, LAST, RELU, RELU6, Array, Faulty, convolution, kernel

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.kernel import Kernel
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.verify import check as check_module
from tvm_mxplan.verify import references
from tvm_mxplan.verify.check import check

BLOCKED = f"aBcd{OneDNN().block}b"
ADD = ir.BinaryPostOp("add", -1)
IMAGE = (2, 19, 9, 7)
SAME = {"src": (IMAGE, BLOCKED)}


def grouped(groups: int, channels: int) -> Kernel:
    each = channels // groups
    return kernel(
        ir.Convolution((2, 1), (1, 1, 0, 2), (1, 1), groups),
        ((2, channels, 5, 13), LAST),
        [RELU6],
        src=((2, channels, 10, 12), LAST),
        weights=((groups, each, each, 3, 3), ""),
    )


def deconvolution(post_ops: list[ir.PostOp], layout: str = LAST) -> Kernel:
    return kernel(
        ir.Deconvolution((2, 2), (1, 1, 1, 1), (1, 1), 1),
        ((1, 21, 14, 10), layout),
        post_ops,
        src=((1, 35, 7, 5), layout),
        weights=((21, 35, 4, 4), ""),
    )


def winograd(algorithm: ir.ConvolutionAlgorithm, turned: bool = False) -> Kernel:
    geometry = (1, 1), (1, 1, 1, 1), (1, 1), 1
    return kernel(
        ir.Deconvolution(*geometry, algorithm) if turned else ir.Convolution(*geometry, algorithm=algorithm),
        ((1, 40, 19, 13), LAST),
        [RELU],
        src=((1, 33, 19, 13), LAST),
        weights=((40, 33, 3, 3), ""),
    )


def product(rows: int, post_ops: list[ir.PostOp]) -> Kernel:
    added = {"added": ((rows, 67), "")} if ADD in post_ops else {}
    operands = {"src": ((rows, 131), ""), "weights": ((131, 67), ""), **added}
    return kernel(ir.MatMul(), ((rows, 67), ""), post_ops, **operands)


RIGHT: dict[str, Callable[[], Kernel]] = {
    "convolution": convolution,
    "convolution blocked": lambda: convolution(layout=BLOCKED, batch=3),
    "convolution 1x1": lambda: convolution((67, 100), (5, 3), taps=1, post_ops=()),
    "convolution + gelu": lambda: convolution(post_ops=[GELU]),
    "convolution + sum + relu": lambda: convolution(post_ops=[ir.SumPostOp(), RELU]),
    "grouped": lambda: grouped(3, 21),
    "depthwise": lambda: grouped(37, 37),
    "deconvolution": lambda: deconvolution([RELU]),
    "deconvolution plain": lambda: deconvolution([], "abcd"),
    "winograd_f2": lambda: winograd("winograd_f2"),
    "winograd_f4": lambda: winograd("winograd_f4"),
    "winograd_f4 turned": lambda: winograd("winograd_f4", turned=True),
    "one row": lambda: product(1, [RELU]),
    "rows": lambda: product(9, [ADD, GELU]),
    "max pooling": lambda: kernel(
        ir.Pooling("max", (3, 3), (2, 2), (1, 1), (1, 1)), ((2, 19, 5, 4), BLOCKED), **SAME
    ),
    "average pooling": lambda: kernel(
        ir.Pooling("avg_exclude_padding", (3, 2), (2, 2), (1, 1), (1, 1)),
        ((2, 19, 5, 4), LAST),
        src=(IMAGE, LAST),
    ),
    "eltwise tanh": lambda: kernel(ir.Eltwise("tanh", 0.0, 0.0), (IMAGE, BLOCKED), **SAME),
    "eltwise log": lambda: kernel(ir.Eltwise("log", 0.0, 0.0), (IMAGE, LAST), src=(IMAGE, LAST)),
    "binary mul + add": lambda: kernel(
        ir.Binary("mul"), (IMAGE, BLOCKED), [ADD], **SAME, src1=((1, 19, 1, 1), ""), added=((1, 19, 1, 1), "")
    ),
    "binary div": lambda: kernel(ir.Binary("div"), (IMAGE, LAST), src=(IMAGE, LAST), src1=(IMAGE, LAST)),
    "softmax": lambda: kernel(ir.Softmax("softmax", 1), ((5, 1001), ""), src=((5, 1001), "")),
    "layer norm": lambda: kernel(
        ir.LayerNormalization(1e-5),
        ((3, 7, 67), ""),
        src=((3, 7, 67), ""),
        scale=((67,), ""),
        shift=((67,), ""),
    ),
    "lrn": lambda: kernel(ir.LRN(5, 1e-4, 0.75, 1.0), (IMAGE, LAST), src=(IMAGE, LAST)),
    "batch norm": lambda: kernel(
        ir.BatchNormalization(1e-5, True),
        (IMAGE, BLOCKED),
        **SAME,
        mean=((19,), ""),
        variance=((19,), ""),
        scale=((19,), ""),
        shift=((19,), ""),
    ),
    "reduction": lambda: kernel(ir.Reduction("mean"), ((2, 19, 1, 1), LAST), src=(IMAGE, LAST)),
    "reduction mul": lambda: kernel(ir.Reduction("mul"), ((2, 19, 1, 1), LAST), src=(IMAGE, LAST)),
    "concat": lambda: kernel(ir.Concat(1), ((2, 24, 9, 7), LAST), src=[(IMAGE, LAST), ((2, 5, 9, 7), LAST)]),
    "resampling": lambda: kernel(ir.Resampling("linear"), ((2, 19, 18, 14), LAST), src=(IMAGE, LAST)),
    "shuffle": lambda: kernel(ir.Shuffle(1, 4), ((1, 32, 5, 3), LAST), src=((1, 32, 5, 3), LAST)),
    "pad": lambda: kernel(ir.Pad((0, 0, 1, 2), 0.5), ((2, 19, 11, 10), ""), src=(IMAGE, "")),
    "slice": lambda: kernel(ir.Slice((0, 3, 1, 0)), ((2, 11, 7, 7), ""), src=(IMAGE, "")),
    "reorder": lambda: kernel(ir.Reorder(), (IMAGE, BLOCKED), src=(IMAGE, "")),
}


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_a_right_kernel_agrees_and_a_wrong_element_is_found(make: Callable[[], Kernel]) -> None:
    right = make()
    backend = Faulty(lambda out: None)
    assert check(backend, right) == check_module.Checked("agreed")
    assert backend.ran and set(backend.ran) == {right.implementation}

    def last(out: Array) -> None:  # the last element that is no padding
        flat = out.reshape(-1)
        flat[np.flatnonzero(flat)[-1] if flat.any() else -1] += 1.5

    checked = check(Faulty(last), right)
    assert checked.outcome == "differs", checked
    assert "elements of dst differ" in checked.reason


FAULTS: dict[str, Callable[[Array], None]] = {
    "one row of the image": lambda out: out.__setitem__((0, 4), 0.25),
    "the last column": lambda out: out.__setitem__((0, slice(None), -1), 0.25),
    "one channel": lambda out: out.__setitem__((..., 16), out[..., 15]),
    "a block of channels twice": lambda out: out.__setitem__((..., slice(8, 16)), out[..., 0:8]),
    "never written": lambda out: out.__setitem__((0, 0, 0, 3), np.nan),
    "off by a unit": lambda out: np.add(out, 2.0**-6, out=out, where=out > 0),
}


@pytest.mark.parametrize("spoil", FAULTS.values(), ids=FAULTS)
def test_faults_in_blocks_borders_and_tails(spoil: Callable[[Array], None]) -> None:
    assert check(Faulty(spoil), convolution()).outcome == "differs"


def test_a_sample_finds_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every channel at every position that is taken, whole lines along each axis."""
    wide = convolution((3, 24), (70, 50), post_ops=())
    monkeypatch.setattr(references, "GATHERED", 27 * 700)
    assert check(OneDNN(), wide).outcome == "agreed"
    for spoil in (
        lambda out: out.__setitem__((..., 23), 0.25),
        lambda out: out.__setitem__((0, slice(None), -1), 0.25),
        lambda out: out.__setitem__((0, slice(66, None)), 0.25),
        lambda out: out.__setitem__((0, 0, 0, 0), 0.25),
        lambda out: out.__setitem__((0, -1, -1, -1), 0.25),
    ):
        assert check(Faulty(spoil), wide).outcome == "differs"
    monkeypatch.setattr(references, "WORKED_OUT", 500)
    shape = (1, 30, 40, 21)
    soft = kernel(ir.Softmax("softmax", 1), (shape, ""), src=(shape, ""))
    assert check(OneDNN(), soft).outcome == "agreed"
    assert check(Faulty(lambda out: out.__setitem__((0, 29), 0.25)), soft).outcome == "differs"


def test_padding_that_is_not_zero() -> None:
    blocked = convolution(layout=BLOCKED)
    checked = check(Faulty(lambda out: out.__setitem__((0, -1, 3, 3, -1), 1.0)), blocked)
    assert checked.outcome == "differs"
    assert "1 elements in the padding of dst are not zero" in checked.reason


def test_a_minus_zero_in_padding_is_one() -> None:
    blocked = convolution(layout=BLOCKED)
    assert check(Faulty(lambda out: out.__setitem__((0, -1, 3, 3, -1), -0.0)), blocked).outcome == "agreed"


def test_a_write_outside_of_the_result() -> None:
    def beyond(out: Array) -> None:
        whole = out
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        end = out.ctypes.data + out.nbytes - whole.ctypes.data
        whole[end // whole.itemsize] = 0.0

    assert check(Faulty(beyond), convolution()).reason == "it writes outside of its result dst"


def test_what_a_relu_hides_of_one_position_shows_at_another() -> None:
    """One output is 0 for half of the inputs, so that one input would say nothing of it."""
    row = product(1, [RELU])

    def last_column(out: Array) -> None:
        out[0, -1] = max(0.0, out[0, -1] - 1000)  # a wrong sum that is below 0

    backend = Faulty(last_column)
    assert check(backend, row).outcome == "differs"
    right = Faulty(lambda out: None)
    check(right, row)
    assert len(right.ran) == 8


def test_what_cannot_be_checked_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    right = convolution()
    monkeypatch.setattr(check_module, "MOST_BYTES", 1000)
    assert check(OneDNN(), right).reason == "its operands take more than 1,000 bytes"
    monkeypatch.undo()
    other = replace(right.step, implementation="elsewhere")
    checked = check(OneDNN(), Kernel(replace(right.program, steps=(other,))))
    assert (checked.outcome, checked.reason) == (
        "unchecked",
        f"{right.implementation} runs it alone, not elsewhere",
    )


def test_a_kernel_that_raises_differs() -> None:
    def fail(out: Array) -> None:
        raise RuntimeError("could not execute a primitive")

    checked = check(Faulty(fail), convolution())
    assert (checked.outcome, checked.reason) == ("differs", "does not run: could not execute a primitive")


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
@pytest.mark.parametrize("count", [1, 7, 1000, 100_001])
def test_results_stand_in_whole_lines_of_the_cache(dtype: str, count: int) -> None:
    memory = check_module._aligned(count, np.dtype(dtype).type(3))
    assert memory.ctypes.data % 64 == 0 and memory.size == count and (memory == 3).all()


def test_a_kernel_that_stores_whole_lines_is_run() -> None:
    """oneDNN stores large results so; in memory of another alignment that ends the process."""
    large = kernel(ir.Resampling("nearest"), ((8, 64, 112, 112), ""), src=((8, 64, 56, 56), ""))
    assert "jit" in large.implementation
    assert check(OneDNN(), large).outcome == "agreed"
