"""Values that a shorter type may make infinite, on plain programs: masks, constants, parameters."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.precision.large_numbers import large_values

SHAPE = (2, 5)


def is_large(number: float) -> bool:
    return np.isfinite(number) and abs(number) > 1e30


class Chain(ProgramBuilder):
    """Shorthands for a program of steps in a row."""

    def __init__(self) -> None:
        super().__init__("p")
        self.x = self.port("input", "x", SHAPE, "float32")
        self.y = self.port("output", "y", SHAPE, "float32")
        self.narrow: set[int] = set()

    def one(self, src: int, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> int:
        return self.step("eltwise", ir.Eltwise(algorithm, alpha, beta), SHAPE, [("src", src)])

    def two(self, src: int, src1: int, algorithm: str = "add", shape: tuple[int, ...] = SHAPE) -> int:
        return self.step("binary", ir.Binary(algorithm), shape, [("src", src), ("src1", src1)])

    def softmax(self, src: int, algorithm: str = "softmax") -> int:
        return self.step("softmax", ir.Softmax(algorithm, 1), SHAPE, [("src", src)])

    def product(self, src: int) -> int:
        weights = self.constant(np.ones((5, 5), "float32"))
        return self.step("matmul", ir.MatMul(), SHAPE, [("src", src), ("weights", weights)])

    def attention(self, x: int, mask: int, value: int | None = None) -> int:
        """One head; ``value`` is as long as ``x`` is."""
        heads = [(role, self.reshape(of, (1, 1, *SHAPE))) for role, of in (("src", x), ("key", x))]
        heads.append(("value", self.reshape(x if value is None else value, (1, 1, *SHAPE))))
        operands = [*heads, ("mask", mask)]
        shape = (1, SHAPE[0], 1, SHAPE[1])
        return self.reshape(self.step("attention", ir.Attention(1.0), shape, operands), SHAPE)

    def found(self, result: int) -> set[int]:
        """Large values of the program that ends with ``result``."""
        self.write_output(result, self.y)
        program = self.finish()
        return large_values(program, is_large, lambda number: number not in self.narrow)


def root(b: Chain, value: int) -> int:
    while b.values[value].alias_of >= 0:
        value = b.values[value].alias_of
    return value


@pytest.mark.parametrize(
    ("algorithm", "alpha", "beta", "large"),
    [
        ("linear", -3.4e38, 0.0, True),
        ("linear", 1.0, 3.4e38, True),
        ("linear", 1.0, 2.0, False),
        ("linear", float("inf"), 0.0, False),
        ("clip", -3.4e38, 3.4e38, False),
        ("clip_v2", -3.4e38, 3.4e38, False),
    ],
)
def test_parameters_make_numbers_large(algorithm: str, alpha: float, beta: float, large: bool) -> None:
    b = Chain()
    made = b.one(b.x, algorithm, alpha, beta)
    kept = b.one(made, "relu")
    found = b.found(kept)
    assert ({made, root(b, kept)} <= found) == large


@pytest.mark.parametrize("name", ["logistic", "tanh", "exp", "softmax", "compare"])
def test_bounded_results_end_them(name: str) -> None:
    b = Chain()
    made = b.one(b.x, "linear", 3.4e38, 0.0)
    if name == "softmax":
        bound = b.softmax(made)
    elif name == "compare":
        operands = [("src", made), ("src1", b.x)]
        bound = b.step("compare", ir.Compare("less"), SHAPE, operands)
    else:
        bound = b.one(made, name)
    last = b.one(bound, "relu")
    found = b.found(last)
    assert made in found and not {bound, root(b, last)} & found


def test_a_bounded_function_with_something_behind_it_is_none() -> None:
    b = Chain()
    made = b.one(b.x, "linear", 3.4e38, 0.0)
    behind = (ir.EltwisePostOp("linear", 2.0, 0.0),)
    fused = b.step("eltwise", ir.Eltwise("tanh", 0.0, 0.0), SHAPE, [("src", made)], post_ops=behind)
    assert fused in b.found(b.one(fused, "relu"))


def test_post_ops_and_padding_have_parameters_too() -> None:
    b = Chain()
    behind = (ir.EltwisePostOp("linear", 3.4e38, 0.0),)
    fused = b.step("eltwise", ir.Eltwise("relu", 0.0, 0.0), SHAPE, [("src", b.x)], post_ops=behind)
    padded = b.step("pad", ir.Pad((0, 0), -3.4e38), SHAPE, [("src", b.x)])
    zeros = b.step("pad", ir.Pad((0, 0), 0.0), SHAPE, [("src", b.x)])
    found = b.found(b.two(b.two(fused, padded), zeros))
    assert {fused, padded} <= found and zeros not in found


def test_constants_that_do_not_fit_and_what_reads_them() -> None:
    b = Chain()
    constant = b.constant(np.full((1, 5), 3.4e38, "float32"))
    b.narrow.add(constant)
    made, other = b.two(b.x, constant), b.one(b.x, "relu")
    found = b.found(b.two(made, other))
    assert {constant, made} <= found and not {b.x, other} & found


def test_weights_that_do_not_fit_make_no_result_large() -> None:
    b = Chain()
    made = b.product(b.x)
    b.narrow.add(next(number for number, value in enumerate(b.values) if value.kind == "constant"))
    assert made not in b.found(b.one(made, "relu"))


@pytest.mark.parametrize(
    ("between", "is_mask"),
    [("add", True), ("sub", True), ("mul", False), ("view", True), ("nothing", False), ("product", False)],
)
def test_inputs_that_are_added_before_a_softmax(between: str, is_mask: bool) -> None:
    b = Chain()
    mask = b.port("input", "mask", (5, 2) if between == "view" else SHAPE, "float32")
    if between == "view":
        scores = b.two(b.product(b.x), b.permute(mask, (1, 0)))
    elif between == "nothing":
        scores = mask
    elif between == "product":
        scores = b.product(b.two(b.x, mask))
    else:
        scores = b.two(b.product(b.x), mask, between)
    found = b.found(b.softmax(scores))
    assert (mask in found) == is_mask


def test_an_input_is_a_mask_through_steps_in_front_of_the_sum() -> None:
    b = Chain()
    mask = b.port("input", "mask", SHAPE, "float32")
    scores = b.one(b.two(b.product(b.x), b.one(mask, "linear", -1.0, 0.0)), "linear", 0.5, 0.0)
    found = b.found(b.softmax(scores))
    assert mask in found


def test_a_mask_may_be_added_in_the_product() -> None:
    for algorithm, is_mask in (("add", True), ("mul", False)):
        c = Chain()
        mask = c.port("input", "mask", SHAPE, "float32")
        weights = c.constant(np.ones((5, 5), "float32"))
        operands = [("src", c.x), ("weights", weights)]
        behind = (ir.BinaryPostOp(algorithm, mask),)
        scores = c.step("matmul", ir.MatMul(), SHAPE, operands, post_ops=behind)
        assert (mask in c.found(c.softmax(scores))) == is_mask


@pytest.mark.parametrize(("role", "large"), [("mask", False), ("value", True)])
def test_attention_is_bounded_by_its_values(role: str, large: bool) -> None:
    b = Chain()
    mask = b.port("input", "mask", (1, 1, 2, 2), "float32")
    huge = b.one(b.x if role == "value" else mask, "linear", 3.4e38)
    made = b.attention(b.x, huge if role == "mask" else mask, huge if role == "value" else None)
    last = b.one(made, "relu")
    found = b.found(last)
    assert huge in found
    assert ({root(b, made), root(b, last)} <= found) == large


def test_inputs_that_become_attentions_mask() -> None:
    b = Chain()
    given, bias = (b.port("input", name, (1, 1, 2, 2), "float32") for name in ("mask", "bias"))
    mask = b.step("binary", ir.Binary("add"), (1, 1, 2, 2), [("src", given), ("src1", bias)])
    assert b.found(b.attention(b.x, mask)) >= {given, bias, mask}


def test_nothing_ahead_of_a_product_is_a_mask() -> None:
    b = Chain()
    stream = b.two(b.x, b.one(b.x, "relu"))
    scores = b.two(b.product(stream), b.product(stream))
    assert not b.found(b.softmax(scores))


def test_nothing_ahead_of_attention_is_a_mask_of_the_next() -> None:
    b = Chain()
    mask = b.constant(np.zeros((1, 1, 2, 2), "float32"))
    first = b.attention(b.x, mask)
    scores = b.two(first, b.product(first))
    assert not b.found(b.softmax(scores))
