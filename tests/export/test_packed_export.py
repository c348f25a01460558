"""Libraries whose weights are stored packed: used where they are mapped, and on any other machine too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pointwise
import pytest
import tvm_ffi

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.opcheck import check
from tvm_mxplan.testing import zoo

RUN = """
import sys
import numpy as np
import tvm_mxplan
answer = tvm_mxplan.load(sys.argv[1])(np.load(sys.argv[2]))[0].numpy()
np.save(sys.argv[3], answer)
print(tvm_mxplan.cache_statistics()["weights"].misses)
"""


def region_modules(module: Any) -> list[Any]:
    found = [module] if module.kind == "mxplan_onednn" else []
    return found + [region for child in module.imports for region in region_modules(child)]


@pytest.fixture(scope="module")
def compiled() -> tvm_mxplan.Executable:
    ex = tvm_mxplan.compile(pointwise.model())
    assert ex.report.regions and not ex.report.fallbacks
    return ex


@pytest.fixture(scope="module")
def paths(compiled: tvm_mxplan.Executable, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("packed")
    names = {name: folder / f"{name}.so" for name in ("plain", "packed", "plain_again")}
    compiled.export(names["plain"])
    compiled.export(names["packed"], packed_weights=True)
    compiled.export(names["plain_again"])
    return names


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(7).standard_normal(pointwise.SHAPE).astype("float32")


@pytest.fixture
def no_cache() -> Iterator[None]:
    """Whoever packs, packs for himself."""
    capacity = tvm_mxplan.cache_statistics()["weights"].most_bytes
    tvm_mxplan.set_cache_capacity("weights", bytes=0)
    yield
    tvm_mxplan.set_cache_capacity("weights", bytes=capacity)


def packings(path: Path, x: np.ndarray) -> tuple[int, np.ndarray]:
    before = tvm_mxplan.cache_statistics()["weights"].misses
    answer = tvm_mxplan.load(path)(x)[0].numpy()
    return tvm_mxplan.cache_statistics()["weights"].misses - before, answer


def test_packed_weights_are_used_as_they_are(
    compiled: tvm_mxplan.Executable, paths: dict[str, Path], x: np.ndarray, no_cache: None
) -> None:
    expected = compiled(x)[0].numpy()
    for name, count in (("plain", 1), ("packed", 0), ("plain_again", 1)):
        packed, answer = packings(paths[name], x)
        assert packed == count, name
        np.testing.assert_array_equal(answer, expected)


def test_plain_copies_are_not_kept_beside(paths: dict[str, Path]) -> None:
    packed, plain = (paths[name].stat().st_size for name in ("packed", "plain"))
    assert packed < 1.05 * plain  # padded blocks
    module = tvm_mxplan.load(paths["packed"])
    (region,) = region_modules(module.module)
    module(np.zeros(pointwise.SHAPE, "float32"))
    assert library.stats(region)["packed_weight_bytes"] == 0


def test_another_instruction_set_packs_for_itself(
    compiled: tvm_mxplan.Executable, paths: dict[str, Path], x: np.ndarray, tmp_path: Path
) -> None:
    if "avx512" not in library.isa():
        pytest.skip("the layouts of AVX2 are this machine's own")
    np.save(tmp_path / "x.npy", x)
    answer = subprocess.run(
        [sys.executable, "-c", RUN, paths["packed"], tmp_path / "x.npy", tmp_path / "y.npy"],
        capture_output=True,
        text=True,
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "SSE41"},
    )
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) == 1
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), compiled(x)[0].numpy(), rtol=1e-4, atol=1e-3)


def test_opcheck_sees_plain_weights(paths: dict[str, Path], x: np.ndarray, tmp_path: Path) -> None:
    result = check(tvm_mxplan.load(paths["packed"]), x, folder=tmp_path)
    result.raise_first()
    assert result.steps > 0


def test_a_loaded_module_saves_what_it_has(paths: dict[str, Path], x: np.ndarray) -> None:
    (region,) = region_modules(tvm_mxplan.load(paths["packed"]).module)
    saved = bytes(region["mxplan.save"]())
    again = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.mxplan_onednn")(saved)
    assert bytes(again["mxplan.save"]()) == saved


def test_a_form_that_cannot_be_is_refused(paths: dict[str, Path]) -> None:
    (region,) = region_modules(tvm_mxplan.load(paths["packed"]).module)
    saved = bytes(region["mxplan.save"]())
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.mxplan_onednn")
    wrong = saved.replace((2503).to_bytes(8, "little"), (2504).to_bytes(8, "little"))
    assert wrong != saved
    with pytest.raises(ValueError, match="stored as"):
        load(wrong)


def test_convolutions_in_both_forms(tmp_path: Path, no_cache: None) -> None:
    """Winograd's filters are stored beside the plain ones."""
    ex = tvm_mxplan.compile(zoo.load(zoo.TINY), options={"convolutions": "winograd_f4"})
    ex.export(tmp_path / "plain.so")
    ex.export(tmp_path / "packed.so", packed_weights=True)
    inputs = zoo.random_inputs(zoo.load(zoo.TINY), seed=3)
    steps = [step for region in ex.report.regions for step in region.steps]
    assert any(step.implementation.startswith("winograd") for step in steps)
    counts = {}
    for name in ("plain", "packed"):
        before = tvm_mxplan.cache_statistics()["weights"].misses
        actual = tvm_mxplan.load(tmp_path / f"{name}.so")(**inputs)[0].numpy()
        counts[name] = tvm_mxplan.cache_statistics()["weights"].misses - before
        np.testing.assert_array_equal(actual, ex(**inputs)[0].numpy())
    assert counts["packed"] == 0 < counts["plain"]


def test_what_a_packed_library_holds_stays_plain_elsewhere(tmp_path: Path) -> None:
    """Another instruction set finds none of its own forms, and still the weights."""
    other = "AVX2" if "avx512" in library.isa() else "SSE41"
    model = zoo.load(zoo.TINY)
    ex = tvm_mxplan.compile(model, options={"convolutions": "winograd_f4"})
    ex.export(tmp_path / "packed.so", packed_weights=True)
    (x,) = zoo.random_inputs(model, seed=3).values()
    np.save(tmp_path / "x.npy", x)
    answer = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path / "packed.so", tmp_path / "x.npy", tmp_path / "y.npy"],
        capture_output=True,
        text=True,
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": other},
    )
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 0
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), ex(x)[0].numpy(), rtol=1e-3, atol=1e-4)
