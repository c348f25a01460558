"""split_blocks: blocks end before a match_cast that defines symbols; branches too; all else stays."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_mxplan.passes.region.split_blocks import defines_symbols, split_blocks


@I.ir_module
class Before:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((), "int64"):
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            z = R.nonzero(a)
            y = R.match_cast(z, R.Tensor((2, n), "int64"))
            w = R.add(y, y)
            v = R.nonzero(a)
            R.output(w, v)
        if c:
            m = T.int64()
            with R.dataflow():
                q = R.match_cast(v, R.Tensor((2, m), "int64"))
                p = R.add(q, q)
                R.output(p)
            r = R.max(p)
        else:
            r = R.max(w)
        return r


def kinds(seq: relax.SeqExpr) -> list[tuple[bool, list[str]]]:
    """For each block whether it is a dataflow block, and its variables."""
    return [
        (isinstance(block, relax.DataflowBlock), [binding.var.name for binding in block.bindings])
        for block in seq.blocks
    ]


def test_blocks_end_before_symbols_are_defined():
    function = Before["main"]
    assert defines_symbols(function)
    split = split_blocks(function)
    assert kinds(split.body)[:3] == [(True, ["a", "z"]), (False, ["y"]), (True, ["w", "v"])]
    (branch,) = split.body.blocks[3].bindings
    assert kinds(branch.value.true_branch)[:2] == [(False, ["q"]), (True, ["p"])]
    relax.analysis.well_formed(relax.transform.Normalize()(tvm.IRModule({"main": split})))
    # What another block reads is visible there, nothing else is.
    visible = {
        binding.var.name
        for block in split.body.blocks[:3]
        for binding in block.bindings
        if not isinstance(binding.var, relax.DataflowVar)
    }
    assert visible == {"a", "z", "y", "w", "v"}


@I.ir_module
class InABranch:
    @R.function
    def main(x: R.Tensor((2, 3), "int64"), c: R.Tensor((), "bool")) -> R.Tensor((), "int64"):
        if c:
            r = R.max(x)
        else:
            m = T.int64()
            with R.dataflow():
                v = R.nonzero(x)
                q = R.match_cast(v, R.Tensor((2, m), "int64"))
                p = R.add(q, q)
                R.output(p)
            r = R.max(p)
        return r


def test_symbols_of_a_branch_alone_are_found():
    """In the second one, too."""
    function = InABranch["main"]
    assert defines_symbols(function)
    (branch,) = split_blocks(function).body.blocks[0].bindings
    assert kinds(branch.value.false_branch)[:3] == [(True, ["v"]), (False, ["q"]), (True, ["p"])]


@I.ir_module
class WithoutSymbols:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.match_cast(a, R.Tensor((2, 3), "float32"))
            R.output(b)
        return b


def test_ir_unchanged():
    function = WithoutSymbols["main"]
    assert not defines_symbols(function)
    assert split_blocks(function).same_as(function)
