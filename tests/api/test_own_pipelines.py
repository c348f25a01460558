"""Passes by name, and the pipeline by its name, in pipelines of users' own."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import transform as stock
from tvm.script import from_source

from tvm_mxplan import transform as ours
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

NETWORK = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 9, 9), "float32"), w: R.Tensor((17, 3, 3, 3), "float32")):
        a = R.nn.conv2d(x, w, padding=1)
        y = R.nn.relu(a)
        return y
"""
"""As it is written by hand: without dataflow blocks."""
PASSES = (
    *("NameOperators", "DispatchOperators", "PartitionRegions", "BuildPrograms", "InferLayouts"),
    *("PropagateLayouts", "PlanMemory", "EmitModules"),
)


def planned(*names: str | tvm.transform.Pass) -> tvm.IRModule:
    passes = [getattr(ours, name)() if isinstance(name, str) else name for name in names]
    return tvm.transform.Sequential(passes)(from_source(NETWORK))


def behind(name: str, added: tvm.transform.Pass) -> list[str | tvm.transform.Pass]:
    """The passes with one more behind that of a name."""
    at = PASSES.index(name) + 1
    return [*PASSES[:at], added, *PASSES[at:]]


def offloaded(mod: tvm.IRModule) -> int:
    """The number of regions in a module that has gone through the passes."""
    return [module.kind for module in mod.attrs["external_mods"]].count("mxplan_onednn")


def result(mod: tvm.IRModule) -> np.ndarray:
    random = np.random.default_rng(0)
    shapes = (2, 3, 9, 9), (17, 3, 3, 3)
    inputs = [tvm.runtime.tensor(random.standard_normal(shape, np.float32)) for shape in shapes]
    return relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"](*inputs).numpy()


def test_the_passes_offload_a_function_without_dataflow_blocks():
    mod = planned(*PASSES)
    assert offloaded(mod) == 1
    assert "nn.conv2d" not in mod.script() and "nn.relu" not in mod.script()
    np.testing.assert_allclose(result(mod), result(from_source(NETWORK)), atol=1e-5)


@pytest.mark.parametrize("name", ["InferLayouts", "PropagateLayouts", "PlanMemory", "EmitModules"])
def test_a_pass_that_wants_programs_names_the_one_that_makes_them(name):
    with pytest.raises(InvalidInputError, match=r"region mxplan_onednn_0 .*run BuildPrograms first"):
        planned("DispatchOperators", "PartitionRegions", name)


@pytest.mark.parametrize(
    "added",
    [
        stock.LegalizeOps(),
        stock.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}),
        stock.ToMixedPrecision(out_dtype="float32"),
        stock.LambdaLift(),
    ],
    ids=lambda one: str(one.info.name),
)
def test_a_pass_that_changes_a_region_before_its_program_is_made_is_said(added):
    with pytest.raises(InvalidInputError, match="mxplan_onednn_0 is not as DispatchOperators left it"):
        planned(*behind("PartitionRegions", added))


def test_a_pass_that_leaves_regions_as_they_are_may_stand_there():
    mod = planned(*behind("PartitionRegions", stock.FoldConstant()))
    assert offloaded(mod) == 1


def test_composites_that_no_region_takes_are_said():
    with pytest.raises(InvalidInputError, match=r"fused_.*conv2d.* stands outside of a dataflow block"):
        planned(*behind("DispatchOperators", stock.ToNonDataflow()))


def test_the_pipeline_is_for_cpus():
    cuda = tvm.target.Target({"kind": "cuda", "arch": "sm_80"}, host="llvm")
    with pytest.raises(UnsupportedError, match=r'target is cuda; .*tvm_mxplan.compile\(mod, "cudnn, cuda"'):
        tvm.compile(from_source(NETWORK), cuda, relax_pipeline="mxplan")
    library = tvm.compile(from_source(NETWORK), "llvm", relax_pipeline="mxplan")
    assert "mxplan_onednn" in library.as_text()
