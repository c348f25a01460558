"""Results in place, on plain data: who may write over what, and what keeps results apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from agreeable_backend import Agreeable

from tvm_mxplan.core.description import Description
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.core.program.operands import with_operands
from tvm_mxplan.core.program.renumber import select_values
from tvm_mxplan.passes.memory.share_in_place import share_in_place

RELU = ir.Eltwise("relu", 0.0, 0.0)
CONV = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
SHAPE = (1, 8, 3, 3)
ADD = "add"


class Small(ProgramBuilder):
    """A builder of steps on one shape; the first value is an output, the second an input."""

    def __init__(self) -> None:
        super().__init__("p")
        self.out = self.port("output", "y", SHAPE, "float32")
        self.x = self.port("input", "x", SHAPE, "float32")

    def relu(self, src: int) -> int:
        return self.step("relu", RELU, SHAPE, [("src", src)])

    def binary(self, src: int, src1: int) -> int:
        return self.step("binary", ir.Binary("mul"), SHAPE, [("src", src), ("src1", src1)])

    def conv(self, src: int, *post_ops: ir.PostOp) -> int:
        weights = self.constant(np.ones((8, 8, 1, 1), "float32"))
        dst = self.step("conv", CONV, SHAPE, [("src", src), ("weights", weights)])
        self.steps[-1] = replace(self.steps[-1], post_ops=post_ops)
        return dst

    def program(self) -> ir.Program:
        program = self.finish()
        for number, value in enumerate(program.values):
            program = program.with_value(number, nbytes=4 * int(np.prod(value.shape)))  # type: ignore[arg-type]
        return program


def shared(program: ir.Program) -> ir.Program:
    return share_in_place(program, Agreeable())  # type: ignore[arg-type]


def homes(program: ir.Program) -> list[str]:
    """For each step the name of the value in whose bytes its result stands."""
    return [program.values[program.root(step.dst)].name for step in program.steps]


def test_elementwise_steps_write_over_what_they_read_last() -> None:
    b = Small()
    b.relu(b.relu(b.relu(b.x)))
    program = shared(b.program())
    assert homes(program) == ["relu0"] * 3
    assert [program.values[step.dst].alias_offset for step in program.steps] == [0, 0, 0]


def test_an_image_times_its_gates_stands_where_the_image_did() -> None:
    b = Small()
    x = b.relu(b.x)
    attrs = ir.SqueezeExcite("linear", 1.0, 0.0, "logistic", 0.0, 0.0)
    weights = b.constant(np.ones((8, 8), "float32"))
    scaled = b.step("scaled", attrs, SHAPE, [("src", x), ("weights", weights)])
    b.write_output(b.conv(scaled), b.out)
    program = b.program()
    assert homes(shared(program))[:2] == 2 * [program.values[x].name]


def test_what_was_written_over_is_kept_until_its_new_bytes_are_read_last() -> None:
    """The second relu's result has the first one's bytes, and is read again behind the third."""
    b = Small()
    second = b.relu(b.relu(b.x))
    third = b.relu(second)
    b.binary(third, second)
    assert homes(shared(b.program())) == ["relu0", "relu0", "relu2", "relu2"]


def test_views_that_stand_behind_what_is_put_in_their_place() -> None:
    """Values are put in order before the library is asked: a result has a lower number than the view."""
    b = Small()
    first = b.relu(b.x)
    last = b.relu(first)
    view = b.reshape(b.reshape(first, (72,)), SHAPE)
    program = b.program()
    steps = (program.steps[0], with_operands(program.steps[1], [view, last]))

    class Ordered(Agreeable):
        def describe(self, program: ir.Program) -> Description:
            assert all(value.alias_of < number for number, value in enumerate(program.values))
            return super().describe(program)

    program = share_in_place(replace(program, steps=steps), Ordered())  # type: ignore[arg-type]
    assert homes(program) == ["relu0", "relu0"]


def test_inputs_and_what_is_read_again_are_left_alone() -> None:
    b = Small()
    first = b.relu(b.x)
    b.relu(first)
    b.relu(first)
    assert homes(shared(b.program())) == ["relu0", "relu1", "relu0"]


def test_an_output_is_not_written_over() -> None:
    """The output, which is value 0, is read by the caller in the end."""
    b = Small()
    first = b.relu(b.x)
    b.write_output(first, b.out)
    b.relu(first)
    assert homes(shared(b.program())) == ["y", "relu1"]


def test_a_result_that_is_the_output_stays_there() -> None:
    b = Small()
    last = b.relu(b.relu(b.x))
    b.write_output(last, b.out)
    assert homes(shared(b.program())) == ["relu0", "y"]


@pytest.mark.parametrize(
    "change", [{"layout": "acdb"}, {"nbytes": 4096}, {"shape": (1, 4, 6, 3)}, {"dtype": "int32"}]
)
def test_what_is_stored_otherwise_is_not_the_same_bytes(change: dict) -> None:
    b = Small()
    second = b.relu(b.relu(b.x))
    assert homes(shared(b.program())) == ["relu0", "relu0"]
    assert homes(shared(b.program().with_value(second, **change))) == ["relu0", "relu1"]


def test_both_operands_the_same_are_read_while_they_are_written() -> None:
    for src1 in ("same", "view", "other"):
        b = Small()
        first, other = b.relu(b.x), b.conv(b.x)
        view = b.reshape(b.reshape(first, (72,)), SHAPE)
        b.binary(first, {"same": first, "view": view, "other": other}[src1])
        assert homes(shared(b.program()))[-1] == ("relu0" if src1 == "other" else "binary0")


def test_a_sum_takes_the_place_of_what_it_adds() -> None:
    b = Small()
    rest, src = b.relu(b.x), b.conv(b.x)
    post_ops = (ir.EltwisePostOp("relu", 0.0, 0.0), ir.BinaryPostOp(ADD, rest), ir.BinaryPostOp("mul", b.x))
    b.conv(src, *post_ops)
    program = shared(b.program())
    assert homes(program) == ["relu0", "conv0", "relu0"]
    assert program.steps[-1].post_ops[:2] == (post_ops[0], ir.SumPostOp(1.0))
    assert isinstance(program.steps[-1].post_ops[2], ir.BinaryPostOp)


@pytest.mark.parametrize(
    ("offset", "nbytes", "home"), [(0, 288, "relu0"), (288, 288, "conv1"), (0, 576, "conv1")]
)
def test_a_sum_takes_the_place_of_all_that_it_sees_of_what_it_adds(
    offset: int, nbytes: int, home: str
) -> None:
    """A view of all bytes is as good as what owns them; a piece is not."""
    b = Small()
    rest, src = b.relu(b.x), b.conv(b.x)
    view = b.reshape(b.reshape(rest, (72,)), SHAPE)
    b.conv(src, ir.BinaryPostOp(ADD, view))
    program = b.program().with_value(rest, nbytes=nbytes)
    program = shared(program.with_value(view, alias_offset=offset))
    assert homes(program) == ["relu0", "conv0", home]
    summed = [isinstance(post_op, ir.SumPostOp) for post_op in program.steps[-1].post_ops]
    assert summed == [home == "relu0"]


def test_only_one_sum_and_only_a_sum() -> None:
    for algorithm, kinds in ((ADD, [ir.SumPostOp, ir.BinaryPostOp]), ("mul", [ir.BinaryPostOp] * 2)):
        b = Small()
        one, two, src = b.relu(b.x), b.conv(b.x), b.conv(b.x)
        b.conv(src, ir.BinaryPostOp(algorithm, one), ir.BinaryPostOp(algorithm, two))
        program = shared(b.program())
        assert [type(post_op) for post_op in program.steps[-1].post_ops] == kinds
        assert homes(program)[-1] == ("relu0" if algorithm == ADD else "conv2")


def test_a_convolution_does_not_write_over_its_source() -> None:
    b = Small()
    src = b.relu(b.x)
    b.conv(src, ir.BinaryPostOp(ADD, src))
    assert homes(shared(b.program())) == ["relu0", "conv0"]


def test_a_view_of_what_is_read_later_keeps_its_bytes() -> None:
    for later in (False, True):
        b = Small()
        first = b.relu(b.x)
        view = b.reshape(first, (72,))
        b.relu(first)
        if later:
            b.step("relu", RELU, (72,), [("src", view)])
        assert homes(shared(b.program()))[1] == ("relu1" if later else "relu0")


def test_the_first_value_is_viewed_like_any_other() -> None:
    """Its view is read behind a step that could have written over it, and is nothing to write over itself."""
    b = Small()
    first = b.relu(b.x)
    view = b.permute(first, (0, 1, 3, 2))
    b.relu(first)
    b.relu(view)
    program = b.program()
    for number in (first, b.x):
        order = [number, *(at for at in range(len(program.values)) if at != number)]
        turned = shared(select_values(program, order))
        assert homes(turned) == ["relu0", "relu1", "relu2"]
        assert [value.name for value in turned.values if value.alias_of >= 0] == [program.values[view].name]


def test_a_step_that_would_run_otherwise_in_place_keeps_its_own_bytes() -> None:
    """Nothing else of the program changes for it."""

    class Fussy(Agreeable):
        def describe(self, program: ir.Program) -> Description:
            description = super().describe(program)
            steps = list(description.steps)
            for at, step in enumerate(program.steps):
                if step.name == "relu1" and program.values[step.dst].alias_of >= 0:
                    steps[at] = replace(steps[at], **self.answer)
            return Description(tuple(steps), description.values)

    for answer in ({"implementation": "ref:any"}, {"error": "no such thing"}):
        backend = Fussy()
        backend.answer = answer  # type: ignore[attr-defined]
        b = Small()
        b.relu(b.relu(b.relu(b.relu(b.x))))
        program = share_in_place(b.program(), backend)  # type: ignore[arg-type]
        assert homes(program) == ["relu0", "relu1", "relu1", "relu1"]


def test_shapes_with_names_are_shared_where_they_are_the_same() -> None:
    """Whatever the numbers: `n` rows stand in `n` rows, and nowhere in `m` of them."""
    b = Small()
    first = b.relu(b.x)
    second = b.relu(first)
    program = b.program()
    n, m = ((Symbol(name), *SHAPE[1:]) for name in "nm")
    symbols = (ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("m", -1, 0))
    for shape, home in ((n, first), (m, second)):
        values = [replace(value, shape=n, nbytes=-1) for value in program.values]
        values[second] = replace(values[second], shape=shape)
        named = replace(program, values=tuple(values), symbols=symbols)
        found = shared(named)
        assert homes(found)[1] == named.values[home].name
