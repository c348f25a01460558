"""The ONNX model as a PyTorch module gives what onnxruntime gives, for every operator of the zoo."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from _bench.harness.torch_model import OnnxModule  # noqa: E402

from tvm_mxplan.testing import zoo  # noqa: E402
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2  # noqa: E402

# Between them they have every operator of the zoo, uneven pads and an average that leaves pads out.
NAMES = ("tiny", "inception_v1", "densenet121", "shufflenet", "squeezenet", "mobilenet_v2", "resnet18")


@pytest.mark.parametrize("name", NAMES)
def test_it_answers_as_onnxruntime(name: str) -> None:
    model = zoo.load(name, batch=2)
    inputs = zoo.random_inputs(model, seed=3)
    with torch.no_grad():
        actual = OnnxModule(model).eval()(*(torch.from_numpy(value) for value in inputs.values()))
    expected = onnxruntime_outputs(model, inputs)
    assert worst_relative_l2([value.numpy() for value in actual], expected) < 1e-5


def test_an_operator_without_a_form_is_named() -> None:
    model = zoo.load("tiny")
    model.graph.node[0].op_type = "Einsum"
    with pytest.raises(NotImplementedError, match="Einsum"):
        OnnxModule(model)
