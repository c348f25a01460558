"""Plans that are worse than TVM's or wrong are not taken, each with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
import relax_programs as rp
import tvm
from storage_bodies import BUSY, X
from storage_runs import check
from tvm import relax

from tvm_mxplan.core.allocation import Plan, Problem, Status, validate
from tvm_mxplan.passes.storage import StorageRewrite, storage_plan, storage_rewrite
from tvm_mxplan.passes.storage.storage_check import check_storage
from tvm_mxplan.passes.storage.storage_plan import plan_storage


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
