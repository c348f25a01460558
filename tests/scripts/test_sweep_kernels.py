"""The sweep over kernels: problem lists, numbers, what it finds, and a part of the sweep itself."""

from __future__ import annotations

import itertools
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _sweep import execution, grammar, numbers, shrinking, sweep, worker  # noqa: E402
from _sweep.buffers import Guarded  # noqa: E402
from _sweep.drawing import NothingToDraw, draw  # noqa: E402
from _sweep.steps import chains  # noqa: E402
from _sweep.steps.element_types import WITHOUT_PRODUCTS, choose, families_of, type_of  # noqa: E402
from _sweep.steps.subject import Tensor  # noqa: E402
from _sweep.steps.subjects import subject  # noqa: E402
from _sweep.tally import Tally  # noqa: E402

from tvm_mxplan.byoc.onednn import library  # noqa: E402
from tvm_mxplan.byoc.onednn.backend import OneDNN  # noqa: E402


def case(text: str, chain: str = "-") -> execution.Case:
    return execution.Case(grammar.problem(text), chains.parse(chain), 0)


# --- problem lists -----------------------------------------------------------------------------------------


def test_a_line_is_the_product_of_its_alternatives() -> None:
    text = "# comment\nkind convolution\nalways mb1|2 bias0\nic3|16 kh1..3 mb8  # again\nic4 alg=a|b\n"
    first, second = grammar.parse(text, "x.txt")
    assert (first.size, second.size, first.place) == (6, 4, "x.txt:4")
    told = {str(first.at(number)) for number in range(first.size)}
    assert told == {f"convolution mb8 bias0 ic{ic} kh{kh}" for ic in (3, 16) for kh in (1, 2, 3)}
    assert "convolution mb2 bias0 ic4 alg=b" in {str(second.at(number)) for number in range(4)}
    assert str(grammar.problem("matmul m3 batch=2x3")) == "matmul m3 batch=2x3"


@pytest.mark.parametrize("text", ["ic3", "kind convolution\n3ic", "kind convolution\nic3..", "kind a b"])
def test_lines_that_mean_nothing_are_named(text: str) -> None:
    with pytest.raises(grammar.GrammarError, match=r"^x\.txt:\d"):
        list(grammar.parse(text, "x.txt"))


def test_the_lists_have_every_kind_of_step_and_hardly_a_line_without_sense() -> None:
    lines = grammar.read()
    registry = SCRIPTS.parent / "byoc" / "runtime" / "onednn" / "steps" / "registry.cc"
    built = set(re.findall(r'\{"(\w+)", &?Build', registry.read_text()))
    host = SCRIPTS.parent / "byoc" / "runtime" / "host" / "steps" / "registry.cc"
    others = set(re.findall(r'\{"(\w+)", &?Build', host.read_text()))
    assert len(built) > 20 and len(others) > 6
    assert {line.kind for line in lines} == built | others
    for line in lines:
        tried = [subject(line.at(int(at))) for at in np.linspace(0, line.size - 1, 50)]
        assert any(tried), line.place


def test_a_seed_gives_the_same_cases() -> None:
    lines = grammar.read()
    first, second = ([str(draw(lines, 7, at)[0]) for at in range(20)] for _ in range(2))
    assert first == second and len(set(first)) > 15


@pytest.mark.parametrize("family", ["int8", WITHOUT_PRODUCTS])
def test_lines_without_a_type_of_the_family_are_passed_over(family: str) -> None:
    """Products of integers have constant filters and exact sums; where there are none, nothing is drawn."""
    exact = "kind convolution\nalways ic16 ih5 oc8 kh3\nmb1"
    never = "\n".join("mb1 const0|1 alg=winograd_f2|winograd_f4 sh1" for _ in range(60))
    lines = list(grammar.parse(f"{exact}\n{never}", "x.txt"))
    if family == "int8":
        assert {str(draw(lines, 0, at, (family,))[0]).split()[1] for at in range(20)} == {"ic16"}
        lines = lines[1:]
    with pytest.raises(NothingToDraw, match=r"^none of \d+ problems of convolution makes sense in int8"):
        draw(lines, 0, 0, (family,))


# --- numbers ----------------------------------------------------------------------------------------------


def test_sums_are_exact_in_any_order() -> None:
    random = np.random.default_rng(0)
    depth = 2048 * 25
    src = numbers.fill(Tensor("src", (3, depth)), depth, random)
    weights = numbers.fill(Tensor("weights", (depth, 4), True, "weights"), depth, random)
    exact = src.astype(np.float64) @ weights.astype(np.float64)
    forward, backward = src @ weights, src[:, ::-1].copy() @ weights[::-1].copy()
    np.testing.assert_array_equal(forward, exact)
    np.testing.assert_array_equal(backward, exact)
    assert 0.1 < np.abs(exact).mean() < 10


def test_a_part_of_a_result_is_that_part(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, chain in (
        ("convolution mb5 ic19 ih9 oc70 kh3 ph1 bias1", "relu+add:whole+mul:channel+sum"),
        ("convolution mb3 g8 ic24 ih9 oc32 kh3 bias1", "add:channel"),
        ("deconvolution mb3 g6 ic12 ih5 oc30 kh4 sh2 bias1", "mul:whole"),
        ("deconvolution ic33 ih5 oc67 kh4 sh2 bias1", "relu"),
        ("matmul batch=2x3 m7 k33 n70 bias1", "add:last+add:whole"),
        ("inner_product mb3 ic33 ih4 oc70 bias1", "relu+add:whole"),
    ):
        whole = execution.prepare(case(text, chain))
        monkeypatch.setattr("_sweep.expected.MOST_WORK", 2000)
        part = execution.prepare(case(text, chain))
        monkeypatch.undo()
        assert whole and part and part.part.channels is not None
        assert part.estimates["dst"].value.size < whole.estimates["dst"].value.size
        np.testing.assert_array_equal(part.estimates["dst"].value, part.part.of(whole.estimates["dst"].value))


def test_what_comes_of_no_number_is_not_compared() -> None:
    text = "convolution bias1 ic3 ih5 oc8 kh3"
    prepared, plain = execution.prepare(case(text, "sqrt+max:whole+relu")), execution.prepare(case(text))
    assert prepared and plain
    negative = plain.estimates["dst"].value < 0
    assert negative.any() and not negative.all()
    np.testing.assert_array_equal(np.isinf(prepared.estimates["dst"].error), negative)


def test_guards_tell_where_they_were_written() -> None:
    buffer = Guarded((3, 5), written=True)
    assert buffer.array.ctypes.data % 64 == 0 and np.isnan(buffer.array).all()
    buffer.array[...] = 1
    assert not buffer.trespassed()
    buffer._after[7] = 0
    assert "1 bytes written behind the tensor, the first at 7" in buffer.trespassed()
    buffer.refill()
    buffer._before[-1] = 0
    assert "in front" in buffer.trespassed()


# --- element types ----------------------------------------------------------------------------------------


def types_of(text: str, family: str) -> list[tuple[dict[str, str], str]]:
    """By role, the types of a problem's operands in all of a family's ways, and that of its result."""
    random, problem, found = np.random.default_rng(0), grammar.problem(text), {}
    made = subject(problem)
    assert made
    for _ in range(40):
        chosen = choose(problem, made, family, random)
        if chosen is not None:
            made_so = subject(chosen)
            assert made_so and grammar.problem(str(chosen)) == chosen
            found[type_of(chosen)] = ({one.role: one.dtype for one in made_so.tensors}, made_so.written)
    return [found[name] for name in sorted(found)]


def test_steps_have_the_types_that_the_planner_gives_them() -> None:
    convolution = "convolution ic16 ih5 oc8 kh3 bias1"
    short = {"src": "bfloat16", "weights": "bfloat16", "bias": "float32"}
    assert types_of(convolution, "bf16") == [(short, "bfloat16"), (short, "float32")]
    assert types_of("softmax dims=4x5", "bf16") == []
    assert types_of("convolution_backward_weights ic3 ih5 oc8 kh3", "bf16") == []
    assert [written for _, written in types_of("pooling ic3 ih5 kh2", "int8")] == ["int8", "uint8"]
    assert types_of("pooling ic3 ih5 kh2 alg=avg_include_padding", "int8") == []
    assert types_of(convolution, WITHOUT_PRODUCTS) == []
    products = types_of(convolution, "int8")
    assert {written for _, written in products} == {"uint8", "int8", "float32", "bfloat16"}
    for roles, written in products:
        assert roles["weights"] == "int8" and roles["src"] in ("uint8", "int8")
        assert roles["src_scale"] == roles["weights_scale"] == roles["bias"] == "float32"
        assert ("dst_scale" in roles) == (written in ("uint8", "int8"))
    assert types_of("reorder lib=host dt=s64 dims=4x5 from=ab to=ba", "int8") == []
    host = types_of("compare lib=host dt=s64 dims=4x5", "host")
    assert host == [({"src": "int64", "src1": "int64"}, "bool")]


def test_a_processor_without_instructions_has_fewer_families() -> None:
    wanted = ("f32", "bf16", "int8", "host")
    assert families_of(wanted, lambda dtype: "") == list(wanted)
    lacks = lambda dtype: "no" if dtype != "float32" else ""  # noqa: E731
    assert families_of(wanted, lacks) == ["f32", "host", WITHOUT_PRODUCTS]


@pytest.mark.parametrize("depth", [1, 27, 576, 4608, 60000])
def test_sums_of_integers_are_exact_and_reach_both_ends(depth: int) -> None:
    random = np.random.default_rng(0)
    src = numbers.fill(Tensor("src", (4, depth), data="integers", dtype="uint8"), depth, random)
    zero = numbers.fill(Tensor("src_zero_point", (1,), data="zero_uint8", dtype="int32"), depth, random)
    weights = numbers.fill(Tensor("weights", (depth, 4), data="integer_weights", dtype="int8"), depth, random)
    assert src.dtype == np.uint8 and weights.dtype == np.int8 and zero.dtype == np.int32
    worst = np.abs(src.astype(np.int64) - zero).max() * np.abs(weights.astype(np.int64)).sum(0).max()
    assert worst < 2**24
    if depth > 500:
        assert (src == 0).any() and (src == 255).any()
    scale = numbers.fill(Tensor("weights_scale", (4,), data="weights_scale"), depth, random)
    assert (np.log2(scale) % 1 == 0).all()


@pytest.mark.parametrize(
    "text",
    [
        "quantization dims=2x19x7x5 dt=f32:u8 zp=dst",
        "quantization dims=2x19x7x5 dt=s8:f32 ws=each axis1 zp=none",
        "pooling ic19 ih9 kh3 sh2 ph1 dt=u8",
        "cast lib=host dt=f32:s8 dims=2x19x7x5",
        "gather lib=host dt=bf16 of=s32 dims=7x5 axis0 at=3x5",
        "batch_normalization_backward mb2 ic19 ih5",
    ],
)
def test_a_wrong_result_of_any_type_is_a_finding(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last byte but three of a result is changed, behind the run of the kernel."""
    assert not [one.wrong for one in worker.repeat(f"{text} : -") if one.wrong]
    judge = execution.Prepared._judge

    def spoilt(self: execution.Prepared, result: Guarded, output: object) -> str:
        result.bytes[-4:] = result.bytes[-4:] ^ 0x5F
        return judge(self, result, output)  # type: ignore[arg-type]

    monkeypatch.setattr(execution.Prepared, "_judge", spoilt)
    try:
        found = worker.repeat(f"{text} : -")
    finally:
        library.set_errata(True)
    assert found and all(one.wrong for one in found)


# --- the sweep --------------------------------------------------------------------------------------------


def swept(*files: Path, **fields: object) -> Tally:
    tally = Tally()
    work = worker.Work("DEFAULT", seconds=600, files=tuple(map(str, files)), **fields)  # type: ignore[arg-type]
    sweep.sweep(work, tally)
    return tally


@pytest.mark.slow
def test_it_finds_a_kernel_that_is_wrong_and_a_smaller_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deconvolution of the errata, which do not count in a sweep."""
    problems = tmp_path / "problems.txt"
    problems.write_text("kind deconvolution\nmb1 ic320|512 ih3|4 oc64 kh4 sh2 ph1 bias1\n")
    tally = swept(problems, cases=4, shrinks=False)
    offered = [name for _, _, name in tally.runs if name.startswith("brg_conv:")]
    if not offered:
        pytest.skip(f"this processor has no such kernel: {sorted(tally.runs)}")
    wrong = [fault for fault in tally.faults.values() if fault.implementation in offered]
    if not wrong:
        pytest.skip("the cache of this processor holds the filters")
    assert all(fault.sort == "values" and sweep.is_known(fault) for fault in wrong)
    try:
        (again,) = worker.repeat(wrong[0].case)
        ticks = itertools.count()  # a second for each try, however long one takes
        monkeypatch.setattr(shrinking, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        smaller = shrinking.shrink(again, OneDNN().layout_rules)
    finally:
        library.set_errata(True)
    assert again.implementation == smaller.implementation == wrong[0].implementation
    assert again.wrong and smaller.wrong and smaller.work < again.work


@pytest.mark.slow
@pytest.mark.parametrize(
    ("types", "cases", "kinds"), [(("f32",), 100, 12), (("host", "int8", "bf16"), 60, 8)]
)
def test_a_part_of_the_sweep(types: tuple[str, ...], cases: int, kinds: int) -> None:
    tally = swept(cases=cases, seed=1, shrinks=False, types=types)
    assert sum(tally.cases.values()) == cases
    assert len({kind for kind, _ in tally.cases}) > kinds and sum(tally.runs.values()) > 1.3 * cases
    unknown = [fault for fault in tally.faults.values() if not sweep.is_known(fault)]
    assert not unknown, "\n".join(tally.lines())


@pytest.mark.slow
def test_where_there_is_nothing_to_try_the_report_says_so(tmp_path: Path) -> None:
    """Softmax has no integers; a sweep of it ends without a fault, and without a claim that all is right."""
    problems = tmp_path / "problems.txt"
    problems.write_text("kind softmax\ndims=4x5\n")
    tally = swept(problems, types=("int8",))
    assert not tally.faults and not tally.cases
    (reason,) = tally.ended.values()
    report = "\n".join(tally.lines())
    assert f"ended early: {reason}" in report and "nothing is wrong" not in report


def test_a_case_that_ends_its_process_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killer = tmp_path / "python"
    killer.write_text(
        '#!/bin/sh\necho \'{"about": "convolution ic3 : - : abcd : jit", "number": 4}\'\nkill -9 $$\n'
    )
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    tally = Tally()
    sweep.sweep(worker.Work("DEFAULT", seconds=600), tally)
    (fault,) = tally.faults.values()
    assert (fault.kind, fault.implementation, fault.sort) == ("convolution", "jit", "ends with status -9")
    assert not sweep.is_known(replace(fault, kind="shuffle"))
