"""Calls of regions as calls of packed functions, and the modules that hold these."""

from __future__ import annotations

import pytest
import tvm
from region_passes import region_passes
from relax_programs import parse
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.passes.layout import InferLayouts
from tvm_mxplan.passes.memory import PlanMemory
from tvm_mxplan.passes.region import EmitModules

LINES = "a = R.nn.relu(x)\nb = R.floor(a)\nc = R.nn.silu(b)\nreturn c"


def emitted(**attributes: object) -> tvm.IRModule:
    backend = OneDNN()
    mod = parse(LINES, 'x: R.Tensor((2, 3, 5), "float32")')
    passes = [*region_passes(backend), InferLayouts(backend), PlanMemory(backend)]
    mod = tvm.transform.Sequential(passes)(mod)
    for name, value in attributes.items():
        mod = mod.with_attr(name, value)
    return EmitModules(backend)(mod)


@pytest.mark.parametrize("attributes", [{}, {"other": "value"}])
def test_every_region_is_a_module_that_is_called_by_its_name(attributes: dict[str, object]) -> None:
    mod = emitted(**attributes)
    assert [gvar.name_hint for gvar in mod.functions] == ["main"]
    values = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    called = [
        str(value.args[0].global_symbol)
        for value in values
        if isinstance(value, relax.Call) and value.op.name == "relax.call_dps_packed"
    ]
    for name in called:
        assert sum(module.implements_function(name) for module in mod.attrs["external_mods"]) == 1
    assert len(called) == 2
    assert all(mod.attrs[name] == value for name, value in attributes.items())


def test_modules_that_are_there_stay() -> None:
    own = list(emitted().attrs["external_mods"])
    modules = list(emitted(external_mods=own[:1]).attrs["external_mods"])
    assert len(modules) == 1 + len(own) and modules[0].same_as(own[0])


def test_without_regions_nothing_changes() -> None:
    mod = parse("a = R.floor(x)\nreturn a", 'x: R.Tensor((2, 3), "float32")')
    assert EmitModules(OneDNN())(mod).same_as(mod)
