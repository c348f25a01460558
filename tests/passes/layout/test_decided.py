"""Decided programs answer the question that was asked, or are told from those that do."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from random_programs import RandomProgram

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.core.policies import Policy
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.decided import Unlike, check_answer
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts

SEEDS = range(12)
POLICIES: tuple[Policy, ...] = ("cost", "blocked", "channels_last", "naive")


def answered(seed: int) -> tuple[ir.Program, ir.Program]:
    """A question and the layouts that were chosen for it, as they come from a file."""
    case = RandomProgram(seed)
    asked = fuse(case.program, case.builder.constants).program
    decided = infer_layouts(asked, OneDNN(), POLICIES[seed % len(POLICIES)]).program
    return asked, codec.decode(codec.encode(decided))


def with_step(program: ir.Program, at: int, step: ir.Step) -> ir.Program:
    return replace(program, steps=(*program.steps[:at], step, *program.steps[at + 1 :]))


def with_operand(step: ir.Step, at: int, value: int) -> ir.Step:
    operands = list(step.operands)
    operands[at] = replace(operands[at], value=value)
    return replace(step, operands=tuple(operands))


def other_operands(program: ir.Program) -> Iterator[ir.Program]:
    """Steps, inserted reorders among them, that read another value of the same shape and layout."""
    for at, step in enumerate(program.steps):
        for number, operand in enumerate(step.operands):
            value = program.values[operand.value]
            for other, candidate in enumerate(program.values):
                same = (candidate.shape, candidate.layout) == (value.shape, value.layout)
                if operand.role != "dst" and same and other != operand.value:
                    yield with_step(program, at, with_operand(step, number, other))


def other_attributes(program: ir.Program) -> Iterator[ir.Program]:
    for at, step in enumerate(program.steps):
        match step.attrs:
            case ir.Eltwise():
                yield with_step(program, at, replace(step, attrs=ir.Eltwise("abs", 0.0, 0.0)))
                yield with_step(program, at, replace(step, attrs=replace(step.attrs, alpha=-0.0)))
                yield with_step(program, at, replace(step, attrs=replace(step.attrs, beta=float("nan"))))
            case ir.Binary():
                yield with_step(program, at, replace(step, attrs=ir.Binary("sub")))
            case ir.Slice(begin):
                later = ir.Slice((begin[0], begin[1] + 1, *begin[2:]))
                yield with_step(program, at, replace(step, attrs=later))
            case ir.Convolution():
                yield with_step(program, at, replace(step, attrs=replace(step.attrs, dilation=(2, 2))))
                winograd = replace(step.attrs, algorithm="winograd_f2")
                yield with_step(program, at, replace(step, attrs=winograd))
        more = (*step.post_ops, ir.EltwisePostOp("abs", 0.0, 0.0))
        yield with_step(program, at, replace(step, post_ops=more))
        for number, post_op in enumerate(step.post_ops):
            rest = step.post_ops[:number] + step.post_ops[number + 1 :]
            yield with_step(program, at, replace(step, post_ops=rest))
            if isinstance(post_op, ir.BinaryPostOp):
                changed = (*rest, replace(post_op, algorithm="max"))
                yield with_step(program, at, replace(step, post_ops=changed))


def other_steps(program: ir.Program) -> Iterator[ir.Program]:
    for at, step in enumerate(program.steps):
        yield replace(program, steps=program.steps[:at] + program.steps[at + 1 :])
        yield with_step(program, at, replace(step, name=step.name + "'"))
        if not isinstance(step.attrs, ir.Reorder):
            yield replace(program, steps=(*program.steps[: at + 1], step, *program.steps[at + 1 :]))


def other_ports(program: ir.Program) -> Iterator[ir.Program]:
    for kind in ("input", "output", "constant"):
        for first, second in zip(program.of_kind(kind), program.of_kind(kind)[1:], strict=False):
            swapped = program.with_value(first, index=program.values[second].index)
            yield swapped.with_value(second, index=program.values[first].index)
    for number, value in enumerate(program.values):
        if value.alias_of >= 0:
            yield program.with_value(number, alias_offset=4)


CHANGES = (other_operands, other_attributes, other_steps, other_ports)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_decided_is_an_answer(seed: int) -> None:
    asked, decided = answered(seed)
    check_answer(asked, decided, layouts=True)
    check_answer(asked, asked, layouts=True)
    check_answer(asked, asked, layouts=False)


@pytest.mark.parametrize("change", CHANGES)
def test_what_computes_something_else_is_none(change: Callable[[ir.Program], Iterator[ir.Program]]) -> None:
    """But for a reorder's name, and a result that nobody reads or that is the same by another way."""
    refused = taken = 0
    for seed in SEEDS:
        asked, decided = answered(seed)
        changed = list(change(decided))
        for other in random.Random(seed).sample(changed, min(30, len(changed))):
            try:
                check_answer(asked, codec.decode(codec.encode(other)), layouts=True)
                taken += 1
                assert computes_the_same(asked, decided, other)
            except (Unlike, codec.DecodeError):
                refused += 1
    assert refused > 40
    assert refused > 4 * taken


def computes_the_same(asked: ir.Program, decided: ir.Program, other: ir.Program) -> bool:
    """By the numbers: both programs on the same random inputs."""
    import numpy as np
    import tvm_ffi

    from tvm_mxplan.byoc.onednn import library

    def run(program: ir.Program) -> list[np.ndarray]:
        numbers = np.random.default_rng(0)

        def arrays(kind: ir.ValueKind) -> list[np.ndarray]:
            shapes = [[int(str(dim)) for dim in program.values[v].shape] for v in program.of_kind(kind)]
            return [numbers.standard_normal(shape, np.float32) for shape in shapes]

        inputs, constants, outputs = arrays("input"), arrays("constant"), arrays("output")
        module = library.create_module(program.name, program, constants)
        module[program.name](*(tvm_ffi.from_dlpack(array) for array in (*inputs, *outputs)))
        return outputs

    try:
        results = run(other)
    except ValueError:  # the runtime's rules refuse what no step reads, say
        return True
    return all(np.allclose(a, b, atol=1e-4) for a, b in zip(run(decided), results, strict=True))


def test_the_step_that_is_missing_is_named() -> None:
    """The first two are there; where the third should be stands another one, or one too many."""
    relu = ir.Eltwise("relu", 0.0, 0.0)
    image = (1, 4, 2, 2)
    values = [ir.Value("x", image, "float32", "input", "abcd", 0)]
    values += [ir.Value(name, image, "float32", "local", "abcd") for name in "abcd"]

    def step(name: str, src: int, attrs: ir.Attributes = relu) -> ir.Step:
        return ir.Step(name, attrs, (ir.Operand("src", src), ir.Operand("dst", src + 1)))

    asked = ir.Program(
        "r", tuple(values), tuple(step(name, at) for at, name in enumerate(("s0", "s1", "s2")))
    )
    with pytest.raises(
        Unlike, match=r"^step 'other': expected step 's2' or a reorder, got one of kind eltwise$"
    ):
        check_answer(asked, with_step(asked, 2, step("other", 2)), layouts=True)
    more = replace(asked, steps=(*asked.steps, step("s3", 3)))
    with pytest.raises(Unlike, match=r"^step 's3': expected reorders alone, got one of kind eltwise$"):
        check_answer(asked, more, layouts=True)


def test_a_sum_is_into_what_the_value_that_it_shares_holds() -> None:
    """Also where that is the program's first one: two results in each other's places change what is added."""
    relu, image = ir.Eltwise("relu", 0.0, 0.0), (1, 4, 2, 2)
    values = (
        ir.Value("a", image, "float32", "local", "abcd"),
        ir.Value("b", image, "float32", "local", "abcd"),
        ir.Value("x", image, "float32", "input", "abcd", 0),
        ir.Value("y", image, "float32", "local", "abcd", alias_of=0),
        ir.Value("z", image, "float32", "output", "abcd", 0),
    )

    def step(name: str, src: int, dst: int, attrs: ir.Attributes = relu) -> ir.Step:
        return ir.Step(name, attrs, (ir.Operand("src", src), ir.Operand("dst", dst)))

    added = replace(step("sum", 2, 3), post_ops=(ir.SumPostOp(),))
    asked = ir.Program(
        "r", values, (step("s", 2, 0), step("t", 2, 1, ir.Eltwise("abs", 0.0, 0.0)), added, step("out", 3, 4))
    )
    check_answer(asked, asked, layouts=True)
    exchanged = (with_operand(asked.steps[0], 1, 1), with_operand(asked.steps[1], 1, 0))
    crossed = replace(asked, steps=(*exchanged, *asked.steps[2:]))
    with pytest.raises(Unlike, match=r"^step 'sum': post-ops: expected .* got "):
        check_answer(asked, crossed, layouts=True)


@pytest.mark.parametrize("halves", [False, True])
def test_each_place_holds_what_was_asked_for(halves: bool) -> None:
    """Two steps, each into the other's place: into an output, or into the halves of one."""
    image, half = (1, 4, 2, 2), (1, 2, 2, 2)
    shape = half if halves else image
    values = (
        ir.Value("y", image, "float32", "output", "abcd", 0),
        ir.Value("x", shape, "float32", "input", "abcd", 0),
        ir.Value("first", shape, "float32", "local", "abcd", alias_of=0),
        ir.Value("second", shape, "float32", "local", "abcd", alias_of=0 if halves else -1),
    )
    values = (*values[:3], replace(values[3], alias_offset=32 if halves else 0))

    def step(name: str, dst: int) -> ir.Step:
        operands = (ir.Operand("src", 1), ir.Operand("dst", dst))
        return ir.Step(name, ir.Eltwise("relu" if name == "s" else "abs", 0.0, 0.0), operands)

    asked = ir.Program("r", values, (step("s", 2), step("t", 3)))
    check_answer(asked, asked, layouts=True)
    with pytest.raises(Unlike, match=r"^output 'y': expected .* got "):
        check_answer(asked, replace(asked, steps=(step("s", 3), step("t", 2))), layouts=True)


@pytest.mark.parametrize("change", [{"shape": (1, 4, 4, 1)}, {"dtype": "bfloat16"}])
def test_results_keep_their_shapes_and_types(change: dict[str, Any]) -> None:
    relu, image = ir.Eltwise("relu", 0.0, 0.0), (1, 4, 2, 2)
    values = (
        ir.Value("x", image, "float32", "input", "abcd", 0),
        ir.Value("a", image, "float32", "local", "abcd"),
        ir.Value("y", image, "float32", "output", "abcd", 0),
    )
    steps = tuple(
        ir.Step(f"s{at}", relu, (ir.Operand("src", at), ir.Operand("dst", at + 1))) for at in range(2)
    )
    asked = ir.Program("r", values, steps)
    check_answer(asked, asked.with_value(1, layout="acdb"), layouts=True)
    with pytest.raises(Unlike, match=r"^step 's0': results: expected "):
        check_answer(asked, asked.with_value(1, **change), layouts=True)


def test_long_differences_are_cut() -> None:
    """Both sides are told, at most some hundred letters of each."""
    bindings = tuple(ir.SymbolBinding(f"symbol{at}", 0, at) for at in range(100))
    asked = ir.Program("r", (), ())
    with pytest.raises(Unlike, match=r"^symbols: expected \(\), got \(SymbolBinding\(.* \.\.\.$") as told:
        check_answer(asked, replace(asked, symbols=bindings), layouts=True)
    assert 300 < len(str(told.value)) < 400
    with pytest.raises(Unlike, match=r"got \(SymbolBinding\([^()]*\),\)$"):
        check_answer(asked, replace(asked, symbols=bindings[:1]), layouts=True)


@pytest.mark.parametrize("kind", [ir.Convolution, ir.Deconvolution])
def test_algorithms_may_change_and_nothing_else(kind) -> None:
    attrs = kind((1, 1), (1, 1, 1, 1), (1, 1), 1)
    shape = (1, 16, 8, 8)
    values = (
        ir.Value("x", shape, "float32", "input", "abcd", 0),
        ir.Value("w", (16, 16, 3, 3), "float32", "constant", "abcd", 0),
        ir.Value("y", shape, "float32", "output", "abcd", 0),
    )
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    asked = ir.Program("r", values, (ir.Step("c", attrs, operands),))
    winograd = replace(attrs, algorithm="winograd_f4")
    check_answer(asked, with_step(asked, 0, replace(asked.steps[0], attrs=winograd)), layouts=False)
    for wrong in (
        with_step(asked, 0, replace(asked.steps[0], attrs=replace(attrs, groups=2))),
        with_step(asked, 0, replace(asked.steps[0], post_ops=(ir.EltwisePostOp("relu", 0.0, 0.0),))),
        with_step(asked, 0, replace(asked.steps[0], implementation="jit")),
        asked.with_value(1, layout="abdc"),
        replace(asked, steps=()),
        replace(asked, arena_bytes=4096),
    ):
        with pytest.raises(Unlike, match=r"expected .*, got"):
            check_answer(asked, wrong, layouts=False)
    with pytest.raises(Unlike, match=r"^step 'c': implementation: expected '', got 'jit'$"):
        check_answer(asked, with_step(asked, 0, replace(asked.steps[0], implementation="jit")), layouts=False)


def test_the_preferred_implementation_may_change_with_the_layouts() -> None:
    attrs, shape = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1), (1, 16, 8, 8)
    values = (
        ir.Value("x", shape, "float32", "input", "abcd", 0),
        ir.Value("w", (16, 16, 1, 1), "float32", "constant", "abcd", 0),
        ir.Value("y", shape, "float32", "output", "abcd", 0),
    )
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    asked = ir.Program("r", values, (ir.Step("c", attrs, operands),))
    other = ir.Step("c", replace(attrs, preferred="jit"), operands)
    check_answer(asked, with_step(asked, 0, other), layouts=True)
    check_answer(asked, with_step(asked, 0, other), layouts=False)
    with pytest.raises(Unlike, match=r"^step 'c': attributes"):
        wrong = replace(other, attrs=replace(attrs, preferred="jit", algorithm="winograd_f4"))
        check_answer(asked, with_step(asked, 0, wrong), layouts=True)


def chain_of_two() -> ir.Program:
    """An input and a constant that are added, and a function of that."""
    image = (1, 4, 2, 2)
    values = (
        ir.Value("x", image, "float32", "input", "abcd", 0),
        ir.Value("c", image, "float32", "constant", "abcd", 0),
        ir.Value("a", image, "float32", "local", "abcd"),
        ir.Value("y", image, "float32", "output", "abcd", 0),
    )
    added = ir.Step("s0", ir.Binary("add"), tuple(map(ir.Operand, ("src", "src1", "dst"), (0, 1, 2))))
    relu = ir.Step("s1", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 2), ir.Operand("dst", 3)))
    return ir.Program("r", values, (added, relu))


@pytest.mark.parametrize(
    ("number", "kind", "change"),
    [
        (0, "input", {"name": "z"}),
        (0, "input", {"layout": "acdb"}),
        (1, "constant", {"dtype": "bfloat16"}),
        (1, "constant", {"layout": "acdb"}),
        (3, "output", {"name": "z"}),
        (3, "output", {"layout": "acdb"}),
    ],
)
def test_what_crosses_the_border_is_as_it_was(number: int, kind: str, change: dict[str, Any]) -> None:
    asked = chain_of_two()
    check_answer(asked, asked.with_value(number, nbytes=4096), layouts=True)
    with pytest.raises(Unlike, match=f"^{kind}s: expected "):
        check_answer(asked, asked.with_value(number, **change), layouts=True)


def test_the_arena_is_planned_later() -> None:
    asked = chain_of_two()
    with pytest.raises(Unlike, match=r"^arena: expected -?\d+, got 4096$"):
        check_answer(asked, replace(asked, arena_bytes=4096), layouts=True)


@pytest.mark.parametrize("extra", [0, 1])
def test_texts_of_three_hundred_letters_are_told_whole(extra: int) -> None:
    from tvm_mxplan.core.program.decided import _short

    text = "x" * (298 + extra)  # and two quotation marks
    assert _short(text) == (repr(text) if not extra else "'" + "x" * 299 + " ...")


def test_a_whole_is_made_of_its_pieces_in_their_places() -> None:
    image, half = (1, 4, 2, 2), (1, 2, 2, 2)
    values = (
        ir.Value("x", half, "float32", "input", "abcd", 0),
        ir.Value("whole", image, "float32", "local", "abcd"),
        ir.Value("first", half, "float32", "local", "abcd", alias_of=1),
        ir.Value("second", half, "float32", "local", "abcd", alias_of=1, alias_offset=32),
        ir.Value("y", image, "float32", "output", "abcd", 0),
    )

    def step(name: str, src: int, dst: int) -> ir.Step:
        attrs = ir.Eltwise({"s": "relu", "t": "abs"}.get(name, "exp"), 0.0, 0.0)
        return ir.Step(name, attrs, (ir.Operand("src", src), ir.Operand("dst", dst)))

    asked = ir.Program("r", values, (step("s", 0, 2), step("t", 0, 3), step("read", 1, 4)))
    check_answer(asked, asked, layouts=True)
    crossed = replace(asked, steps=(step("s", 0, 3), step("t", 0, 2), asked.steps[2]))
    with pytest.raises(Unlike, match=r"^step 'read': operands: expected "):
        check_answer(asked, crossed, layouts=True)
    unwritten = replace(asked, steps=asked.steps[2:])
    with pytest.raises(Unlike, match=r"^value 'whole': expected to be written before it is read"):
        check_answer(unwritten, unwritten, layouts=True)


@pytest.mark.parametrize(
    ("shape", "layout", "same"),
    [
        ((2, 4, 3, 5), "acbd", False),
        ((2, 4, 3, 5), "acdb", False),
        ((2, 1, 3, 5), "acbd", True),  # an extent of 1 stands anywhere
        ((1, 4, 3, 5), "bacd", True),
    ],
)
def test_views_in_another_order_see_something_else(shape: tuple[int, ...], layout: str, same: bool) -> None:
    flat = (math.prod(shape),)
    values = (
        ir.Value("x", flat, "float32", "input", "a", 0),
        ir.Value("seen", shape, "float32", "local", "abcd", alias_of=0),
        ir.Value("y", shape, "float32", "output", "abcd", 0),
    )
    relu = ir.Step("s", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 1), ir.Operand("dst", 2)))
    asked = ir.Program("r", values, (relu,))
    other = asked.with_value(1, layout=layout)
    for question, answer in ((asked, other), (other, asked)):
        if same:
            check_answer(question, answer, layouts=True)
        else:
            with pytest.raises(Unlike, match=r"^step 's': operands: expected "):
                check_answer(question, answer, layouts=True)


@pytest.mark.parametrize("layouts", [False, True])
def test_names_of_programs_may_change_and_numbers_of_steps_not(layouts: bool) -> None:
    program = chain_of_two()
    unread = with_operand(replace(program.steps[1], name="s2"), 1, 4)
    asked = replace(program, values=(*program.values, program.values[2]), steps=(*program.steps, unread))
    check_answer(asked, replace(asked, name="other"), layouts=layouts)
    with pytest.raises(Unlike, match=r"^steps: expected 3, got 2$"):
        check_answer(asked, replace(asked, steps=program.steps), layouts=layouts)
