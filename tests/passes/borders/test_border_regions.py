"""Parameters and results of regions whose tensors cross in physical layouts, on functions by hand."""

from __future__ import annotations

from tvm import relax, tirx

from tvm_mxplan.passes.borders.border_regions import _parameters, _results

N = tirx.Var("n", "int64")
IMAGE = relax.TensorType([2, 17, 8, 5], "float32")
LAST = relax.TensorType([2, 8, 5, 17], "float32")
BLOCKED = relax.TensorType([2, 2, 8, 5, 16], "float32")


def region(pair: bool = False) -> relax.Function:
    """Numbers of a shape come first, then two images; the result is both or the first one."""
    params = [
        relax.Var("numbers", relax.ShapeType([N])),
        relax.Var("x", IMAGE),
        relax.Var("z", IMAGE),
    ]
    builder = relax.BlockBuilder()
    with builder.function("region", params):
        with builder.dataflow():
            first = builder.emit_output(relax.op.add(params[1], params[2]))
            second = builder.emit_output(relax.op.exp(first))
            result = builder.emit_output(relax.Tuple([first, second])) if pair else first
        builder.emit_func_output(result)
    return builder.get()["region"]


def names_and_types(variables: list[relax.Var]) -> list[tuple[str, object]]:
    return [(var.name, var.ty) for var in variables]


def same(found: list[tuple[str, object]], expected: list[tuple[str, object]]) -> bool:
    return [name for name, _ in found] == [name for name, _ in expected] and all(
        str(one) == str(other) for (_, one), (_, other) in zip(found, expected, strict=True)
    )


def test_tensors_change_where_they_stand_and_come_again_at_the_end() -> None:
    """Inputs are counted among tensors; the first layout of one gives it its value."""
    function = region()
    numbers, x, z = function.params
    params, entry = _parameters(function, [("acdb",), ("abcd", "aBcd16b", "acdb")])
    expected = [
        ("numbers", numbers.ty),
        ("x_acdb", LAST),
        ("z", IMAGE),
        ("z_aBcd16b", BLOCKED),
        ("z_acdb", LAST),
    ]
    assert same(names_and_types(params), expected)
    assert (params[0], params[2]) == (numbers, z)
    ((bound, value),) = [(binding.var, binding.value) for binding in entry]
    assert bound.same_as(x)
    assert (value.op.name, value.args[0]) == ("relax.permute_dims", params[1])
    assert [int(axis) for axis in value.attrs.axes] == [0, 3, 1, 2]


def test_an_input_that_none_wants_plain_gets_its_value_from_the_first_layout() -> None:
    function = region()
    params, entry = _parameters(function, [("aBcd16b", "acdb"), ("abcd",)])
    assert [var.name for var in params] == ["numbers", "x_aBcd16b", "z", "x_acdb"]
    assert [binding.var.name for binding in entry] == ["x"]


def test_a_result_is_wanted_in_one_layout_or_several() -> None:
    function = region()
    leave, results = _results(function, [("abcd", "acdb")])
    assert same([(var.name, var.ty) for var in results[1:]], [("result0_acdb", LAST)]) and results[0].same_as(
        function.body.body
    )
    assert [binding.var for binding in leave] == results[1:]
    leave, results = _results(function, [("abcd",)])
    assert leave == [] and len(results) == 1


def test_results_of_a_tuple_are_taken_out_of_it() -> None:
    function = region(pair=True)
    leave, results = _results(function, [("abcd",), ("aBcd16b", "abcd")])
    assert [var.name for var in results] == ["result0", "result1_aBcd16b", "result1"]
    taken, told = leave[:2], leave[2:]
    assert [(binding.value.index, binding.var.name) for binding in taken] == [(0, "result0"), (1, "result1")]
    assert [binding.var.name for binding in told] == ["result1_aBcd16b"]
