"""scripts/bench allocation: derived problems have the plans they are said to have, and a row each."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.memory import allocation
from _bench.memory import derived_problems as derived
from _bench.memory.derived_problems import Buffer, Packing

from tvm_mxplan.core.allocation import Plan, validate, write_csv
from tvm_mxplan.errors import InternalError

KINDS = ("reversed", "split", "inflated", "filled", "subset", "scaled")
LIMITS = allocation.Limits(nodes=1000, seconds=None, fit_only=True)


def loose_packing(seed: int) -> Packing:
    """Some buffers with gaps between them, at least one of them alive for several steps."""
    dice = random.Random(seed)
    return derived.subset(derived.perfect_packing(17, dice), dice, keep=0.7)


def tiny(seed: int) -> dict[str, Packing]:
    bases = {"P": loose_packing(1), "Q": loose_packing(2), "R": derived.random_net(13, random.Random(3))}
    return derived.derived_problems(bases, seed, nets=(11,), perfect=(9,))


def area(packing: Packing) -> int:
    """Bytes times steps that buffers take."""
    return sum((buffer.death - buffer.birth) * buffer.nbytes for buffer in packing.buffers)


@pytest.mark.parametrize("seed", range(5))
def test_every_derived_problem_comes_with_a_plan_of_its_height(seed: int) -> None:
    problems = tiny(seed)
    assert len(problems) == 3 * len(KINDS) + 2 * 2 + 2 + 2
    for name, packing in problems.items():
        assert packing.problem().capacity == packing.height, name
        assert packing.plan().heights == {"global": packing.height}, name
        assert validate(packing.problem(), packing.plan()) == [], name
        assert all(buffer.nbytes > 0 for buffer in packing.buffers), name


def test_the_same_seed_makes_the_same_problems() -> None:
    assert tiny(7) == tiny(7)
    alike = [name for name, packing in tiny(8).items() if packing == tiny(7)[name]]
    assert set(alike) <= {f"{base} reversed" for base in "PQR"} | {"P under Q", "Q under R"}


def test_other_problems_have_no_influence_on_one() -> None:
    alone = derived.derived_problems({"Q": loose_packing(2)}, 7, nets=(), perfect=())
    assert list(alone) == [f"Q {kind}" for kind in KINDS]
    assert all(packing == tiny(7)[name] for name, packing in alone.items())


def test_reversal_undoes_itself() -> None:
    packing = Packing((Buffer(0, 2, 8, 0), Buffer(1, 5, 4, 8)), 12)
    turned = derived.reversed_in_time(packing)
    assert turned.buffers == (Buffer(3, 5, 8, 0), Buffer(0, 4, 4, 8))
    assert derived.reversed_in_time(turned) == packing


def test_split_cuts_and_leaves_nothing_out() -> None:
    packing = loose_packing(4)
    cut = derived.split(packing, random.Random(5), share=1.0)
    assert len(cut.buffers) == 2 * len(packing.buffers)
    assert area(cut) == area(packing)
    assert derived.split(packing, random.Random(5), share=0.0) == packing


@pytest.mark.parametrize(
    "grow, grown",
    [
        (derived._grown_up, Buffer(2, 4, 24, 16)),
        (derived._grown_down, Buffer(2, 4, 28, 4)),
        (derived._grown_later, Buffer(2, 7, 16, 16)),
        (derived._grown_earlier, Buffer(1, 4, 16, 16)),
    ],
)
def test_growth_ends_at_the_next_buffer(grow: Callable[..., Buffer], grown: Buffer) -> None:
    buffer = Buffer(2, 4, 16, 16)
    others = [Buffer(3, 9, 8, 40), Buffer(1, 3, 4, 0), Buffer(7, 8, 4, 20), Buffer(0, 1, 4, 28)]
    assert grow(buffer, others, Packing((buffer, *others), 64)) == grown


def test_growth_without_neighbours_ends_at_the_packing() -> None:
    buffer, far = Buffer(2, 4, 16, 16), Buffer(8, 9, 1, 63)
    packing = Packing((buffer, far), 64)
    assert derived._grown_up(buffer, [far], packing) == Buffer(2, 4, 48, 16)
    assert derived._grown_down(buffer, [far], packing) == Buffer(2, 4, 32, 0)
    assert derived._grown_later(buffer, [far], packing) == Buffer(2, 9, 16, 16)
    assert derived._grown_earlier(buffer, [far], packing) == Buffer(0, 4, 16, 16)


def test_inflation_fills_gaps() -> None:
    packing = loose_packing(4)
    assert area(packing) < area(derived.inflated(packing, random.Random(5), rounds=2))
    assert derived.inflated(packing, random.Random(5), share=0.0) == packing


def test_scaling_moves_the_height() -> None:
    packing = loose_packing(4)
    scaled = derived.scaled_addresses(packing, random.Random(5))
    assert scaled.height != packing.height
    assert [b[:2] for b in scaled.buffers] == [b[:2] for b in packing.buffers]
    sizes = zip(scaled.buffers, packing.buffers, strict=True)
    assert all(0.5 < new.nbytes / old.nbytes < 1.5 and new != old for new, old in sizes)


def test_one_after_the_other_with_bridges_over_the_seam() -> None:
    first, second = Packing((Buffer(0, 3, 8, 0),), 8), Packing((Buffer(1, 4, 8, 8),), 16)
    apart = derived.concatenated(first, second, random.Random(0), bridges=0)
    assert apart == Packing((Buffer(0, 3, 8, 0), Buffer(4, 7, 8, 8)), 16)
    bridged = derived.concatenated(first, second, random.Random(0), bridges=20)
    assert bridged.buffers[0] == Buffer(0, 7, 8, 0)


def test_one_above_the_other_for_the_same_steps() -> None:
    lower, upper = Packing((Buffer(0, 3, 8, 0),), 8), Packing((Buffer(1, 4, 8, 8),), 16)
    stack = derived.stacked(lower, upper)
    assert stack == Packing((Buffer(0, 12, 8, 0), Buffer(3, 12, 8, 16)), 24)


@pytest.mark.parametrize("count", [1, 9, 40])
def test_a_perfect_packing_has_no_gap(count: int) -> None:
    packing = derived.perfect_packing(count, random.Random(count))
    assert len(packing.buffers) == count
    assert area(packing) == packing.height * packing.steps
    assert validate(packing.problem(), packing.plan()) == []


def rows_of(output: str) -> dict[str, list[str]]:
    rows = [line.strip("| ").split(" | ") for line in output.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in rows[2:]}


def write_problem(folder: Path, name: str, packing: Packing, capacity: int) -> None:
    write_csv(folder / f"{name}.{capacity}.csv", packing.problem())


def test_a_row_for_each_problem_and_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packing = loose_packing(1)
    write_problem(tmp_path, "P", packing, packing.height)
    write_problem(tmp_path, "v1.5", packing, 99)  # nothing fits
    wanted = ["--problems", str(tmp_path), "--names", "P", "--nodes", "500", "--seed", "3"]
    assert allocation.main(wanted) == 0
    output = capsys.readouterr().out
    rows = rows_of(output)
    assert list(rows)[:3] == ["P", "v1.5", "P reversed"]
    assert len(rows) == 2 + len(KINDS) + 6 + 6
    buffers, capacity, height, placements, _, solved = rows["P"]
    assert int(buffers) == len(packing.buffers)
    assert float(capacity) >= 1 >= float(height) and solved == "yes"
    assert all(int(cells[3].replace(",", "")) <= 500 for cells in rows.values()) and placements
    assert all((float(cells[2]) <= 1) == (cells[5] == "yes") for cells in rows.values())
    assert rows["v1.5"][5] == "no"
    found = sum(cells[5] == "yes" for cells in list(rows.values())[2:])
    assert output.endswith(f"\nsolved: 1 of 2 of the files, {found} of {len(rows) - 2} derived (seed 3)\n")


def test_a_plan_that_is_not_valid_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Packing((Buffer(0, 2, 8, 0), Buffer(1, 5, 4, 8)), 12).problem()
    assert allocation.measure("P", problem, LIMITS).solved
    monkeypatch.setattr(allocation, "solve", lambda *_, **__: Plan((0, 4), {"global": 12}))
    with pytest.raises(InternalError, match="the plan of 'P' is not valid: items 'b0' and 'b1' overlap"):
        allocation.measure("P", problem, LIMITS)


@pytest.mark.parametrize(
    "files, names, message",
    [
        ([], "P", "no problems there, expected files NAME.CAPACITY.csv"),
        (["P.csv"], "P", "no capacity in the file's name, expected NAME.CAPACITY.csv"),
        (["P.8.csv", "P.9.csv"], "P", "a second problem 'P', expected one"),
        (["P.12.csv", "Q.12.csv"], "P,X", "--names: no problem 'X'; there are P, Q"),
        (["P.11.csv"], "P", "takes 12 bytes, expected 11; leave it out"),
    ],
)
def test_what_cannot_be_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: list[str], names: str, message: str
) -> None:
    for file in files:
        write_csv(tmp_path / file, Packing((Buffer(0, 2, 8, 0), Buffer(1, 5, 4, 8)), 12).problem())
    assert allocation.main(["--problems", str(tmp_path), "--names", names]) == 1
    told = capsys.readouterr()
    assert message in told.err and told.err.count("\n") == 1 and told.out == ""
