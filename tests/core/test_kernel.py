"""Kernels: equal where the same code computes the same, whatever it is called and wherever it stands."""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.core.kernel import Kernel, alone, kernels_of
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.core.program.specialize import instances

IMAGE = (1, 17, 5, 7)
ATTRS = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)


def two_convolutions() -> ir.Program:
    """Two equal steps; the second adds to what it overwrites, and stands elsewhere under another name."""
    values = (
        ir.Value("x", IMAGE, "float32", "input", "acdb", 0),
        ir.Value("w", (17, 17, 3, 3), "float32", "constant", "abcd", 0),
        ir.Value("v", (17, 17, 3, 3), "float32", "constant", "abcd", 1),
        ir.Value("a", IMAGE, "float32", "local", "acdb", offset=0, nbytes=2380),
        ir.Value("b", IMAGE, "float32", "local", "acdb", offset=4096, nbytes=2380),
        ir.Value("c", IMAGE, "float32", "local", "acdb", alias_of=3),
    )

    def step(name: str, operands: tuple[int, int, int], post_ops: tuple[ir.PostOp, ...] = ()) -> ir.Step:
        roles = zip(("src", "weights", "dst"), operands, strict=True)
        named = tuple(ir.Operand(role, value) for role, value in roles)
        return ir.Step(name, ATTRS, named, post_ops, "brg", 64, 128)

    steps = (step("one", (0, 1, 3)), step("two", (3, 2, 4)), step("three", (4, 1, 5), (ir.SumPostOp(),)))
    return ir.Program("region", values, steps, (), 8192)


def test_equal_steps_are_one_kernel() -> None:
    (first, one), (second, two), (_, three) = kernels_of(two_convolutions())
    assert (first, second) == ("one", "two")
    assert one == two and one.digest == two.digest
    assert len(one.digest) == 32 and int(one.digest, 16) >= 0
    assert three != one and three.digest != one.digest
    assert str(one) == "convolution 1x17x5x7 acdb -> 1x17x5x7 acdb"
    assert str(three) == "convolution 1x17x5x7 acdb -> 1x17x5x7 acdb + sum"
    added = replace(
        three.step,
        post_ops=(ir.EltwisePostOp("tanh", 0.0, 0.0), ir.BinaryPostOp("mul", 0), ir.DepthwisePostOp(3, 2, 1)),
    )
    text = str(Kernel(replace(three.program, steps=(added,))))
    assert text.endswith(" acdb + tanh + binary mul + depthwise 3x3")
    assert one.nbytes == 4 * (2 * 595 + 17 * 17 * 9)


def test_a_step_alone_stands_nowhere() -> None:
    """Offsets, bytes and what shares them are the plan's, and left out."""
    program = two_convolutions()
    assert {step.scratchpad_offset for step in program.steps} == {64}
    for step in program.steps:
        single, _ = alone(program, step)
        (only,) = single.steps
        assert (only.scratchpad_offset, only.scratchpad_bytes) == (-1, -1)
        places = {(v.alias_of, v.alias_offset, v.offset, v.nbytes) for v in single.values}
        assert places == {(-1, 0, -1, -1)}
        assert [value.index for value in single.values] == [0, 0, 0]
        assert single.arena_bytes == -1


def test_what_decides_about_code_makes_another_kernel() -> None:
    program = two_convolutions()
    (_, kernel), *_ = kernels_of(program)
    step = program.steps[0]
    others = [
        program.with_value(0, layout="aBcd16b"),
        program.with_value(1, kind="input", index=1),
        program.with_value(0, shape=(2, *IMAGE[1:])),
        replace(program, steps=(replace(step, implementation="jit"),)),
        replace(program, steps=(replace(step, attrs=replace(ATTRS, padding=(0, 1, 1, 1))),)),
        replace(program, steps=(replace(step, post_ops=(ir.EltwisePostOp("relu", 0.0, 0.0),)),)),
        replace(program, steps=(replace(step, refused=("jit",)),)),
    ]
    digests = {next(iter(kernels_of(other)))[1].digest for other in others}
    assert len(digests | {kernel.digest}) == len(others) + 1


def test_nothing_to_run_is_no_kernel() -> None:
    program = two_convolutions()
    steps = tuple(replace(step, implementation="" if step.name == "two" else "brg") for step in program.steps)
    assert [name for name, _ in kernels_of(replace(program, steps=steps))] == ["one", "three"]


def test_operands_keep_their_order() -> None:
    """Libraries know steps by it: a bias that was fused stands behind the result."""
    program = two_convolutions()
    step = program.steps[0]
    turned = replace(step, operands=(step.operands[2], *step.operands[:2]))
    single, order = alone(program, turned)
    assert [operand.role for operand in single.steps[0].operands] == ["dst", "src", "weights"]
    assert [value.kind for value in single.values] == ["input", "constant", "output"]
    assert order == [0, 1] and single.steps[0].dst == 2


def test_a_step_over_its_own_source() -> None:
    values = (ir.Value("x", IMAGE, "float32", "local", "acdb"),)
    operands = (ir.Operand("src", 0), ir.Operand("dst", 0))
    step = ir.Step("relu", ir.Eltwise("relu", 0.0, 0.0), operands, (), "jit")
    ((_, kernel),) = kernels_of(ir.Program("p", values, (step,)))
    assert isinstance(kernel, Kernel)
    assert [value.kind for value in kernel.program.values] == ["input", "output"]
    assert [operand.value for operand in kernel.step.operands] == [0, 1]


def test_instances_of_symbolic_programs() -> None:
    program = two_convolutions()
    assert list(instances(program)) == [program]
    symbolic = replace(
        program.with_value(0, shape=(Symbol("n"), 17, Symbol("h"), 7)),
        symbols=(ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("h", 0, 2)),
    )
    assert [one.values[0].shape for one in instances(symbolic)] == [(4, 17, 64, 7), (1, 17, 64, 7)]
