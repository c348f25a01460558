"""Values that were to come after others: they keep operators out of earlier regions, and go away then."""

from __future__ import annotations

import tvm
from region_passes import region_passes
from relax_programs import parse
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.operators.after import AFTER, after
from tvm_mxplan.passes.region import ForgetOrder
from tvm_mxplan.passes.region.attached import regions


def two_activations(*, late: bool) -> tvm.IRModule:
    """A ReLU, a floor of it that TVM keeps, and a hyperbolic tangent of it, in a sum with the floor."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2, 3, 5], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit(relax.op.nn.relu(x))
            floor = builder.emit(relax.op.floor(first))
            source = builder.emit(after(first, floor)) if late else first
            second = builder.emit(relax.op.tanh(source))
            out = builder.emit_output(relax.op.add(second, floor))
        builder.emit_func_output(out)
    return builder.get()


def region_sizes(mod: tvm.IRModule) -> list[int]:
    """Composites of each region, in the order in which main calls them."""
    mod = tvm.transform.Sequential(region_passes(OneDNN(), named=True))(mod)
    mod = ForgetOrder()(mod)
    sizes = {
        gvar.name_hint: sum(len(block.bindings) for block in function.body.blocks)
        for gvar, function in regions(mod, "mxplan_onednn")
    }
    values = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    calls = [value.op for value in values if isinstance(value, relax.Call)]
    assert not any(AFTER.is_called(value) for value in values)
    return [sizes[op.name_hint] for op in calls if isinstance(op, tvm.ir.GlobalVar)]


def test_what_is_to_come_later_is_in_a_later_region() -> None:
    early, late = region_sizes(two_activations(late=False)), region_sizes(two_activations(late=True))
    assert len(early) == len(late) == 2
    assert early[0] > late[0], "without the order both activations stand in the first region"


def test_what_came_later_is_the_value_itself_then() -> None:
    tidy = relax.transform.CanonicalizeBindings()
    forgotten = tidy(ForgetOrder()(two_activations(late=True)))
    tvm.ir.assert_structural_equal(forgotten, tidy(two_activations(late=False)))


def test_a_module_without_such_values_stays_as_it_is() -> None:
    mod = parse("a = R.nn.relu(x)\nreturn a", 'x: R.Tensor((2, 3, 5), "float32")')
    assert ForgetOrder()(mod).same_as(mod)


def test_tvm_alone_runs_it_as_the_value_itself() -> None:
    mod = relax.transform.LegalizeOps()(two_activations(late=True))
    values = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    assert values and not any(AFTER.is_called(value) for value in values)
