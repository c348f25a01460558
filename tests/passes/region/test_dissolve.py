"""Regions given back to TVM: which go, what is said of their operators, and that the others stay."""

from __future__ import annotations

import tvm
from region_passes import region_passes
from relax_programs import parse
from tvm import relax

from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.passes.annotations import dispatch_of
from tvm_mxplan.passes.region.attached import regions
from tvm_mxplan.passes.region.dissolve import dissolve

LINES = "a = R.nn.relu(x)\nb = R.tanh(a)\nc = R.floor(b)\nd = R.exp(c)\nreturn d"


def partitioned() -> tvm.IRModule:
    backend = OneDNN()
    mod = parse(LINES, 'x: R.Tensor((2, 3, 5), "float32")')
    return tvm.transform.Sequential(region_passes(backend, named=True))(mod)


def operators(mod: tvm.IRModule) -> list[str]:
    """The names that ``main`` calls, in order."""
    values = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    ops = [value.op for value in values if isinstance(value, relax.Call)]
    return [op.name_hint if isinstance(op, tvm.ir.GlobalVar) else op.name for op in ops]


def test_a_region_is_its_operators_again_and_they_are_tvms() -> None:
    mod = partitioned()
    first, second = (gvar for gvar, _ in regions(mod, "mxplan_onednn"))
    assert operators(mod) == [first.name_hint, "relax.floor", second.name_hint]
    after, refused = dissolve(mod, {first: "the reason"})
    assert operators(after) == ["relax.nn.relu", "relax.tanh", "relax.floor", second.name_hint]
    values = [binding.value for block in after["main"].body.blocks for binding in block.bindings]
    assert all(isinstance(value, relax.Call) for value in values), "no name stands for another"
    assert refused == dict.fromkeys(["relax.nn.relu", "relax.tanh", "relu_0", "tanh_0"], "the reason")
    assert dispatch_of(mod["main"]) == {
        "relu_0": "onednn",
        "tanh_0": "onednn",
        "floor_0": "llvm",
        "exp_0": "onednn",
    }
    assert dispatch_of(after["main"]) == {**dispatch_of(mod["main"]), "relu_0": "llvm", "tanh_0": "llvm"}
    ((left, function),) = regions(after, "mxplan_onednn")
    assert left.name_hint == second.name_hint
    tvm.ir.assert_structural_equal(function, mod[second])
    assert len(list(regions(mod, "mxplan_onednn"))) == 2, "what came in stays as it was"


def test_every_region_has_a_reason_of_its_own() -> None:
    mod = partitioned()
    reasons = {gvar: f"reason {at}" for at, (gvar, _) in enumerate(regions(mod, "mxplan_onednn"))}
    after, refused = dissolve(mod, reasons)
    assert operators(after) == ["relax.nn.relu", "relax.tanh", "relax.floor", "relax.exp"]
    assert (refused["relu_0"], refused["exp_0"], refused["relax.exp"]) == ("reason 0", "reason 1", "reason 1")
    assert set(dispatch_of(after["main"]).values()) == {"llvm"}
    assert set(after.functions) == {after.get_global_var("main")}


def test_without_a_reason_all_stay() -> None:
    mod = partitioned()
    after, refused = dissolve(mod, {})
    assert after.same_as(mod) and refused == {}


def test_what_stands_before_a_region_is_still_there_behind_it() -> None:
    """A region of several results has a binding outside of blocks, which cuts the caller's block in two."""
    lines = (
        "a = R.tan(x)\n"
        "t = R.topk(x, k=5, axis=-1, ret_type='both', largest=True, dtype='int64')\n"
        "b = R.tan(R.astype(t[1], 'float32'))\n"
        "return R.tan(R.add(a, R.add(t[0], b)))"
    )
    mod = parse(lines, 'x: R.Tensor((2, 3, 5), "float32")')
    mod = tvm.transform.Sequential(region_passes(registry.planner("host"), named=True))(mod)
    first, _ = (gvar for gvar, _ in regions(mod, "mxplan_host"))
    after, _ = dissolve(mod, {first: "the reason"})
    assert "relax.topk" in operators(after)
    seen: set[relax.Var] = set()
    for block in after["main"].body.blocks:
        inside: set[relax.Var] = set()
        for binding in block.bindings:
            read = set(relax.analysis.free_vars(binding.value)) - set(after["main"].params)
            assert read <= seen | inside, f"{binding.var} reads what its block does not see"
            inside.add(binding.var)
        seen |= {var for var in inside if not isinstance(var, relax.DataflowVar)}


def test_symbols_that_come_as_shapes_are_the_callers() -> None:
    """No tensor that such an operator reads has them."""
    lines = (
        "a = R.nn.relu(x)\n"
        "b = R.broadcast_to(y, R.shape([3, n]))\n"
        "c = R.reshape(b, R.shape([3, n, 1]))\n"
        "return R.nn.relu(R.add(c, R.reshape(a, R.shape([1, n, 1]))))"
    )
    params = 'x: R.Tensor(("n",), "float32"), y: R.Tensor((3, 1), "float32")'
    mod = tvm.transform.Sequential(region_passes(OneDNN(), named=True))(parse(lines, params))
    found = list(regions(mod, "mxplan_onednn"))
    shapes = [
        param for _, region in found for param in region.params if isinstance(param.ty, relax.ShapeType)
    ]
    assert shapes, "no region takes a shape"
    after, _ = dissolve(mod, {gvar: "the reason" for gvar, _ in found})
    assert operators(after).count("relax.nn.relu") == 2 and "relax.broadcast_to" in operators(after)
    (symbol,) = relax.analysis.defined_symbolic_vars(after["main"])
    assert list(relax.analysis.free_symbolic_vars(after["main"])) == []
    bound = {binding.var: binding.var.ty for block in after["main"].body.blocks for binding in block.bindings}
    assert all(isinstance(ty.shape, relax.ShapeExpr) for ty in bound.values())
    used = {dim for ty in bound.values() for dim in ty.shape.values if isinstance(dim, tvm.tirx.Var)}
    assert used == {symbol}
