"""LSTM, GRU and RNN of ONNX, in oneDNN as one step, against onnxruntime; what TVM gets, with the reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.opcheck import checking
from tvm_mxplan.testing.reference import onnxruntime_outputs

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
NAMED = {"x": ["steps", "samples", None], "h": [None, "samples", None], "c": [None, "samples", None]}


@dataclass(frozen=True)
class Case:
    """A layer of ``units`` on ``samples`` sequences of ``steps`` with ``features``.

    ``operands`` are those beside data and weights: b, h, c, p as onnx has them in its formulas.
    """

    kind: str
    steps: int = 5
    samples: int = 2
    features: int = 17
    units: int = 67
    direction: str = "forward"
    operands: str = "b"
    attributes: tuple[tuple[str, object], ...] = ()
    names: Mapping[str, Sequence[str | None]] | None = None

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def inputs(self, steps: int, samples: int) -> dict[str, np.ndarray]:
        """Data and states of other sizes, random."""
        random = np.random.default_rng([steps, samples])
        shapes = {"x": (steps, samples, self.features)}
        shapes |= {name: (self.directions, samples, self.units) for name in "hc" if name in self.operands}
        return {name: random.standard_normal(shape).astype("float32") for name, shape in shapes.items()}

    def model(self) -> onnx.ModelProto:
        """With weights that keep the activations of most units away from both ends."""
        random = np.random.default_rng(len(self.kind))
        rows = GATES[self.kind] * self.units
        shapes = {"w": (rows, self.features), "r": (rows, self.units)}
        shapes |= {"b": (2 * rows,), "p": (3 * self.units,)}
        scales = {"w": self.features, "r": self.units, "b": 2, "p": 2}
        constants = {
            name: random.standard_normal((self.directions, *shape)) / np.sqrt(scales[name])
            for name, shape in shapes.items()
            if name in "wr" + self.operands
        }
        given = self.inputs(self.steps, self.samples)
        order = ["x", "w", "r", "b", "", "h", "c", "p"]
        present = [name if name in given or name in constants else "" for name in order]
        while not present[-1]:
            present.pop()
        outputs = ["y", "y_h", "y_c"][: 3 if self.kind == "LSTM" else 2]
        node = helper.make_node(
            self.kind,
            present,
            outputs,
            direction=self.direction,
            hidden_size=self.units,
            **dict(self.attributes),
        )
        shaped = {
            name: [named or size for named, size in zip(self.names[name], data.shape, strict=True)]
            if self.names
            else data.shape
            for name, data in given.items()
        }
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info(name, 1, shape) for name, shape in shaped.items()],
            [helper.make_tensor_value_info(name, 1, None) for name in outputs],
            [numpy_helper.from_array(data.astype("float32"), name) for name, data in constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def recurrent_steps(executable: tvm_mxplan.Executable) -> list[str]:
    """Implementations of the recurrent steps in all regions."""
    regions = executable.report.regions
    return [step.implementation for region in regions for step in region.steps if step.kind == "recurrent"]


def agree(
    executable: tvm_mxplan.Executable, model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]
) -> None:
    with checking() as checker:
        actual = [np.asarray(result.numpy()) for result in executable(**inputs)]
    assert checker.result().first is None, checker.result()
    expected = onnxruntime_outputs(model, dict(inputs))
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


TAKEN = {
    "lstm": Case("LSTM"),
    "lstm, one step of one sample": Case("LSTM", 1, 1, 3, 3),
    "lstm, both ways with states": Case("LSTM", 4, 3, 3, 17, "bidirectional", "bhc"),
    "lstm, backwards with peepholes": Case("LSTM", 3, 2, 5, 17, "reverse", "bhcp"),
    "lstm, one state": Case("LSTM", 3, 2, 5, 17, operands="h"),
    "lstm, without bias": Case("LSTM", 3, 1, 67, 3, operands=""),
    "gru": Case("GRU", 4, 2, 17, 35),
    "gru, both ways with states": Case("GRU", 3, 3, 17, 5, "bidirectional", "bh"),
    "gru, reset behind": Case("GRU", 3, 2, 7, 17, "reverse", "bh", (("linear_before_reset", 1),)),
    "gru, reset behind, both ways": Case(
        "GRU", 3, 1, 7, 5, "bidirectional", "", (("linear_before_reset", 1),)
    ),
    "rnn": Case("RNN", 5, 2, 17, 67, operands="bh"),
    "rnn, relu, both ways": Case(
        "RNN", 3, 2, 5, 17, "bidirectional", "b", (("activations", ["Relu", "Relu"]),)
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_layers_are_one_step(name):
    case = TAKEN[name]
    model = case.model()
    executable = tvm_mxplan.compile(model)
    assert len(recurrent_steps(executable)) == 1
    assert not executable.report.fallbacks
    agree(executable, model, case.inputs(case.steps, case.samples))


@pytest.mark.parametrize("kind", GATES)
def test_named_numbers_of_steps_and_samples(kind):
    operands = "bhc" if kind == "LSTM" else "bh"
    case = Case(kind, features=7, units=17, direction="bidirectional", operands=operands, names=NAMED)
    model = case.model()
    executable = tvm_mxplan.compile(model)
    assert len(recurrent_steps(executable)) == 1
    for steps, samples in [(5, 2), (1, 1), (9, 3)]:
        agree(executable, model, case.inputs(steps, samples))


def test_no_steps_hand_the_states_on():
    case = Case("LSTM", features=7, units=5, operands="bhc", names=NAMED)
    executable = tvm_mxplan.compile(case.model())
    assert len(recurrent_steps(executable)) == 1
    inputs = case.inputs(0, 3)
    outputs, hidden, cell = (result.numpy() for result in executable(**inputs))
    assert outputs.shape == (0, 1, 3, 5)
    np.testing.assert_array_equal(hidden, inputs["h"])
    np.testing.assert_array_equal(cell, inputs["c"])
    alone = Case("GRU", features=7, units=5, names=NAMED)
    _, hidden = tvm_mxplan.compile(alone.model())(**alone.inputs(0, 2))
    np.testing.assert_array_equal(hidden.numpy(), np.zeros((1, 2, 5), "float32"))


def test_samples_first():
    """Transposed around the layer, inside of the region."""
    case = Case("LSTM", 3, 2, 5, 17, attributes=(("layout", 1),))
    model = case.model()
    executable = tvm_mxplan.compile(model)
    assert len(recurrent_steps(executable)) == 1
    data = case.inputs(3, 2)["x"]  # three samples of two steps
    outputs, hidden, cell = (result.numpy() for result in executable(x=data))
    plain = Case("LSTM", 2, 3, 5, 17).model()
    theirs = onnxruntime_outputs(plain, {"x": data.transpose(1, 0, 2)})
    np.testing.assert_allclose(outputs, theirs[0].transpose(2, 0, 1, 3), rtol=1e-4, atol=2e-6)
    for ours, state in zip((hidden, cell), theirs[1:], strict=True):
        np.testing.assert_allclose(ours, state.transpose(1, 0, 2), rtol=1e-4, atol=2e-6)


REFUSED = {
    "clip": (Case("LSTM", 3, 2, 5, 7, attributes=(("clip", 0.3),)), "no clip"),
    "coupled": (Case("LSTM", 3, 2, 5, 7, attributes=(("input_forget", 1),)), "coupled to the input gate"),
    "activations": (
        Case("GRU", 3, 2, 5, 7, attributes=(("activations", ["HardSigmoid", "Softsign"]),)),
        "activations hardsigmoid, softsign, oneDNN has sigmoid, tanh",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_library_lacks_runs_in_tvm(name):
    case, reason = REFUSED[name]
    model = case.model()
    executable = tvm_mxplan.compile(model)
    assert not recurrent_steps(executable)
    assert any(reason in one.reason for one in executable.report.fallbacks), executable.report.fallbacks
    agree_in_tvm(executable, model, case.inputs(case.steps, case.samples))


def agree_in_tvm(
    executable: tvm_mxplan.Executable, model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]
) -> None:
    expected = onnxruntime_outputs(model, dict(inputs))
    for ours, theirs in zip(executable(**inputs), expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["lstm, backwards with peepholes", "gru, reset behind", "rnn"])
def test_weights_that_the_model_is_given(name):
    """Their gates are put in order when the model runs, in the same region."""
    case = TAKEN[name]
    model = case.model()
    given = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    del model.graph.initializer[:]
    model.graph.input.extend(helper.make_tensor_value_info(n, 1, data.shape) for n, data in given.items())
    executable = tvm_mxplan.compile(model)
    assert len(recurrent_steps(executable)) == 1
    assert not executable.report.fallbacks
    agree(executable, model, case.inputs(case.steps, case.samples) | given)


LOADED = """
import sys
import numpy as np
import tvm_mxplan
results = tvm_mxplan.load(sys.argv[1])(**np.load(sys.argv[2]))
np.savez(sys.argv[3], *[result.numpy() for result in results])
print(tvm_mxplan.cache_statistics()["weights"].misses)
"""


def test_weights_are_packed_once_and_exported_packed(tmp_path):
    case = Case("LSTM", 3, 2, 31, 35, "bidirectional")
    model, inputs = case.model(), case.inputs(3, 2)
    fresh = {"cache": "disabled"}
    executable = tvm_mxplan.compile(model, options=fresh)
    expected = [result.numpy() for result in executable(**inputs)]
    before = tvm_mxplan.cache_statistics()["weights"]
    tvm_mxplan.compile(model, options=fresh)(**inputs)
    executable(**inputs)
    after = tvm_mxplan.cache_statistics()["weights"]
    assert (after.misses, after.hits) == (before.misses, before.hits + 2)
    library, given, found = (tmp_path / name for name in ("packed.so", "inputs.npz", "results.npz"))
    executable.export(library, packed_weights=True)
    np.savez(given, **inputs)
    command = [sys.executable, "-c", LOADED, str(library), str(given), str(found)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]
    for ours, theirs in zip(np.load(found).values(), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
