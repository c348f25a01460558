"""StorageRewrite: the IR it writes, exact bytes, numbers in the VM, and what the checker refuses.

TVM's own planner, which crashes on branches in 0.27 (tvm 20191), is compared with where there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import relax_programs as rp
import tvm
from storage_bodies import BUSY, X
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_mxplan.core.allocation import Plan, Problem, Status, validate
from tvm_mxplan.passes.storage import StorageRewrite, storage_plan, storage_rewrite, tvm_pipeline
from tvm_mxplan.passes.storage.storage_check import check_storage
from tvm_mxplan.passes.storage.storage_plan import plan_storage

ROW = 4 * 6 * 4  # bytes of one 4x6 tensor


def same_numbers(mod: tvm.IRModule, *runs: Sequence[rp.Array]) -> tvm.IRModule:
    """Numbers with StorageRewrite are those without reuse; gives what it wrote."""
    plain = rp.build(mod, None)
    for exec_mode in ("bytecode", "compiled"):
        planned = rp.build(mod, StorageRewrite(), exec_mode)
        for inputs in runs:
            rp.assert_same(rp.run(planned, *inputs), rp.run(plain, *inputs))
    return StorageRewrite()(mod)


def check(mod: tvm.IRModule, *inputs: rp.Array) -> tvm.IRModule:
    """As `same_numbers`; also TVM's planner gives them, and takes no fewer bytes."""
    rewritten = same_numbers(mod, inputs)
    stock = relax.transform.StaticPlanBlockMemory()
    rp.assert_same(rp.run(rp.build(mod, stock), *inputs), rp.run(rp.build(mod, None), *inputs))
    assert rp.total_bytes(rewritten) <= rp.total_bytes(stock(mod))
    return rewritten


@I.ir_module
class Before:
    @T.prim_func(private=True, s_tir=True)
    def exp(x: T.Buffer((T.int64(24),), "float32"), out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("exp"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = T.exp(x[vi])

    @T.prim_func(private=True, s_tir=True)
    def flip(x: T.Buffer((T.int64(24),), "float32"), out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("flip"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = x[T.int64(23) - vi]

    @R.function
    def main(x: R.Tensor((24,), "float32")) -> R.Tensor((24,), "float32"):
        R.func_attr({"relax.force_pure": True})
        cls = Before
        alloc = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(x, alloc)
        alloc1 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.exp(alloc, alloc1)
        alloc2 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(alloc1, alloc2)
        alloc3 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(alloc2, alloc3)
        return alloc3


@I.ir_module
class Expected:
    @T.prim_func(private=True, s_tir=True)
    def exp_in_place(out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("exp"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = T.exp(out[vi])

    @T.prim_func(private=True, s_tir=True)
    def flip(x: T.Buffer((T.int64(24),), "float32"), out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("flip"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = x[T.int64(23) - vi]

    @R.function
    def main(x: R.Tensor((24,), "float32")) -> R.Tensor((24,), "float32"):
        R.func_attr({"relax.force_pure": True})
        cls = Expected
        arena = R.memory.alloc_storage(R.shape([224]), 0, R.str("global"), R.dtype("uint8"))
        alloc = R.memory.alloc_tensor(arena, 0, R.shape([24]), R.dtype("float32"), 0)
        cls.flip(x, alloc)
        alloc1: R.Tensor((24,), "float32") = alloc
        cls.exp_in_place(alloc1)
        view = R.memory.alloc_tensor(arena, 128, R.shape([24]), R.dtype("float32"), 0)
        alloc2 = R.memory.ensure_zero_offset(view)
        cls.flip(alloc1, alloc2)
        alloc3 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(alloc2, alloc3)
        return alloc3


def test_golden() -> None:
    """One arena, a tensor at an offset, a result in place; the returned tensor keeps its own memory."""
    tvm.ir.assert_structural_equal(StorageRewrite()(Before), Expected)


def test_nothing_to_plan_leaves_the_ir_unchanged() -> None:
    mod = rp.lower(rp.parse("y = R.exp(x)\nreturn y", X))
    tvm.ir.assert_structural_equal(StorageRewrite()(mod), mod)


def test_a_chain_needs_two_tensors_or_one_in_place() -> None:
    """Softmax and exp are in place, transposes are not; 96 bytes stand at multiples of 64."""
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.nn.softmax(a)\nc = R.tanh(b)\nreturn R.negative(c)", X))
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [ROW]
    body = "a = R.permute_dims(x)\nb = R.permute_dims(a)\nc = R.permute_dims(b)\nreturn R.permute_dims(c)"
    rewritten = check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [128 + ROW]


def test_equal_tensors_at_one_offset_share_a_view() -> None:
    body = "a = R.permute_dims(x)\nb = R.permute_dims(a)\nc = R.permute_dims(b)\nreturn R.permute_dims(c)"
    rewritten = StorageRewrite()(rp.lower(rp.parse(body, 'x: R.Tensor((6, 6), "float32")')))
    assert len(rp.calls_to(rewritten["main"], "relax.memory.alloc_tensor")) == 2
    assert len(rp.calls_to(rewritten["main"], "relax.memory.ensure_zero_offset")) == 1


def test_views_at_offsets_are_not_copies() -> None:
    """Two views of one offset see the same bytes, so ``ensure_zero_offset`` did not copy."""
    seen: list[int] = []

    @tvm.register_global_func("test.storage_rewrite.address", override=True)
    def _address(tensor: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
        seen.append(np.from_dlpack(tensor).__array_interface__["data"][0])
        np.from_dlpack(out)[...] = np.from_dlpack(tensor)

    call = 'R.call_dps_packed("test.storage_rewrite.address", ({},), R.Tensor((4, 6), "float32"))'
    body = [
        "a = R.exp(x)",
        *(f"{to} = {call.format(of)}" for of, to in ("ab", "bc", "cd")),
        "return R.tanh(d)",
    ]
    mod = rp.lower(rp.parse("\n".join(body), X))
    assert rp.storages(StorageRewrite()(mod)) == [128 + ROW]
    vm = rp.build(mod, StorageRewrite())
    rp.assert_same(rp.run(vm, rp.normal(3, 4, 6)), [np.tanh(np.exp(rp.normal(3, 4, 6)))])
    assert seen[0] == seen[2] and abs(seen[1] - seen[0]) == 128
    assert all(address % 64 == 0 for address in seen)


def test_reshapes_are_views_in_dataflow_blocks() -> None:
    body = "a = R.sort(x)\nb = R.reshape(a, R.shape([24]))\nc = R.sort(b)\nreturn R.sort(c)"
    mod = rp.lower(rp.parse(body, X), dataflow=True)
    assert len(rp.calls_to(mod["main"], "relax.reshape")) == 1
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [128 + ROW]


def test_in_place_over_a_reshaped_view_of_another_type() -> None:
    """The overwritten tensor was allocated as 6x4 and is read as 24; the bytes are the same."""
    body = "a = R.sort(x)\nb = R.reshape(a, R.shape([24]))\nc = R.nn.softmax(b)\nreturn R.sort(c)"
    mod = rp.lower(rp.parse(body, X), dataflow=True)
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [ROW]
    assert any(name.endswith("_in_place") for name in rp.kernels(rewritten))


def test_an_operand_read_later_is_not_overwritten() -> None:
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.tanh(a)\nc = R.add(a, b)\nreturn R.negative(c)", X))
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.kernels(rewritten) == ["tir_exp", "tir_tanh", "add_in_place", "tir_negative"]


def test_an_operand_passed_twice_is_not_overwritten() -> None:
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.add(a, a)\nreturn R.negative(b)", X))
    assert rp.kernels(check(mod, rp.normal(0, 4, 6))) == ["tir_exp", "add", "tir_negative"]


def test_tuples_hold_their_members() -> None:
    body = """
a = R.exp(x)
t = (a, x)
u = (t, x)
b = R.permute_dims(x)
c = R.permute_dims(b)
v = u[0]
d = v[0]
return R.add(c, d)
"""
    check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))


def test_returned_tuples_stand_outside() -> None:
    body = "a = R.exp(x)\nb = R.tanh(a)\nt = (b, a)\nreturn (t, R.negative(b))"
    rewritten = check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == []


def test_results_survive_the_next_call() -> None:
    mod = rp.lower(rp.parse("a = R.permute_dims(x)\nb = R.permute_dims(a)\nreturn (R.exp(b), b)", X))
    vm = rp.build(mod, StorageRewrite())
    first, second = (tvm.runtime.tensor(rp.normal(seed, 4, 6)) for seed in (1, 2))
    kept = vm["main"](first)
    vm["main"](second)
    np.testing.assert_array_equal(kept[1].numpy(), rp.normal(1, 4, 6))


def test_an_unknown_function_may_return_a_view_of_its_argument() -> None:
    """The result of ``pick`` is one of its arguments; neither may be reused while it is read."""

    @tvm.register_global_func("test.storage_rewrite.pick", override=True)
    def _pick(a: tvm.runtime.Tensor, _b: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
        return a

    body = """
a = R.exp(x)
b = R.tanh(x)
c = R.call_pure_packed("test.storage_rewrite.pick", a, b, ty_args=(R.Tensor((4, 6), "float32"),))
d = R.permute_dims(x)
e = R.permute_dims(d)
return R.add(c, e)
"""
    same_numbers(rp.lower(rp.parse(body, X)), [rp.normal(0, 4, 6)])


def test_calls_to_other_functions_may_return_their_arguments() -> None:
    source = f"""
@I.ir_module
class Module:
    @R.function(private=True)
    def pick(a: R.Tensor((4, 6), "float32")) -> R.Tensor((4, 6), "float32"):
        return a

    @R.function
    def main({X}):
        cls = Module
        a = R.exp(x)
        b = cls.pick(a)
        c = R.permute_dims(x)
        d = R.permute_dims(c)
        return R.add(b, d)
"""
    same_numbers(rp.lower(tvm.script.from_source(source)), [rp.normal(0, 4, 6)])


BRANCHES = X + ', c: R.Tensor((), "bool"), d: R.Tensor((), "bool")'


def check_branches(body: str, dataflow: bool = False) -> tvm.IRModule:
    mod = rp.lower(rp.parse(body, BRANCHES), dataflow)
    decisions = [(np.array(c), np.array(d)) for c in (True, False) for d in (True, False)]
    rewritten = same_numbers(mod, *((rp.normal(0, 4, 6), *decision) for decision in decisions))
    assert rp.total_bytes(rewritten) <= rp.total_bytes(relax.transform.StaticPlanBlockMemory()(mod))
    assert len(rp.calls_to(rewritten["main"], "relax.memory.alloc_storage")) <= 1
    return rewritten


def test_branches_share_bytes_and_their_result_is_one_place() -> None:
    """Each branch needs two tensors; the join joins, so two are enough for both."""
    body = """
if c:
    a = R.permute_dims(x)
    b = R.permute_dims(a)
    r = R.permute_dims(b)
else:
    e = R.flip(x, 0)
    f = R.permute_dims(e)
    g = R.permute_dims(f)
    r = R.permute_dims(g)
return R.permute_dims(r)
"""
    assert rp.storages(check_branches(body)) == [128 + ROW]


def test_bytes_are_free_in_the_branch_that_does_not_read_them() -> None:
    body = """
a = R.permute_dims(x)
if c:
    r = R.permute_dims(a)
else:
    e = R.permute_dims(x)
    f = R.flip(e, 0)
    r = R.permute_dims(f)
return R.exp(r)
"""
    rewritten = check_branches(body)
    assert rp.storages(rewritten) == [128 + ROW]


def test_tensors_read_after_the_join_live_across() -> None:
    body = """
a = R.permute_dims(x)
if c:
    b = R.exp(x)
    r = R.tanh(b)
else:
    e = R.flip(x, 0)
    f = R.permute_dims(e)
    r = R.permute_dims(f)
return R.add(R.permute_dims(a), r)
"""
    check_branches(body)


def test_nested_branches_and_pairs() -> None:
    body = """
a = R.exp(x)
if c:
    b = R.tanh(a)
    if d:
        p = R.negative(b)
        q = (p, b)
    else:
        p = R.abs(b)
        q = (a, p)
    r = q
else:
    e = R.flip(a, 0)
    r = (e, a)
s = r[0]
t = R.add(s, r[1])
return (R.exp(t), R.negative(t))
"""
    check_branches(body)
    check_branches(body, dataflow=True)


def test_one_result_that_both_branches_may_return() -> None:
    body = """
a = R.exp(x)
b = R.tanh(x)
if c:
    r = a
else:
    r = b
e = R.permute_dims(x)
f = R.permute_dims(e)
g = R.add(r, f)
return R.add(g, b)
"""
    check_branches(body)


SYMBOLIC = """
n = T.int64()
a = R.exp(x)
b = R.split(a, 2, axis=1)
c = R.nn.softmax(b[0])
d = R.add(c, b[1])
e = R.concat((d, d), axis=0)
return R.negative(R.permute_dims(e))
"""
ROWS = 'x: R.Tensor(("n", 1024), "float32")'


def symbolic_runs(mod: tvm.IRModule, rows: tuple[int, ...]) -> None:
    vm, plain = rp.build(mod, StorageRewrite()), rp.build(mod, None)
    for count in rows:
        rp.assert_same(
            rp.run(vm, rp.normal(count, count, 1024)), rp.run(plain, rp.normal(count, count, 1024))
        )


def test_symbolic_sizes_by_upper_bound() -> None:
    mod = rp.lower(rp.parse(SYMBOLIC, ROWS, '{"tir_var_upper_bound": {"n": 16}}'))
    (storage,) = rp.calls_to(StorageRewrite()(mod)["main"], "relax.memory.alloc_storage")
    size = storage.args[0].values[0]
    assert int(size.true_value) == 16 * 1024 * 4 * 2 and int(size.false_value) == 0
    symbolic_runs(mod, (1, 3, 16, 0))


def test_an_exceeded_upper_bound_is_refused() -> None:
    """A tensor beyond its bound would reach into its neighbours; the empty arena stops it."""
    mod = rp.lower(rp.parse(SYMBOLIC, ROWS, '{"tir_var_upper_bound": {"n": 16}}'))
    with pytest.raises(RuntimeError, match="storage allocation failure"):
        rp.run(rp.build(mod, StorageRewrite()), rp.normal(0, 17, 1024))


def test_symbolic_sizes_by_offset_expression() -> None:
    mod = rp.lower(rp.parse(SYMBOLIC, ROWS))
    main = StorageRewrite()(mod)["main"]
    n = main.params[0].ty.shape.values[0]
    (storage,) = rp.calls_to(main, "relax.memory.alloc_storage")
    tvm.ir.assert_structural_equal(storage.args[0].values[0], n * T.int64(1024 * 4 * 2))
    assert len(rp.calls_to(main, "relax.builtin.alloc_tensor")) == 1
    symbolic_runs(mod, (1, 3, 40, 0))


def test_small_multiples_of_an_expression_stay_dynamic() -> None:
    """Offsets are multiples of 64 units: for four bytes a unit, sharing would not pay."""
    body = "n = T.int64()\na = R.exp(x)\nb = R.permute_dims(a)\nreturn R.permute_dims(b)"
    mod = rp.lower(rp.parse(body, 'x: R.Tensor(("n", "m"), "float32")'))
    assert rp.calls_to(StorageRewrite()(mod)["main"], "relax.memory.alloc_storage") == []


def test_sizes_known_only_inside_stay_dynamic() -> None:
    body = """
k = T.int64()
a = R.exp(x)
b = R.match_cast(a, R.Tensor((k, 1024), "float32"))
c = R.permute_dims(b)
return R.permute_dims(c)
"""
    mod = rp.lower(rp.parse(body, 'x: R.Tensor(("n", 1024), "float32")'))
    symbolic_runs(mod, (1, 5))


def test_empty_tensors() -> None:
    mod = rp.lower(
        rp.parse("a = R.exp(x)\nb = R.permute_dims(a)\nreturn R.tanh(b)", 'x: R.Tensor((0, 6), "float32")')
    )
    check(mod, rp.normal(0, 0, 6))


def test_types_of_every_width() -> None:
    body = """
a = R.greater(x, R.const(0.0, "float32"))
b = R.astype(a, "int8")
c = R.astype(b, "float64")
d = R.astype(c, "float16")
e = R.logical_not(a)
f = R.add(R.astype(d, "float32"), R.astype(e, "float32"))
return R.add(f, x)
"""
    check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))


def test_the_default_pipeline() -> None:
    mod = rp.parse("a = R.exp(x)\nb = R.permute_dims(a)\nreturn R.tanh(R.permute_dims(b))", X)
    target = tvm.target.Target("llvm")
    built = tvm.compile(mod, target, relax_pipeline=tvm_pipeline.default_pipeline(target))
    vm = relax.VirtualMachine(built, tvm.cpu())
    rp.assert_same(rp.run(vm, rp.normal(0, 4, 6)), [np.tanh(np.exp(rp.normal(0, 4, 6)))])
    names = [step.info.name for step in tvm_pipeline.finalize_passes(target)]
    stock = [step.info.name for step in rp.pipeline.finalize_passes(target)]
    assert names == ["StorageRewrite" if name == "StaticPlanBlockMemory" else name for name in stock]
    names = [step.info.name for step in tvm_pipeline.finalize_passes(target, reuse=False)]
    assert names == [name for name in stock if name != "StaticPlanBlockMemory"]


def test_targets_without_pointer_arithmetic_keep_tvms_planner() -> None:
    names = [step.info.name for step in tvm_pipeline.finalize_passes(tvm.target.Target("vulkan"))]
    assert "StaticPlanBlockMemory" in names and "StorageRewrite" not in names


# --- trust --------------------------------------------------------------------------------------------


def worst_plan(problem: Problem) -> Plan:
    """Everything on top of everything else."""
    offsets, top = [], 0
    for item in problem.items:
        offsets.append(top)
        top += -(-item.extent // 64) * 64 + 64
    return Plan(tuple(offsets), {"0": top}, {"0": 1}, Status.FEASIBLE)


def test_never_above_tvms_own_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM's storages, stacked, are the plan where the solver finds nothing good."""
    mod = rp.lower(rp.parse(BUSY, X))
    monkeypatch.setattr(storage_plan, "solve", worst_plan)
    check(mod, rp.normal(0, 4, 6))


def test_a_wrong_plan_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mod = rp.lower(rp.parse(BUSY, X))
    monkeypatch.setattr(
        storage_plan, "solve", lambda problem: Plan((0,) * len(problem.items), {"0": 512}, {"0": 1})
    )
    with pytest.raises(RuntimeError, match="overlap"):
        StorageRewrite()(mod)


def test_a_wrong_problem_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Liveness that forgets everything passes the plan's validator, and fails the check of the IR."""
    mod = rp.lower(rp.parse(BUSY, X))
    correct = storage_plan.find_lives

    def forgetful(trace: storage_plan.Trace) -> object:
        lives = correct(trace)
        return replace(lives, intervals=[[(own[0][0], own[0][0] + 1)] for own in lives.intervals])

    monkeypatch.setattr(storage_plan, "find_lives", forgetful)
    with pytest.raises(RuntimeError, match="the rewritten memory is wrong"):
        StorageRewrite()(mod)


def refused(mod: tvm.IRModule) -> str:
    """The reason for which the rewritten function is refused, '' where it is not."""
    try:
        StorageRewrite()(mod)
    except RuntimeError as error:
        assert "the rewritten memory is wrong" in str(error)
        return str(error)
    return ""


@pytest.mark.parametrize("distance", [64, -64])
def test_every_offset_that_moved_is_refused(monkeypatch: pytest.MonkeyPatch, distance: int) -> None:
    """By the validator of plans, and past it by the check of the IR: both object to the same ones."""
    mod = rp.lower(rp.parse(BUSY, X))
    right = plan_storage(mod, mod.get_global_var("main"))
    monkeypatch.setattr(storage_plan, "validate", lambda _problem, _plan: [])
    verdicts = []
    for at, offset in enumerate(right.plan.offsets):
        offsets = (*right.plan.offsets[:at], offset + distance, *right.plan.offsets[at + 1 :])
        wrong = replace(right.plan, offsets=offsets)
        monkeypatch.setattr(storage_plan, "solve", lambda _problem, wrong=wrong: wrong)
        verdicts.append(bool(validate(right.problem.problem, wrong)))
        assert bool(refused(mod)) == verdicts[-1]
    assert sum(verdicts) >= 2


def test_every_life_cut_short_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the IR tells where a tensor's bytes went to another that reads or writes them."""
    mod = rp.lower(rp.parse(BUSY, X))
    correct = storage_plan.find_lives
    count = len(plan_storage(mod, mod.get_global_var("main")).trace.tensors)
    caught = 0
    for tensor in range(count):

        def cut(trace: storage_plan.Trace, tensor: int = tensor) -> object:
            lives = correct(trace)
            ends = [list(own) for own in lives.intervals]
            if ends[tensor] and ends[tensor][-1][1] - ends[tensor][-1][0] > 1:
                ends[tensor][-1] = (ends[tensor][-1][0], ends[tensor][-1][1] - 1)
            return replace(lives, intervals=ends)

        monkeypatch.setattr(storage_plan, "find_lives", cut)
        wrong = plan_storage(mod, mod.get_global_var("main"))
        monkeypatch.setattr(storage_plan, "find_lives", correct)
        true = plan_storage(mod, mod.get_global_var("main")).problem
        if wrong.problem.groups != true.groups or wrong.problem.in_place != true.in_place:
            continue
        faults = validate(true.problem, replace(wrong.plan, lower_bounds={}))
        monkeypatch.setattr(storage_plan, "find_lives", cut)
        assert bool(refused(mod)) == bool(faults)
        caught += bool(faults)
    assert caught >= 2


def test_a_wrong_in_place_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that still takes the operand it overwrites."""
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.tanh(a)\nreturn R.negative(b)", X))
    monkeypatch.setattr(
        storage_rewrite._Rewriter, "_in_place_call", lambda _self, call, _source, _destination: call
    )
    with pytest.raises(RuntimeError, match="over its own operand"):
        StorageRewrite()(mod)


def test_an_arena_that_is_too_small_is_refused() -> None:
    small = rp.lower(rp.parse("a = R.exp(x)\nb = R.permute_dims(a)\nreturn R.permute_dims(b)", X))
    rewritten = StorageRewrite()(small)["main"]
    assert check_storage(small["main"], rewritten) == []
    storage = rewritten.body.blocks[0].bindings[0]
    shrunk = relax.VarBinding(
        storage.var, relax.op.memory.alloc_storage(relax.ShapeExpr([100]), 0, "global", "uint8")
    )
    bindings = [shrunk, *rewritten.body.blocks[0].bindings[1:]]
    body = relax.SeqExpr([relax.BindingBlock(bindings)], rewritten.body.body)
    broken = relax.Function(rewritten.params, body, rewritten.ret_ty, rewritten.is_pure, rewritten.attrs)
    assert "of a storage of 100" in check_storage(small["main"], broken)[0]


def test_plans_say_what_they_are() -> None:
    mod = rp.lower(rp.parse(BUSY, X))
    plan = plan_storage(mod, mod.get_global_var("main"))
    assert plan.plan.status is Status.LOWER_BOUND
    assert plan.plan.height == rp.storages(StorageRewrite()(mod))[0]
