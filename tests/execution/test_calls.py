"""Calls of a compiled model: what each does beside the model, and that no array is mistaken for another."""

from __future__ import annotations

import numpy as np
import pytest
from handed_on import numbers, passing_on

import tvm_mxplan
from tvm_mxplan.execution.calls import CallCounters
from tvm_mxplan.testing.mlp import mlp
from tvm_mxplan.testing.reference import onnxruntime_outputs


@pytest.fixture(scope="module")
def model():
    return mlp([8, 16, 4])


@pytest.fixture(scope="module")
def compiled(model):
    ex = tvm_mxplan.compile(model)
    assert ex.report.regions
    return ex


@pytest.fixture
def ex(compiled):
    """The executable without earlier calls."""
    return tvm_mxplan.Executable(compiled.module, compiled.signature, compiled.report)


@pytest.fixture(scope="module")
def handing_on():
    return tvm_mxplan.compile(passing_on())


def counters(ex) -> CallCounters:
    return ex._caller().counters()


def test_only_the_first_call_of_a_shape_is_looked_at(ex, model):
    for seed in range(3):
        x = numbers(1, 8, seed=seed)
        (y,) = ex(x)
        np.testing.assert_allclose(y.numpy(), onnxruntime_outputs(model, {"x": x})[0], rtol=1e-5, atol=1e-6)
    assert counters(ex) == CallCounters(calls=3, looked_at=1, copied=0, held=0, parted=0)
    ex(x=x)
    ex.run({"x": x})
    assert counters(ex).looked_at == 1


@pytest.mark.parametrize("offset", [4, 16, 60])
def test_arrays_that_begin_anywhere_are_copied_into_one_tensor(ex, offset):
    wanted = ex.run(numbers(1, 8))
    before = counters(ex)
    for _ in range(5):
        np.testing.assert_array_equal(ex.run(numbers(1, 8, offset=offset)), wanted)
    assert counters(ex) == CallCounters(
        before.calls + 5, before.looked_at, copied=before.copied + 5, held=1, parted=0
    )


def test_each_thread_has_its_own_way_in(ex):
    import threading

    x = numbers(1, 8)
    seen = []

    def call() -> None:
        ex(x)
        seen.append(counters(ex).calls)

    for _ in range(2):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert seen == [1, 1]


# --- what differs from earlier calls --------------------------------------------------------------------


def test_what_is_wrong_is_said_also_after_calls_that_were_right(ex):
    x = numbers(1, 8)
    ex(x)
    for wrong, text in [
        (x.astype("float64"), "expected element type float32, got float64"),
        (x.view("int32"), "expected element type float32, got int32"),
        (x.T, "expected that shape, got [8, 1]"),
        (x[0], "expected that shape, got [8]"),
        (numbers(2, 8), "expected that shape, got [2, 8]"),
        (x.tolist(), "expected a numpy array or a TVM tensor, got list"),
        (None, "expected a numpy array or a TVM tensor, got NoneType"),
    ]:
        for call in (ex, ex.run):
            with pytest.raises(tvm_mxplan.InvalidInputError) as error:
                call([wrong]) if call == ex.run else call(wrong)
            assert text in str(error.value)
    for call in (lambda: ex(), lambda: ex(x, x), lambda: ex(y=x), lambda: ex(x, x=x), lambda: ex.run({})):
        with pytest.raises(tvm_mxplan.InvalidInputError):
            call()
    assert counters(ex).calls == 1


def test_arrays_of_any_storage_are_taken_as_they_read(ex, tmp_path):
    x = numbers(1, 8)
    wanted = ex.run(x)[0]
    constant = x.copy()
    constant.flags.writeable = False
    wide = np.repeat(x, 2, axis=1)[:, ::2]
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert not wide.flags.c_contiguous and type(mapped) is np.memmap
    for array in (constant, wide, x[:, ::-1].copy()[:, ::-1], mapped, np.frombuffer(x.tobytes(), "f4")[None]):
        for _ in range(2):
            np.testing.assert_array_equal(ex.run(array)[0], wanted)
    with pytest.raises(tvm_mxplan.InvalidInputError, match="expected element type float32, got >f4"):
        ex.run(x.astype(">f4"))


def test_an_input_may_change_as_soon_as_the_call_returns(ex):
    for offset in (0, 4):
        x = numbers(1, 8, offset=offset)
        (y,) = ex(x)
        kept = y.numpy().copy()
        x[:] = 0
        ex(x)
        np.testing.assert_array_equal(y.numpy(), kept)


@pytest.mark.parametrize("offset, parted, held", [(0, 1, 0), (4, 0, 1)])
def test_results_are_no_memory_of_the_callers(handing_on, offset, parted, held):
    """An output that is an input is copied, or keeps the copy that was made of the input."""
    ex = tvm_mxplan.Executable(handing_on.module, handing_on.signature, handing_on.report)
    results = []
    ex.run(numbers(3, 5))
    before = counters(ex)
    for seed in range(3):
        x = numbers(3, 5, seed=seed, offset=offset)
        y, z = ex.run(x)
        assert not np.shares_memory(x, y)
        results.append((x.copy(), y, z))
        x[:] = np.nan
    for x, y, z in results:
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(z, np.maximum(x, 0))
    found = counters(ex)
    assert (found.calls - before.calls, found.parted - before.parted) == (3, 3 * parted)
    assert found.held - before.held == 3 * held


def test_tvm_tensors_are_read_where_they_stand(ex):
    from tvm_mxplan.execution.machine import tensor_of

    x = numbers(1, 8, offset=4)
    wanted = ex.run(x)
    before = counters(ex)
    np.testing.assert_array_equal(ex.run(tensor_of(x)), wanted)
    assert counters(ex) == CallCounters(**{**vars(before), "calls": before.calls + 1})


# --- named sizes ----------------------------------------------------------------------------------------


def test_shapes_that_were_right_are_remembered_within_bounds():
    ex = tvm_mxplan.compile(mlp([8, 16, 4], "N"))
    assert ex.report.regions
    for batch in (3, 5, 3, 5):
        assert ex.run(numbers(batch, 8))[0].shape == (batch, 4)
    assert counters(ex).looked_at == 2
    for batch in range(1, 70):
        ex.run(numbers(batch, 8))
    assert counters(ex).looked_at == 69
    ex.run(numbers(69, 8))
    assert counters(ex).looked_at == 69
    ex.run(numbers(1, 8))
    assert counters(ex).looked_at == 70
    with pytest.raises(tvm_mxplan.InvalidInputError, match="expected that shape"):
        ex.run(numbers(3, 7))


# --- given arrays ---------------------------------------------------------------------------------------


def test_results_are_written_into_given_arrays(ex, handing_on):
    x = numbers(1, 8)
    (wanted,) = ex.run(x)
    room = np.full((3, 4), np.nan, "float32")
    out = [room[1:2]]
    assert ex.run(x, out=out)[0] is out[0]
    np.testing.assert_array_equal(room[1:2], wanted)
    assert np.isnan(room[[0, 2]]).all()
    x = numbers(3, 5)
    y, z = np.empty((5, 3), "float32").T, x  # strided; the input's own memory
    kept = x.copy()
    handing_on.run(x, out=[y, z])
    np.testing.assert_array_equal(y, kept)
    np.testing.assert_array_equal(z, np.maximum(kept, 0))


def test_given_arrays_that_do_not_fit_are_refused_and_nothing_is_written(handing_on):
    x = numbers(3, 5)
    right = np.full((3, 5), 7, "float32")
    constant = right.copy()
    constant.flags.writeable = False
    for wrong, text in [
        (right[:2], "out: result 'z' is float32[3, 5]; got an array of float32[2, 5]"),
        (right.astype("float64"), "out: result 'z' is float32[3, 5]; got an array of float64[3, 5]"),
        (constant, "out: expected a numpy array to write 'z' into, got a read-only array"),
        (right.tolist(), "out: expected a numpy array to write 'z' into, got list"),
    ]:
        for give in (handing_on.run, handing_on.bind):
            with pytest.raises(tvm_mxplan.InvalidInputError) as error:
                give(x, out=[right, wrong])
            assert str(error.value) == text
    with pytest.raises(tvm_mxplan.InvalidInputError, match="1 arrays given for 2 results"):
        handing_on.run(x, out=[right])
    assert (right == 7).all()
