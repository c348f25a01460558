"""Programs that break a rule are refused by the region, the object, what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Expr, Symbol
from tvm_mxplan.core.program.program_rules import ProgramError, check_program

SHAPE = (2, 6, 9, 9)
SOUND = ir.Program(
    "net",
    (
        ir.Value("x", (Symbol("n"), 6, 9, 9), "float32", "input", "abcd", 0),
        ir.Value("w", (6, 6, 3, 3), "float32", "constant", "abcd", 0),
        ir.Value("b", (6,), "float32", "constant", "a", 1),
        ir.Value("y", SHAPE, "float32", "output", "abcd", 0),
        ir.Value("t", SHAPE, "float32", "local", "abcd"),
        ir.Value("u", SHAPE, "float32", "local", "abcd", alias_of=4),
    ),
    (
        ir.Step(
            "conv",
            ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1),
            tuple(ir.Operand(role, at) for role, at in (("src", 0), ("weights", 1), ("bias", 2), ("dst", 4))),
            (ir.BinaryPostOp("add", 0), ir.EltwisePostOp("relu", 0.0, float("inf"))),
        ),
        ir.Step("pow", ir.Eltwise("pow", 1, 2.0), (ir.Operand("src", 4), ir.Operand("dst", 5))),
        ir.Step("join", ir.Concat(0), (ir.Operand("src", 5), ir.Operand("src", 5), ir.Operand("dst", 3))),
    ),
    (ir.SymbolBinding("n", 0, 0),),
)

Change = Callable[[ir.Program], ir.Program]


def value(number: int, **changes: Any) -> Change:
    return lambda program: program.with_value(number, **changes)


def step(at: int, **changes: Any) -> Change:
    def change(program: ir.Program) -> ir.Program:
        steps = list(program.steps)
        steps[at] = replace(steps[at], **changes)
        return replace(program, steps=tuple(steps))

    return change


def attrs(at: int, **changes: Any) -> Change:
    return lambda program: step(at, attrs=replace(program.steps[at].attrs, **changes))(program)


def role(at: int, name: str, number: int) -> Change:
    return lambda program: step(at, operands=(*program.steps[at].operands, ir.Operand(name, number)))(program)


def operand(at: int, name: str, number: int) -> Change:
    return lambda program: step(
        at,
        operands=tuple(replace(o, value=number) if o.role == name else o for o in program.steps[at].operands),
    )(program)


def symbols(*bindings: ir.SymbolBinding) -> Change:
    return lambda program: replace(program, symbols=bindings)


def states(*numbers: int) -> Change:
    """The input and the output as these states."""
    return lambda program: program.with_value(0, state=numbers[0]).with_value(3, state=numbers[1])


BROKEN: list[tuple[Change, str]] = [
    (value(0, shape=(1,) * 13), "value 'x': expected rank 12 at most, got 13"),
    (value(4, shape=(2, -6, 9, 9)), "value 't': expected no negative number, got -6"),
    (value(5, alias_offset=-4), "value 'u': expected no negative number, got -4"),
    (value(4, shape=(Expr("*", 2, Symbol("m")),)), "value 't': expected symbols that are bound, got m"),
    (value(5, alias_of=5), "value 'u': expected an alias of an earlier value, got 5"),
    (value(5, alias_of=-2), "value 'u': expected an alias of an earlier value, got -2"),
    (value(3, alias_of=0), "value 'y': expected an alias to be a local, got output"),
    (value(4, offset=-2), "value 't': expected -1 or more, got -1 bytes at -2"),
    (value(4, nbytes=-2), "value 't': expected -1 or more, got -2 bytes at -1"),
    (value(0, state=-2), "value 'x': expected state -1 or more, got -2"),
    (value(4, state=0), "value 't': expected state 0 to be an input or output, got a local"),
    (value(2, state=0), "value 'b': expected state 0 to be an input or output, got a constant"),
    (states(0, 0), "value 'y': expected shape, type and layout of 'x', state 0 too, got float32"),
    (value(2, index=0), "constants: expected to be numbered from 0 without gaps, got [0, 0]"),
    (value(3, index=1), "outputs: expected to be numbered from 0 without gaps, got [1]"),
    (lambda program: replace(program, arena_bytes=-2), "arena: expected -1 byte or more, got -2"),
    (symbols(ir.SymbolBinding("n", 1, 0)), "symbol 'n': expected an axis of an input, got axis 0 of input 1"),
    (symbols(ir.SymbolBinding("n", 0, 4)), "symbol 'n': expected an axis of an input, got axis 4 of input 0"),
    (symbols(ir.SymbolBinding("n", 0, -1)), "symbol 'n': expected an axis of an input"),
    (symbols(*[ir.SymbolBinding("n", 0, 0)] * 2), "symbols: expected a name for each, got n, n"),
    (operand(0, "src", 6), "convolution 'conv': expected values 0 to 5, got 6"),
    (operand(0, "src", -1), "convolution 'conv': expected values 0 to 5, got -1"),
    (step(0, post_ops=(ir.BinaryPostOp("add", 6),)), "convolution 'conv': expected values 0 to 5, got 6"),
    (operand(0, "dst", 1), "convolution 'conv': dst: expected a local or an output, got a given value"),
    (operand(1, "dst", 4), "eltwise 'pow': dst: expected a value of its own, got an earlier result"),
    (step(1, operands=(ir.Operand("src", 4),)), "eltwise 'pow': expected an operand in role dst, got none"),
    (step(2, operands=(ir.Operand("dst", 3),)), "concat 'join': expected an operand in role src, got none"),
    (role(1, "src", 4), "eltwise 'pow': src: expected one operand, got 2"),
    (role(1, "src1", 4), "eltwise 'pow': src1: expected no such role"),
    (role(2, "bias", 4), "concat 'join': bias: expected no such role"),
    (step(0, post_ops=(ir.SumPostOp(),)), "convolution 'conv': dst: expected an alias of what the sum adds"),
    (step(0, scratchpad_offset=-3), "convolution 'conv': scratchpad: expected -1 or more, got -1"),
    (attrs(0, strides=(0, 1)), "convolution 'conv': strides: expected 1 to 2147483647, got 0"),
    (attrs(0, padding=(0, 0, 2**31, 0)), "convolution 'conv': padding: expected 0 to 2147483647"),
    (attrs(0, groups=0), "convolution 'conv': groups: expected 1 to 2147483647, got 0"),
    (attrs(0, groups=True), "convolution 'conv': groups: expected int, got True"),
    (attrs(0, strides=2), "convolution 'conv': strides: expected integers, got 2"),
    (attrs(0, algorithm=3), "convolution 'conv': algorithm: expected str, got 3"),
    (attrs(1, alpha="x"), "eltwise 'pow': alpha: expected float, got 'x'"),
    (attrs(2, axis=-1), "concat 'join': axis: expected 0 to 2147483647, got -1"),
]


def test_each_of_several_numbers_is_whole() -> None:
    with pytest.raises(ProgramError, match=r"strides: expected integers, got \(1, 1.5\)"):
        check_program(attrs(0, strides=(1, 1.5))(SOUND))


def test_a_sound_program_is_taken() -> None:
    check_program(SOUND)
    assert codec.decode(codec.encode(SOUND)) == SOUND


def test_states_of_their_own_may_differ() -> None:
    program = states(0, 1)(SOUND)
    check_program(program)
    assert codec.decode(codec.encode(program)) == program
    assert program.states() == [0, 3]


def test_one_output_changes_a_state() -> None:
    weight = ir.Value("w", (4, 3), "float32", "input", "ab", 0, state=0)
    outputs = [replace(weight, name=name, kind="output", index=at) for at, name in enumerate("gh")]
    check_program(ir.Program("net", (weight, outputs[0]), ()))
    with pytest.raises(ProgramError, match="value 'h': expected one output to change state 0, got another"):
        check_program(ir.Program("net", (weight, *outputs), ()))


@pytest.mark.parametrize("change", [{"shape": (3, 4)}, {"dtype": "bfloat16"}, {"layout": "ba"}])
def test_what_changes_a_state_stands_as_it_does(change: dict[str, Any]) -> None:
    weight = ir.Value("w", (4, 3), "float32", "input", "ab", 0, state=0)
    gradient = replace(weight, name="g", kind="output")
    check_program(ir.Program("net", (weight, gradient), ()))
    with pytest.raises(ProgramError, match="value 'g': expected shape, type and layout of 'w', state 0 too"):
        check_program(ir.Program("net", (weight, replace(gradient, **change)), ()))


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_every_rule_is_held(change: Change, message: str) -> None:
    with pytest.raises(ProgramError) as error:
        check_program(change(SOUND))
    assert str(error.value).startswith(f"region 'net': {message}")


@pytest.mark.parametrize(("change", "message"), [row for row in BROKEN if "are bound" not in row[1]])
def test_decoding_holds_the_rules(change: Change, message: str) -> None:
    """A name without a binding cannot be written."""
    data = codec.encode(change(SOUND))
    with pytest.raises(codec.DecodeError):
        codec.decode(data)


@pytest.mark.parametrize(("field", "least"), [("kernel", 1), ("stride", 1), ("padding", 0)])
def test_depthwise_post_ops_count_something(field: str, least: int) -> None:
    post_op = replace(ir.DepthwisePostOp(3, 1, 1), **{field: least - 1})
    with pytest.raises(ProgramError, match=f"{field}: expected {least} to 2147483647, got {least - 1}"):
        check_program(step(0, post_ops=(post_op,))(SOUND))


LEASTS = {"strides": 1, "dilation": 1, "padding": 0}
ATTRIBUTES: list[tuple[ir.Attributes, dict[str, int]]] = [
    (ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1), LEASTS | {"groups": 1}),
    (ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), LEASTS | {"kernel": 1}),
    (ir.Slice((1, 1, 1, 1)), {"begin": 0}),
    (ir.Concat(1), {"axis": 0}),
]


@pytest.mark.parametrize("attributes", [case[0] for case in ATTRIBUTES], ids=lambda one: type(one).__name__)
def test_numbers_that_count_something_have_a_least(attributes: ir.Attributes) -> None:
    """Each may be that, and 2147483647 at the most."""
    leasts = next(leasts for one, leasts in ATTRIBUTES if one is attributes)
    roles = ("src", "weights", "dst") if isinstance(attributes, ir.Convolution) else ("src", "dst")
    values = tuple(
        ir.Value(role, SHAPE, "float32", kind, "abcd", index)
        for role, kind, index in (("src", "input", 0), ("weights", "constant", 0), ("dst", "output", 0))
        if role in roles
    )
    operands = tuple(ir.Operand(role, at) for at, role in enumerate(roles))

    def check(name: str, number: int) -> None:
        old = getattr(attributes, name)
        new = (number,) * len(old) if isinstance(old, tuple) else number
        changed = replace(attributes, **{name: new})  # type: ignore[type-var]
        check_program(ir.Program("p", values, (ir.Step("s", changed, operands),)))

    for name, least in leasts.items():
        check(name, least)
        check(name, 2**31 - 1)
        for wrong in (least - 1, 2**31):
            with pytest.raises(ProgramError, match=rf"{name}: expected {least} to 2147483647, got {wrong}$"):
                check(name, wrong)
