"""``tvmc train``: epochs are told, the model is written, a checkpoint goes on, bad data is one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan.testing.reference import onnxruntime_outputs
from tvm_mxplan.tvmc.main import main

BATCH, FEATURES, CLASSES = 8, 5, 3


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a model of one dense layer, and samples that a plane tells apart."""
    random = np.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", CLASSES])],
        [
            numpy_helper.from_array(np.zeros((FEATURES, CLASSES), "float32"), "w"),
            numpy_helper.from_array(np.zeros(CLASSES, "float32"), "b"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "model.onnx")
    x = random.standard_normal((67, FEATURES)).astype("float32")
    labels = (x @ random.standard_normal((FEATURES, CLASSES))).argmax(1)
    np.savez(tmp_path / "data.npz", x=x, labels=labels)
    return tmp_path


def train(files: Path, *more: str) -> int:
    shapes = f"x:[{BATCH},{FEATURES}]"
    given = ["--data", str(files / "data.npz"), "--input-shapes", shapes, "--learning-rate", "0.3"]
    return main(["train", str(files / "model.onnx"), *given, "-o", str(files / "out.onnx"), *more])


@pytest.mark.slow
def test_a_model_learns_and_is_written(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = str(files / "kept.npz")
    validation = ["--validation", str(files / "data.npz"), "--checkpoint", kept]
    curves = ["--curves", str(files / "curves.svg")]
    assert train(files, "--epochs", "6", *validation, *curves) == 0
    assert (files / "curves.svg").read_text().count("<polyline") == 3  # loss, accuracy, validation
    told = capfd.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in told[:6]] == [f"epoch {at}" for at in range(1, 7)]
    assert told[-1].endswith("out.onnx: trained for 48 steps")
    data = np.load(files / "data.npz")
    (found,) = onnxruntime_outputs(onnx.load(files / "out.onnx"), {"x": data["x"]})
    share = (found.argmax(1) == data["labels"]).mean()
    assert share > 0.8
    assert told[5].endswith(f"validation {100 * share:.2f} %")
    assert train(files, *validation) == 0
    told = capfd.readouterr().out.splitlines()
    assert told[0].endswith("kept.npz, behind step 48")
    assert told[-1].endswith("trained for 56 steps")


@pytest.mark.slow
def test_data_that_does_not_fit_is_one_line(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    np.savez(files / "data.npz", x=np.zeros((9, FEATURES), "float32"))
    assert train(files) == 1
    assert "data: no array 'labels'; expected x, labels" in capfd.readouterr().err
    np.savez(files / "data.npz", x=np.zeros((9, FEATURES), "float32"), labels=np.zeros(7, "int64"))
    assert train(files) == 1
    assert "expected as many samples in each array, got 9 of x, 7 of labels" in capfd.readouterr().err
    assert not (files / "out.onnx").exists()
