"""Made-up inputs, input files, outputs and times."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan import InvalidInputError, UnsupportedError
from tvm_mxplan.execution import runner
from tvm_mxplan.execution.signature import Port, Signature

SIGNATURE = Signature(
    (
        Port("image", ("n", 3, "h"), "float32"),
        Port("tokens", ("n", 4), "int64"),
        Port("mask", ("n",), "bool"),
    ),
    (Port("y", ("n",), "float32"),),
)


def test_symbols_are_one_and_agree():
    shapes = {name: x.shape for name, x in runner.fill_inputs(SIGNATURE).items()}
    assert shapes == {"image": (1, 3, 1), "tokens": (1, 4), "mask": (1,)}
    stated = runner.fill_inputs(SIGNATURE, shapes={"image": (5, 3, 7)})
    assert {name: x.shape for name, x in stated.items()} == {
        "image": (5, 3, 7),
        "tokens": (5, 4),
        "mask": (5,),
    }
    given = runner.fill_inputs(SIGNATURE, given={"mask": np.ones(2, bool)})
    assert given["tokens"].shape == (2, 4)


def test_random_values_have_the_type_follow_the_seed_and_vary():
    big = {"image": (9, 3, 99)}
    first, second, other = (runner.fill_inputs(SIGNATURE, seed=seed, shapes=big) for seed in (1, 1, 2))
    assert [x.dtype.name for x in first.values()] == ["float32", "int64", "bool"]
    for name, x in first.items():
        np.testing.assert_array_equal(x, second[name])
        assert (x != other[name]).any()
    assert 0 <= first["image"].min() < 0.1 < 0.9 < first["image"].max() < 1
    assert 0 <= first["tokens"].min() < first["tokens"].max() < 128


@pytest.mark.parametrize("mode, value", [("zeros", 0), ("ones", 1)])
def test_constant_fills(mode, value):
    for x in runner.fill_inputs(SIGNATURE, mode).values():
        assert (x == value).all()


def test_what_cannot_be_filled():
    with pytest.raises(InvalidInputError, match=r"'noise'.*random, zeros, ones"):
        runner.fill_inputs(SIGNATURE, "noise")
    with pytest.raises(InvalidInputError, match=r"'picture'.*image, tokens, mask"):
        runner.fill_inputs(SIGNATURE, shapes={"picture": (1,)})
    with pytest.raises(InvalidInputError, match=r"'x'.*not known"):
        runner.fill_inputs(Signature((Port("x", ("*",), ""),), ()))
    with pytest.raises(InvalidInputError, match=r"'x'.*not known"):
        runner.fill_inputs(Signature((Port("x", ("n * 2",), "float32"),), ()))
    with pytest.raises(UnsupportedError, match=r"x: float8"):
        runner.fill_inputs(Signature((Port("x", (2,), "float8"),), ()))


def test_input_files_round_trip_under_any_name(tmp_path):
    arrays = {
        "file": np.random.default_rng(0).standard_normal((3, 4)),
        "a/b:0": np.arange(3, dtype=np.int8),
        "scalar": np.float32(2.5),
    }
    runner.save_outputs(tmp_path / "x.npz", arrays)
    read = runner.read_inputs(tmp_path / "x.npz")
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_a_failing_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        runner.save_outputs(path, {"x": np.ones(3), "y": np.array([object()])})
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_one_array_is_no_input_file(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(InvalidInputError, match=r"not an \.npz file.*one array"):
        runner.read_inputs(tmp_path / "x.npy")


def test_statistics():
    timing = runner.Timing((1.0, 2.0, 6.0))
    assert (timing.mean, timing.median) == (3.0, 2.0)
    assert timing.std == pytest.approx(np.std([1, 2, 6]))
    assert str(timing).splitlines()[2].split() == ["3.0000", "2.0000", "6.0000", "1.0000", "2.1602"]


def test_top_elements():
    values = np.array([[0.5, -1.0], [7.0, 0.5]], np.float32)
    assert runner.top_elements(values, 3) == [(2, 7.0), (0, 0.5), (3, 0.5)]
    assert len(runner.top_elements(values, 99)) == 4
