"""RecoverOperators: operators in place of the TIR that importers write, and nothing on a name's word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import tvm
from dataflow_text import dataflow
from tvm import relax, te, tirx, topi

from tvm_mxplan.passes.canonicalize import RecoverOperators

SHAPE = (2, 3, 4, 5)


def te_module(
    function: Callable[..., te.Tensor], *arguments: object, name: str, shape: Sequence = SHAPE
) -> tvm.IRModule:
    """``main(x) = call_te(function, x, ...)`` as the ONNX importer writes it."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(builder.call_te(function, x, *arguments, primfunc_name_hint=name))
        builder.emit_func_output(y)
    return builder.get()


def recovered(mod: tvm.IRModule) -> relax.Function:
    return RecoverOperators()(mod)["main"]


def assert_unchanged(mod: tvm.IRModule) -> None:
    tvm.ir.assert_structural_equal(recovered(mod), mod["main"])


@pytest.mark.parametrize("value", [0.0, 1.5, -3.0])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((0, 0, 1, 2), (0, 0, 3, 1)),
        ((0, 1, 0, 0), (0, 2, 0, 0)),
        ((1, 0, 0, 0), (0, 0, 0, 0)),
        ((0, 0, 0, 0), (1, 1, 1, 1)),
    ],
)
def test_pad(before, after, value):
    mod = te_module(lambda x: topi.nn.pad(x, before, after, value), name="pad")
    width = tuple(number for pair in zip(before, after, strict=True) for number in pair)
    expected = dataflow(
        f'y = R.nn.pad(x, {width}, "constant", {value})', parameters=f'x: R.Tensor({SHAPE}, "float32")'
    )
    tvm.ir.assert_structural_equal(recovered(mod), expected["main"])


def test_pad_with_a_value_of_the_tensors_type():
    half, width = tirx.const(0.5, "float32"), (0, 0, 1, 1)
    mod = te_module(lambda x: topi.nn.pad(x, width, width, half), name="pad")
    assert _only_operator(recovered(mod)) == "relax.nn.pad"


@pytest.mark.parametrize(("build", "operator"), [(topi.maximum, "maximum"), (topi.minimum, "minimum")])
def test_extremum_with_a_number(build, operator):
    mod = te_module(build, relax.const(0.5, "float32"), name="clip")
    expected = dataflow(
        f'y = R.{operator}(x, R.const(0.5, "float32"))', parameters=f'x: R.Tensor({SHAPE}, "float32")'
    )
    tvm.ir.assert_structural_equal(recovered(mod), expected["main"])


@pytest.mark.parametrize(("build", "operator"), [(topi.maximum, "maximum"), (topi.minimum, "minimum")])
def test_extremum_over_an_extent_that_is_an_expression(build, operator):
    """Such a kernel takes the symbols of the expression beside the tensor."""
    n = tirx.Var("n", "int64")
    shape = [2, n // 2 + 1, 5]
    mod = te_module(build, relax.const(0.5, "float32"), name="clip", shape=shape)
    (call,) = (value for value in relax.analysis.get_var2val(mod["main"]).values())
    assert [isinstance(arg, tvm.ir.Var) for arg in call.args[1].fields] == [True, False, True]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(getattr(relax.op, operator)(x, relax.const(0.5, "float32")))
        builder.emit_func_output(y)
    tvm.ir.assert_structural_equal(recovered(mod), builder.get()["main"], map_free_vars=True)


@pytest.mark.parametrize("name", ["pad", "maximum", "clip"])
def test_names_mean_nothing(name):
    assert_unchanged(te_module(lambda x: topi.add(x, tirx.const(1.0, "float32")), name=name))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_other_pads_stay(mode):
    def pad(x: te.Tensor) -> te.Tensor:
        if mode == "reflect":
            return topi.nn.mirror_pad(x, (0, 0, 1, 1), (0, 0, 1, 1), "REFLECT")
        return topi.nn.replicate_pad(x, (0, 0, 1, 1), (0, 0, 1, 1))

    assert_unchanged(te_module(pad, name="pad"))


@pytest.mark.parametrize(
    ("before", "after"),
    [((0, 0, -1, 0), (0, 0, 0, 0)), ((0, 0, 1, 0), (0, 0, 0, -1)), ((0, 1, 0, 0), (0, -1, 0, 0))],
)
def test_negative_pad_stays(before, after):
    assert_unchanged(te_module(lambda x: topi.nn.pad(x, before, after, 0.0), name="pad"))


def test_extremum_of_two_tensors_stays():
    builder = relax.BlockBuilder()
    x, z = (relax.Var(name, relax.TensorType(SHAPE, "float32")) for name in "xz")
    with builder.function("main", [x, z]):
        with builder.dataflow():
            y = builder.emit_output(builder.call_te(topi.maximum, x, z))
        builder.emit_func_output(y)
    assert_unchanged(builder.get())


def test_a_padding_of_two_tensors_stays():
    """Padding inside of what has one more operand than a padding."""
    width = (0, 0, 1, 1)
    builder = relax.BlockBuilder()
    x, z = (relax.Var(name, relax.TensorType(SHAPE, "float32")) for name in "xz")
    with builder.function("main", [x, z]):
        with builder.dataflow():
            y = builder.emit_output(builder.call_te(lambda a, _: topi.nn.pad(a, width, width, 0.0), x, z))
        builder.emit_func_output(y)
    assert_unchanged(builder.get())


def test_scaled_maximum_stays():
    """The right form inside another one."""
    half = tirx.const(0.5, "float32")
    assert_unchanged(te_module(lambda x: topi.multiply(topi.maximum(x, half), half), name="maximum"))


def _only_operator(function: relax.Function) -> str:
    (binding,) = function.body.blocks[0].bindings
    return binding.value.op.name


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("build", "operator"), [(topi.maximum, "maximum"), (topi.minimum, "minimum")])
def test_extremum_with_a_number_inside_the_kernel(build, operator, dtype):
    """The number is of the tensor's type."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            half = tirx.const(0.5, dtype)
            y = builder.emit_output(builder.call_te(lambda data: build(data, half), x))
        builder.emit_func_output(y)
    expected = dataflow(
        f'y = R.{operator}(x, R.const(0.5, "{dtype}"))', parameters=f'x: R.Tensor({SHAPE}, "{dtype}")'
    )
    tvm.ir.assert_structural_equal(recovered(builder.get()), expected["main"])


def test_an_operand_of_unknown_shape_stays():
    mod = te_module(lambda x: topi.nn.pad(x, (0, 0, 1, 1), (0, 0, 1, 1), 0.0), name="pad")
    (call,) = relax.analysis.get_var2val(mod["main"]).values()
    builder = relax.BlockBuilder(mod)
    x = relax.Var("x", relax.TensorType(None, "float32", ndim=len(SHAPE)))
    with builder.function("other", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.call_tir(call.args[0], [x], call.ty))
        builder.emit_func_output(y)
    changed = builder.get()
    tvm.ir.assert_structural_equal(RecoverOperators()(changed)["other"], changed["other"])
