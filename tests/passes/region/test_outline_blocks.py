"""OutlineBlocks and InlineBlocks: there and back, and what is left alone."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_mxplan.passes.region import InlineBlocks, OutlineBlocks


@I.ir_module
class Before:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
        with R.dataflow():
            a = R.exp(x)
            b = R.tanh(a)
            R.output(a, b)
        if c:
            with R.dataflow():
                d = R.add(a, b)
                e = R.negative(d)
                R.output(e)
            r = e
        else:
            r = b
        return R.add(r, a)


@I.ir_module
class Between:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
        cls = Between
        every: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) = cls.main_part(x)
        a = every[0]
        b = every[1]
        if c:
            other: R.Tuple(R.Tensor((2, 3), "float32")) = cls.main_part1(a, b)
            e = other[0]
            r = e
        else:
            r = b
        return R.add(r, a)

    @R.function(private=True)
    def main_part(x: R.Tensor((2, 3), "float32")):
        R.func_attr({"mxplan.part": 0})
        with R.dataflow():
            a = R.exp(x)
            b = R.tanh(a)
            R.output(a, b)
        return (a, b)

    @R.function(private=True)
    def main_part1(a: R.Tensor((2, 3), "float32"), b: R.Tensor((2, 3), "float32")):
        R.func_attr({"mxplan.part": 1})
        with R.dataflow():
            d = R.add(a, b)
            e = R.negative(d)
            R.output(e)
        return (e,)


def test_blocks_become_functions():
    tvm.ir.assert_structural_equal(OutlineBlocks()(Before), Between)


def test_there_and_back():
    back = InlineBlocks()(OutlineBlocks()(Before))
    assert [gvar.name_hint for gvar in back.functions] == ["main"]
    relax.analysis.well_formed(back)  # raises where it is not
    tvm.ir.assert_structural_equal(back, relax.transform.CanonicalizeBindings()(Before))


def test_functions_without_branches_are_left_alone():
    straight = tvm.IRModule({"main": Between["main_part1"].without_attr("mxplan.part")})
    tvm.ir.assert_structural_equal(OutlineBlocks()(straight), straight)
    tvm.ir.assert_structural_equal(InlineBlocks()(straight), straight)


@I.ir_module
class WithSymbols:
    @R.function
    def main(x: R.Tensor(("n * 2", 3), "float32"), y: R.Tensor(("n", 3), "float32"), c: R.Tensor((), "bool")):
        with R.dataflow():
            a = R.exp(x)
            R.output(a)
        if c:
            m = T.int64()
            with R.dataflow():
                p = R.nonzero(a)
                q = R.match_cast(p, R.Tensor((2, m), "int64"))
                s = R.astype(q, "float32")
                d = R.reshape(s, R.shape([m, 2]))
                e = R.negative(d)
                R.output(e)
            r = R.max(e)
        else:
            r = R.max(a)
        return r


def test_symbols_stay_those_of_the_caller():
    """Parts have symbols in expressions only, and one that a part of its own defines."""
    between = OutlineBlocks()(WithSymbols)
    parts = [f for f in between.functions.values() if f.attrs and "mxplan.part" in f.attrs]
    assert len(parts) == 3
    assert sum(isinstance(part.params[-1].ty, relax.ShapeType) for part in parts) == 2
    tensors = [one for part in parts for one in part.params if not isinstance(one.ty, relax.ShapeType)]
    assert tensors and all(isinstance(one.ty, relax.TensorType) for one in tensors), "symbols come as a shape"
    back = InlineBlocks()(between)
    assert [gvar.name_hint for gvar in back.functions] == ["main"]
    relax.analysis.well_formed(back)
    names = sorted(var.name for var in relax.analysis.defined_symbolic_vars(back["main"]))
    assert names == ["m", "n"]
    assert not relax.analysis.free_symbolic_vars(back["main"])


@I.ir_module
class NamedBranches:
    @R.function
    def main(x: R.Tensor(("n", 5), "int64"), w: R.Tensor((9, 3), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.take(w, x, axis=0)
            c = R.greater(R.mean(a), R.const(0.0, "float32"))
            R.output(a, c)
        if c:
            with R.dataflow():
                d = R.tanh(a)
                R.output(d)
            r = d
        else:
            with R.dataflow():
                e = R.negative(a)
                R.output(e)
            r = e
        with R.dataflow():
            f = R.concat((r, a), axis=1)
            g = R.reshape(f, R.shape([n, 30]))
            R.output(g)
        return g


def test_shapes_with_symbols_stay_known():
    """Also of a part whose parameters are the results of others alone."""
    back = InlineBlocks()(OutlineBlocks()(NamedBranches))
    tvm.ir.assert_structural_equal(back, relax.transform.CanonicalizeBindings()(NamedBranches))
    assert "ndim" not in back.script()
    assert not relax.analysis.free_symbolic_vars(back["main"])
