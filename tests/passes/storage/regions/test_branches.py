"""Regions in the branches of an `if`: they run, share the function's arena, and the numbers stay."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import relax_programs as rp
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.storage.region_calls import Region, Timeline
from tvm_mxplan.report.inspection import region_modules

SHAPE = (1, 16, 10, 10)
_WEIGHTS = 3


class RandomBranches:
    """Source of a function: dataflow blocks of operators, an `if` between them, nested up to ``depth``."""

    def __init__(self, seed: int, depth: int = 2) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.fresh = 0
        self.conditions = 0
        result = self.sequence(["x"], 2, depth)
        weights = "".join(f', w{at}: R.Tensor((16, 16, 3, 3), "float32")' for at in range(_WEIGHTS))
        conditions = "".join(f', c{at}: R.Tensor((), "bool")' for at in range(self.conditions))
        head = f'def main(x: R.Tensor({SHAPE}, "float32"){conditions}{weights}):'
        lines = ["@I.ir_module", "class Module:", "    @R.function", f"    {head}", *self.lines]
        self.source = "\n".join([*lines, f"        return {result}"]) + "\n"

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def sequence(self, scope: list[str], indent: int, depth: int) -> str:
        """A block, then perhaps an `if`, then a block; the name of its result."""
        scope = [*scope, *self.block(scope, indent)]
        if depth:
            condition, result = f"c{self.conditions}", self.name()
            self.conditions += 1
            for line in (f"if {condition}:", "else:"):
                self.emit(indent, line)
                inner = self.sequence(scope, indent + 1, self.rng.randrange(depth))
                self.emit(indent + 1, f"{result} = {inner}")
            scope.append(result)
            scope += self.block(scope, indent)
        return scope[-1]

    def block(self, scope: list[str], indent: int) -> list[str]:
        self.emit(indent, "with R.dataflow():")
        made = list(scope)
        for at in range(self.rng.randint(2, 5)):
            a, b, name = made[-1], self.rng.choice(made), self.name()
            convolution = f"R.nn.conv2d({a}, w{self.rng.randrange(_WEIGHTS)}, padding=1)"
            others = [f"R.add({a}, {b})", f"R.tanh({a})", f"R.nn.softmax(R.cumsum({a}, axis=1))"]
            value = self.rng.choice([convolution, *others]) if at else convolution
            self.emit(indent + 1, f"{name} = {value}")
            made.append(name)
        outputs = made[len(scope) :][-2:]
        self.emit(indent + 1, f"R.output({', '.join(outputs)})")
        return outputs

    def module(self) -> tvm.IRModule:
        rng = np.random.default_rng(0)
        weights = {
            f"w{at}": tvm.runtime.tensor(rng.standard_normal((16, 16, 3, 3)).astype("float32") / 12)
            for at in range(_WEIGHTS)
        }
        return relax.transform.BindParams("main", weights)(tvm.script.from_source(self.source))


def calls(ex: tvm_mxplan.Executable) -> int:
    """Runs of regions so far."""
    stats = [library.stats(module) for module in region_modules(ex.module)]
    return sum(made["calls"] for region in stats for made in region["specializations"])


OPTIONS = [{}, {"order": "memory"}, {"layouts": "blocked"}, {"memory": "no_reuse"}]


@pytest.mark.slow
@pytest.mark.parametrize("seed, options", [(0, {}), (1, {}), *((2, options) for options in OPTIONS)])
def test_random_branches(seed: int, options: dict[str, str]) -> None:
    """Every path gives the numbers of TVM's kernels on tensors of their own, also with every byte watched."""
    made = RandomBranches(seed)
    mod = made.module()
    ex = tvm_mxplan.compile(mod, options=options)
    plain = rp.build(rp.lower(mod), None)
    assert len(ex.report.regions) >= 2
    assert ex.report.offloaded == 1.0
    x = rp.normal(seed, *SHAPE)
    for decisions in itertools.islice(itertools.product((True, False), repeat=made.conditions), 8):
        inputs = (x, *(np.array(decision) for decision in decisions))
        before = calls(ex)
        (expected,) = rp.run(plain, *inputs)
        actual = ex(*inputs)[0].numpy()
        library.set_debug(True)
        try:
            watched = ex(*inputs)[0].numpy()
        finally:
            library.set_debug(False)
        assert calls(ex) >= before + 2
        np.testing.assert_array_equal(actual, watched)
        assert np.linalg.norm(actual - expected) <= 1e-4 * np.linalg.norm(expected)


def test_arena_is_shared_and_branches_overlap() -> None:
    """Bytes of one branch serve the other: the arena is less than both take together."""
    made = RandomBranches(1)
    ex = tvm_mxplan.compile(made.module(), options={"convolutions": "direct"})
    *regions, main = ex.report.memory
    assert {region.stands_in for region in regions if region.height} == {"main"}
    assert main.height < main.no_reuse


def test_bytes_that_wait_for_the_second_branch_are_held_from_its_first_step() -> None:
    """A tensor that a region reads in its third step, where the other branch had no use for its bytes."""
    values = tuple(
        ir.Value(name, (1, 16), "float32", kind, "ab", index, nbytes=64)
        for name, kind, index in (("a", "input", 0), ("b", "input", 1), ("y", "output", 0))
    )
    relu = ir.Eltwise("relu", 0.0, 0.0)
    steps = tuple(
        ir.Step(f"s{at}", relu, (ir.Operand("src", source), ir.Operand("dst", 2)))
        for at, source in enumerate((0, 0, 1))
    )
    region = Region.of(ir.Program("region", values, steps, arena_bytes=0), 1)
    timeline = Timeline(3, {2: (region, [frozenset([7]), frozenset([8]), frozenset([9])])})
    assert timeline.fine(8, (0, 1), born=True) == (0, 1)
    assert timeline.fine(8, (2, 3), born=False) == (2, 5)
    assert timeline.fine(8, (2, 3), born=True) == (4, 5)
    assert timeline.fine(7, (2, 3), born=False) == (2, 4)
