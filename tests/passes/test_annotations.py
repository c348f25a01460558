"""The record of dispatch on functions: written, read, and changed where a region goes back."""

from __future__ import annotations

import tvm
from dataflow_text import dataflow
from tvm import relax, tirx

from tvm_mxplan.passes.annotations import TVM, dispatch_of, with_changed_dispatch, with_dispatch


def module(**functions: dict[str, str]) -> tvm.IRModule:
    """Functions of these names, and who runs their operators; a kernel besides."""
    plain = dataflow("y = R.nn.relu(x)")["main"]
    mod = tvm.IRModule(
        {
            name: with_dispatch(plain.with_attr("global_symbol", name), chosen)
            for name, chosen in functions.items()
        }
    )
    mod["kernel"] = tirx.PrimFunc([], tirx.Evaluate(0)).with_attr("global_symbol", "kernel")
    return mod


def test_what_is_written_is_read() -> None:
    chosen = {"relu_0": "onednn", "floor_0": TVM}
    function = module(main=chosen)["main"]
    assert dispatch_of(function) == chosen
    assert {type(one) for pair in dispatch_of(function).items() for one in pair} == {str}
    assert dict(function.attrs["mxplan.dispatch"]) == chosen


def test_before_dispatch_nothing_is_written() -> None:
    function = dataflow("y = R.nn.relu(x)")["main"]
    assert dispatch_of(function) == {}
    assert with_dispatch(function, {}).same_as(function)
    bare = relax.Function(function.params, function.body, function.ret_ty)
    assert dispatch_of(bare) == {}


def test_operators_that_change_hands() -> None:
    before = module(main={"relu_0": "onednn", "floor_0": "host"}, other={"relu_1": "onednn"}, third={})
    after = with_changed_dispatch(before, {"relu_0": TVM, "exp_0": TVM})
    assert dispatch_of(after["main"]) == {"relu_0": TVM, "floor_0": "host"}
    for name in ("other", "third", "kernel"):
        assert after[name].same_as(before[name]), "what no change names stays as it is"
    assert dispatch_of(before["main"]) == {"relu_0": "onednn", "floor_0": "host"}, "the module that came"
    assert with_changed_dispatch(before, {})["main"].same_as(before["main"])


def test_one_name_in_several_functions_changes_in_all() -> None:
    after = with_changed_dispatch(
        module(main={"relu_0": "onednn"}, other={"relu_0": "host"}), {"relu_0": TVM}
    )
    assert [dispatch_of(after[name]) for name in ("main", "other")] == [{"relu_0": TVM}] * 2
