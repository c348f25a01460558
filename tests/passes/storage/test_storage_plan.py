"""Plans of lowered functions: which arena an allocation can stand in, and where it does."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace

import pytest
import relax_programs as rp
import tvm
from tvm import relax, tirx

from tvm_mxplan.core.allocation import Plan, Problem, Status, solve
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InternalError
from tvm_mxplan.passes.storage import storage_plan
from tvm_mxplan.passes.storage.region_calls import Region
from tvm_mxplan.passes.storage.relax_aliases import StorageTensor
from tvm_mxplan.passes.storage.relax_sizes import Size
from tvm_mxplan.passes.storage.stock_plan import stock_plan
from tvm_mxplan.passes.storage.storage_plan import Kernels, StorageArena, _arena_of, plan_storage

X = 'x: R.Tensor((4, 6), "float32")'
N, M = tirx.Var("n", "int64"), tirx.Var("m", "int64")


def tensor(size: Size | None, device: object = 0, scope: str = "global") -> StorageTensor:
    index = tirx.IntImm("int64", device) if isinstance(device, int) else device
    call = SimpleNamespace(args=(None, None, index, SimpleNamespace(value=scope)))
    return StorageTensor(relax.Var("t"), call, size, ())  # type: ignore[arg-type]


def placed(*tensors: StorageTensor) -> tuple[list[str | None], dict[str, StorageArena]]:
    """The arenas of tensors, one after the other."""
    arenas: dict[str, StorageArena] = {}
    found = []
    for one in tensors:
        arena = _arena_of(one, arenas.values())
        found.append(arena and arena.scope)
        arenas |= {arena.scope: arena} if arena else {}
    return found, arenas


def test_numbers_of_one_device_share_an_arena() -> None:
    scopes, arenas = placed(tensor(Size(64)), tensor(Size(0)), tensor(Size(1 << 40)))
    assert scopes == ["0", "0", "0"]
    assert arenas == {"0": StorageArena("0", 0, None)}


def test_devices_and_units_have_arenas_of_their_own() -> None:
    sizes = (Size(64), Size(1024, N), Size(512, N), Size(1024, M), Size(1024, N * 2))
    scopes, arenas = placed(*(tensor(size) for size in sizes), tensor(Size(64), device=1), tensor(Size(64)))
    assert scopes == ["0", "1", "1", "2", "3", "4", "0"]
    assert [arena.device for arena in arenas.values()] == [0, 0, 0, 0, 1]
    assert [arena.unit is None for arena in arenas.values()] == [True, False, False, False, True]


@pytest.mark.parametrize(
    "wrong",
    [tensor(None), tensor(Size(64), scope="texture"), tensor(Size(64), device=N), tensor(Size(511, N))],
    ids=["of unknown size", "other memory", "a device that varies", "small multiples"],
)
def test_what_can_stand_in_no_arena(wrong: StorageTensor) -> None:
    assert placed(wrong) == ([None], {})


def test_an_arena_relies_on_the_bounds_of_all_that_stands_in_it() -> None:
    bounded = (Size(64, None, ((N, 8),)), Size(64), Size(64, None, ((M, 4), (N, 8))))
    _, arenas = placed(*(tensor(size) for size in bounded))
    assert arenas["0"].bounded == ((N, 8), (M, 4))


BODY = "a = R.exp(x)\nb = R.permute_dims(a)\nc = R.permute_dims(b)\nreturn R.permute_dims(c)"


def planned(body: str = BODY) -> tuple[tvm.IRModule, storage_plan.StoragePlan]:
    mod = rp.lower(rp.parse(body, X))
    return mod, plan_storage(mod, mod.get_global_var("main"))


def test_every_member_of_a_group_stands_where_its_item_does() -> None:
    _, plan = planned(
        "a = R.exp(x)\nb = R.tanh(a)\nc = R.permute_dims(b)\nd = R.exp(c)\nreturn R.permute_dims(d)"
    )
    found = plan.placements()
    assert len(found) == sum(map(len, plan.problem.groups)) > len(plan.problem.groups)
    for at, group in enumerate(plan.problem.groups):
        places = {found[plan.trace.tensors[number].var] for number in group}
        assert {offset for _, offset in places} == {plan.plan.offsets[at]}
        assert {arena.scope for arena, _ in places} == {"0"}
    assert plan.programs() == {}


def test_what_escapes_or_is_not_touched_has_no_place() -> None:
    _, plan = planned()
    names = [plan.trace.tensors[number].var for number in plan.trace.escaping]
    assert len(names) == 1
    assert not set(names) & set(plan.placements())


def test_without_in_place_nothing_is_overwritten() -> None:
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.tanh(a)\nreturn R.negative(b)", X))
    gvar = mod.get_global_var("main")
    plan = plan_storage(mod, gvar, lambda _step: ())
    assert plan.problem.in_place == {}
    assert plan_storage(mod, gvar).problem.in_place != {}
    assert plan.plan.height > plan_storage(mod, gvar).plan.height


def test_a_kernel_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.exp(a)\nreturn R.exp(b)", X))
    looked: list[object] = []
    prove = storage_plan.in_place_pairs
    monkeypatch.setattr(storage_plan, "in_place_pairs", lambda kernel: looked.append(kernel) or prove(kernel))
    plan = plan_storage(mod, mod.get_global_var("main"))
    assert len(plan.problem.in_place) == 1
    assert len(looked) == 1
    kernels = Kernels(mod)
    (kernel, *_) = [gvar for gvar, one in mod.functions.items() if isinstance(one, tirx.PrimFunc)]
    pairs = [kernels.pairs(SimpleNamespace(call=SimpleNamespace(op=kernel))) for _ in range(2)]  # type: ignore[arg-type]
    assert pairs == [[(0, 1)], [(0, 1)]]
    assert len(looked) == 2


def test_only_kernels_of_the_module_work_in_place() -> None:
    mod = rp.lower(rp.parse("return R.exp(x)", X))
    kernels = Kernels(mod)
    for other in (relax.ExternFunc("f"), mod.get_global_var("main"), tvm.ir.Op.get("relax.exp")):
        assert kernels.pairs(SimpleNamespace(call=SimpleNamespace(op=other))) == ()  # type: ignore[arg-type]


# --- the plan that is taken where the first one is not known to be the best ---------------------------------

REGION = """
a1 = R.call_dps_packed("region", (x,), out_ty=[R.Tensor((4, 6), "float32"), R.Tensor((192,), "uint8")])
a = a1[0]
b = R.exp(a)
c = R.permute_dims(b)
return R.permute_dims(c)
"""


def region(calls: int = 1) -> Region:
    """Two steps with one value between them, planned ahead."""
    kinds: list[tuple[ir.ValueKind, int]] = [("input", -1), ("local", 0), ("output", -1)]
    values = tuple(
        ir.Value(kind, (4, 6), "float32", kind, "ab", -1 if kind == "local" else 0, offset=at, nbytes=96)
        for kind, at in kinds
    )
    relu = ir.Eltwise("relu", 0.0, 0.0)
    steps = tuple(
        ir.Step(f"s{at}", relu, (ir.Operand("src", at), ir.Operand("dst", at + 1))) for at in range(2)
    )
    return Region.of(ir.Program("region", values, steps, arena_bytes=96), calls)


def planned_with(
    monkeypatch: pytest.MonkeyPatch, worst: int, stock: bool = True, regions: bool = True
) -> tuple[storage_plan.StoragePlan, list[int]]:
    """A plan where the solver stacks the items of its first ``worst`` problems, and the heights of all."""
    heights: list[int] = []

    def solving(problem: Problem) -> Plan:
        plan = solve(problem)
        if len(heights) < worst:
            ends = list(accumulate((1024 + item.extent // 64 * 64 for item in problem.items), initial=0))
            heights_of = {problem.scopes[0]: ends[-1]}
            plan = replace(plan, offsets=tuple(ends[:-1]), heights=heights_of, status=Status.FEASIBLE)
        heights.append(plan.height)
        return plan

    monkeypatch.setattr(storage_plan, "solve", solving)
    if not stock:
        monkeypatch.setattr(storage_plan, "stock_plan", lambda _mod, _gvar: None)
    mod = rp.lower(rp.parse(REGION, X))
    known = {"region": region()} if regions else None
    return plan_storage(mod, mod.get_global_var("main"), regions=known), heights


def test_a_plan_at_the_lower_bound_is_the_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, heights = planned_with(monkeypatch, 0)
    assert heights == [plan.plan.height] == [plan.plan.lower_bound]
    assert len(plan.problem.opened) == 1 and plan.problem.closed == ()
    assert plan.problem.in_place
    assert list(plan.programs()) == ["region"]


def test_the_plan_without_regions_or_results_in_place_where_that_is_lower(monkeypatch) -> None:
    """The region's arena is a block then, which is still known to be one."""
    plan, heights = planned_with(monkeypatch, 1, stock=False)
    assert heights == [heights[0], plan.plan.height] and plan.plan.height < heights[0]
    assert (plan.problem.opened, plan.problem.in_place, plan.programs()) == ((), {}, {})
    (closed,) = plan.problem.closed
    assert closed.lent in {number for group in plan.problem.groups for number in group}
    assert closed.region.program.name == "region"


def test_two_plans_where_there_is_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, heights = planned_with(monkeypatch, 1, stock=False, regions=False)
    assert heights == [heights[0], plan.plan.height] and plan.plan.height < heights[0]
    assert (plan.problem.opened, plan.problem.closed, plan.problem.in_place) == ((), (), {})


def test_the_first_plan_where_no_other_is_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, heights = planned_with(monkeypatch, 2, stock=False)
    assert len(heights) == 2 and heights[0] < heights[1]
    assert plan.plan.height == heights[0]
    assert plan.problem.in_place


def test_tvms_own_plan_where_that_is_the_lowest(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, heights = planned_with(monkeypatch, 2)
    assert plan.plan.height < min(heights)
    assert (plan.problem.opened, plan.problem.in_place) == ((), {})
    assert len(plan.problem.closed) == 1
    mod = rp.lower(rp.parse(REGION, X))
    stock = stock_plan(mod, mod.get_global_var("main"))
    assert stock is not None
    expected = stock.as_plan(plan.problem.problem, plan.problem.groups)
    assert expected is not None and plan.plan.offsets == expected.offsets


@pytest.mark.parametrize("failing", [True, False])
def test_a_plan_of_tvm_that_is_wrong_or_missing_is_left_out(monkeypatch, failing: bool) -> None:
    def stock(_mod: tvm.IRModule, _gvar: tvm.ir.GlobalVar) -> object:
        if failing:
            raise RuntimeError("TVM cannot plan this")
        return SimpleNamespace(as_plan=lambda problem, _groups: Plan((0,) * len(problem.items), {"0": 64}))

    monkeypatch.setattr(storage_plan, "stock_plan", stock)
    plan, heights = planned_with(monkeypatch, 2)
    assert plan.plan.height == min(heights)


def test_a_wrong_plan_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_plan, "solve", lambda problem: Plan((0,) * len(problem.items), {"0": 64}))
    with pytest.raises(InternalError, match="the memory plan of a function is wrong: "):
        planned()
