"""A named batch on a GPU: plans for a bounded set of sizes, one arena, weights once, in a library and back.

cuDNN's planner is played; the numbers of functions of sizes are held in ``tests/passes/sizes``, the calls
that pad rows in ``tests/cpp/programs/cudnn_movement.cc``.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from cudnn_programs import on_h200
from cudnn_stand_in import DEVICES, StandIn, small_network
from graph_interpreter import run_program
from onnx import helper
from relax_programs import TARGET as CPU
from relax_programs import normal, parse, run
from tvm import relax

import tvm_mxplan
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.region import PartitionRegions
from tvm_mxplan.passes.sizes import SpecializeSizes, named_batch
from tvm_mxplan.report.inspection import region_modules

TARGET = "cudnn, cuda -arch=sm_90"
BOTH = "cudnn, cuda -arch=sm_90, dnnl, llvm"
SIZES = (1, 2, 3, 4, 6)


def named(dtype: str = "float16") -> onnx.ModelProto:
    model = small_network(dtype)
    for port in (model.graph.input[0], model.graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_param = "batch"
    return model


def compiled(
    model: onnx.ModelProto | None = None, target: str = TARGET, **options: object
) -> tvm_mxplan.Executable:
    stated = {"machine": "default", "verify": "off", "batch_sizes": "3", **options}
    given = {"bounds": {"batch": (1, 6)}, "device_properties": DEVICES / "h200.json"}
    return tvm_mxplan.compile(named() if model is None else model, target, options=stated, **given)


def rows_of(requests: list[dict]) -> set[int]:
    """The batches that plans are asked for."""
    return {one["dim"][0] for request in requests for one in request["tensors"] if one.get("uid") == 1}


def test_plans_are_made_for_each_size(planner: StandIn) -> None:
    ex = compiled()
    assert rows_of(planner.requests) == set(SIZES)
    assert len(ex.report.regions) == len(SIZES) and not ex.report.fallbacks
    assert str(ex.signature.inputs[0]) == "x: float16[batch, 3, 14, 10]"


def test_one_arena_and_weights_once(planner: StandIn, tmp_path: Path) -> None:
    model = named()
    wide = np.random.default_rng(0).standard_normal((40_000, 17)).astype("float16")
    for initializer in model.graph.initializer:
        if initializer.name in ("w3", "b3"):
            array = wide if initializer.name == "w3" else wide[:, 0]
            initializer.CopyFrom(onnx.numpy_helper.from_array(array, initializer.name))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 40_000
    ex = compiled(model, dump_after=("lower",), dump_folder=str(tmp_path))
    (path,) = tmp_path.glob("lower*")
    arenas = [line for line in path.read_text().splitlines() if re.search(r"arena\w*: .*alloc_storage", line)]
    sizes = {int(re.search(r"R.shape\(\[(\d+)\]\)", line)[1]) for line in arenas}  # type: ignore[index]
    heights = {one.height for one in ex.report.memory if one.region.startswith("main_batch_")}
    assert len(arenas) == len(SIZES) and sizes == {max(heights)} and len(heights) > 1
    assert all(one.height == one.lower_bound for one in ex.report.memory)
    ex.export(tmp_path / "model.so")
    once = wide.nbytes + wide[:, 0].nbytes
    assert once < (tmp_path / "model.so").stat().st_size < 2 * once


def test_it_travels_in_a_library(planner: StandIn, tmp_path: Path) -> None:
    ex = compiled()
    ex.export(tmp_path / "model.so")
    planner.requests.clear()
    loaded = tvm_mxplan.load(tmp_path / "model.so")
    assert planner.requests == [] and len(list(region_modules(loaded.module))) == len(SIZES)
    assert loaded.report.to_json()["regions"] == ex.report.to_json()["regions"]
    with pytest.raises(UnsupportedError, match="NVIDIA H200"):
        loaded(np.zeros((5, 3, 14, 10), "float16"))
    with pytest.raises(InvalidInputError, match="dimension batch is 7; expected 1 to 6"):
        loaded(np.zeros((7, 3, 14, 10), "float16"))


def test_programs_of_larger_sizes_have_the_rows_of_smaller_ones(planner: StandIn) -> None:
    lines = "a = R.nn.conv2d(x, w, padding=1)\nb = R.nn.relu(a)\nc = R.mean(b, axis=[2, 3])\nreturn c"
    parameters = 'x: R.Tensor(("n", 3, 14, 10), "float32"), w: R.Tensor((17, 3, 3, 3), "float32")'
    bound = relax.transform.BindParams("main", {"w": normal(1, 17, 3, 3, 3)})(parse(lines, parameters))
    batch = named_batch(bound, {"n": (1, 6)}, (3,))
    assert batch is not None and not batch.meet
    backend = on_h200()
    passes = [
        SpecializeSizes(batch),
        relax.transform.ConvertToDataflow(1),
        DispatchOperators(preference_of([backend])),
        PartitionRegions(),
    ]
    mod = tvm.transform.Sequential(passes)(bound)
    x, found = normal(2, 3, 3, 14, 10), {}
    for region in mod.functions.values():
        if region.attrs and "Codegen" in region.attrs:
            program, constants, _ = backend.translate(region, "r", default_rates())
            rows = int(program.values[program.of_kind("input")[0]].shape[0])  # type: ignore[arg-type]
            padded = np.zeros((rows, 3, 14, 10), "float32")
            padded[: min(rows, 3)] = x[:rows]
            laid_out = infer_layouts(program, backend).program
            found[rows] = run_program(laid_out, constants, [padded])[0][: min(rows, 3)]
    right = run(relax.VirtualMachine(tvm.compile(bound, CPU), tvm.cpu()), x)[0]
    assert sorted(found) == list(SIZES)
    for rows, result in found.items():
        np.testing.assert_allclose(result, right[:rows], rtol=1e-4, atol=1e-4)


def test_a_cpu_beside_the_gpu(planner: StandIn, tmp_path: Path) -> None:
    ex = compiled(
        named("float32"), BOTH, prefer={"conv2d": "cudnn"}, dump_after=("sizes",), dump_folder=str(tmp_path)
    )
    kinds = [str(module.kind) for module in region_modules(ex.module)]
    assert kinds.count("mxplan_cudnn") >= len(SIZES)
    (path,) = tmp_path.glob("sizes*")
    text = path.read_text()
    assert text.count("devices.copy") >= 2 * len(SIZES)
    main = text[text.index("def main(") :]
    assert "cuda" not in main  # inputs and results are the CPU's


def test_what_a_batch_needs_is_said(planner: StandIn) -> None:
    given = {"device_properties": DEVICES / "h200.json"}
    with pytest.raises(InvalidInputError, match=r"dimension batch: .*bounds="):
        tvm_mxplan.compile(named(), TARGET, **given)
    with pytest.raises(InvalidInputError, match="batch_sizes"):
        compiled(batch_sizes="12")
    with pytest.raises(InvalidInputError, match="no dimension of the model has a name"):
        tvm_mxplan.compile(small_network(), TARGET, options={"batch_sizes": "3"}, **given)
    for wrong in ("x", (0,), 3, (1.5,)):
        with pytest.raises(InvalidInputError, match="option batch_sizes="):
            compiled(batch_sizes=wrong)
    assert planner.requests == []


def test_where_rows_meet_the_library_says_so(planner: StandIn, tmp_path: Path) -> None:
    model = named()
    (last,) = [node for node in model.graph.node if "y" in node.output]
    last.output[0] = "rows"
    model.graph.node.append(helper.make_node("Softmax", ["rows"], ["y"], axis=0))
    compiled(model, dump_after=("sizes",), dump_folder=str(tmp_path))
    (path,) = tmp_path.glob("sizes*")
    text = path.read_text()
    assert "batch.pad" not in text and "rows meet at softmax" in text.replace("nn.softmax", "softmax")
