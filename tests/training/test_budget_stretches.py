"""Whole stretches of a step that run again for a budget of memory: the same bits, scratchpads, the tries."""

from __future__ import annotations

import convolutional
import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan import training
from tvm_mxplan.core.recomputation import run_of, simulated
from tvm_mxplan.training.recomputation.recompute import Traced, bindings_of, rewritten, traced
from tvm_mxplan.training.recomputation.scratch import with_scratch

SRC = (4, 3, 32, 32)


def compiled(**options: object) -> training.TrainingStep:
    network = convolutional.convolutional(SRC, (16, 16, 0, 32, 32, 0, 48, 48, 0), norms=True)
    return convolutional.compiled(network, layouts="blocked", **options)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.75, 0.6])
def test_a_vgg_within_a_share_of_its_arena_gives_the_same_bits(share: float) -> None:
    whole, small = compiled(), compiled(memory_budget=share)
    told = small.report.recomputation
    assert told is not None and told.after <= share * told.before
    assert told.before == whole.report.memory[-1].height
    assert told.factor <= 1.35
    for seed in range(3):
        x, labels = convolutional.batch(SRC, seed)
        assert whole(x, labels) == small(x, labels)
    ours, theirs = small.state_dict()["model"], whole.state_dict()["model"]
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        assert np.array_equal(ours[name], array), name


@pytest.mark.slow
def test_more_runs_again_in_less() -> None:
    tight, roomy = compiled(memory_budget=0.6), compiled(memory_budget=0.9)
    counts = [sum(step.report.recomputation.operators.values()) for step in (tight, roomy)]
    assert counts[0] > counts[1] > 0


def twice() -> tuple[tvm.IRModule, Traced]:
    """A view of ``a`` is read backward twice."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 6), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(relax.op.nn.relu(x), "a")
            view = builder.emit(relax.op.reshape(a, (24,)), "view")
            loss = builder.emit(relax.op.sum(view), "loss")
            first = builder.emit(relax.op.multiply(view, loss), "first")
            second = builder.emit(relax.op.add(relax.op.exp(first), view), "second")
            out = builder.emit_output(relax.Tuple([loss, second]))
        builder.emit_func_output(out)
    mod = relax.transform.Normalize()(builder.get())
    return mod, traced(mod["main"], lambda _call: 1.0)


def test_each_reader_reads_what_was_made_last_and_views_of_it() -> None:
    mod, found = twice()
    kinds = [str(binding.value.op.name) for binding in found.operations]
    assert kinds[0] == "relax.nn.relu" and found.problem.backward == 2
    order = [(at, False) for at in range(len(kinds))]
    readers = [at for at in found.problem.readers[0] if at >= found.problem.backward]
    assert len(readers) == 2
    for at in reversed(readers):
        order.insert(at, (0, True))
    run = run_of(found.problem, tuple(order))
    assert run.again == (0, 0) and run.us == 2.0
    again = rewritten(mod, found, run)
    calls = [binding for binding in bindings_of(again["main"]) if isinstance(binding.value, relax.Call)]
    made = [binding.var for binding in calls if binding.value.op.name == "relax.nn.relu"]
    views = [binding.value.args[0] for binding in calls if binding.value.op.name == "relax.reshape"]
    assert len(made) == 3 and views == made, "each view is of what was made last"


def test_a_step_written_for_another_order_computes_the_same() -> None:
    mod, found = twice()
    run = simulated(found.problem, frozenset({0}))
    x = np.random.default_rng(1).standard_normal((4, 6)).astype("float32")
    results = []
    for one in (mod, rewritten(mod, found, run)):
        built = relax.VirtualMachine(tvm.compile(one, tvm.target.Target({"kind": "llvm"})), tvm.cpu())
        results.append([part.numpy() for part in built["main"](tvm.runtime.tensor(x))])
    assert run.again == (0,)
    assert all(np.array_equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.slow
def test_scratchpads_belong_to_operators_by_their_numbers() -> None:
    step = compiled()
    named = {item.name: item.nbytes for item in step.report.memory[-1].items if item.kind == "scratchpads"}
    assert named
    _, found = twice()
    report = step.report
    items = tuple(
        item.__class__(f"mxplan_onednn_1.{name}.scratchpad", "scratchpads", nbytes, 0, 1, 0)
        for name, nbytes in (("relu_0", 64), ("exp_0", 128), ("sum_3", 256))
        for item in report.memory[-1].items[:1]
    )
    memory = (*report.memory[:-1], report.memory[-1].__class__(**{**vars(report.memory[-1]), "items": items}))
    told = with_scratch(found, report.__class__(**{**vars(report), "memory": memory}))
    sizes = [operation.scratch for operation in told.problem.operations]
    kinds = [str(binding.value.op.name) for binding in told.operations]
    assert dict(zip(kinds, sizes, strict=True))["relax.nn.relu"] == 64
    assert dict(zip(kinds, sizes, strict=True))["relax.exp"] == 128
    assert sum(sizes) == 64 + 128, "there is no fourth sum"
    assert all(one.scratch == 0 for one in found.problem.operations), "what is given stays as it is"
