"""The process's caches of primitives and packed weights: what is shared, what is kept, what is remembered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
from own_process import in_own_process, resident
from program_builder import Array, Builder, call, check, convolution, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape, Symbol

THREADS = 8
_sizes = count(20)
"""Image sizes that no other test has, so that nothing is in a cache yet."""

CONV = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
RELU = ir.EltwisePostOp("relu", 0.0, 0.0)


@pytest.fixture(autouse=True)
def capacities() -> Iterator[None]:
    before = {name: library.cache_counters(name) for name in ("primitives", "weights")}
    yield
    for name, counters in before.items():
        library.set_cache_capacity(name, counters["most_entries"], counters["most_bytes"])


class Conv:
    """x -> relu(conv(x, w)) on 16 to 32 channels, for images of ``size`` with channels last."""

    def __init__(self, size: int, seed: int = 0, name: str = "conv", relu: bool = True) -> None:
        self.x, self.w = random(1, 16, size, size, seed=1), random(32, 16, 3, 3, seed=seed)
        b = Builder(name)
        src, dst = b.input(self.x.shape, "acdb"), b.output((1, 32, size, size), "acdb")
        b.step(CONV, [RELU] if relu else [], src=src, weights=b.constant(self.w), dst=dst)
        self.name, self.relu, self.module = name, relu, b.module()
        self.bytes = library.describe(b.build()).steps[0].weights_bytes

    def run(self) -> None:
        out = np.full((1, *self.x.shape[2:], 32), np.nan, "float32")
        call(self.module, self.name, np.ascontiguousarray(self.x.transpose(0, 2, 3, 1)), out)
        expected = convolution(self.x, self.w, CONV)
        check(out.transpose(0, 3, 1, 2), np.maximum(expected, 0) if self.relu else expected, 16 * 9)


def delta(cache: str, action: Callable[[], object]) -> dict[str, int]:
    """The change of a cache's counters by an action."""
    before = library.cache_counters(cache)
    action()
    return {name: number - before[name] for name, number in library.cache_counters(cache).items()}


def test_equal_weights_of_two_modules_are_packed_and_held_once() -> None:
    first, second = Conv(next(_sizes), seed=11, name="a"), Conv(next(_sizes), seed=11, name="b")
    made, found = delta("weights", first.run), delta("weights", second.run)
    assert (made["misses"], made["bytes"]) == (1, first.bytes) and first.bytes > 0
    assert (found["hits"], found["misses"], found["bytes"]) == (1, 0, 0)


def test_other_weights_of_one_shape_are_packed_anew() -> None:
    size = next(_sizes)
    Conv(size, seed=12).run()
    assert delta("weights", Conv(size, seed=13).run)["misses"] == 1


def test_equal_steps_of_two_modules_are_one_primitive() -> None:
    size = next(_sizes)
    Conv(size, seed=14, name="a").run()
    found = delta("primitives", lambda: Conv(size, seed=15, name="b").run())
    assert found["misses"] == 0 and found["hits"] > 0


def test_post_ops_are_part_of_the_key() -> None:
    size = next(_sizes)
    Conv(size)
    assert delta("primitives", lambda: Conv(size, relu=False))["misses"] == 1


def test_a_refusal_is_remembered_with_its_reason() -> None:
    size = next(_sizes)
    b = Builder("refused")
    tanh = ir.EltwisePostOp("tanh", 0.0, 0.0)  # which oneDNN has for sums of products, not for this
    b.step(ir.Shuffle(1, 1), [tanh], src=b.input((3, size)), dst=b.output((3, size)))
    reasons: list[str] = []
    asked = delta("primitives", lambda: reasons.append(library.describe(b.build()).steps[0].error))
    again = delta("primitives", lambda: reasons.append(library.describe(b.build()).steps[0].error))
    assert "oneDNN" in reasons[0] and reasons[0] == reasons[1]
    assert (asked["misses"], again["misses"], again["hits"]) == (1, 0, 1)


def test_what_is_in_use_outlives_its_eviction_and_is_still_shared() -> None:
    first = Conv(next(_sizes), seed=16)
    first.run()
    library.set_cache_capacity("weights", 1, 2**30)
    evicted = delta("weights", Conv(next(_sizes), seed=17).run)
    assert evicted["evictions"] == 1 and library.cache_counters("weights")["entries"] == 1
    first.run()
    second = Conv(next(_sizes), seed=16)
    assert delta("weights", second.run)["hits"] == 1


def test_what_nobody_uses_goes_when_it_is_evicted() -> None:
    Conv(next(_sizes), seed=18).run()
    library.set_cache_capacity("weights", 1, 2**30)
    Conv(next(_sizes), seed=19).run()
    assert delta("weights", Conv(next(_sizes), seed=18).run)["misses"] == 1


def test_bytes_bound_what_is_kept() -> None:
    convs = [Conv(next(_sizes), seed=20 + i) for i in range(4)]
    library.set_cache_capacity("weights", 100, 2 * convs[0].bytes)
    for conv in convs:
        conv.run()
    now = library.cache_counters("weights")
    assert now["entries"] == 2 and now["bytes"] == 2 * convs[0].bytes


@pytest.mark.parametrize("cache", ["primitives", "weights"])
def test_capacity_zero_switches_off(cache: str) -> None:
    library.set_cache_capacity(cache, 0, 2**30)
    size = next(_sizes)
    for name in ("a", "b"):
        changed = delta(cache, Conv(size, name=name).run)
        assert changed["hits"] == 0 and changed["misses"] > 0
    assert library.cache_counters(cache)["entries"] == 0


def test_threads_that_want_one_thing_make_it_once() -> None:
    size = next(_sizes)
    convs = [Conv(size, seed=30, name=f"m{i}", relu=False) for i in range(THREADS)]
    library.set_cache_capacity("primitives", 0, 1)  # forget what Conv's own query made
    library.set_cache_capacity("primitives", 1024, 2**62)
    start, failures = threading.Barrier(THREADS), []

    def work(conv: Conv) -> None:
        try:
            start.wait()
            conv.run()
        except BaseException as error:  # a thread's failure would be lost
            failures.append(error)

    def all_at_once() -> None:
        threads = [threading.Thread(target=work, args=(conv,)) for conv in convs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    before = library.cache_counters("primitives")
    packed = delta("weights", all_at_once)
    made = library.cache_counters("primitives")["misses"] - before["misses"]
    assert not failures
    assert (packed["misses"], packed["hits"], made) == (1, THREADS - 1, 1)


def growth_over_a_thousand_shapes() -> int:
    """Bytes by which memory grows when a thousand batch sizes come a second time."""
    n = Symbol("n")
    b = Builder("batches")
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    w = random(16, 16, 1, 1)
    shape: Shape = (n, 16, 2, 2)
    conv = b.local(shape)
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    b.step(attrs, [RELU], src=b.input(shape), weights=b.constant(w), dst=conv)
    b.step(ir.Softmax("softmax", 1), src=conv, dst=b.output(shape))
    module: Any = b.module()
    x, out = random(1000, 16, 2, 2), np.ones((1000, 16, 2, 2), "float32")
    library.set_cache_capacity("primitives", 64, 2**62)

    def run(batches: range) -> None:
        for batch in batches:
            call(module, "batches", x[:batch], out[:batch])

    run(range(1, 1001))  # the allocator keeps what the largest arenas left
    settled = resident()
    made = delta("primitives", lambda: run(range(1, 1001)))
    growth = resident() - settled
    assert made["misses"] == made["evictions"] == 2000
    stats = library.stats(module)
    assert len(stats["specializations"]) == 16 and stats["packed_weight_bytes"] < 2**16
    assert library.cache_counters("primitives")["entries"] == 64
    expected: Array = np.maximum(convolution(x, w, attrs), 0)
    e = np.exp(expected - expected.max(1, keepdims=True))
    check(out, e / e.sum(1, keepdims=True), 16)
    return growth


@pytest.mark.slow
def test_a_thousand_shapes_keep_memory_flat() -> None:
    assert in_own_process(growth_over_a_thousand_shapes) < 4 * 2**20
