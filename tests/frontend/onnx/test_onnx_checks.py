"""Each kind of broken ONNX model is refused in one line that names file, node and operator."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from broken_onnx_models import (
    BROKEN,
    Change,
    extent,
    model,
    node,
    recursive,
    refused,
    setting,
    several,
    split,
)

import tvm_mxplan
from tvm_mxplan import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.onnx import import_model, read_model
from tvm_mxplan.frontend.onnx.checks import check_shapes, checks
from tvm_mxplan.frontend.onnx.names import shown
from tvm_mxplan.testing import large_graphs, zoo


def test_the_model_itself_is_fine() -> None:
    assert "main" in [gvar.name_hint for gvar in import_model(model()).functions]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model(name: str) -> None:
    change, beginning, also = BROKEN[name]
    text = refused(change)
    assert text.startswith(beginning), text
    assert also in text, text


@pytest.mark.parametrize(
    "change, beginning, also",
    [
        (
            setting(lambda m: m.graph.node[1], "domain", "my.ops"),
            "node 'relu' (my.ops.Relu): ",
            "domain 'my.ops'",
        ),
        (
            setting(lambda m: m.graph.node[1], "domain", "com.microsoft"),
            "node 'relu' (com.microsoft.Relu)",
            "",
        ),
        (
            setting(lambda m: m.graph.node[1], "op_type", "Frobnicate"),
            "node 'relu' (Frobnicate): ",
            "simplifier",
        ),
        (recursive, "node 'self' (own.Again): this function calls itself", "expected"),
        (
            lambda m: m.graph.sparse_initializer.add().values.__setattr__("name", "s"),
            "initializer 's' is sparse",
            "dense",
        ),
    ],
)
def test_what_the_importer_does_not_know(change: Change, beginning: str, also: str) -> None:
    text = refused(change, UnsupportedError)
    assert text.startswith(beginning) and also in text, text


def test_nodes_without_names_go_by_place_and_result() -> None:
    text = refused(several(node("Abs", ["q"], ["z"]), lambda m: m.graph.node[2].ClearField("name")))
    assert text.startswith("node #2 (Abs, which makes 'z'): reads 'q'")


def test_both_names_of_the_standard_domain_and_stated_shapes_are_taken() -> None:
    other = model()
    other.opset_import[0].domain = "ai.onnx"
    other.graph.node[1].domain = "ai.onnx"
    extent(2, 0)(other)
    with pytest.raises(
        InvalidInputError, match=r"net: node 'conv' \(Conv\): expected 3 input channels.*got 5"
    ):
        import_model(other, {"x": (1, 5, 9, 7)}, "net")
    import_model(other, {"x": (1, 3, 9, 7)}, "net")


# --- files --------------------------------------------------------------------------------------------


def external(path: Path) -> onnx.ModelProto:
    """The model on disk with its weights beside it, and as it stands in its file."""
    onnx.save(model(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return onnx.load(path, load_external_data=False)


def entry(key: str, value: str) -> Change:
    def change(changed: onnx.ModelProto) -> None:
        entries = changed.graph.initializer[0].external_data
        kept = [(one.key, one.value) for one in entries if one.key != key]
        del entries[:]
        for name, text in [*kept, (key, value)]:
            entries.add(key=name, value=text)

    return change


@pytest.mark.parametrize(
    "change, words",
    [
        (entry("location", "../w.bin"), ["'../w.bin'", "own folder"]),
        (entry("location", "/etc/passwd"), ["'/etc/passwd'", "own folder"]),
        (entry("location", "a\\..\\..\\w.bin"), ["own folder"]),
        (entry("location", ""), ["''", "own folder"]),
        (entry("location", "other.bin"), ["missing", "other.bin"]),
        (entry("offset", "8"), ["truncated", "432", "from byte 8", "424"]),
        (entry("offset", "-8"), ["offset", "'-8'"]),
        (entry("length", "12"), ["432", "12"]),
    ],
)
def test_external_data(tmp_path: Path, change: Change, words: list[str]) -> None:
    path = tmp_path / "net.onnx"
    changed = external(path)
    read_model(path)
    change(changed)
    path.write_bytes(changed.SerializeToString())
    with pytest.raises(InvalidInputError) as error:
        read_model(path)
    text = str(error.value)
    assert text.startswith(f"{path}: initializer 'w': ") and "\n" not in text
    assert all(word in text for word in words), text


def test_a_file_of_external_data_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    external(path)
    with (tmp_path / "w.bin").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(InvalidInputError, match=r"net.onnx: initializer 'w': .*w.bin is truncated.*got 100"):
        tvm_mxplan.compile(path, options={"cache": "disabled"})


def test_no_file_is_left_behind(tmp_path: Path) -> None:
    """The command line says one line and writes nothing."""
    from tvm_mxplan.tvmc.main import main

    path, changed = tmp_path / "net.onnx", model()
    split([1, 2])(changed)
    path.write_bytes(changed.SerializeToString())
    assert main(["compile", str(path), "-o", str(tmp_path / "net.so")]) == 1
    assert sorted(tmp_path.iterdir()) == [path]


# --- all of the zoo, and how much work it is --------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny", "shufflenet", "mobilenet_v2"])
@pytest.mark.parametrize("batch", [3, "n"])
def test_published_networks_pass(name: str, batch: int | str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_node, seen = onnx.checker.check_node, []
    monkeypatch.setattr(
        onnx.checker, "check_node", lambda node, *more: (seen.append(node.op_type), check_node(node, *more))
    )
    model = zoo.load(name, batch)
    checks.check_model(model, name, {})
    assert seen == [node.op_type for node in model.graph.node] and "Conv" in seen
    conv = next(node for node in reversed(model.graph.node) if node.op_type == "Conv")
    conv.input[1] = "nothing"
    with pytest.raises(InvalidInputError, match=f"^{name}: .*nothing"):
        checks.check_model(model, name, {})


def test_each_node_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: four times the nodes are four times the checks, and one inference of shapes."""
    counts = SimpleNamespace(nodes=0, inferences=0)
    check_node, infer = onnx.checker.check_node, onnx.shape_inference.infer_shapes

    def counted_node(*args: object) -> None:
        counts.nodes += 1
        check_node(*args)

    def counted_inference(light: onnx.ModelProto, **options: object) -> onnx.ModelProto:
        counts.inferences += 1
        assert light.ByteSize() < 1_000_000
        return infer(light, **options)

    monkeypatch.setattr(onnx.checker, "check_node", counted_node)
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", counted_inference)
    for operators in (400, 1600):
        counts.nodes = counts.inferences = 0
        graph = large_graphs.build("residual", operators)
        checks.check_model(graph, "large", {})
        assert (counts.nodes, counts.inferences) == (len(graph.graph.node), 1)


def test_inference_sees_no_large_weights() -> None:
    light = check_shapes._without_weights(zoo.load("resnet18"), {})
    assert light.ByteSize() < 100_000


NORMALIZED = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
agraph (float[2, 6, 5, 3] x) => (z) <float[6] a = {1, 1, 1, 1, 1, 1}> {
    g = GroupNormalization <num_groups = 2> (x, a, a)
    m = MeanVarianceNormalization (g)
    r = Relu (m)
    z = Concat <axis = 1> (r, x)
}"""


def test_operators_that_onnx_infers_nothing_of_contradict_nothing() -> None:
    normalized = onnx.parser.parse_model(NORMALIZED)
    check_shapes.check_shapes(normalized, "m", {})
    ex = tvm_mxplan.compile(normalized, options={"cache": "disabled"})
    assert ex(np.ones((2, 6, 5, 3), "float32"))[0].numpy().shape == (2, 12, 5, 3)
    del normalized.graph.node[3].input[1:]
    normalized.graph.node[3].input.append("a")
    with pytest.raises(InvalidInputError, match=r"node #3 \(Concat"):
        check_shapes.check_shapes(normalized, "m", {})
    unknown = onnx.parser.parse_model(NORMALIZED)
    unknown.graph.node[0].domain = "local"
    check_shapes.check_shapes(unknown, "m", {})


def test_names_are_printable() -> None:
    assert shown("a\nb") == r"'a\nb'"
    assert shown("é" * 200).endswith("(200 characters)")


def test_a_large_table_of_integers_whose_numbers_onnx_reads_is_no_fault() -> None:
    nodes = [
        onnx.helper.make_node("Unsqueeze", ["table", "first"], ["rows"]),
        onnx.helper.make_node("Gather", ["x", "rows"], ["y"]),
    ]
    constants = {"table": np.arange(1600) % 7, "first": np.array([0])}
    ports = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", [7, 3]), ("y", [1, 1600, 3]))
    ]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = onnx.helper.make_graph(nodes, "table", ports[:1], ports[1:], weights)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    assert "main" in [gvar.name_hint for gvar in import_model(made).functions]
