"""Items that may share bytes in a lowered function, groups and results in place, on traces by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import tvm
from tvm import relax

from tvm_mxplan.core.allocation import Rectangle
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.storage.region_calls import Region
from tvm_mxplan.passes.storage.relax_aliases import (
    Allocation,
    Branch,
    Node,
    Places,
    StorageStep,
    StorageTensor,
    Trace,
)
from tvm_mxplan.passes.storage.relax_liveness import find_lives
from tvm_mxplan.passes.storage.relax_sizes import Size
from tvm_mxplan.passes.storage.storage_problem import StorageProblem, storage_problem

SIZES = (64, 100, 200, 300, 400)
EXTERN = tvm.ir.Call(relax.ExternFunc("region"), [])


def at(*tensors: int, exact: bool = True) -> Places:
    return Places(frozenset(tensors), exact)


def call(name: str, *args: Places, extern: bool = False) -> StorageStep:
    return StorageStep(name, EXTERN if extern else tvm.ir.Call(relax.ExternFunc("f"), []), args)  # type: ignore[arg-type]


def trace(*nodes: Node, branches: dict[int, tuple[tuple[int, bool], ...]] | None = None) -> Trace:
    """Five tensors of ``SIZES``; the others than those in ``branches`` are made at the top."""
    tensors = [
        StorageTensor(relax.Var(f"t{number}"), None, Size(size), (branches or {}).get(number, ()))  # type: ignore[arg-type]
        for number, size in enumerate(SIZES)
    ]
    return Trace(tensors, nodes)


def made(name: str, tensor: int, *reads: int) -> list[Node]:
    """The call ``name`` reads some tensors and writes a new one."""
    return [Allocation(tensor), call(name, *(at(read) for read in reads), at(tensor))]


def posed(
    of: Trace,
    pairs: dict[str, list[tuple[int, int]]] | None = None,
    arenas: dict[int, str] | None = None,
    regions: dict[str, Region] | None = None,
    **options: bool,
) -> StorageProblem:
    where = dict.fromkeys(range(len(SIZES)), "0") if arenas is None else arenas

    def in_place(step: StorageStep) -> Sequence[tuple[int, int]]:
        return (pairs or {}).get(str(step.var), ())

    lives = find_lives(of)
    where = {number: scope for number, scope in where.items() if lives.intervals[number]}
    return storage_problem(of, lives, where, in_place, regions or {}, **options)


# --- groups and items --------------------------------------------------------------------------------------


def test_each_allocation_is_an_item_with_its_life_and_bytes() -> None:
    problem = posed(trace(*made("a", 0), *made("b", 1, 0), call("c", at(1))))
    assert problem.groups == ((0,), (1,))
    assert [item.rectangles for item in problem.problem.items] == [
        (Rectangle(0, 2, 0, 64),),
        (Rectangle(1, 3, 0, 100),),
    ]
    assert [(item.name, item.alignment, item.scope) for item in problem.problem.items] == [
        ("t0", 64, "0"),
        ("t1", 64, "0"),
    ]
    assert (problem.in_place, problem.opened, problem.closed) == ({}, (), ())


def test_what_no_arena_is_named_for_is_left_out() -> None:
    problem = posed(trace(*made("a", 0), *made("b", 1, 0)), arenas={1: "7"})
    assert [(item.name, item.scope) for item in problem.problem.items] == [("t1", "7")]


def test_a_life_in_two_parts_is_two_rectangles() -> None:
    fork = Branch(frozenset([0]), tuple(made("b", 1)), tuple(made("c", 2, 0)), ())
    (item, *_) = posed(trace(*made("a", 0), fork)).problem.items
    assert item.rectangles == (Rectangle(0, 2, 0, 64), Rectangle(3, 4, 0, 64))


# --- in place ----------------------------------------------------------------------------------------------


def test_a_result_takes_the_bytes_of_what_dies() -> None:
    problem = posed(trace(*made("a", 0), *made("b", 1, 0), call("c", at(1))), {"b": [(0, 1)]})
    assert problem.groups == ((0, 1),)
    assert problem.in_place == {"b": (0, 1)}
    (item,) = problem.problem.items
    assert item.rectangles == (Rectangle(0, 2, 0, 64), Rectangle(1, 3, 0, 100))


def test_groups_stand_in_the_order_of_their_first_members() -> None:
    nodes = [*made("a", 0), *made("x", 1), *made("b", 2, 0), call("c", at(1), at(2))]
    assert posed(trace(*nodes), {"b": [(0, 1)]}).groups == ((0, 2), (1,))


def test_the_first_pair_that_can_is_taken() -> None:
    of = trace(*made("a", 0), *made("b", 1), *made("c", 2, 0, 1), call("d", at(0), at(2)))
    assert posed(of, {"c": [(0, 2), (1, 2)]}).in_place == {"c": (1, 2)}
    both = trace(*made("a", 0), *made("b", 1), *made("c", 2, 0, 1), call("d", at(2)))
    assert posed(both, {"c": [(0, 2), (1, 2)]}).in_place == {"c": (0, 2)}


NOT_IN_PLACE = {
    "the operand is read later": (*made("a", 0), *made("b", 1, 0), call("c", at(0), at(1))),
    "the operand is read later, the result is not": (*made("a", 0), *made("b", 1, 0), call("c", at(0))),
    "the operand is some part": (*made("a", 0), Allocation(1), call("b", at(0, exact=False), at(1))),
    "the result is some part": (*made("a", 0), Allocation(1), call("b", at(0), at(1, exact=False))),
    "the operand is one of two": (
        *(*made("a", 0), *made("a2", 2)),
        *(Allocation(1), call("b", at(0, 2, exact=False), at(1))),
    ),
    "the operand is passed twice": (*made("a", 0), Allocation(1), call("b", at(0), at(1), at(0))),
    "the result is passed twice": (*made("a", 0), Allocation(1), call("b", at(0), at(1), at(1))),
    "the result was written before": (*made("a", 0), *made("a2", 1), call("b", at(0), at(1))),
    "operand and result are the same": (Allocation(0), call("b", at(0), at(0))),
}  # fmt: skip


@pytest.mark.parametrize("why", NOT_IN_PLACE)
def test_nothing_is_overwritten_that_somebody_sees(why: str) -> None:
    behind = [] if why.endswith("is not") else [call("end", at(1))]
    problem = posed(trace(*NOT_IN_PLACE[why], *behind), {"b": [(0, 1)]})
    assert problem.in_place == {}
    assert all(len(group) == 1 for group in problem.groups)


def test_a_tuple_is_no_operand_to_overwrite() -> None:
    pair = StorageStep("b", tvm.ir.Call(relax.ExternFunc("f"), []), ((at(0), at(2)), at(1)))  # type: ignore[arg-type]
    nodes = [*made("a", 0), *made("a2", 2), Allocation(1), pair, call("c", at(1))]
    assert posed(trace(*nodes), {"b": [(0, 1), (1, 0)]}).in_place == {}


def test_only_within_one_arena() -> None:
    of = trace(*made("a", 0), *made("b", 1, 0), call("c", at(1)))
    assert posed(of, {"b": [(0, 1)]}, arenas={0: "0", 1: "1"}).in_place == {}
    assert posed(of, {"b": [(0, 1)]}, arenas={1: "0"}).in_place == {}
    assert posed(of, {"b": [(0, 1)]}, arenas={0: "0"}).in_place == {}


def test_a_chain_is_one_group() -> None:
    nodes = [*made("a", 0), *made("b", 1, 0), *made("c", 2, 1), *made("d", 3, 2), call("e", at(3))]
    problem = posed(trace(*nodes), {name: [(0, 1)] for name in "bcd"})
    assert problem.groups == ((0, 1, 2, 3),)
    assert set(problem.in_place) == set("bcd")
    (item,) = problem.problem.items
    assert {(r.birth, r.death) for r in item.rectangles} == {(0, 2), (1, 3), (2, 4), (3, 5)}


# --- branches ----------------------------------------------------------------------------------------------


def two_sides(*behind: Node, joined: tuple[tuple[int, int], ...] = ((1, 2),)) -> Trace:
    """1 is made in one branch, 2 in the other; both are the result."""
    fork = Branch(frozenset(), tuple(made("b", 1, 0)), tuple(made("c", 2, 0)), joined)
    return trace(*made("a", 0), fork, *behind, branches={1: ((0, True),), 2: ((0, False),)})


def test_results_of_two_branches_are_one_item() -> None:
    problem = posed(two_sides(call("d", at(1, 2, exact=False))))
    assert problem.groups == ((0,), (1, 2))
    assert problem.problem.items[1].extent == 200


def test_results_in_different_arenas_stay_apart() -> None:
    end = call("d", at(1, 2, exact=False))
    assert posed(two_sides(end), arenas={0: "0", 1: "0", 2: "1"}).groups == ((0,), (1,), (2,))
    assert posed(two_sides(end), arenas={0: "0", 2: "1"}).groups == ((0,), (2,))
    assert posed(two_sides(end), arenas={0: "0", 1: "1"}).groups == ((0,), (1,))


def test_a_result_of_an_outer_tensor_is_no_pair_of_branches() -> None:
    """1 is made before the branch: a run that makes 2 has both."""
    fork = Branch(frozenset(), (call("b", at(1)),), tuple(made("c", 2, 0)), ((1, 2),))
    of = trace(
        *made("a", 0), *made("x", 1), fork, call("d", at(1, 2, exact=False)), branches={2: ((0, False),)}
    )
    assert posed(of).groups == ((0,), (1,), (2,))
    unread = trace(*made("a", 0), *made("x", 1), fork, call("d", at(0)), branches={2: ((0, False),)})
    assert posed(unread).groups == ((0,), (1,), (2,))


def test_both_results_may_overwrite_the_same_operand() -> None:
    """In each branch the operand dies; no run makes both results."""
    sides = two_sides(call("d", at(1, 2, exact=False)), joined=())
    problem = posed(sides, {"b": [(0, 1)], "c": [(0, 1)]})
    assert problem.in_place == {"b": (0, 1), "c": (0, 1)}
    assert problem.groups == ((0, 1, 2),)


def test_groups_that_share_no_step_stay_two() -> None:
    nodes = [*made("a", 0), *made("b", 1, 0), *made("c", 2), call("d", at(1), at(2)), *made("e", 3, 2)]
    nodes += [call("f", at(1), at(3))]
    problem = posed(trace(*nodes), {"b": [(0, 1)], "e": [(0, 1)]})
    assert problem.in_place == {"b": (0, 1), "e": (0, 1)}
    assert problem.groups == ((0, 1), (2, 3))


def test_a_group_of_the_branches_is_not_put_on_what_the_other_one_reads() -> None:
    """1 stands with 2; where 2 is made, 0 is still read."""
    other = [*made("c", 2, 0), call("e", at(0), at(2))]
    fork = Branch(frozenset(), tuple(made("b", 1, 0)), tuple(other), ((1, 2),))
    sides = {1: ((0, True),), 2: ((0, False),)}
    of = trace(*made("a", 0), fork, call("d", at(1, 2, exact=False)), branches=sides)
    problem = posed(of, {"b": [(0, 1)]})
    assert (problem.groups, problem.in_place) == (((0,), (1, 2)), {})


@pytest.mark.parametrize(
    ("mine", "other", "excludes"),
    [
        ((), (), False),
        (((0, True),), ((0, False),), True),
        (((0, True),), ((0, True),), False),
        (((0, True), (1, True)), ((0, True), (1, False)), True),
        (((0, True), (1, True)), ((0, True), (2, False)), False),
        (((0, True),), (), False),
        (((1, False), (2, True)), ((2, False),), True),
    ],
)
def test_what_no_run_makes_both_of(mine, other, excludes: bool) -> None:
    a, b = (StorageTensor(relax.Var("t"), None, None, branches) for branches in (mine, other))  # type: ignore[arg-type]
    assert (a.excludes(b), b.excludes(a)) == (excludes, excludes)


# --- regions -----------------------------------------------------------------------------------------------


def region(calls: int = 1) -> Region:
    """y = s1(a = s0(x)): two steps, one local of 64 bytes."""
    values = tuple(
        ir.Value(name, (16,), "float32", kind, "a", index, nbytes=64)
        for name, kind, index in (("x", "input", 0), ("y", "output", 0), ("a", "local", -1))
    )
    relu = ir.Eltwise("relu", 0.0, 0.0)
    ends = [(ir.Operand("src", src), ir.Operand("dst", dst)) for src, dst in ((0, 2), (2, 1))]
    steps = tuple(ir.Step(f"s{at}", relu, operands, scratchpad_bytes=0) for at, operands in enumerate(ends))
    return Region.of(ir.Program("r", values, steps), calls)


def lending() -> list[Node]:
    """x is 0, the result 1, the arena 2; 3 is read behind the call."""
    nodes: list[Node] = [*made("a", 0), *made("b", 3), Allocation(1), Allocation(2)]
    return [*nodes, call("r", at(0), at(1), at(2), extern=True), call("c", at(1), at(3))]


def test_an_open_region_takes_part_with_its_steps() -> None:
    problem = posed(trace(*lending()), regions={"region": region()})
    assert [(one.step.var, one.lent, one.scope, one.time) for one in problem.opened] == [("r", 2, "0", 2)]
    assert problem.closed == ()
    assert problem.groups == ((0,), (1,), (3,))
    lives = {item.name: [(r.birth, r.death) for r in item.rectangles] for item in problem.problem.items}
    assert lives == {"t0": [(0, 3)], "t1": [(3, 5)], "t3": [(1, 5)], "r.a": [(2, 4)]}


@pytest.mark.parametrize("calls", [1, 2])
def test_a_closed_region_is_a_block(calls: int) -> None:
    """Closed where it is called twice, or where nothing is to be opened."""
    problem = posed(
        trace(*lending()), regions={"region": region(calls)}, **{"opening": False} if calls == 1 else {}
    )
    assert problem.opened == ()
    assert [one.lent for one in problem.closed] == [2]
    assert problem.groups == ((0,), (1,), (2,), (3,))
    assert problem.problem.items[2].rectangles == (Rectangle(2, 3, 0, 200),)


def test_a_call_without_a_known_arena_is_an_ordinary_call() -> None:
    nodes = lending()
    regions = {"region": region()}
    for args in ((at(0), at(1)), (at(0), at(1), at(2, exact=False)), (at(0), at(1), at(2), at(3))):
        other = trace(*nodes[:-2], replace(nodes[-2], args=args), nodes[-1])  # type: ignore[type-var]
        problem = posed(other, regions=regions)
        assert (problem.opened, problem.closed) == ((), ())
    without = posed(trace(*nodes), arenas={0: "0", 1: "0", 3: "0"}, regions=regions)
    assert (without.opened, without.closed) == ((), ())
    assert (posed(trace(*nodes)).opened, posed(trace(*nodes)).closed) == ((), ())
