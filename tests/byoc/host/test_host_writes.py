"""Steps that write over some elements: kernels against numpy, and results in the place of what they read."""

from __future__ import annotations

import numpy as np
import pytest
from host_steps import drawn, ran
from tvm import relax

import tvm_mxplan
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.operators.put import put
from tvm_mxplan.report.inspection import decoded_programs

RANDOM = np.random.default_rng(3)
PUTS = [
    ((7, 5), (1, 5), (2, 0), (1, 1)), ((7, 5), (7, 2), (0, 1), (1, 2)), ((9,), (3,), (2,), (3,)),
    ((3, 16, 33), (2, 5, 7), (1, 4, 5), (1, 2, 3)), ((3, 4, 33), (3, 4, 33), (0, 0, 0), (1, 1, 1)),
    ((3, 4), (0, 4), (0, 0), (1, 1)), ((0, 4), (0, 2), (0, 1), (1, 1)),
    ((200, 300), (150, 300), (7, 0), (1, 1)),
]  # fmt: skip
Places = tuple[int, ...]


@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "int64"])
@pytest.mark.parametrize("shape, part, begin, steps", PUTS)
def test_put(shape: Places, part: Places, begin: Places, steps: Places, dtype: str) -> None:
    data, new = drawn(shape, dtype), drawn(part, dtype)
    expected = data.copy()
    expected[np.ix_(*[b + s * np.arange(n) for b, s, n in zip(begin, steps, part, strict=True)])] = new
    found = ran(ir.Put(begin, steps), [("src", data), ("part", new)], shape, dtype)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("layout", ["acdb", "aBcd8b"])
def test_put_in_other_layouts(layout: str) -> None:
    data, new = drawn((2, 13, 5, 6)), drawn((2, 3, 5, 2))
    expected = data.copy()
    expected[:, 4:9:2, :, 3:5] = new
    attrs = ir.Put((0, 4, 0, 3), (1, 2, 1, 1))
    found = ran(attrs, [("src", data), ("part", new)], data.shape, layouts=[layout, "abcd", layout])
    assert np.array_equal(found, expected)


SCATTERS = [
    ((17, 5), 1, 4),
    ((17, 5), 2, 30),
    ((9,), 1, 1),
    ((9,), 1, 0),
    ((3, 4, 700), 2, 6),
    ((3000, 40), 1, 2000),
]


@pytest.mark.parametrize("of", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "int64"])
@pytest.mark.parametrize("shape, depth, count", SCATTERS)
def test_the_last_update_of_a_place_stays(shape: Places, depth: int, count: int, dtype: str, of: str) -> None:
    data, updates = drawn(shape, dtype), drawn((count, *shape[depth:]), dtype)
    indices = places(shape, depth, count, of)
    expected = data.copy()
    for entry, row in zip(indices, updates, strict=True):
        expected[tuple(entry)] = row
    operands = [("src", data), ("indices", indices), ("updates", updates)]
    assert np.array_equal(ran(ir.Scatter("update"), operands, shape, dtype), expected)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("name", ["add", "min", "max"])
@pytest.mark.parametrize("shape, depth, count", SCATTERS)
def test_updates_of_a_place_are_combined(
    shape: Places, depth: int, count: int, name: str, dtype: str
) -> None:
    data, updates = (np.round(drawn(of)).astype(dtype) for of in (shape, (count, *shape[depth:])))
    indices = places(shape, depth, count, "int64")
    expected = data.copy()
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum}[name]
    ufunc.at(expected, tuple(indices.T), updates)
    operands = [("src", data), ("indices", indices), ("updates", updates)]
    assert np.array_equal(ran(ir.Scatter(name), operands, shape, dtype), expected)


def places(shape: Places, depth: int, count: int, dtype: str) -> np.ndarray:
    """Indices from either end, some of them more than once."""
    extents = np.array(shape[:depth])
    return (RANDOM.integers(0, 2 * extents, (count, depth)) - extents).astype(dtype)


def test_an_index_that_is_out_of_bounds_is_named() -> None:
    data, updates = drawn((4, 3)), drawn((2, 3))
    operands = [("src", data), ("indices", np.array([[1], [4]])), ("updates", updates)]
    with pytest.raises(InvalidInputError, match=r"out of bounds for axis 0 .* from -4 to 3, got 4"):
        ran(ir.Scatter("update"), operands, (4, 3))


ELEMENTS = [
    ((7, 5), (7, 3), 1),
    ((7, 5), (2, 5), 0),
    ((7, 5), (60, 3), 0),
    ((3, 40, 50), (2, 90, 7), 1),
    ((300,), (4,), 0),
]


@pytest.mark.parametrize("of", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "int64"])
@pytest.mark.parametrize("shape, picked, axis", ELEMENTS)
def test_elements_are_picked_along_an_axis(
    shape: Places, picked: Places, axis: int, dtype: str, of: str
) -> None:
    data, indices = drawn(shape, dtype), along(shape, picked, axis, of)
    places = list(np.indices(picked))
    places[axis] = indices
    operands = [("src", data), ("indices", indices)]
    found = ran(ir.GatherElements(axis), operands, picked, dtype)
    assert np.array_equal(found, data[tuple(places)])


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("name", ["update", "add", "min", "max"])
@pytest.mark.parametrize("shape, picked, axis", ELEMENTS)
def test_elements_are_updated_along_an_axis(
    shape: Places, picked: Places, axis: int, name: str, dtype: str
) -> None:
    """Several updates of one element, in their order."""
    data, updates = (np.round(drawn(of)).astype(dtype) for of in (shape, picked))
    indices, expected = along(shape, picked, axis, "int64"), data.copy()
    for at in np.ndindex(*picked):
        place = (*at[:axis], indices[at], *at[axis + 1 :])
        old, new = expected[place], updates[at]
        expected[place] = {"update": new, "add": old + new, "min": min(old, new), "max": max(old, new)}[name]
    operands = [("src", data), ("indices", indices), ("updates", updates)]
    assert np.array_equal(ran(ir.ScatterElements(axis, name), operands, shape, dtype), expected)


def along(shape: Places, picked: Places, axis: int, dtype: str) -> np.ndarray:
    return RANDOM.integers(-shape[axis], shape[axis], picked).astype(dtype)


def test_an_element_that_is_out_of_bounds_is_named() -> None:
    operands = [("src", drawn((4, 3))), ("indices", np.array([[0, -5, 0]]))]
    with pytest.raises(InvalidInputError, match=r"out of bounds for axis 0 .* from -4 to 3, got -5"):
        ran(ir.GatherElements(0), operands, (1, 3))


# --- whole functions -------------------------------------------------------------------------------------


def rows_of(x: relax.Var, count: int, builder: relax.BlockBuilder) -> relax.Expr:
    """Each row but two becomes the sum of those before it, which are read where they were written."""
    y = builder.emit(relax.op.nn.relu(x))
    for at in range(2, count):
        before = builder.emit(relax.op.strided_slice(y, [0], [0], [at]))
        total = builder.emit(relax.op.sum(before, [0], keepdims=True))
        y = builder.emit(put(y, total, 0, at))
    return builder.emit(relax.op.multiply(y, y))


def programs(ex: tvm_mxplan.Executable) -> list[ir.Program]:
    return list(decoded_programs(ex.module))


def compiled(count: int, target: str = "dnnl, host, llvm") -> tvm_mxplan.Executable:
    x = relax.Var("x", relax.TensorType((count, 40), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(rows_of(x, count, builder))
        builder.emit_func_output(y)
    return tvm_mxplan.compile(builder.get(), target)


def expected_rows(x: np.ndarray) -> np.ndarray:
    y = np.maximum(x, 0).astype("float64")
    for at in range(2, len(x)):
        y[at] = y[:at].sum(0)
    return y * y


def test_rows_are_written_where_the_tensor_stands() -> None:
    ex = compiled(6)
    (program,) = programs(ex)
    results = [program.values[step.dst] for step in program.steps if step.kind == "put"]
    assert len(results) == 4 and all(value.alias_of >= 0 for value in results)
    x = drawn((6, 40))
    np.testing.assert_allclose(ex(x)[0].numpy(), expected_rows(x), rtol=1e-5)


def test_without_the_library_a_kernel_does_it() -> None:
    ex = compiled(6, "dnnl, llvm")
    assert "put" not in [step.kind for program in programs(ex) for step in program.steps]
    x = drawn((6, 40))
    np.testing.assert_allclose(ex(x)[0].numpy(), expected_rows(x), rtol=1e-5)


def test_what_is_read_afterwards_is_not_written_over() -> None:
    x = relax.Var("x", relax.TensorType((5, 40), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.relu(x))
            row = builder.emit(relax.op.sum(y, [0], keepdims=True))
            z = builder.emit(put(y, row, 0, 2))
            out = builder.emit_output(relax.op.multiply(z, y))
        builder.emit_func_output(out)
    ex = tvm_mxplan.compile(builder.get())
    (program,) = programs(ex)
    (step,) = [step for step in program.steps if step.kind == "put"]
    assert program.values[step.dst].alias_of < 0
    data = np.maximum(drawn((5, 40)), 0)
    changed = data.copy()
    changed[2] = data.sum(0)
    np.testing.assert_allclose(ex(data)[0].numpy(), changed * data, rtol=1e-5)
