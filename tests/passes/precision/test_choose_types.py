"""The choice of types over a whole region, with costs given by hand and a library that refuses some."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from agreeable_backend import rules
from costed_programs import CAST, COSTS, SHORT, TO_SHORT, TO_WIDE, WIDE, Costs, F, Library, S, Small

from tvm_mxplan.core.assignment import solve_assignment
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.passes.layout.queries import StepQueries
from tvm_mxplan.passes.precision.choose_types import TypeChoice, TypeChooser, Wish


def solved(chooser: TypeChooser) -> TypeChoice:
    problem = chooser.problem()
    return chooser.chosen(problem, solve_assignment(problem))


def chosen(
    program: ir.Program,
    refused: Mapping[tuple[str, str], str] = {},
    fixed: Mapping[str, Wish] = {},
    narrows: Callable[[int], bool] = lambda root: True,
    **costs: float,
) -> TypeChoice:
    table = {**COSTS, **{(name, SHORT): cost for name, cost in costs.items()}}
    queries = StepQueries(Library(refused))  # type: ignore[arg-type]
    return solved(TypeChooser(program, queries, Costs(table), rules, SHORT, fixed, narrows))


def test_a_product_alone_pays_for_the_cast_of_its_source_and_writes_what_is_wanted() -> None:
    b = Small()
    choice = chosen(b.done(b.matmul(b.x)))
    assert choice.types == (TO_WIDE,)
    assert (choice.cost_us, choice.float32_us) == (5 + CAST, 10)
    assert not choice.kept


def test_a_gain_below_the_cast_is_none() -> None:
    b = Small()
    choice = chosen(b.done(b.matmul(b.x)), matmul=9.0)
    assert choice.types == (F,)
    assert choice.kept == {"matmul0": "costs no more in f32, with the casts around it"}


def test_what_stands_between_products_shares_their_type_though_it_is_slower() -> None:
    b = Small()
    choice = chosen(b.done(b.matmul(b.exp(b.matmul(b.x)))))
    assert choice.types == (S, S, TO_WIDE)
    slow = chosen(b.finish(), eltwise=9.0)
    assert slow.types == (TO_WIDE, F, TO_WIDE)
    assert slow.cost_us == CAST + 5 + 3 + CAST + 5


def test_norms_convert_on_the_way_and_softmax_writes_float32() -> None:
    b = Small()
    choice = chosen(b.done(b.matmul(b.norm(b.x))))
    assert choice.types == (TO_SHORT, TO_WIDE)
    b = Small()
    choice = chosen(b.done(b.matmul(b.softmax(b.matmul(b.x)))))
    assert choice.types[1].written == WIDE
    assert (choice.types[0], choice.types[2]) == (TO_WIDE, TO_WIDE)


def test_one_cast_serves_all_readers() -> None:
    b = Small()
    parts = [b.matmul(b.x) for _ in range(3)]
    total = b.step("add", ir.Binary("add"), (4, 9), [("src", parts[0]), ("src1", parts[1])])
    total = b.step("add", ir.Binary("add"), (4, 9), [("src", total), ("src1", parts[2])])
    table = {**COSTS, ("binary", WIDE): 1.0, ("binary", SHORT): 1.0}
    queries = StepQueries(Library({}))  # type: ignore[arg-type]
    choice = solved(TypeChooser(b.done(total), queries, Costs(table), rules, SHORT, {}, lambda root: True))
    assert choice.types == (TO_WIDE, TO_WIDE, TO_WIDE, F, F)
    assert choice.cost_us == CAST + 3 * 5 + 2


@pytest.mark.parametrize("reason", ["oneDNN refuses it", "slow"])
def test_what_the_library_refuses_or_has_slow_code_for_stays_in_float32(reason: str) -> None:
    b = Small()
    program = b.done(b.matmul(b.exp(b.matmul(b.x))))
    choice = chosen(program, {("eltwise", SHORT): reason})
    assert choice.types == (TO_WIDE, F, TO_WIDE)
    told = "the library has nothing but reference code" if reason == "slow" else reason
    assert choice.kept == {"exp0": told}


def test_users_fix_types_and_a_demand_that_cannot_be_met_is_an_error() -> None:
    b = Small()
    program = b.done(b.matmul(b.exp(b.matmul(b.x))))
    choice = chosen(program, fixed={"matmul0": Wish(WIDE)})
    assert choice.types[0] == F and choice.types[2] == TO_WIDE
    assert choice.kept["matmul0"] == "option precision_for"
    assert chosen(program, fixed={"exp0": Wish(SHORT)}, eltwise=99.0).types[1] == S
    with pytest.raises(UnsupportedError, match="exp0: oneDNN refuses it"):
        chosen(program, {("eltwise", SHORT): "oneDNN refuses it"}, {"exp0": Wish(SHORT)})
    fallen = chosen(program, {("eltwise", SHORT): "refused"}, {"exp0": Wish(SHORT, demanded=False)})
    assert fallen.types[1] == F and fallen.kept == {"exp0": "refused"}


def test_weights_beyond_the_type_keep_their_step_in_float32() -> None:
    b = Small()
    program = b.done(b.matmul(b.matmul(b.x)))
    first = program.steps[0].operand("weights")
    choice = chosen(program, narrows=lambda root: root != first)
    assert choice.types == (F, TO_WIDE)
    assert choice.kept == {"matmul0": "its weights are beyond bfloat16"}


def test_values_that_share_bytes_in_parts_stay_as_they_are() -> None:
    b = Small()
    hidden = b.matmul(b.x)
    program = b.done(b.matmul(hidden))
    halves = program.with_value(hidden, alias_of=program.steps[1].operand("weights"), alias_offset=4)
    assert chosen(program).types == (S, TO_WIDE)
    assert chosen(halves).types == (F, F)


def test_other_types_are_nothing_to_decide_on() -> None:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (4, 9), "int32")
    y = b.step("slice", ir.Slice((0, 3)), (4, 5), [("src", x)], "int32")
    b.write_output(y, b.port("output", "y", (4, 5), "int32"))
    choice = chosen(b.finish())
    assert choice.types == (F,) and not choice.kept
