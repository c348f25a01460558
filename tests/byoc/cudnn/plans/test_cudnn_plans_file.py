"""Plans in a file: made in one process, found in another, and what of a file is not used; cuDNN is played."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from cudnn_stand_in import DEVICES, StandIn, small_network
from spoilt_files import UNUSABLE, check_each_fact_is_needed, check_unwritable_is_a_warning, rewrite

import tvm_mxplan
from tvm_mxplan.byoc.cudnn import engine, library
from tvm_mxplan.byoc.cudnn.plans import plans
from tvm_mxplan.byoc.cudnn.plans.store import PlanStore
from tvm_mxplan.cache.choices_file import load_cache, save_cache
from tvm_mxplan.cache.safe_file import open_container
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.report.inspection import decoded_programs

pytestmark = pytest.mark.usefixtures("planner")


def compiled(device: str = "h200", **options: object) -> list[bytes]:
    """The plans that a small network's steps carry."""
    ex = tvm_mxplan.compile(
        small_network(),
        "cudnn, cuda",
        device_properties=DEVICES / f"{device}.json",
        options={"cache": "disabled", **options},
    )
    found = [step.prepared for program in decoded_programs(ex.module) for step in program.steps]
    return [plan for plan in found if plan]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forgets all plans, as a new process has none."""

    def forget() -> None:
        monkeypatch.setattr(plans, "STORE", PlanStore())
        monkeypatch.setattr(engine, "STORE", plans.STORE)

    return forget


@pytest.fixture
def saved(tmp_path: Path, fresh: Callable[[], None]) -> Path:
    path = tmp_path / "plans.bin"
    made = compiled()
    assert save_cache(path, "cudnn") >= len(made) > 3
    fresh()
    return path


def test_plans_are_found_in_the_file_and_not_made(
    planner: StandIn, saved: Path, fresh: Callable[[], None]
) -> None:
    before = compiled()
    fresh()
    count = load_cache(saved, "cudnn")
    planner.requests.clear()
    assert compiled() == before
    assert planner.requests == []
    assert save_cache(saved, "cudnn") == count  # what was loaded is saved again


def test_other_devices_drivers_and_rules_have_plans_of_their_own(
    planner: StandIn, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_cache(saved, "cudnn")
    for device, options in (("b200", {}), ("h200", {"deterministic": True})):
        planner.requests.clear()
        compiled(device, **options)
        assert len(planner.requests) > 3
    planner.requests.clear()
    compiled()
    assert planner.requests == []


def test_the_file_says_for_which_device_and_with_which_engines(saved: Path) -> None:
    text = bytes(open_container(saved).read("json", "plans")).decode()
    for part in ("NVIDIA H200", '"sm": 90', '"multiprocessors": 132', "eng7_k1=2", '"convolution"'):
        assert part in text


def test_nothing_to_save_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="nothing to save; compile a model for cudnn first"):
        save_cache(tmp_path / "c", "cudnn")


def test_plans_of_other_versions_are_made_again(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = library.versions()
    for name in versions:
        monkeypatch.setattr(library, "versions", lambda name=name: {**versions, name: "0.0"})
        with pytest.warns(RuntimeWarning, match=f"made for {name} .* here it is '0.0'"):
            assert load_cache(saved, "cudnn") == 0


def test_a_file_of_the_other_type_is_not_used(saved: Path) -> None:
    with pytest.warns(RuntimeWarning, match="not used"):
        assert load_cache(saved, "mkldnn") == 0


def test_no_byte_changes_a_plan_unnoticed(saved: Path, fresh: Callable[[], None]) -> None:
    good = saved.read_bytes()
    load_cache(saved, "cudnn")
    known = plans.STORE.all()
    noticed = 0
    for at in sorted({*range(200), *range(0, len(good), max(1, len(good) // 300)), len(good) - 1}):
        fresh()
        saved.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            count = load_cache(saved, "cudnn")
        noticed += count == 0
        assert (count == 0 and len(said) == 1) or plans.STORE.all() == known, f"byte {at}"
    assert noticed > 300


@pytest.mark.parametrize("spoil, reason", UNUSABLE)
def test_a_file_that_cannot_be_used_is_a_warning_and_plans_are_made(
    planner: StandIn, saved: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    spoil(saved)
    with pytest.warns(RuntimeWarning, match=reason):
        assert load_cache(saved, "cudnn") == 0
    planner.requests.clear()
    compiled()
    assert planner.requests


def test_a_file_that_does_not_say_what_it_was_made_for(saved: Path) -> None:
    check_each_fact_is_needed(saved, "cudnn")


def test_plans_of_other_graphs_are_not_taken(
    planner: StandIn, saved: Path, fresh: Callable[[], None]
) -> None:
    """A sound file in which plans stand under each other's names."""
    container = open_container(saved)
    plans_there = [
        bytes(container.read(one.kind, one.name)) for one in container.entries if one.kind != "json"
    ]
    others = iter([*plans_there[1:], plans_there[0]])
    changed = rewrite(saved, change=lambda _, data: next(others) if data in plans_there else data)
    assert changed == len(plans_there)
    right = compiled()
    fresh()
    assert load_cache(saved, "cudnn") > 3
    planner.requests.clear()
    assert compiled() == right
    assert planner.requests  # all that were mixed up are made again


def test_a_file_that_cannot_be_written_is_a_warning(
    planner: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled()
    check_unwritable_is_a_warning(tmp_path, "cudnn", monkeypatch)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"request": 1}', b'{"request": "x", "answer": {}}'])
def test_plans_that_are_none_in_a_sound_file_are_made(planner: StandIn, saved: Path, data: bytes) -> None:
    assert rewrite(saved, change=lambda *_: data) > 3
    assert load_cache(saved, "cudnn") > 3
    planner.requests.clear()
    assert compiled()
    assert planner.requests


def test_the_cache_folder_keeps_plans(planner: StandIn, fresh: Callable[[], None]) -> None:
    model, device = small_network(), DEVICES / "h200.json"
    options = {"cache": "on_compile"}
    cold = tvm_mxplan.compile(model, "cudnn, cuda", device_properties=device, options=options)
    assert cold.report.cache.outcome == "miss" and planner.requests
    planner.requests.clear()
    fresh()
    warm = tvm_mxplan.compile(model, "cudnn, cuda", device_properties=device, options=options)
    assert warm.report.cache.outcome == "hit" and planner.requests == []
    other = tvm_mxplan.compile(model, "cudnn, cuda", device_properties=DEVICES / "b200.json", options=options)
    assert other.report.cache.outcome == "miss" and planner.requests
