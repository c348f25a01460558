"""``tvmc compile --dump-memory``: the picture, the CSV beside it, and what cannot be drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import onnx
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


def two_regions() -> onnx.ModelProto:
    """Two convolutions, and TVM's sine between them."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((8, 8, 3, 3)).astype("float32") for _ in range(2)]
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1]),
        onnx.helper.make_node("Atan", ["a"], ["b"]),
        onnx.helper.make_node("Conv", ["b", "w1"], ["y"], pads=[1, 1, 1, 1]),
    ]
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (1, 8, 12, 12)) for n in "xy")
    constants = [onnx.numpy_helper.from_array(array, f"w{at}") for at, array in enumerate(weights)]
    graph = onnx.helper.make_graph(nodes, "two", [x], [y], constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)


def test_regions_in_one_arena_are_one_picture(tvmc, tmp_path):
    onnx.save(two_regions(), tmp_path / "two.onnx")
    picture = tmp_path / "plan.svg"
    flags = ("-o", tmp_path / "two.so", "--dump-memory", picture)
    assert tvmc("compile", tmp_path / "two.onnx", *flags).code == 0
    assert listing(tmp_path) == ["plan.csv", "plan.svg", "two.onnx", "two.so"]
    *regions, main = tvm_mxplan.load(tmp_path / "two.so").report.memory
    assert [region.stands_in for region in regions] == ["main", "main"]
    titles = [node.text for node in ET.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) >= len(main.items) > sum(len(region.items) for region in regions) > 0
    assert any(title.startswith(regions[1].region) for title in titles)


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
