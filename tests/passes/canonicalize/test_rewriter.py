"""Rewriting by rules: what a replacement comes from, in the order of the bindings that it takes in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tvm
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origin, Origins
from tvm_mxplan.passes.canonicalize.rewriter import Site, is_call_to, rewrite_bindings
from tvm_mxplan.passes.origins import origins_of, with_origins

A, B, C, D = ((Origin(name, "Kind"),) for name in "abcd")


def module() -> tvm.IRModule:
    """exp(tanh(x) + sin(x)), each from a part of a model; the sum is asked for its operands in turns."""
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            tanh = builder.emit(with_origins(relax.op.tanh(x), A))
            sin = builder.emit(with_origins(relax.op.sin(x), B))
            total = builder.emit(with_origins(relax.op.add(sin, tanh), C))
            result = builder.emit_output(with_origins(relax.op.exp(total), D))
        builder.emit_func_output(result)
    return builder.get()


def told(mod: tvm.IRModule) -> dict[str, Origins]:
    """By operator what its call comes from."""
    values = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    return {value.op.name.removeprefix("relax."): origins_of(value) for value in values}


def test_a_replacement_comes_from_all_that_it_takes_in_as_the_model_computes_it() -> None:
    def rule(site: Site, value: relax.Expr) -> relax.Expr | None:
        if not is_call_to(value, "exp"):
            return None
        total = site.definition(value.args[0])
        later, first = (site.definition(operand) for operand in total.args)
        assert is_call_to(later, "sin") and is_call_to(first, "tanh")
        return relax.op.floor(first.args[0])

    assert told(rewrite_bindings(module(), rule)) == {"floor": (*A, *B, *C, *D)}


def test_what_is_still_read_is_not_taken_in() -> None:
    def rule(site: Site, value: relax.Expr) -> relax.Expr | None:
        if not is_call_to(value, "exp"):
            return None
        total = site.definition(value.args[0])
        return relax.op.multiply(*total.args)

    found = told(rewrite_bindings(module(), rule))
    assert found == {"tanh": A, "sin": B, "multiply": (*C, *D)}


def test_what_a_rule_looked_at_and_reads_on_is_not_taken_in() -> None:
    """By the replacement itself, and by what was emitted for it."""

    def direct(_site: Site, operand: relax.Expr) -> relax.Expr:
        return relax.op.floor(operand)

    def emitted(site: Site, operand: relax.Expr) -> relax.Expr:
        return relax.op.floor(site.emit(relax.op.negative(operand)))

    def in_a_tuple(site: Site, operand: relax.Expr) -> relax.Expr:
        return relax.op.floor(site.emit(relax.op.concat([operand, operand])))

    for make in (direct, emitted, in_a_tuple):

        def rule(site: Site, value: relax.Expr, make: Callable = make) -> relax.Expr | None:
            if not is_call_to(value, "exp"):
                return None
            total = site.definition(value.args[0])
            assert all(is_call_to(site.definition(operand), "sin", "tanh") for operand in total.args)
            return make(site, total.args[0])

        found = told(rewrite_bindings(module(), rule))
        assert (found["sin"], found["floor"]) == (B, (*A, *C, *D))


def test_reads_of_the_function_as_it_came_are_counted() -> None:
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            tanh = builder.emit(relax.op.tanh(x))
            pair = builder.emit(relax.op.concat([tanh, tanh]))
            first = builder.emit_output(relax.op.exp(pair))
            second = builder.emit_output(relax.op.add(first, relax.op.floor(first)))
        builder.emit_func_output(relax.Tuple([first, second]))
    counts: dict[str, int] = {}

    def rule(site: Site, value: relax.Expr) -> relax.Expr | None:
        if is_call_to(value, "add"):
            counts.update(first=site.reads(value.args[0]), number=site.reads(relax.const(1.0)))
            counts["emitted"] = site.reads(site.emit(relax.op.negative(value.args[0])))
        if is_call_to(value, "concat"):
            counts["tanh"] = site.reads(value.args[0].fields[0])
        if is_call_to(value, "exp"):
            counts["pair"] = site.reads(value.args[0])
        return None

    rewrite_bindings(builder.get(), rule)
    assert counts == {"tanh": 2, "pair": 1, "first": 3, "number": 0, "emitted": 0}


def test_what_a_rule_emits_comes_from_what_is_replaced() -> None:
    def rule(site: Site, value: relax.Expr) -> relax.Expr | None:
        if not is_call_to(value, "exp"):
            return None
        return relax.op.floor(site.emit(relax.op.negative(value.args[0])))

    found = told(rewrite_bindings(module(), rule))
    assert found == {"tanh": A, "sin": B, "add": C, "negative": D, "floor": D}


def test_nothing_to_replace_leaves_all_as_it_is() -> None:
    mod = module()
    tvm.ir.assert_structural_equal(rewrite_bindings(mod, lambda _site, _value: None), mod)
    assert told(rewrite_bindings(mod, lambda _site, _value: None)) == told(mod)


@pytest.mark.parametrize("replaced", [False, True])
def test_results_keep_their_names(replaced: bool) -> None:
    """Inside of dataflow blocks and outside, whether a rule makes them or not."""
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            inner = builder.emit(relax.op.tanh(x), "inner")
            outer = builder.emit_output(relax.op.tanh(inner), "outer")
        last = builder.emit(relax.op.tanh(outer), "last")
        builder.emit_func_output(last)

    def rule(_site: Site, value: relax.Expr) -> relax.Expr | None:
        return relax.op.sin(value.args[0]) if replaced else None

    after = rewrite_bindings(builder.get(), rule)
    bindings = [binding for block in after["main"].body.blocks for binding in block.bindings]
    assert [binding.var.name for binding in bindings] == ["inner", "outer", "last"]
    assert all(is_call_to(binding.value, "sin" if replaced else "tanh") for binding in bindings)


def test_branches_are_rewritten_inside_and_no_rule_sees_them_whole() -> None:
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    c = relax.Var("c", relax.TensorType([], "bool"))
    builder, sides = relax.BlockBuilder(), []
    for operator in (relax.op.tanh, relax.op.sin):
        result = relax.Var("result", x.ty)
        block = relax.BindingBlock([relax.VarBinding(result, operator(x))])
        sides.append(relax.SeqExpr([block], result))
    with builder.function("main", [x, c]):
        builder.emit_func_output(builder.emit(relax.If(c, *sides)))
    seen: list[relax.Expr] = []

    def rule(_site: Site, value: relax.Expr) -> relax.Expr | None:
        seen.append(value)
        return relax.op.cos(value.args[0]) if is_call_to(value, "sin") else None

    after = rewrite_bindings(builder.get(), rule)
    assert len(seen) == 2 and all(is_call_to(value, "tanh", "sin") for value in seen)
    (choice,) = (
        binding.value
        for block in after["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.If)
    )
    sides = [choice.true_branch, choice.false_branch]
    assert [side.blocks[0].bindings[0].value.op.name for side in sides] == ["relax.tanh", "relax.cos"]
