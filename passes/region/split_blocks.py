"""Dataflow blocks that end before a ``match_cast`` that defines symbols, and begin again behind it.

Before   with R.dataflow():
             a = R.nonzero(x)
             b = R.match_cast(a, R.Tensor((2, n)))
             c = R.exp(b)
             R.output(c)
After    with R.dataflow():
             a = R.nonzero(x)
             R.output(a)
         b = R.match_cast(a, R.Tensor((2, n)))
         with R.dataflow():
             c = R.exp(b)
             R.output(c)

Shapes behind it depend on it without reading its variable, so nothing may move across.
"""

from __future__ import annotations

import tvm
from tvm import relax


def defines_symbols(function: relax.Function) -> bool:
    """True if a block of the function, or of a branch in it, has such a binding."""
    return any(_defines(binding) for block in _blocks(function.body) for binding in block.bindings)


def split_blocks(function: relax.Function) -> relax.Function:
    """The function with its dataflow blocks split."""
    if not defines_symbols(function):
        return function
    body = _Splitter().sequence(function.body)
    return relax.Function(
        function.params, body, function.ret_ty, function.is_pure, function.attrs, function.span
    )


def _defines(binding: relax.Binding) -> bool:
    return isinstance(binding, relax.MatchCast) and bool(relax.analysis.tir_vars_in_type(binding.ty))


def _blocks(seq: relax.SeqExpr) -> list[relax.BindingBlock]:
    found = []
    for block in seq.blocks:
        found.append(block)
        for binding in block.bindings:
            value = getattr(binding, "value", None)
            if isinstance(value, relax.If):
                found += [*_blocks(value.true_branch), *_blocks(value.false_branch)]
    return found


@relax.expr_functor.mutator
class _Splitter(relax.PyExprMutator):
    """Rebuilds sequences of blocks; variables that are read behind the end of their block change kind."""

    def __init__(self) -> None:
        super().__init__()
        self.new: dict[tvm.ir.Var, tvm.ir.Var] = {}

    def sequence(self, seq: relax.SeqExpr) -> relax.SeqExpr:
        blocks: list[relax.BindingBlock] = []
        for block in seq.blocks:
            if isinstance(block, relax.DataflowBlock):
                blocks += self._split(block)
            else:
                blocks.append(relax.BindingBlock([self._plain(binding) for binding in block.bindings]))
        return relax.SeqExpr(blocks, seq.body)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self.new.get(var, var)

    def _plain(self, binding: relax.Binding) -> relax.Binding:
        value = binding.value
        if not isinstance(value, relax.If):
            return binding
        branches = self.sequence(value.true_branch), self.sequence(value.false_branch)
        return relax.VarBinding(binding.var, relax.If(value.cond, *branches, value.span))

    def _split(self, block: relax.DataflowBlock) -> list[relax.BindingBlock]:
        pieces: list[list[relax.Binding]] = [[]]
        for binding in block.bindings:
            if _defines(binding):
                pieces += [[binding], []]
            else:
                pieces[-1].append(binding)
        if len(pieces) == 1:
            return [block]
        home = {binding.var: at for at, piece in enumerate(pieces) for binding in piece}
        for at, piece in enumerate(pieces):
            for binding in piece:
                read = [var for var in relax.analysis.free_vars(binding.value) if home.get(var, at) != at]
                defined = [binding.var] if _defines(binding) else []
                for var in (*read, *defined):
                    if isinstance(var, relax.DataflowVar):
                        self.new.setdefault(var, relax.Var(var.name, var.ty))
        return [
            (relax.BindingBlock if _defines(piece[0]) else relax.DataflowBlock)(
                [self._rebuilt(binding) for binding in piece]
            )
            for piece in pieces
            if piece
        ]

    def _rebuilt(self, binding: relax.Binding) -> relax.Binding:
        var, value = self.new.get(binding.var, binding.var), self.visit_expr(binding.value)
        if isinstance(binding, relax.MatchCast):
            return relax.MatchCast(var, value, binding.ty)
        return relax.VarBinding(var, value)
