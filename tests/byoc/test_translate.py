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
from tvm_mxplan.byoc.translate import translate_region
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.dims import Symbol, evaluate
from tvm_mxplan.errors import InternalError
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
