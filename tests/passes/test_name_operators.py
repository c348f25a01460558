"""``NameOperators``: names by kind and order, kept through partitioning, and steps that carry them."""

from __future__ import annotations

import pytest
import tvm
from dataflow_text import dataflow
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import BuildPrograms, NameOperators, PartitionRegions
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.passes.relax_types import operator_name


def names(mod: tvm.IRModule) -> list[str]:
    """Names in ``main``, in order."""
    calls = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    return [str(operator_name(call)) for call in calls if isinstance(call, relax.Call)]


def step_names(mod: tvm.IRModule) -> list[str]:
    backend = OneDNN()
    passes = [DispatchOperators(preference_of([backend])), PartitionRegions(), BuildPrograms(backend)]
    mod = tvm.transform.Sequential(passes)(mod)
    programs = [program_of(function) for _, function in regions(mod, backend.name)]
    return [step.name for program in programs for step in program.steps]


def test_operators_are_named_by_kind_and_order():
    mod = dataflow(
        "a = R.nn.relu(x)\nb = R.add(a, x)\nc = R.nn.relu(b)\ny = R.nn.max_pool2d(c, [2, 2], [2, 2])"
    )
    assert names(mod) == ["None"] * 4
    named = NameOperators()(mod)
    assert names(named) == ["relu_0", "add_0", "relu_1", "max_pool2d_0"]
    tvm.ir.assert_structural_equal(named, mod)


def test_names_are_the_same_after_a_second_time():
    mod = NameOperators()(dataflow("a = R.nn.relu(x)\ny = R.add(a, x)"))
    assert names(NameOperators()(mod)) == names(mod)


def test_steps_carry_the_names_of_their_operators():
    mod = dataflow("a = R.exp(x)\nb = R.floor(a)\nc = R.exp(b)\ny = R.nn.max_pool2d(c, [2, 2], [2, 2])")
    assert step_names(NameOperators()(mod)) == ["exp_0", "exp_1", "max_pool2d_0"]
    assert step_names(mod) == ["eltwise0", "eltwise0", "pooling0"]


def test_equal_operators_keep_their_own_names():
    mod = dataflow("a = R.exp(x)\nb = R.nn.softmax(a)\nc = R.exp(b)\ny = R.nn.softmax(c)")
    assert step_names(NameOperators()(mod)) == ["exp_0", "softmax_0", "exp_1", "softmax_1"]


def test_further_steps_of_an_operator_are_named_below_it():
    """A softmax along another axis than the last one is moved there first."""
    mod = dataflow("y = R.nn.softmax(x, axis=2)")
    assert step_names(NameOperators()(mod)) == ["softmax_0.reorder0", "softmax_0", "reorder0"]


def test_expected_names_have_to_exist():
    mod = dataflow("a = R.nn.relu(x)\ny = R.add(a, x)")
    NameOperators({"layers": ["relu_0"], "prefer": ["add_0"]})(mod)
    named = NameOperators({"layers": ["relu_0"], "prefer": ["relu_1"]})
    with pytest.raises(InvalidInputError, match=r"prefer: .* no operator 'relu_1'; the nearest are relu_0"):
        named.transform_module(mod, tvm.transform.PassContext())
