"""TVM's own plan as one of ours: what it allocates, and its storages stacked for the items of a problem."""

from __future__ import annotations

import pytest
import relax_programs as rp
from tvm import relax

from tvm_mxplan.core.allocation import Item, Problem, Rectangle, validate
from tvm_mxplan.passes.storage.stock_plan import StockPlan, stock_plan
from tvm_mxplan.passes.storage.storage_plan import plan_storage

X = 'x: R.Tensor((4, 6), "float32")'
CHAIN = "a = R.permute_dims(x)\nb = R.permute_dims(a)\nc = R.permute_dims(b)\nreturn R.permute_dims(c)"


def planned(body: str, parameters: str = X) -> StockPlan | None:
    mod = rp.lower(rp.parse(body, parameters))
    return stock_plan(mod, mod.get_global_var("main"))


def test_all_that_tvm_allocates_counts() -> None:
    """Two storages that take turns, and the result, each of 96 bytes at multiples of 64."""
    stock = planned(CHAIN)
    assert stock is not None
    assert (stock.sizes, stock.total) == ((128, 128, 128), 384)
    assert stock.storages == (0, 1, 0, 2)
    mod = rp.lower(rp.parse(CHAIN, X))
    assert stock.total == rp.total_bytes(relax.transform.StaticPlanBlockMemory()(mod))


def test_types_have_their_sizes() -> None:
    stock = planned('a = R.astype(x, "float64")\nb = R.astype(a, "int8")\nreturn R.astype(b, "float32")')
    assert stock is not None
    assert sum(stock.sizes) == stock.total
    assert sorted(stock.sizes)[-1] == 192


def test_symbolic_sizes_have_no_plan() -> None:
    assert (
        planned(
            "n = T.int64()\na = R.permute_dims(x)\nreturn R.permute_dims(a)",
            'x: R.Tensor(("n", 6), "float32")',
        )
        is None
    )


def item(name: str, nbytes: int, scope: str = "0") -> Item:
    return Item(name, (Rectangle(0, 1, 0, nbytes),), 64, scope)


def test_storages_are_stacked() -> None:
    """The second and fourth allocation share; the third is not asked about."""
    stock = StockPlan((128, 64, 256), (0, 1, 2, 1))
    problem = Problem((item("a", 100), item("b", 60), item("d", 64)))
    plan = stock.as_plan(problem, ((0,), (1,), (3,)))
    assert plan is not None
    assert (plan.offsets, plan.heights) == ((0, 128, 128), {"0": 192})


def test_a_storage_is_as_large_as_what_stands_in_it() -> None:
    """A group may be larger than the storage of its first member."""
    stock = StockPlan((64, 64), (0, 1))
    plan = stock.as_plan(Problem((item("a", 65), item("b", 1))), ((0,), (1,)))
    assert plan is not None
    assert (plan.offsets, plan.heights) == ((0, 128), {"0": 192})
    shared = StockPlan((64,), (0, 0)).as_plan(Problem((item("a", 300), item("b", 10))), ((0,), (1,)))
    assert shared is not None
    assert (shared.offsets, shared.heights) == ((0, 0), {"0": 320})


@pytest.mark.parametrize("scopes", ["", "01"])
def test_only_one_arena_has_a_plan(scopes: str) -> None:
    items = tuple(item(scope, 64, scope) for scope in scopes)
    stock = StockPlan((64, 64), (0, 1))
    assert stock.as_plan(Problem(items), tuple((at,) for at in range(len(items)))) is None


def test_it_is_a_valid_plan_of_a_whole_function() -> None:
    mod = rp.lower(rp.parse(CHAIN, X))
    gvar = mod.get_global_var("main")
    stock, ours = stock_plan(mod, gvar), plan_storage(mod, gvar)
    assert stock is not None
    plan = stock.as_plan(ours.problem.problem, ours.problem.groups)
    assert plan is not None
    assert validate(ours.problem.problem, plan) == []
    assert plan.height >= ours.plan.height > 0
