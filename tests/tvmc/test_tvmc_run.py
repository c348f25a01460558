"""``tvmc run``: inputs made up or read, outputs written, times printed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm_mxplan


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, 3, 9, 9), np.float32)


def features(models, x: np.ndarray) -> np.ndarray:
    ex = tvm_mxplan.load(models / "small.so")
    assert ex.report.regions
    return ex(x)[0].numpy()


def test_outputs_are_those_of_the_inputs_given(tvmc, models, tmp_path, x):
    np.savez(tmp_path / "in.npz", image=x)
    result = tvmc("run", models / "small.so", "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert (result.code, result.err) == (0, "")
    with np.load(tmp_path / "out.npz") as outputs:
        assert outputs.files == ["features"]
        np.testing.assert_array_equal(outputs["features"], features(models, x))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npz", "out.npz"]


def test_the_tutorials_line_runs_on_bytes_in_either_order(tvmc, models, tmp_path, x):
    """As TVM's tutorial has it; files from other machines may have the bytes of numbers in another order."""
    np.savez(tmp_path / "in.npz", image=x.astype(">f4"))
    command = ("run", "--inputs", tmp_path / "in.npz", "--output", tmp_path / "predictions.npz")
    assert tvmc(*command, models / "small.so").code == 0
    with np.load(tmp_path / "predictions.npz") as outputs:
        np.testing.assert_array_equal(outputs["features"], features(models, x))


@pytest.mark.parametrize("mode", ["zeros", "ones"])
def test_fill_modes(tvmc, models, tmp_path, mode):
    assert tvmc("run", models / "small.so", "--fill-mode", mode, "-o", tmp_path / "out.npz").code == 0
    expected = features(models, np.full((1, 3, 9, 9), mode == "ones", np.float32))
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["features"], expected)


def test_random_inputs_follow_the_seed(tvmc, models, tmp_path):
    seen = []
    for number, flags in enumerate([(), ("--seed", 0), ("--seed", 1)]):
        assert tvmc("run", models / "small.so", *flags, "-o", tmp_path / f"{number}.npz").code == 0
        seen.append(np.load(tmp_path / f"{number}.npz")["features"])
    np.testing.assert_array_equal(seen[0], seen[1])
    assert np.abs(seen[0] - seen[2]).max() > 0.1
    assert seen[0].any()


def test_times_are_printed_as_a_table(tvmc, models):
    result = tvmc("run", models / "small.so", "--print-time", "--repeat", 3, "--number", 2)
    lines = result.out.splitlines()
    assert lines[0] == "Execution time summary:"
    assert re.findall(r"\w+ \(ms\)", lines[1]) == [
        f"{n} (ms)" for n in ("mean", "median", "max", "min", "std")
    ]
    mean, median, most, least, std = map(float, lines[2].split())
    assert 0 < least <= median <= most
    assert least <= mean <= most
    assert std >= 0


def test_end_to_end_times_are_printed_too(tvmc, models):
    assert "Execution time" in tvmc("run", models / "small.so", "--print-time", "--end-to-end").out


def test_the_largest_elements_come_first(tvmc, models, tmp_path, x):
    np.savez(tmp_path / "in.npz", image=x)
    result = tvmc("run", models / "small.so", "-i", tmp_path / "in.npz", "--print-top", 3)
    expected = features(models, x).reshape(-1)
    rows = [line.split() for line in result.out.splitlines()[1:]]
    assert [int(row[0]) for row in rows] == list(np.argsort(-expected)[:3])
    assert float(rows[0][1]) == pytest.approx(expected.max(), rel=1e-5)


def test_symbolic_dimensions_are_one_unless_stated(tvmc, models, tmp_path):
    for flags, batch in (((), 1), (("--input-shapes", "image:[3,3,9,9]"), 3)):
        result = tvmc("run", models / "batch.so", *flags, "-o", tmp_path / "out.npz")
        assert f"features: float32[{batch}, 17, 9, 9]" in result.out
        assert np.load(tmp_path / "out.npz")["features"].shape[0] == batch


def test_a_library_of_stock_tvm_runs_with_its_inputs_given(tvmc, tmp_path, x):
    stock_library(tmp_path / "stock.so")
    np.savez(tmp_path / "in.npz", x=x)
    assert "input 'x'" in tvmc("run", tmp_path / "stock.so").error()
    result = tvmc("run", tmp_path / "stock.so", "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert result.code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["output0"], np.maximum(x, 0))


def stock_library(path):
    """``relu`` as TVM alone compiles it."""
    import tvm
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3, 9, 9), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    tvm.compile(builder.get(), tvm.target.Target("llvm")).export_library(str(path))
