"""Meanings of values in decided programs: what is the same by another way, and what is something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.decided import Unlike, check_answer

SHAPE = (2, 3, 3, 5)
RELU = ir.Eltwise("relu", 0.0, 0.0)
X, OTHER, A, Y = range(4)


def program(*steps: ir.Step, values: tuple[ir.Value, ...] = ()) -> ir.Program:
    """Two inputs, a local and an output, and more values behind them."""
    stated = (
        ir.Value("x", SHAPE, "float32", "input", "abcd", 0),
        ir.Value("other", SHAPE, "float32", "input", "abcd", 1),
        ir.Value("a", SHAPE, "float32", "local", "abcd"),
        ir.Value("y", SHAPE, "float32", "output", "abcd", 0),
    )
    return ir.Program("p", (*stated, *values), steps)


def step(name: str, src: int, dst: int, attrs: ir.Attributes = RELU) -> ir.Step:
    return ir.Step(name, attrs, (ir.Operand("src", src), ir.Operand("dst", dst)))


def alias(of: int, layout: str = "abcd", offset: int = 0) -> ir.Value:
    return ir.Value("alias", SHAPE, "float32", "local", layout, alias_of=of, alias_offset=offset)


NEW = len(program().values)


@pytest.mark.parametrize(
    ("seen", "same"),
    [
        (alias(X), True),  # the same bytes by another name
        (alias(OTHER), False),
        (alias(X, offset=64), False),
        (alias(X, "acbd"), False),  # of one shape, in another order
        (replace(alias(X), dtype="int32"), False),
        (replace(alias(X), shape=(2, 3, 5, 3)), False),
    ],
)
def test_an_alias_of_all_is_what_it_views(seen: ir.Value, same: bool) -> None:
    asked = program(step("s", X, Y), values=(alias(X),))
    for one, answer in ((asked, program(step("s", NEW, Y), values=(seen,))), (asked, asked)):
        if same or answer is asked:
            check_answer(one, answer, layouts=True)
        else:
            with pytest.raises(Unlike, match=r"^step 's': operands: expected "):
                check_answer(one, answer, layouts=True)


def view(of: int) -> ir.Value:
    """Rows of all that a value holds."""
    return ir.Value("rows", (6, 15), "float32", "local", "ab", alias_of=of)


@pytest.mark.parametrize(("of", "same"), [(X, True), (NEW, True), (OTHER, False)])
def test_views_are_of_what_they_view(of: int, same: bool) -> None:
    """Through an alias of all as well."""
    rows = ir.Value("out", (6, 15), "float32", "output", "ab", 0)

    def seen(of: int) -> ir.Program:
        made = program(step("s", NEW + 1, Y), values=(alias(X), view(of)))
        return replace(made, values=(*made.values[:Y], rows, *made.values[Y + 1 :]))

    if same:
        check_answer(seen(X), seen(of), layouts=True)
        check_answer(seen(of), seen(X), layouts=True)
    else:
        with pytest.raises(Unlike, match=r"^step 's': operands: expected "):
            check_answer(seen(X), seen(of), layouts=True)


def test_reorders_hand_on_what_they_read_unless_they_change_it() -> None:
    asked = program(step("s", X, Y))
    copied = program(step("copy", X, A, ir.Reorder()), step("s", A, Y))
    check_answer(asked, copied, layouts=True)
    check_answer(asked, copied.with_value(A, layout="acdb"), layouts=True)
    changing = replace(copied.steps[0], post_ops=(ir.EltwisePostOp("relu", 0.0, 0.0),))
    with pytest.raises(Unlike, match=r"^step 'copy': expected step 's' or a reorder, got "):
        check_answer(asked, replace(copied, steps=(changing, copied.steps[1])), layouts=True)
    with pytest.raises(Unlike, match=r"^reorder 'copy': expected .*'float32'\), got .*'bfloat16'\)$"):
        check_answer(asked, copied.with_value(A, dtype="bfloat16"), layouts=True)
    other = program(step("copy", OTHER, A, ir.Reorder()), step("s", A, Y))
    with pytest.raises(Unlike, match=r"^step 's': operands: expected .*0.*, got .*1"):
        check_answer(asked, other, layouts=True)


def test_a_step_of_another_kind_is_another_step() -> None:
    asked = program(step("s", X, Y))
    other = program(step("s", X, Y, ir.Softmax("softmax", 1)))
    with pytest.raises(Unlike, match=r"^step 's': expected step 's' or a reorder, got one of kind softmax$"):
        check_answer(asked, other, layouts=True)


def test_algorithms_are_of_the_kind_of_step_that_was_asked_for() -> None:
    kinds = [kind((1, 1), (1, 1, 1, 1), (1, 1), 1) for kind in (ir.Convolution, ir.Deconvolution)]
    product = ir.MatMul()  # which has no algorithms
    pairs = [kinds, kinds[::-1], *((one, product) for one in kinds), *((product, one) for one in kinds)]
    for before, after in pairs:
        with pytest.raises(Unlike, match=r"^step 's': attrs: expected .*, got "):
            check_answer(program(step("s", X, Y, before)), program(step("s", X, Y, after)), layouts=False)


def test_results_of_one_step_are_told_apart() -> None:
    """The mean is read where the variance was."""
    channels = [ir.Value(name, (3,), "float32", "local", "a") for name in ("mean", "variance", "r")]
    roles = (("src", X), ("dst", Y), ("batch_mean", NEW), ("batch_variance", NEW + 1))
    norm = ir.Step("n", ir.BatchNormalizationTraining(1e-5), tuple(ir.Operand(*role) for role in roles))
    asked = program(norm, step("s", NEW, NEW + 2), values=tuple(channels))
    check_answer(asked, asked, layouts=True)
    crossed = program(norm, step("s", NEW + 1, NEW + 2), values=tuple(channels))
    with pytest.raises(Unlike, match=r"^step 's': operands: expected .*batch_mean.* got .*batch_variance"):
        check_answer(asked, crossed, layouts=True)


def test_each_post_op_reads_what_was_asked_for() -> None:
    def fused(*post_ops: ir.PostOp) -> ir.Program:
        return program(replace(step("s", X, Y), post_ops=post_ops))

    asked = fused(ir.BinaryPostOp("add", OTHER), ir.EltwisePostOp("relu", 0.0, 0.0))
    check_answer(asked, asked, layouts=True)
    for other in (
        fused(ir.BinaryPostOp("add", X), ir.EltwisePostOp("relu", 0.0, 0.0)),
        fused(ir.BinaryPostOp("mul", OTHER), ir.EltwisePostOp("relu", 0.0, 0.0)),
        fused(ir.BinaryPostOp("add", OTHER), ir.EltwisePostOp("relu", 0.5, 0.0)),
        fused(ir.BinaryPostOp("add", OTHER)),
    ):
        with pytest.raises(Unlike, match=r"^step 's': post-ops: expected "):
            check_answer(asked, other, layouts=True)


def test_scratchpads_are_planned_later_and_roles_stay() -> None:
    asked = program(step("s", X, Y))
    with pytest.raises(Unlike, match=r"^step 's': scratchpad: expected -1, got 64$"):
        check_answer(asked, program(replace(asked.steps[0], scratchpad_offset=64)), layouts=True)
    roles = (ir.Operand("src1", X), ir.Operand("dst", Y))
    with pytest.raises(Unlike, match=r"^step 's': roles: expected \['src', 'dst'\], got \['src1', 'dst'\]$"):
        check_answer(asked, program(replace(asked.steps[0], operands=roles)), layouts=True)
