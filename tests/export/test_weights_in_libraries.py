"""Weights of an exported library: read where the system maps them, held once, saved again as they were."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pointwise
import pytest
import tvm
import tvm_ffi

import tvm_mxplan
from tvm_mxplan.testing import zoo

LOAD_AND_RUN = """
import json, sys
from pathlib import Path
import numpy as np
import tvm_mxplan
from tvm_mxplan.execution.runner import fill_inputs

def status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])

def run(path):
    ex = tvm_mxplan.load(path)
    return ex, ex(**fill_inputs(ex.signature, "random"))[0].numpy()

small = run(sys.argv[1])  # what any model costs: code of oneDNN and of the virtual machine
Path("/proc/self/clear_refs").write_text("5")
base = status("VmRSS")
ex, answer = run(sys.argv[2])
np.save(sys.argv[3], answer)
(region,) = ex.report.regions
print(json.dumps({"above": status("VmHWM") - base, "needed": region.constant_bytes + region.arena_bytes}))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("libraries")
    paths = {}
    for name in (zoo.TINY, "resnet50"):
        paths[name] = folder / f"{name}.so"
        # Winograd's transformed filters take more than the plain ones.
        ex = tvm_mxplan.compile(zoo.load(name), options={"convolutions": "direct"})
        assert ex.report.regions and not ex.report.fallbacks
        ex.export(paths[name])
    return paths


def region_modules(module: Any) -> list[Any]:
    found = [module] if module.kind == "mxplan_onednn" else []
    return found + [region for child in module.imports for region in region_modules(child)]


@pytest.mark.slow
def test_the_peak_is_weights_and_arena(libraries: dict[str, Path], tmp_path: Path) -> None:
    arguments = [libraries[zoo.TINY], libraries["resnet50"], tmp_path / "answer.npy"]
    answer = subprocess.run(
        [sys.executable, "-c", LOAD_AND_RUN, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    memory = json.loads(answer.stdout.splitlines()[-1])
    assert memory["needed"] > 100e6
    assert memory["above"] <= 1.15 * memory["needed"]
    assert abs(float(np.load(arguments[2]).sum()) - 1) < 1e-4  # it was a softmax


def test_a_library_holds_its_weights_once(libraries: dict[str, Path]) -> None:
    report = tvm_mxplan.load(libraries["resnet50"]).report
    assert libraries["resnet50"].stat().st_size < report.regions[0].constant_bytes + 2**20


def test_a_loaded_module_saves_its_weights(libraries: dict[str, Path]) -> None:
    ex = tvm_mxplan.load(libraries[zoo.TINY])
    (region,) = region_modules(ex.module)
    before = bytes(region["mxplan.save"]())
    x = zoo.random_inputs(zoo.load(zoo.TINY), seed=3)
    ex(**x)  # packs, and gives plain pages back
    assert bytes(region["mxplan.save"]()) == before
    again = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.mxplan_onednn")(before)
    assert bytes(again["mxplan.save"]()) == before


def test_a_library_may_go_once_its_modules_are_loaded(libraries: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "gone.so"
    path.write_bytes(libraries[zoo.TINY].read_bytes())
    x = zoo.random_inputs(zoo.load(zoo.TINY), seed=3)
    expected = tvm_mxplan.load(libraries[zoo.TINY])(**x)[0].numpy()
    ex = tvm_mxplan.load(path)
    path.unlink()
    np.testing.assert_array_equal(ex(**x)[0].numpy(), expected)


def test_large_weights_are_packed_slice_by_slice(tmp_path: Path) -> None:
    """Rows that are no multiple of a block, in the last slice too."""
    ex = tvm_mxplan.compile(pointwise.model())
    ex.export(tmp_path / "large.so")
    x = np.random.default_rng(6).standard_normal(pointwise.SHAPE).astype("float32")
    expected = ex(x)[0].numpy()
    weights, bias = map(onnx.numpy_helper.to_array, pointwise.model().graph.initializer)
    assert weights.nbytes > 2**23  # a slice
    wanted = np.einsum("oi,nihw->nohw", weights[..., 0, 0].astype("float64"), x) + bias[:, None, None]
    np.testing.assert_allclose(expected, wanted, rtol=1e-4, atol=1e-3)
    capacity = tvm_mxplan.cache_statistics()["weights"].most_bytes
    tvm_mxplan.set_cache_capacity("weights", bytes=0)  # the loaded library packs for itself
    try:
        packed = tvm_mxplan.cache_statistics()["weights"].misses
        actual = tvm_mxplan.load(tmp_path / "large.so")(x)[0].numpy()
        assert tvm_mxplan.cache_statistics()["weights"].misses == packed + 1
    finally:
        tvm_mxplan.set_cache_capacity("weights", bytes=capacity)
    np.testing.assert_array_equal(actual, expected)


def test_stock_export_splits_the_weights_too(tmp_path: Path) -> None:
    ex = tvm_mxplan.compile(zoo.load(zoo.TINY))
    path = tmp_path / "stock.so"
    getattr(ex.module, "mod", ex.module).export_library(str(path))
    loaded = tvm.runtime.load_module(str(path))
    (region,) = region_modules(loaded)
    assert b"mxplan_weights_" in path.read_bytes()
    assert len(bytes(region["mxplan.save"]())) > 1000
    x = zoo.random_inputs(zoo.load(zoo.TINY), seed=3)
    main = tvm.runtime.vm.VirtualMachine(loaded, tvm.cpu())["main"]
    actual = main(*(tvm.runtime.tensor(array) for array in x.values()))
    np.testing.assert_array_equal(actual.numpy(), ex(**x)[0].numpy())


def test_a_region_without_its_weights_says_so(tmp_path: Path) -> None:
    ex = tvm_mxplan.compile(zoo.load(zoo.TINY, seed=99))  # no other test has loaded these weights
    root = getattr(ex.module, "mod", ex.module)
    (parent,) = root.imports
    kept = [module for module in parent.imports if module.kind != "mxplan.weights"]
    assert len(kept) == len(parent.imports) - 1
    parent.clear_imports()
    for module in kept:
        parent.import_module(module)
    root.export_library(str(tmp_path / "part.so"))
    with pytest.raises(ValueError, match="no loaded library has the data mxplan_weights_"):
        tvm.runtime.load_module(str(tmp_path / "part.so"))
