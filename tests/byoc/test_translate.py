"""Regions as programs: parameters, results, symbols, and variables that only stand for others."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "passes"))

from relax_programs import parse

from tvm_mxplan.byoc.composite import product
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.codegen import TRANSLATE
from tvm_mxplan.byoc.onednn.patterns import NAME
from tvm_mxplan.byoc.translate import check_numbers, translate_region
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol, evaluate
from tvm_mxplan.errors import InternalError, UnsupportedError
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import PartitionRegions

N, M = Symbol("n"), Symbol("m")
PARAMETERS = 'x: R.Tensor((2, 6, 4, 5), "float32"), z: R.Tensor((2, 6, 4, 5), "float32")'


def region_of(lines: str, parameters: str = PARAMETERS) -> relax.Function:
    passes = [
        relax.transform.ConvertToDataflow(1),
        DispatchOperators(preference_of([OneDNN()])),
        PartitionRegions(),
    ]
    mod = tvm.transform.Sequential(passes)(parse(lines, parameters))
    (region,) = [f for f in mod.functions.values() if f.attrs and "Codegen" in f.attrs]
    return region


def outlined(program: ir.Program) -> tuple[list[str], list[str]]:
    """Kinds of steps, and what each output views or is written by."""
    homes = {program.root(step.dst): step.kind for step in program.steps}
    return [step.kind for step in program.steps], [homes[value] for value in program.of_kind("output")]


def test_results_in_the_order_of_the_tuple() -> None:
    region = region_of("a = R.tanh(x)\nb = R.add(a, z)\nc = R.nn.softmax(b)\nreturn (c, a, b)")
    kinds = ["eltwise", "binary", "softmax"]
    program, constants = translate_region(region, "r", NAME, TRANSLATE)
    assert (outlined(program), program.name, constants) == ((kinds, kinds), "r", [])
    assert [program.values[v].index for v in program.of_kind("output")] == [0, 1, 2]
    bound = [binding.value for block in region.body.blocks for binding in block.bindings]
    results = next((value for value in bound if isinstance(value, relax.Tuple)), region.body.body)
    turned = relax.Tuple(list(results.fields)[::-1])
    body = relax.SeqExpr(region.body.blocks, turned)
    type_ = relax.TupleType([field.ty for field in turned.fields])
    turned_region = relax.Function(region.params, body, type_, region.is_pure, region.attrs)
    assert outlined(translate_region(turned_region, "r", NAME, TRANSLATE)[0]) == (kinds, kinds[::-1])


def test_constants_by_their_index() -> None:
    numbers = "[[[1.5]], [[2.5]], [[3.5]], [[4.5]], [[5.5]], [[6.5]]]"
    region = region_of(f"a = R.add(x, R.const({numbers}, 'float32'))\nreturn R.exp(a)")
    program, (constant,) = translate_region(region, "r", NAME, TRANSLATE)
    (value,) = program.of_kind("constant")
    assert program.values[value].index == 0
    np.testing.assert_array_equal(constant.ravel(), np.arange(1.5, 7))


def test_a_symbol_is_bound_where_it_occurs_first() -> None:
    parameters = 'x: R.Tensor((5, "n"), "float32"), z: R.Tensor(("n", "m"), "float32")'
    region = region_of("a = R.exp(x)\nreturn R.matmul(a, z)", parameters)
    program, _ = translate_region(region, "r", NAME, TRANSLATE)
    assert [value.name for value in program.values[:2]] == ["x", "z"]
    assert program.symbols == (ir.SymbolBinding("n", 0, 1), ir.SymbolBinding("m", 1, 1))


def with_names(region: relax.Function, *, result: bool) -> relax.Function:
    """The region with another name for its result, or for its parameter, through which all goes."""
    if result:
        alias = relax.Var("alias", region.body.body.ty)
        last = relax.BindingBlock([relax.VarBinding(alias, region.body.body)])
        body = relax.SeqExpr([*region.body.blocks, last], alias)
    else:
        (param,) = region.params
        alias = relax.Var("alias", param.ty)
        first = relax.BindingBlock([relax.VarBinding(alias, param)])
        blocks = [
            relax.BindingBlock(
                [
                    relax.VarBinding(b.var, relax.Call(b.value.op, [alias], b.value.attrs))
                    if isinstance(b.value, relax.Call)
                    else b
                    for b in block.bindings
                ]
            )
            for block in region.body.blocks
        ]
        body = relax.SeqExpr([first, *blocks], region.body.body)
    return relax.Function(region.params, body, region.ret_ty, region.is_pure, region.attrs)


@pytest.mark.parametrize("result", [True, False])
def test_variables_that_stand_for_others(result: bool) -> None:
    region = region_of("return R.exp(x)", 'x: R.Tensor((2, 3), "float32")')
    program, _ = translate_region(with_names(region, result=result), "r", NAME, TRANSLATE)
    assert program == translate_region(region, "r", NAME, TRANSLATE)[0]


def test_what_is_no_composite_is_an_error_of_ours() -> None:
    region = region_of("return R.exp(x)", 'x: R.Tensor((2, 3), "float32")')
    stray = relax.Var("stray", region.params[0].ty)
    block = relax.BindingBlock([relax.VarBinding(stray, relax.op.exp(region.params[0]))])
    body = relax.SeqExpr([block, *region.body.blocks], region.body.body)
    wrong = relax.Function(region.params, body, region.ret_ty, region.is_pure, region.attrs)
    with pytest.raises(InternalError, match="region r: stray is bound to an unexpected"):
        translate_region(wrong, "r", NAME, TRANSLATE)


def test_a_constant_among_the_results_is_an_error_of_ours() -> None:
    region = region_of("return R.exp(x)", 'x: R.Tensor((2, 3), "float32")')
    both = relax.Tuple([region.body.body, relax.const(np.ones((2, 3), "float32"))])
    body = relax.SeqExpr(region.body.blocks, both)
    wrong = relax.Function(region.params, body, both.ty or None, region.is_pure, region.attrs)
    with pytest.raises(InternalError, match="a region returns a constant"):
        translate_region(wrong, "r", NAME, TRANSLATE)


@pytest.mark.parametrize("dims", [(2, 3), (2, N, 3), (N, 2), (N, M, 5), (N,), ()])
def test_products_of_dimensions(dims: tuple) -> None:
    numbers = {"n": 7, "m": 11}
    expected = math.prod(dim if isinstance(dim, int) else numbers[dim.name] for dim in dims)
    assert evaluate(product(dims), numbers) == expected


def test_shapes_among_the_parameters_tell_symbols_and_are_no_values() -> None:
    """Of a composite as well: a reshape takes its shape as an operand."""
    lines = "n = T.int64()\na = R.exp(x)\ns = R.shape([n, 24])\nb = R.reshape(a, s)\nreturn R.exp(b)"
    region = region_of(lines, 'x: R.Tensor(("n", 6, 4), "float32")')
    assert [type(param.ty).__name__ for param in region.params] == ["TensorType", "ShapeType"]
    program, _ = translate_region(region, "r", NAME, TRANSLATE)
    assert len(program.of_kind("input")) == 1
    assert program.symbols == (ir.SymbolBinding("n", 0, 0),)
    output = program.values[program.of_kind("output")[0]]
    assert output.shape == (N, 24)


def with_types(region: relax.Function, *types: relax.Type) -> relax.Function:
    """The region with further parameters, which nothing reads."""
    more = [relax.Var(f"more{at}", type_) for at, type_ in enumerate(types)]
    return relax.Function([*region.params, *more], region.body, region.ret_ty, region.is_pure, region.attrs)


def test_symbols_are_numbers_of_shapes_where_no_tensor_has_them() -> None:
    """Counted over all shapes among the parameters; those of unknown extents count too."""
    region = region_of("return R.exp(x)", 'x: R.Tensor(("n", 3), "float32")')
    n = region.params[0].ty.shape.values[0]
    m, k = (tvm.tirx.Var(name, "int64") for name in "mk")
    shapes = (relax.ShapeExpr([n, m]).ty, relax.ShapeType(ndim=3), relax.ShapeExpr([4, k, m]).ty)
    program, _ = translate_region(with_types(region, *shapes), "r", NAME, TRANSLATE)
    assert program.symbols == (
        ir.SymbolBinding("n", 0, 0),
        ir.SymbolBinding("m", -1, 1),
        ir.SymbolBinding("k", -1, 6),
    )
    assert len(program.of_kind("input")) == 1


def test_an_unknown_shape_is_refused_by_name() -> None:
    region = region_of("return R.exp(x)", 'x: R.Tensor((2, 3), "float32")')
    with pytest.raises(UnsupportedError, match=r"^region r: more0 is of type .*, of unknown shape$"):
        translate_region(with_types(region, relax.TensorType(ndim=2, dtype="float32")), "r", NAME, TRANSLATE)


def test_a_symbol_that_nothing_tells_is_refused() -> None:
    """An extent of twice n rows says nothing of n by itself."""
    region = region_of(
        "return R.exp(z)", 'x: R.Tensor(("n", 3), "float32"), z: R.Tensor(("2 * n", 3), "float32")'
    )
    bare = relax.Function(region.params[:1], region.body, region.ret_ty, region.is_pure, region.attrs)
    with pytest.raises(
        UnsupportedError, match=r"^region r: z has the dimension .*n.*, and no argument tells n$"
    ):
        translate_region(bare, "r", NAME, TRANSLATE)


def test_numbers_that_are_none_are_refused() -> None:
    operands = (ir.Operand("src", 0), ir.Operand("dst", 1))
    nan = float("nan")

    def program(attrs: ir.Attributes, *post_ops: ir.PostOp) -> ir.Program:
        return ir.Program("r", (), (ir.Step("s", attrs, operands, post_ops),))

    check_numbers(program(ir.Eltwise("linear", float("inf"), 0.0), ir.EltwisePostOp("relu", 0.0, 0.0)))
    for wrong in (
        program(ir.Eltwise("linear", 1.0, nan)),
        program(ir.Eltwise("linear", 1.0, 0.0), ir.EltwisePostOp("relu", nan, 0.0)),
    ):
        with pytest.raises(UnsupportedError, match=r"^region r: s has a parameter of NaN$"):
            check_numbers(wrong)
