"""``tvmc compile --dump-memory``: the picture, the CSV beside it, and what cannot be drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tvmc_helpers import listing

import tvm_mxplan
from tvm_mxplan.core.allocation import read_csv


def test_the_plan_is_drawn_and_written_for_others(tvmc, models, tmp_path):
    picture = tmp_path / "plan.svg"
    flags = ("-o", tmp_path / "m.so", "--dump-memory", picture)
    assert tvmc("compile", models / "small.onnx", *flags).code == 0
    assert listing(tmp_path) == ["m.so", "plan.csv", "plan.svg"]
    (memory,) = tvm_mxplan.load(tmp_path / "m.so").report.memory
    titles = [node.text for node in ET.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) >= len(memory.items) > 0
    assert len(read_csv(tmp_path / "plan.csv").items) == len(memory.items)
    assert (tmp_path / "plan.csv").read_text().splitlines()[0] == "id,lower,upper,size,offset"


def test_a_module_without_a_plan_says_so_and_writes_nothing(tvmc, models, tmp_path):
    flags = ("-o", tmp_path / "m.so", "--dump-memory", tmp_path / "plan.svg")
    result = tvmc("compile", models / "small.onnx", "--target", "llvm", *flags)
    assert "plan.svg: no plan to draw" in result.error()
    assert listing(tmp_path) == []


def test_the_name_is_checked_before_anything_is_compiled(tvmc, models, tmp_path):
    flags = ("-o", tmp_path / "m.so", "--dump-memory")
    assert "ends in .svg" in tvmc("compile", models / "small.onnx", *flags, tmp_path / "plan.png").error()
    missing = tmp_path / "nowhere" / "plan.svg"
    assert "there is no folder" in tvmc("compile", models / "small.onnx", *flags, missing).error()
    assert listing(tmp_path) == []
