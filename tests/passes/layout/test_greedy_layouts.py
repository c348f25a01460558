"""The policies that decide step by step: what each picks, and that ``any`` is the library's own pick."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import NOTHING_KNOWN, Description, StepInfo
from tvm_mxplan.core.layout.layout import channels_blocked
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.passes.layout import greedy
from tvm_mxplan.passes.layout.greedy import choose_greedily
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.layout.queries import StepQueries

BLOCKED = channels_blocked(4, OneDNN().block)


@pytest.fixture
def program() -> ir.Program:
    """conv 3 -> 64, max pooling, conv 64 -> 64 + a tensor of its shape."""
    b = ProgramBuilder("greedy")
    x = b.port("input", "x", (1, 3, 32, 32), "float32")
    other = b.port("input", "other", (1, 64, 16, 16), "float32")
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    first = b.constant(np.zeros((64, 3, 3, 3), np.float32))
    second = b.constant(np.zeros((64, 64, 3, 3), np.float32))
    y = b.step("conv", attrs, (1, 64, 32, 32), [("src", x), ("weights", first)])
    pooling = ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1))
    y = b.step("pool", pooling, (1, 64, 16, 16), [("src", y)])
    y = b.step("conv", attrs, (1, 64, 16, 16), [("src", y), ("weights", second)])
    step = b.steps[-1]
    b.steps[-1] = ir.Step(step.name, step.attrs, step.operands, (ir.BinaryPostOp("add", other),))
    b.write_output(y, b.port("output", "y", (1, 64, 16, 16), "float32"))
    return b.finish()


def destinations(program: ir.Program, policy: str) -> list[str]:
    queries = StepQueries(OneDNN())
    choices = choose_greedily(program, queries, policy, OneDNN().layout_rules, {})  # type: ignore[arg-type]
    roles = [[operand.role for operand in step.operands].index("dst") for step in program.steps]
    return [layouts[at] for layouts, at in zip(choices, roles, strict=True)]


class Refusing:
    """Questions that are all answered with an error, two of them with the same."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, *_: object) -> StepInfo:
        self.asked += 1
        return replace(NOTHING_KNOWN, error="no memory" if self.asked > 1 else "no kernel")


def test_a_step_that_no_layout_fits_is_named_with_the_reasons(program) -> None:
    options = [("abcd",), ("acdb",), ("aBcd8b",)]
    with pytest.raises(UnsupportedError, match=f"^{program.steps[0].name}: no kernel; no memory$"):
        greedy._first_fast(program, program.steps[0], options, Refusing())  # type: ignore[arg-type]


def test_where_reference_code_is_all_there_is_the_first_layout_has_it(program) -> None:
    class Slow:
        """No kernel for the first, reference code for the others, a kernel for the last if there is one."""

        def __init__(self, *implementations: str) -> None:
            self.left = list(implementations)

        def ask(self, *_: object) -> StepInfo:
            name = self.left.pop(0)
            return replace(
                NOTHING_KNOWN, error="" if name else "no kernel", is_reference=name.startswith("ref")
            )

    options = [("abcd",), ("acdb",), ("aBcd8b",)]
    for names, expected in ((("", "ref:any", "ref:any"), 1), (("", "ref:any", "jit:avx2"), 2)):
        chosen = greedy._first_fast(program, program.steps[0], options, Slow(*names))  # type: ignore[arg-type]
        assert chosen == options[expected]


@pytest.mark.parametrize(
    "policy, expected", [("channels_last", "acdb"), ("plain", "abcd"), ("naive", "acdb")]
)
def test_one_layout_wherever_it_is_possible(program: ir.Program, policy: str, expected: str) -> None:
    """The last convolution has a post-op, for which there is no fast plain kernel."""
    assert destinations(program, policy)[:2] == [expected] * 2


def test_blocked_but_for_what_has_too_few_channels(program: ir.Program) -> None:
    assert destinations(program, "blocked")[1:] == [BLOCKED, BLOCKED]


def test_any_is_what_the_library_picks_for_each_step_alone(program: ir.Program) -> None:
    """Convolutions as oneDNN answers, the pooling as its source is, post-ops as the destination is."""
    backend = OneDNN()
    picks = []
    for at in (0, 2):
        step = ir.Step("", program.steps[at].attrs, program.steps[at].operands)
        numbers = [operand.value for operand in step.operands]
        values = [
            ir.Value("", program.values[n].shape, "float32", kind, layout, index)  # type: ignore[arg-type]
            for n, (kind, layout, index) in zip(
                numbers, [("input", "any", 0), ("constant", "abcd", 0), ("local", "any", -1)], strict=True
            )
        ]
        operands = tuple(ir.Operand(o.role, i) for i, o in enumerate(step.operands))
        alone = ir.Program("", tuple(values), (ir.Step("", step.attrs, operands),))
        picks.append(backend.describe(alone).values[2].layout)
    assert destinations(program, "any") == [picks[0], picks[0], picks[1]]
    after = infer_layouts(program, backend, "any").program
    last = [step for step in after.steps if step.post_ops]
    layouts = {after.values[last[0].dst].layout, after.values[last[0].post_ops[0].value].layout}  # type: ignore[union-attr]
    assert layouts == {picks[1]}


def test_the_library_picks_without_what_post_ops_read(program: ir.Program) -> None:
    """Its pick is for the step alone: what it has no say on, as the tensor that is added, is left out."""
    picked: list[ir.Step] = []

    class Picking(OneDNN):
        def describe(self, asked: ir.Program) -> Description:
            if any(value.layout == "any" for value in asked.values):
                picked.append(asked.steps[0])
            return super().describe(asked)

    choose_greedily(program, StepQueries(Picking()), "any", OneDNN().layout_rules, {})
    assert [step.kind for step in picked] == ["convolution", "convolution"]
    assert [step.post_ops for step in picked] == [(), ()]


def test_forced_steps_are_not_decided(program: ir.Program) -> None:
    forced = {program.steps[2].name: ("abcd", "abcd", "abcd", "abcd")}
    choices = choose_greedily(program, StepQueries(OneDNN()), "channels_last", OneDNN().layout_rules, forced)
    assert choices[2] == forced[program.steps[2].name]


def test_a_source_is_known_by_its_role(program: ir.Program) -> None:
    """Libraries know steps by the order of operands, which may begin with the result."""
    conv, pool, last = program.steps
    turned = replace(pool, operands=(pool.operands[1], pool.operands[0]))
    assert [operand.role for operand in turned.operands] == ["dst", "src"]
    queries, rules = StepQueries(OneDNN()), OneDNN().layout_rules
    for policy in ("any", "channels_last", "blocked"):
        plain = choose_greedily(program, queries, policy, rules, {})  # type: ignore[arg-type]
        other = replace(program, steps=(conv, turned, last))
        assert choose_greedily(other, queries, policy, rules, {})[1] == plain[1][::-1]  # type: ignore[arg-type]
