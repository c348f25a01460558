"""OutlineBlocks and InlineBlocks: there and back, and what is left alone."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

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
        R.func_attr({"mxplan.part": True})
        with R.dataflow():
            a = R.exp(x)
            b = R.tanh(a)
            R.output(a, b)
        return (a, b)

    @R.function(private=True)
    def main_part1(a: R.Tensor((2, 3), "float32"), b: R.Tensor((2, 3), "float32")):
        R.func_attr({"mxplan.part": True})
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
