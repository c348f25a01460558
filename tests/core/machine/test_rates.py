"""Rates of machines: what is derived from them, their file, and what a damaged one is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tvm_mxplan.core.machine import (
    Compute,
    KernelRate,
    MachineRates,
    MemoryLevel,
    UnusableRates,
    default_rates,
)

RATES = MachineRates(
    2,
    (
        Compute("float32", "avx512", 211.3),
        Compute("float32", "avx2", 197.0),
        Compute("int8", "avx512", 800.0),
    ),
    (MemoryLevel(2 << 20, 131.0, 187.0), MemoryLevel(32 << 20, 90.0, 171.0), MemoryLevel(None, 66.6, 68.4)),
    0.233,
    2.06,
    11.9,
    1.27,
    "measured",
    (KernelRate("jit:avx512_core in groups", 187.0), KernelRate("grouped:avx2 in groups", 143.0)),
)


def test_kernels_that_were_measured_have_rates_of_their_own() -> None:
    assert RATES.kernel_gflops("grouped:avx2 in groups") == 143.0
    assert RATES.kernel_gflops("grouped:avx512 in groups") is None
    other = replace(RATES, kernels=(KernelRate("grouped:avx2 in groups", 150.0), KernelRate("new", 1.0)))
    assert RATES.better(other).kernels == (RATES.kernels[0], KernelRate("grouped:avx2 in groups", 150.0))
    assert [one.gflops for one in RATES.rounded().kernels] == [180.0, 150.0]


def test_the_fastest_instruction_set_of_a_type_where_none_is_named() -> None:
    assert (RATES.gflops("float32"), RATES.gflops("float32", "avx2")) == (211.3, 197.0)
    assert 0.2 * 197.0 < RATES.gflops("float32", "sse41") < 0.5 * 197.0, "not measured"
    assert (RATES.gflops("int8"), RATES.gflops("bfloat16")) == (800.0, 800.0)


@pytest.mark.parametrize(
    ("nbytes", "copied"), [(1, 187.0), (2 << 20, 187.0), (3 << 20, 171.0), (1 << 30, 68.4)]
)
def test_bytes_lie_in_the_nearest_level_that_holds_them(nbytes: int, copied: float) -> None:
    assert RATES.copying_us(nbytes) == pytest.approx(nbytes / copied / 1e3)


@pytest.mark.parametrize(
    ("nbytes", "copied"), [(1, 187.0 / 2), (2 << 20, 187.0 / 2), (3 << 20, 171.0 / 2), (1 << 30, 68.4)]
)
def test_one_thread_has_its_share_of_caches_and_all_of_memory(nbytes: int, copied: float) -> None:
    assert RATES.copying_alone_us(nbytes) == pytest.approx(nbytes / copied / 1e3)
    many = replace(RATES, threads=16)
    assert many.copying_alone_us(nbytes) == pytest.approx(nbytes / 68.4 / 1e3), "caches are no slower"


@pytest.mark.parametrize(
    ("sizes", "private"), [((64, 2048, 8192), 2048), ((2048, 8192), 2048), ((2048,), 2048), ((), 0)]
)
def test_caches_in_front_of_the_last_are_private(sizes: tuple[int, ...], private: int) -> None:
    levels = [MemoryLevel(size, 100.0, 100.0) for size in (*sizes, None)]
    assert replace(RATES, levels=tuple(levels)).private_bytes == private


def test_the_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    path.write_text(json.dumps(RATES.to_json()))
    assert MachineRates.read(path) == replace(RATES, source="given")
    assert MachineRates.from_json(RATES.to_json()) == RATES
    assert MachineRates.from_json(default_rates(3).to_json()) == default_rates(3)
    older = {name: value for name, value in RATES.to_json().items() if name != "kernels"}
    assert MachineRates.from_json(older) == replace(RATES, kernels=())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"threads": 0}, "threads: expected at least 1"),
        ({"threads": True}, "threads: expected a whole number"),
        ({"source": "guessed"}, "source: expected one of"),
        ({"start_us": -1}, "start_us: expected microseconds"),
        ({"fork_us": "2"}, "fork_us: expected a number"),
        ({"region_us": -0.5}, "region_us: expected microseconds"),
        ({"region_us": None}, "region_us: expected a number"),
        ({"exchanged": 0}, "expected rates above 0"),
        ({"exchanged": None}, "exchanged: expected a number"),
        ({"compute": []}, "compute: expected at least one"),
        ({"compute": [["float32", "avx2"]]}, "compute: expected rows of 3"),
        ({"compute": [["float32", 2, 2.0]]}, "compute: expected a name"),
        ({"compute": [["float32", "avx2", 0]]}, "expected rates above 0"),
        ({"compute": [["float32", "avx2", float("nan")]]}, "compute: expected a number"),
        ({"kernels": [["jit", 1.0, 2.0]]}, "kernels: expected rows of 2"),
        ({"kernels": [[1, 1.0]]}, "kernels: expected a name"),
        ({"kernels": [["jit", "fast"]]}, "kernels: expected a number"),
        ({"kernels": [["jit", 0.0]]}, "kernels, levels, exchanged: expected rates above 0, got 0.0"),
        ({"levels": [[1024, 1, 1]]}, "levels: expected caches"),
        ({"levels": []}, "levels: expected caches"),
        ({"levels": [[None, 1, 1], [1024, 1, 1]]}, "levels: expected caches"),
        ({"levels": [[2048, 1, 1], [1024, 1, 1], [None, 1, 1]]}, "levels: expected bytes that grow"),
        ({"levels": [[1.5, 1, 1], [None, 1, 1]]}, "levels: expected a whole number"),
        ({"levels": None}, "levels: expected rows of 3"),
        ({"levels": [[0, 1, 1], [None, 1, 1]]}, "levels: expected bytes that grow"),
        ({"levels": [[1024, 1, 1], [1024, 1, 1], [None, 1, 1]]}, "levels: expected bytes that grow"),
        ({"levels": [[1024, 0, 1], [None, 1, 1]]}, "expected rates above 0, got 0.0"),
        ({"levels": [[1024, 1, 1], [None, 1, -1]]}, "expected rates above 0, got -1.0"),
        ({"compute": [["float32", "avx2", 1e10]]}, "expected rates above 0"),
        ({"fork_us": 1e10}, "fork_us: expected microseconds"),
        ({"start_us": True}, "start_us: expected a number"),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, object], said: str) -> None:
    with pytest.raises(UnusableRates, match=said):
        MachineRates.from_json({**RATES.to_json(), **changed})


@pytest.mark.parametrize(
    ("text", "said"), [("", "no JSON"), ("[1]", "expected an object"), ("{}", "compute")]
)
def test_files_that_say_nothing(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rates.json"
    path.write_text(text)
    with pytest.raises(UnusableRates, match=f"rates.json: {said}"):
        MachineRates.read(path)
    with pytest.raises(UnusableRates, match="No such file"):
        MachineRates.read(tmp_path / "other.json")


def test_limits_that_are_fine() -> None:
    """A machine without caches, the smallest cache, kernels that begin at once."""
    assert MachineRates.from_json({**RATES.to_json(), "levels": [[None, 1, 1]]}).memory.nbytes is None
    least = {"levels": [[1, 1, 1], [None, 1, 1]], "start_us": 0, "fork_us": 0.0, "threads": 1}
    made = MachineRates.from_json({**RATES.to_json(), **least})
    assert (made.levels[0].nbytes, made.start_us, made.fork_us, made.threads) == (1, 0.0, 0.0, 1)
    assert (made.rounded().start_us, made.rounded().fork_us) == (0.0, 0.0)


def test_what_threads_exchange() -> None:
    """Of what the nearest caches hold the share that others wrote, beyond bytes of one's own.

    What other caches hold stands there for all threads alike; the rest comes from memory.
    """
    each = (0.5 / 11.9 - 2 / 187.0) / 1e3
    near = (2 << 20) * each
    assert RATES.exchanging_us(1 << 20) == pytest.approx(near / 2)
    assert RATES.exchanging_us(16 << 20) == pytest.approx(near)
    assert RATES.exchanging_us(48 << 20) == pytest.approx(near + (16 << 20) / 68.4 / 1e3)
    four = (0.75 / 11.9 - 2 / 187.0) * 1000 / 1e3
    assert replace(RATES, threads=4).exchanging_us(1000) == pytest.approx(four)
    assert replace(RATES, threads=1).exchanging_us(1000) == 0.0
    assert replace(RATES, exchanged=100.0).exchanging_us(1000) == 0.0, "as fast as bytes of one's own"
    uncached = replace(RATES, levels=RATES.levels[-1:])
    assert uncached.exchanging_us(1000) == pytest.approx(1000 / 68.4 / 1e3)


def test_what_is_moved_in_the_middle_of_a_network() -> None:
    """The nearest of several caches has the data of other steps."""
    assert RATES.moving_us(1000) == pytest.approx(1000 / 171.0 / 1e3)
    assert RATES.moving_us(16 << 20) == RATES.copying_us(16 << 20)
    assert RATES.moving_us(64 << 20) == RATES.copying_us(64 << 20)
    one = replace(RATES, levels=(RATES.levels[0], RATES.levels[-1]))
    assert one.moving_us(1000) == one.copying_us(1000)


def test_the_default_knows_every_instruction_set_and_level() -> None:
    """Wider vectors compute more, and what is nearer is faster."""
    rates = default_rates(3)
    assert rates.to_json() == {
        "threads": 3,
        "source": "default",
        "start_us": 0.24,
        "fork_us": 2.0,
        "exchanged": 16.0,
        "region_us": 1.5,
        "compute": [["float32", "avx512", 220.0], ["float32", "avx2", 200.0], ["float32", "sse41", 75.0]],
        "kernels": [],
        "levels": [[2 << 20, 130.0, 180.0], [32 << 20, 130.0, 160.0], [None, 68.0, 68.0]],
    }
    assert default_rates().threads == 2
    gflops = [one.gflops for one in rates.compute]
    assert gflops == sorted(gflops, reverse=True)
    copied = [level.copied for level in rates.levels]
    assert copied == sorted(copied, reverse=True)


def test_one_line_for_a_report() -> None:
    assert str(RATES) == (
        "measured: 211.3 GFLOP/s float32 avx512, 197 GFLOP/s float32 avx2, 800 GFLOP/s int8 avx512, "
        "187 jit:avx512_core in groups, 143 grouped:avx2 in groups; "
        "66.6 GB/s read, 68.4 GB/s copied; 11.9 GB/s between threads; 0.233 us to start a kernel, "
        "2.06 us to fork, 1.27 us to call a region; 2 thread(s)"
    )


def test_rounding_is_stable_and_small() -> None:
    rounded = RATES.rounded()
    assert rounded.rounded() == rounded
    assert [one.gflops for one in rounded.compute] == [220.0, 200.0, 820.0]
    assert [(one.nbytes, one.read, one.copied) for one in rounded.levels] == [
        (2 << 20, 130.0, 180.0),
        (32 << 20, 91.0, 180.0),
        (None, 68.0, 68.0),
    ]
    assert (rounded.start_us, rounded.fork_us, rounded.exchanged) == (0.24, 2.0, 12.0)
    assert rounded.region_us == 1.3
    assert (rounded.threads, rounded.source) == (2, "measured")
    noisy = replace(RATES, start_us=0.235, fork_us=2.05)
    assert noisy.rounded() == rounded


def test_the_better_of_two_measurements() -> None:
    other = replace(
        RATES,
        start_us=0.2,
        fork_us=9.0,
        region_us=1.1,
        levels=(replace(RATES.levels[0], read=200.0), *RATES.levels[1:]),
    )
    better = RATES.better(other)
    assert (better.start_us, better.fork_us, better.levels[0].read) == (0.2, 2.06, 200.0)
    assert (better.region_us, other.better(RATES).region_us) == (1.1, 1.1)
    assert better.levels[0].copied == 187.0 and better.compute == RATES.compute
    assert RATES.better(replace(other, levels=other.levels[1:])) is RATES, "another machine"
    assert RATES.better(replace(other, compute=other.compute[1:])) is RATES, "another machine"
    faster = replace(
        RATES,
        compute=tuple(replace(one, gflops=one.gflops + 1) for one in reversed(RATES.compute)),
        levels=tuple(replace(one, copied=one.copied + 1, read=one.read - 1) for one in RATES.levels),
        exchanged=12.5,
    )
    for one in (RATES.better(faster), faster.better(RATES)):
        assert {(c.instruction_set, c.dtype): c.gflops for c in one.compute} == {
            ("avx512", "float32"): 212.3,
            ("avx2", "float32"): 198.0,
            ("avx512", "int8"): 801.0,
        }
        assert [(level.read, level.copied) for level in one.levels] == [
            (131.0, 188.0),
            (90.0, 172.0),
            (66.6, 69.4),
        ]
        assert one.exchanged == 12.5
