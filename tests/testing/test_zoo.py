"""The zoo's models are valid, run at any batch, and give answers that a comparison can rely on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tvm_mxplan.testing import zoo  # noqa: E402
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2  # noqa: E402

HEAVY = ("vgg19", "bvlc_alexnet", "zfnet512", "resnet152", "inception_v4")
SMALL = tuple(name for name in zoo.names() if name not in HEAVY)
EVERY = [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in zoo.names()]

PARAMETERS = {  # as published, without the running statistics of the batch norms
    "resnet18": 11_689_512,
    "resnet152": 60_192_808,
    "mobilenet_v2": 3_504_872,
    "inception_v3": 23_834_568,
    "inception_v4": 42_679_816,
    "vgg19": 143_667_240,
    "squeezenet": 1_235_496,
}


@dataclass
class Loaded:
    """A model of the zoo, and what it answers."""

    name: str
    model: onnx.ModelProto

    @cached_property
    def inputs(self):
        return zoo.random_inputs(self.model, 0)

    @cached_property
    def answer(self):
        return onnxruntime_outputs(self.model, self.inputs, threads=2)[0]


@pytest.fixture(scope="module")
def loaded(request):
    """The model that the test is parametrised with; pytest puts the tests of one together."""
    return Loaded(request.param, zoo.load(request.param))


@pytest.mark.slow
@pytest.mark.parametrize("loaded", EVERY, indirect=True)
def test_model_is_valid_and_answers_depend_on_the_input(loaded):
    model = loaded.model
    onnx.checker.check_model(model, full_check=model.ByteSize() < 500_000_000)
    wanted = zoo.input_of(model)
    assert wanted.shape[0] == 1
    assert [value.name for value in model.graph.input] == [wanted.name], "no initializer is an input"
    assert all(node.op_type != "ConstantOfShape" for node in model.graph.node)

    (other,) = onnxruntime_outputs(model, zoo.random_inputs(model, 1), threads=2)
    first, second = (_probabilities(answer, loaded.name) for answer in (loaded.answer, other))
    for probabilities in (first, second):
        assert np.isfinite(probabilities).all()
        assert probabilities.max() < 0.9, "one-hot"
        assert probabilities.max() > 3 / probabilities.size, "uniform"
    assert relative_l2(first, second) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("loaded", SMALL, indirect=True)
def test_images_of_a_batch_do_not_meet(loaded):
    """The last one of three is the one that the model alone was asked for."""
    model = zoo.load(loaded.name, batch=3)
    inputs = zoo.random_inputs(model, seed=2)
    for key, value in loaded.inputs.items():
        inputs[key][2:] = value
    (together,) = onnxruntime_outputs(model, inputs, threads=2)
    assert together.shape[0] == 3
    assert relative_l2(together[2:], loaded.answer) < 1e-5
    assert relative_l2(together[:1], loaded.answer) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "shufflenet", "bvlc_alexnet", "densenet121"])
def test_symbolic_batch_serves_every_batch(name):
    model = zoo.load(name, batch="N")
    assert zoo.input_of(model).shape[0] == "N"
    for batch in (1, 3):
        (output,) = onnxruntime_outputs(model, zoo.random_inputs(model, batch=batch), threads=2)
        assert output.shape[0] == batch


@pytest.mark.parametrize("loaded", SMALL, indirect=True)
def test_activations_stay_in_bounds_and_rounding_errors_small(loaded):
    """They neither explode nor vanish; a comparison at 1e-4 must tell an error from sums in another order."""
    model = onnx.ModelProto()
    model.CopyFrom(loaded.model)
    parameters = {tensor.name for tensor in model.graph.initializer}
    outputs = {value.name for value in model.graph.output}
    for node in model.graph.node:
        if node.op_type == "Softmax" or node.output[0] in outputs or set(node.input) <= parameters:
            continue
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.output[0]))
    plain, *values = onnxruntime_outputs(model, loaded.inputs, threads=2, optimise=False)
    assert relative_l2(loaded.answer, plain) < 1e-5
    activations = [value for value in values if value.ndim == 4 and value.shape[1] != 1]
    assert len(activations) > 3
    for value in activations:
        assert 1e-3 < np.abs(value).max() < 1e3
        assert value.std() > 1e-3


def test_weights_depend_on_the_seed_and_not_on_the_batch():
    def weights(**options):
        return {t.name: t.raw_data for t in zoo.load("tiny", **options).graph.initializer}

    assert weights() == weights(batch=4) == weights(batch="N")
    other = weights(seed=1)
    assert all(other[name] != data for name, data in weights().items() if name.startswith("conv"))


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts_are_the_published_ones(name):
    skeleton = zoo.load_skeleton(name)
    statistics = {
        name for node in skeleton.nodes if node.op_type == "BatchNormalization" for name in node.input[3:]
    }
    counts = [np.prod(shape) for name, shape in skeleton.parameters.items() if name not in statistics]
    assert sum(counts) == PARAMETERS[name]


def test_lrn_matters():
    """With small activations the normalisation divides by one, and a wrong one would pass unseen."""
    model = zoo.load("inception_v1")
    outputs = [node.output[0] for node in model.graph.node if node.op_type == "LRN"]
    inputs = [node.input[0] for node in model.graph.node if node.op_type == "LRN"]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in inputs + outputs)
    values = onnxruntime_outputs(model, zoo.random_inputs(model), threads=2, optimise=False)[1:]
    for before, after in zip(values[: len(inputs)], values[len(inputs) :], strict=True):
        assert relative_l2(after, before) > 0.01


def test_unknown_names_and_batches_are_refused():
    with pytest.raises(ValueError, match="no model 'resnet51'"):
        zoo.load("resnet51")
    with pytest.raises(ValueError, match="at least 1"):
        zoo.load("tiny", batch=0)


def _probabilities(output: np.ndarray, name: str) -> np.ndarray:
    flat = output.reshape(-1).astype(np.float64)
    if name != "densenet121":
        return flat
    exponentials = np.exp(flat - flat.max())
    return exponentials / exponentials.sum()
