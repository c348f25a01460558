"""A step prefers one of a library's implementations, by costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from costs_by_hand import MODEL, model

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import Description, StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.passes.costs.model import ModelCost
from tvm_mxplan.passes.layout.candidates import Layouts
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.layout.queries import StepQueries, single_step_program

LAST: Layouts = ("acdb", "abcde", "acdb")


def depthwise(width: int) -> ir.Program:
    image = (1, 64, width, width)
    values = (
        ir.Value("x", image, "float32", "input", "abcd", 0),
        ir.Value("w", (64, 1, 1, 3, 3), "float32", "constant", "abcde", 0),
        ir.Value("y", image, "float32", "output", "abcd", 0),
    )
    operands = tuple(ir.Operand(role, at) for at, role in enumerate(("src", "weights", "dst")))
    step = ir.Step("layer", ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 64), operands)
    return ir.Program("depthwise", values, (step,))


@dataclass(frozen=True)
class Favouring(ModelCost):
    """Costs by which the implementation of a name takes ``share`` of the others' time."""

    name: str = ""
    share: float = 1.0

    def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
        assert isinstance(step.attrs, ir.Convolution)
        return 100.0 * (self.share if step.attrs.preferred == self.name else 1.0)


def favouring(name: str, share: float) -> Favouring:
    return Favouring(OneDNN(), name=name, share=share)


@pytest.mark.parametrize("share, taken", [(0.9, True), (0.98, False), (1.1, False)])
def test_an_alternative_has_to_gain_more_than_the_margin(share: float, taken: bool) -> None:
    program, queries = depthwise(28), StepQueries(OneDNN())
    (step,) = program.steps
    first = queries.ask(program, step, LAST)
    name = first.alternatives[0]
    found, info = queries.fastest(program, step, LAST, favouring(name, share))
    assert isinstance(found.attrs, ir.Convolution)
    assert found.attrs.preferred == (name if taken else "")
    assert info.implementation == (name if taken else first.implementation)


def test_of_alternatives_that_take_as_long_the_librarys_first_one_is_taken() -> None:
    class Alike(Favouring):
        """Every alternative takes half the time of the first choice."""

        def __call__(self, program: ir.Program, step: ir.Step, layouts: Layouts, info: StepInfo) -> float:
            assert isinstance(step.attrs, ir.Convolution)
            return 50.0 if step.attrs.preferred else 100.0

        def modelled(self, *_: object) -> float:
            return 1.0

    program, queries = depthwise(28), StepQueries(OneDNN())
    (step,) = program.steps
    first = queries.ask(program, step, LAST)
    found, _ = queries.fastest(program, step, LAST, Alike(OneDNN()))
    assert isinstance(found.attrs, ir.Convolution) and len(first.alternatives) > 1
    assert found.attrs.preferred == first.alternatives[0]


def test_what_the_model_thinks_worse_is_not_tried() -> None:
    values = list(depthwise(28).values)
    values[1] = ir.Value("w", (64, 64, 3, 3), "float32", "constant", "abcd", 0)
    (step,) = depthwise(28).steps
    step = replace(step, attrs=ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1))
    program, queries = ir.Program("dense", tuple(values), (step,)), StepQueries(OneDNN())
    layouts = ("acdb", "abcd", "acdb")
    first = queries.ask(program, step, layouts)
    worse = [name for name in first.alternatives if "gemm" in name]
    if not worse:
        pytest.skip("no alternative of this machine is worse by the model")
    found, _ = queries.fastest(program, step, layouts, favouring(worse[0], 0.1))
    assert found == step


@pytest.mark.parametrize("width, preferred", [(28, "jit_dw"), (7, "")])
def test_the_model_prefers_oned_nns_second_choice_for_wide_depthwise_images(
    width: int, preferred: str
) -> None:
    program, queries = depthwise(width), StepQueries(OneDNN())
    (step,) = program.steps
    if not queries.ask(program, step, LAST).implementation.startswith("brdgmm_dw:avx512"):
        pytest.skip("not this processor's first choice")
    found, _ = queries.fastest(program, step, LAST, MODEL)
    assert isinstance(found.attrs, ir.Convolution)
    assert found.attrs.preferred.split(":")[0] == preferred


@pytest.mark.parametrize(
    "outputs, groups, share, taken",
    [(24, 1, 0.93, True), (24, 1, 0.5, False), (32, 1, 0.93, False), (96, 4, 0.93, False)],
)
def test_the_model_prefers_narrow_vectors_that_are_full(
    outputs: int, groups: int, share: float, taken: bool
) -> None:
    weights = (outputs, 96, 1, 1) if groups == 1 else (groups, outputs // groups, 24, 1, 1)
    values = (
        ir.Value("x", (1, 96, 28, 28), "float32", "input", "abcd", 0),
        ir.Value("w", weights, "float32", "constant", "abcde"[: len(weights)], 0),
        ir.Value("y", (1, outputs, 28, 28), "float32", "output", "abcd", 0),
    )
    (step,) = depthwise(28).steps
    step = replace(step, attrs=ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), groups))
    program, queries = ir.Program("pointwise", values, (step,)), StepQueries(OneDNN())
    layouts = ("acdb", values[1].layout, "acdb")
    first = queries.ask(program, step, layouts)
    if not first.implementation.endswith(":avx512_core") or not any(":avx2" in a for a in first.alternatives):
        pytest.skip("this processor has one width of vectors")
    _, info = queries.fastest(program, step, layouts, model(gbytes=400.0, narrow=share))
    assert info.implementation.endswith(":avx2" if taken else ":avx512_core")


def test_layouts_carry_the_preference_into_the_program() -> None:
    program, backend = depthwise(28), OneDNN()
    name = StepQueries(backend).ask(typical(program), program.steps[0], LAST).alternatives[0]
    laid_out, *_ = infer_layouts(program, backend, cost=favouring(name, 0.01))
    (layer,) = (step for step in laid_out.steps if step.name == "layer")
    assert isinstance(layer.attrs, ir.Convolution)
    assert layer.attrs.preferred == layer.implementation == name


def test_a_step_alone_reads_inputs_and_constants_and_writes_a_local() -> None:
    """Numbers anew, names left out; a value that is read twice in one layout is one input."""
    image = (1, 64, 8, 8)
    values = (
        ir.Value("unused", image, "float32", "input", "abcd", 0),
        ir.Value("w", (64, 64, 1, 1), "float32", "constant", "abcd", 0),
        ir.Value("seen", (64, 64, 1, 1), "float32", "local", "abcd", alias_of=1),
        ir.Value("x", image, "float32", "local", "abcd"),
        ir.Value("y", image, "float32", "output", "abcd", 0),
        ir.Value("rest", image, "float32", "local", "abcd"),
    )
    operands = (ir.Operand("src", 3), ir.Operand("weights", 2), ir.Operand("dst", 4))
    post_ops = (ir.BinaryPostOp("add", 5), ir.EltwisePostOp("relu", 0.0, 0.0), ir.BinaryPostOp("mul", 3))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    program = ir.Program("p", values, (ir.Step("conv", attrs, operands, post_ops),))
    for last, count in (("acdb", 4), ("abcd", 5)):
        alone = single_step_program(program, program.steps[0], ("acdb", "abcd", "acdb", "acdb", last))
        kinds = [(value.kind, value.index, value.layout) for value in alone.values]
        assert kinds[:2] == [("input", 0, "acdb"), ("constant", 0, "abcd")]
        assert kinds[2:4] == [("local", -1, "acdb"), ("input", 1, "acdb")]
        assert kinds[4:] == ([("input", 2, "abcd")] if count == 5 else [])
        (step,) = alone.steps
        assert {step.name, alone.name, *(value.name for value in alone.values)} == {""}
        assert [operand.value for operand in step.operands] == [0, 1, 2]
        twice = 0 if count == 4 else 4
        read = [post_op.value for post_op in step.post_ops if isinstance(post_op, ir.BinaryPostOp)]
        assert (read, step.post_ops[1]) == ([3, twice], post_ops[1])


@pytest.mark.parametrize(
    ("picked", "error", "settled"),
    [
        ("acdb", "", True),
        ("any", "", False),
        ("opaque", "", False),
        ("acdb", "no code", False),
        ("any", "no code", False),
    ],
)
def test_a_pick_that_has_no_name_settles_nothing(picked: str, error: str, settled: bool) -> None:
    class Picking(OneDNN):
        def describe(self, program: ir.Program) -> Description:
            said = super().describe(program)
            pairs = zip(said.values, program.values, strict=True)
            values = tuple(replace(v, layout=picked) if asked.layout == "any" else v for v, asked in pairs)
            return Description((replace(said.steps[0], error=error),), values)

    values = tuple(
        ir.Value(name, (1, 16, 8, 8), "float32", kind, "abcd", 0)
        for name, kind in (("x", "input"), ("y", "output"))
    )
    pool = ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))
    step = ir.Step("pool", pool, (ir.Operand("src", 0), ir.Operand("dst", 1)))
    found = StepQueries(Picking()).settle(ir.Program("p", values, (step,)), step, ("acdb", "any"))
    assert found == (("acdb", picked) if settled else None)


@pytest.mark.parametrize(
    "dtype, layout, known",
    [
        ("float32", "acdb", True),
        ("float32", "aBcd16b", True),
        ("float32", "abCd16c", True),  # oneDNN's abDc16d, its last axes exchanged
        ("float32", "aBcd12b", False),
        ("int64", "acdb", True),
    ],
)
def test_a_layout_has_a_place_where_the_library_knows_it(dtype: str, layout: str, known: bool) -> None:
    program = depthwise(28)
    value = ir.Value("view", (1, 8, 32, 48), dtype, "local", "abcd", alias_of=2)
    assert StepQueries(OneDNN()).has_place(program, value, layout) == known
