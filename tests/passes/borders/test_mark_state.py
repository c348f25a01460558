"""MarkState: what of a region's inputs and outputs is a weight that the function updates, or its gradient."""

from __future__ import annotations

import pytest
import tvm
from region_passes import region_passes
from tvm import relax
from tvm.relax import op

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.update import update
from tvm_mxplan.passes.borders import MarkState, stored_state
from tvm_mxplan.passes.borders.mark_state import functions_with_state
from tvm_mxplan.passes.region.attached import map_programs, program_of, regions

SHAPE = [8, 8, 3, 3]


def module(*, updates: bool = True, through: bool = False) -> tvm.IRModule:
    """A region that reads x and w and gives what w is updated by, through an operator of TVM or as it is."""
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType(SHAPE, "float32")) for name in "xw")
    rate = relax.Var("rate", relax.TensorType([], "float32"))
    with builder.function("main", [x, w, rate]):
        with builder.dataflow():
            result = builder.emit(op.nn.conv2d(x, w, padding=1))
            if through:
                result = builder.emit(op.cumsum(result, axis=0))
            if updates:
                result = builder.emit(update("sgd", [w, result], [rate]))
            result = builder.emit_output(result)
        builder.emit_func_output(result)
    return tvm.transform.Sequential(region_passes(OneDNN()))(builder.get())


def only_program(mod: tvm.IRModule) -> ir.Program:
    ((_, region),) = regions(mod, OneDNN().name)
    return program_of(region)


def states(mod: tvm.IRModule) -> dict[tuple[str, int], int]:
    """The states of inputs and outputs of the only region, by kind and number."""
    program = only_program(mod)
    values = [program.values[value] for value in program.states()]
    return {(value.kind, value.index): value.state for value in values}


def weight_of(mod: tvm.IRModule) -> int:
    """The number of the region's input that reads the weight."""
    program = only_program(mod)
    (step,) = (step for step in program.steps if isinstance(step.attrs, ir.Convolution))
    return program.values[program.root(step.operand("weights"))].index


def test_a_weight_and_its_gradient_are_one_state() -> None:
    mod = MarkState()(module())
    assert states(mod) == {("input", weight_of(mod)): 0, ("output", 0): 0}
    assert functions_with_state(mod, dict(regions(mod, OneDNN().name))) == [mod.get_global_var("main")]


def test_a_gradient_that_others_change_is_no_state() -> None:
    mod = MarkState()(module(through=True))
    assert states(mod) == {("input", weight_of(mod)): 0}


def test_what_is_not_updated_is_no_state() -> None:
    before = module(updates=False)
    after = MarkState()(before)
    assert states(after) == {}
    assert functions_with_state(after, dict(regions(after, OneDNN().name))) == []
    tvm.ir.assert_structural_equal(after, before)


def test_a_region_that_is_called_without_state_too_has_none() -> None:
    mod = module()
    ((gvar, _),) = regions(mod, OneDNN().name)
    builder = relax.BlockBuilder(mod)
    x, w = (relax.Var(name, relax.TensorType(SHAPE, "float32")) for name in "xw")
    with builder.function("other", [x, w]):
        builder.emit_func_output(builder.emit(relax.Call(gvar, [x, w])))
    assert states(MarkState()(mod)) != {}
    assert states(MarkState()(builder.get())) == {}


@pytest.mark.parametrize(("layout", "stored"), [("abcd", []), ("ABcd8b8a", [1])])
def test_how_a_state_is_stored_is_read_from_the_program(layout: str, stored: list[int]) -> None:
    def in_layout(program: ir.Program) -> ir.Program:
        for value in program.states():
            program = program.with_value(value, layout=layout)
        return program

    mod = map_programs(MarkState()(module()), OneDNN().name, in_layout).mod
    found = stored_state(mod)
    assert [one.parameter for one in found] == stored
    assert all((one.shape, one.layout) == (tuple(SHAPE), layout) for one in found)
