"""Steps of training for a GPU that is not here: compiled, in a library, regions' programs worked out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
from cudnn_programs import on_h200, run_program
from cudnn_stand_in import DEVICES, StandIn, small_network
from relax_programs import TARGET, run
from tvm import relax

import tvm_mxplan
from tvm_mxplan import training
from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.options import Options
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.region.dissolve import dissolve
from tvm_mxplan.pipeline import compilation
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.training.functions import Clipping, Recipe, step_function
from tvm_mxplan.training.losses import loss_of
from tvm_mxplan.training.model import Wanted, model_of

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "training"))

import small_network as with_batch_norms

OPTIONS = {"device_properties": DEVICES / "h200.json"}
PRODUCTS = {"convolution": 5, "deconvolution": 2, "convolution_backward_weights": 2}
"""Of the small network's step: two convolutions, a dense layer and its gradients, an average's gradient."""


def compiled(target: str = "cudnn, cuda -arch=sm_90") -> training.TrainingStep:
    optimizer = training.SGD(0.1, momentum=0.9)
    model = small_network("float32")
    return training.compile(model, "softmax_cross_entropy", optimizer, target=target, options=OPTIONS)


def products(ex: tvm_mxplan.Executable) -> dict[str, int]:
    kinds = [step.kind for program in decoded_programs(ex.module) for step in program.steps]
    return {kind: kinds.count(kind) for kind in PRODUCTS}


@pytest.mark.slow
def test_a_step_comes_through_and_travels(planner: StandIn, tmp_path: Path) -> None:
    step = compiled()
    assert step.report.offloaded >= 0.99
    step.executable.export(tmp_path / "step.so")
    asked = len(planner.requests)
    loaded = tvm_mxplan.load(tmp_path / "step.so")
    assert products(loaded) == products(step.executable) == PRODUCTS
    assert len(planner.requests) == asked > 0
    assert loaded.report.to_json()["regions"] == step.report.to_json()["regions"]
    with pytest.raises(UnsupportedError, match="NVIDIA H200"):
        step(np.zeros((2, 3, 14, 10), "float32"), np.zeros(2, "int64"))


@pytest.mark.slow
@pytest.mark.skipif(bool(library.why_not()), reason=f"needs cuDNN: {library.why_not()}")
def test_every_product_of_a_step_has_a_plan_by_cudnn() -> None:
    step = compiled()
    assert step.report.offloaded >= 0.99
    assert products(step.executable) == PRODUCTS
    for program in decoded_programs(step.executable.module):
        for one in program.steps:
            if one.kind in PRODUCTS:
                assert library.check_plan(one.prepared) == one.implementation


@pytest.mark.slow
def test_regions_of_a_step_compute_what_tvm_computes(planner: StandIn) -> None:
    """The network has batch norms, groups, a residual sum and a concatenation."""
    backend = on_h200()
    model, optimizer = with_batch_norms.model(), training.SGD(0.1)
    recipe = Recipe(
        model_of(model, Wanted(None, None, None)), loss_of("softmax_cross_entropy"), optimizer, Clipping()
    )
    gpu = tvm.target.Target({"kind": "cuda", "arch": "sm_90", "host": {"kind": "llvm"}})
    mod = compilation([backend], Options(), gpu).run(step_function(recipe).mod, last="partition")
    regions = [name for name, one in mod.functions_items() if one.attrs and "Codegen" in one.attrs]
    checked = [kind for region in regions for kind in check_region(mod, region, backend)]
    assert {"convolution", "deconvolution", "convolution_backward_weights", "binary"} <= set(checked)
    assert {"batch_normalization_training", "batch_normalization_backward"} <= set(checked)


def check_region(mod: tvm.IRModule, region: tvm.ir.GlobalVar, backend: Backend) -> list[str]:
    """The kinds of a region's steps, whose program gives what its operators give in TVM's kernels."""
    program, constants, _ = backend.translate(mod[region], region.name_hint, default_rates())
    builder = relax.BlockBuilder(tvm.IRModule({region: mod[region]}))
    params = [relax.Var(str(one), one.ty) for one in mod[region].params]
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(region(*params)))
    plain = dissolve(builder.get(), {region: "the reference"}).mod
    random = np.random.default_rng(1)
    shapes = [[int(n) for n in one.ty.shape] for one in params]  # parameters may share a name
    arrays = [random.standard_normal(shape).astype("float32") for shape in shapes]
    arrays = [np.abs(one) + 0.1 if one.ndim == 1 else one for one in arrays]  # variances among them
    laid_out = infer_layouts(program, backend).program
    inputs = [arrays[program.values[number].index] for number in program.of_kind("input")]
    found = run_program(laid_out, constants, inputs)
    right = run(relax.VirtualMachine(tvm.compile(plain, TARGET), tvm.cpu()), *arrays)
    for one, expected in zip(found, right, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-4)
    return [step.kind for step in program.steps]
