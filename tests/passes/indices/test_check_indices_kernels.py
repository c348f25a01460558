"""Checks that ``CheckIndices`` adds to each operator: axes, extents and types of indices."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx

from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.indices import CheckIndices
from tvm_mxplan.passes.region import NameOperators

N = tirx.Var("n", "int64")


def tensor(name: str, *shape: object, dtype: str = "int64") -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


def data(*shape: object) -> relax.Var:
    return tensor("x", *(shape or (5, 4, 3)), dtype="float32")


def module(call: relax.Expr, *inputs: relax.Var) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    with builder.function("main", list(inputs)):
        with builder.dataflow():
            result = builder.emit_output(call)
        builder.emit_func_output(result)
    return builder.get()


def checked(mod: tvm.IRModule) -> tvm.IRModule:
    return CheckIndices()(NameOperators()(mod))


def told(mod: tvm.IRModule) -> list[tuple[str, str, str]]:
    """Axis, least and largest index of each assertion, kernel by kernel."""
    pattern = r"bounds for axis (\d) of the data, expected one from -(\S+) to ([^\"]+)\""
    texts = [mod[gvar].script() for gvar in sorted(mod.get_global_vars(), key=lambda gvar: gvar.name_hint)]
    return [found for text in texts if "check_indices" in text for found in re.findall(pattern, text)]


def integers(*shapes: tuple[int, ...]) -> list[relax.Var]:
    return [tensor(f"i{at}", *shape) for at, shape in enumerate(shapes)]


def updates(*shape: int) -> relax.Var:
    return tensor("u", *shape, dtype="float32")


Case = tuple[Callable[..., relax.Expr], list[relax.Var], list[str]]
OP = relax.op
CASES: dict[str, Case] = {
    "take": (lambda x, i: OP.take(x, i, 1), integers((2,)), ["1"]),
    "take from the end": (lambda x, i: OP.take(x, i, -1), integers((2,)), ["2"]),
    "gather_elements": (lambda x, i: OP.gather_elements(x, i, -2), integers((5, 2, 3)), ["1"]),
    "scatter_elements": (
        lambda x, i, u: OP.scatter_elements(x, i, u, -1),
        [*integers((5, 4, 2)), updates(5, 4, 2)],
        ["2"],
    ),
    "gather_nd": (lambda x, i: OP.gather_nd(x, i), integers((6, 2)), ["0", "1"]),
    "behind a batch axis": (lambda x, i: OP.gather_nd(x, i, 1), integers((5, 6, 2)), ["1", "2"]),
    "scatter_nd": (
        lambda x, i, u: OP.scatter_nd(x, i, u),
        [*integers((2, 3)), updates(2)],
        ["0", "1", "2"],
    ),
    "index_tensor": (
        lambda x, i, j: OP.index_tensor(x, relax.Tuple([i, j])),
        integers((2,), (2,)),
        ["0", "1"],
    ),
    "index_put": (
        lambda x, i, j, k, u: OP.index_put(x, relax.Tuple([i, j, k]), u),
        [*integers((2,), (2,), (2,)), updates(2)],
        ["0", "1", "2"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_axes_and_extents_of_each_operator(name: str) -> None:
    make, inputs, axes = CASES[name]
    x = data()
    found = told(checked(module(make(x, *inputs), x, *inputs)))
    assert found == [(axis, str((5, 4, 3)[int(axis)]), str((5, 4, 3)[int(axis)] - 1)) for axis in axes]


def test_an_axis_without_a_number_is_told_by_its_name() -> None:
    x, indices = data(3, N), tensor("i", 2)
    assert told(checked(module(OP.take(x, indices, 1), x, indices))) == [("1", "n", "n - 1")]


@pytest.mark.parametrize(("rows", "most"), [(N, 5), (5, N), (N, N), (7, N), (5, 5)])
def test_more_indices_than_data_are_told_where_both_are_known(rows: object, most: object) -> None:
    x, indices = data(most, 4), tensor("i", rows, 2)
    after = checked(module(OP.gather_elements(x, indices, 1), x, indices))
    assert told(after) == [("1", "4", "3")]


def test_constants_for_an_axis_without_a_number_are_checked_when_the_model_runs() -> None:
    """Also where another axis, which the same constant has an index for, has one."""
    for shape in ((N, 4), (4, N)):
        x, pairs = data(*shape), relax.const(np.array([[-1, 3], [2, -4]]), "int64")
        ends = [("n", "n - 1") if extent is N else ("4", "3") for extent in shape]
        found = told(checked(module(OP.gather_nd(x, pairs), x)))
        assert found == [(str(axis), *end) for axis, end in enumerate(ends)]


@pytest.mark.parametrize(("shape", "count"), [((2,), 1), ((6, 2), 6), ((2, 3, 2), 6), ((4, 2, 3, 2), 24)])
def test_every_index_of_several_components_is_checked_once(shape: tuple[int, ...], count: int) -> None:
    x, indices = data(), tensor("i", *shape)
    mod = checked(module(OP.gather_nd(x, indices), x, indices))
    (kernel,) = [mod[gvar] for gvar in mod.get_global_vars() if gvar.name_hint.startswith("check_indices")]
    loops: list[tirx.For] = []
    tvm_ffi.structural_walk(kernel.body, (tirx.For, lambda loop: loops.append(loop)))
    assert [int(loop.extent) for loop in loops] == [count]


def test_regions_are_left_to_their_library() -> None:
    x, indices = data(), tensor("i", 2)
    mod = module(OP.take(x, indices, 0), x, indices)
    mod["main"] = mod["main"].with_attr("Codegen", "mxplan_onednn")
    assert told(checked(mod)) == []


@pytest.mark.parametrize(
    ("given", "extent", "expected"),
    [
        ("int8", 128, "int8"),
        ("int8", 129, "int64"),
        ("uint8", 256, "uint8"),
        ("uint8", 257, "int64"),
        ("int16", 128, "int16"),
        ("int32", 1000, "int32"),
        ("int64", 1000, "int64"),
        ("int8", N, "int64"),
    ],
)
def test_types_that_hold_every_index(given: str, extent: object, expected: str) -> None:
    x, indices = data(extent, 2), tensor("i", 2, dtype=given)
    mod = checked(module(OP.take(x, indices, 0), x, indices))
    (kernel,) = (
        binding.value
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if binding.value.op.name == "relax.call_tir"
    )
    assert str(kernel.ty.dtype) == expected
    assert [int(dim) for dim in kernel.ty.shape.values] == [2]
    assert int(mod[kernel.args[0]].attrs["op_pattern"]) == 8, "no kernel of TVM's takes it in"


def constants(mod: tvm.IRModule) -> list[np.ndarray]:
    found: list[np.ndarray] = []

    def note(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GenericConst):
            found.append(expr.value.numpy())

    relax.analysis.post_order_visit(mod["main"], note)
    return found


def test_constants_count_from_the_front_afterwards() -> None:
    x = data()
    pairs = relax.const(np.array([[-5, 3], [4, -1], [0, -4]]), "int64")
    (after,) = constants(checked(module(OP.gather_nd(x, pairs), x)))
    np.testing.assert_array_equal(after, [[0, 3], [4, 3], [0, 0]])
    assert after.dtype == "int64"


def test_constants_keep_their_type_where_it_holds_every_index() -> None:
    for extent, dtype in ((128, "int8"), (129, "int64")):
        x, numbers = data(extent, 2), relax.const(np.array([-1, 3], "int8"), "int8")
        (after,) = constants(checked(module(OP.take(x, numbers, 0), x)))
        np.testing.assert_array_equal(after, [extent - 1, 3])
        assert after.dtype == dtype


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ((0, 4), "axis 1 of the data, expected one from -4 to 3, got 4"),
        ((0, -5), "axis 1 of the data, expected one from -4 to 3, got -5"),
        ((5, 0), "axis 0 of the data, expected one from -5 to 4, got 5"),
        ((-6, 0), "axis 0 of the data, expected one from -5 to 4, got -6"),
    ],
)
def test_the_component_that_is_wrong_is_told(pair: tuple[int, int], words: str) -> None:
    x = data()
    numbers = relax.const(np.array([[1, 1], pair]), "int64")
    with pytest.raises(InvalidInputError, match=f"gather_nd_0: an index is out of bounds for {words}"):
        checked(module(OP.gather_nd(x, numbers), x))


def test_of_a_single_component_any_place_may_be_wrong() -> None:
    x = data()
    numbers = relax.const(np.array([[1, 1], [1, 9]]), "int64")
    with pytest.raises(InvalidInputError, match="axis 0 of the data, expected one from -5 to 4, got 9"):
        checked(module(OP.take(x, numbers, 0), x))


def test_shapes_that_are_not_known_are_left_to_tvm() -> None:
    x, indices = relax.Var("x", relax.TensorType(dtype="float32", ndim=2)), tensor("i", 2)
    assert told(checked(module(OP.take(x, indices, 0), x, indices))) == []
