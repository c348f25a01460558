"""Arenas and packed weights ask for huge pages and stand where those fit, as the kernel's own table shows."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tvm
from program_builder import Builder, call, random
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir

HUGE = 2 << 20
SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SHAPE, CHANNELS = (1, 512, 40, 40), 512
VALUE = 4 * 512 * 40 * 40  # bytes: 1.6 huge pages

pytestmark = pytest.mark.skipif(not SETTING.exists(), reason="this kernel has no transparent huge pages")


def wished() -> list[tuple[int, int]]:
    """Address ranges of this process that asked for huge pages (flag ``hg``)."""
    ranges, current = [], (0, 0)
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(" ", 1)[0]
        if "-" in head and ":" not in head:
            low, high = head.split("-")
            current = (int(low, 16), int(high, 16))
        elif line.startswith("VmFlags:") and "hg" in line.split():
            ranges.append(current)
    return ranges


def new(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> int:
    """Bytes that were added, all in whole aligned huge pages."""
    assert all(low % HUGE == high % HUGE == 0 for low, high in after if (low, high) not in before)
    return sum(high - low for low, high in after) - sum(high - low for low, high in before)


def whole(nbytes: int) -> int:
    """The bytes of ``nbytes`` that whole huge pages hold; the rest stays on small ones."""
    return nbytes // HUGE * HUGE


def rounded(nbytes: int) -> int:
    return -(-nbytes // HUGE) * HUGE


def own_arena_and_weights() -> None:
    """Runs in a process of its own: elsewhere memory that was freed may carry the flag already."""
    b = Builder("large")
    same = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    weights = random(CHANNELS, CHANNELS, 3, 3)
    first = b.local(SHAPE, "acdb")
    b.step(ir.Reorder(), src=b.input(SHAPE), dst=first)
    second = b.local(SHAPE, "acdb")
    b.step(same, src=first, weights=b.constant(weights), dst=second)
    b.finish(second)
    module, x, y = b.module(), random(*SHAPE), np.zeros(SHAPE, "float32")
    start = wished()
    module["mxplan.prepare"]()
    packed = wished()
    assert new(start, packed) == whole(weights.nbytes) > 0
    call(module, "large", x, y)
    assert new(packed, wished()) >= whole(2 * VALUE) > 0
    assert np.abs(y).max() > 0


def lent_arena() -> None:
    """Of an arena that begins anywhere, the whole huge pages inside of it."""
    b = Builder("lent")
    first = b.local(SHAPE)
    b.step(ir.Eltwise("square", 0.0, 0.0), src=b.input(SHAPE), dst=first)
    second = b.local(SHAPE)
    b.step(ir.Eltwise("square", 0.0, 0.0), src=first, dst=second)
    b.finish(second)
    module, x, y = b.module(), random(*SHAPE), np.zeros(SHAPE, "float32")
    pages = mmap.mmap(-1, 2 * VALUE + 2 * HUGE)
    arena = np.frombuffer(pages, np.uint8)[64 : 64 + 2 * VALUE]
    begin = arena.ctypes.data
    inside = (begin + 2 * VALUE) // HUGE * HUGE - rounded(begin)
    before = wished()
    call(module, "lent", x, y, arena)
    assert inside >= HUGE
    assert new(before, wished()) == inside
    np.testing.assert_allclose(y, x**4, rtol=1e-5)


class Begins:
    """The beginnings of the arenas in which steps write: an observer of runs."""

    def __init__(self) -> None:
        self.found: list[int] = []
        self.program = ir.Program("", (), ())

    def begin(self, module: tvm.runtime.Module, _symbols: Sequence[int]) -> None:
        self.program = codec.decode(bytes(module["mxplan.program"]()))

    def before(self, _step: int, _values: Sequence[int], _bytes: Sequence[tvm.runtime.Tensor]) -> None:
        pass

    def after(self, _step: int, values: Sequence[int], written: Sequence[tvm.runtime.Tensor]) -> None:
        for value, tensor in zip(values, written, strict=True):
            owner = self.program.values[value]
            if owner.kind == "local" and owner.alias_of < 0:
                self.found.append(np.from_dlpack(tensor).ctypes.data - owner.offset)


def function_arena() -> None:
    """The arena of a function that calls regions: at a huge page, made once, and kept from call to call."""
    source = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 64, 96, 96), "float32"), w: R.Tensor((64, 64, 3, 3), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(R.nn.conv2d(x, w, padding=1), w, padding=1)
            b = R.cumsum(a, axis=1)
            y = R.nn.conv2d(R.nn.conv2d(b, w, padding=1), w, padding=1)
            R.output(y)
        return y
"""
    weights = {"w": tvm.runtime.tensor(random(64, 64, 3, 3))}
    mod = relax.transform.BindParams("main", weights)(tvm.script.from_source(source))
    ex = tvm_mxplan.compile(mod, "dnnl, llvm")
    *regions, main = ex.report.memory
    assert [region.stands_in for region in regions] == ["main"] * 2
    begins, x = Begins(), random(1, 64, 96, 96)
    library.observe(begins)
    for _ in range(20):
        ex(x)
    library.observe(None)
    assert len(begins.found) >= 2 * 20
    (begin,) = set(begins.found)
    assert begin % HUGE == 0
    assert main.height >= 2 * HUGE
    assert any(low <= begin and begin + whole(main.height) <= high for low, high in wished())


@pytest.mark.slow
@pytest.mark.parametrize("case", ["own_arena_and_weights", "lent_arena", "function_arena"])
def test_huge_pages_are_asked_for(case: str) -> None:
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parents[1]}"}
    code = f"import test_huge_pages as t; t.{case}(); print('ran')"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "ran\n"


def test_small_buffers_do_not_ask() -> None:
    """Nothing is gained by a huge page for a few kilobytes."""
    b = Builder("small")
    b.finish(b.reorder(b.input((1, 16, 8, 8)), "acdb"))
    before = wished()
    b.run(random(1, 16, 8, 8))
    assert sum(high - low for low, high in wished()) <= sum(high - low for low, high in before)
