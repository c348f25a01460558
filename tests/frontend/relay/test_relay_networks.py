"""Networks as TVM 0.19 printed them in Relay, held against the ONNX models that they were printed from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from relay_models import Program, bert, relay_of, smaller
from relay_parameters import parameter_bytes
from relay_printer import as_json, as_text

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

OPTIONS = {"cache": "disabled"}


def inputs_of(program: Program) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    return {
        param.name: random.integers(0, 97, param.shape)
        if param.dtype == "int64"
        else random.standard_normal(param.shape, np.float32)
        for param in program.inputs
    }


def check(model: onnx.ModelProto, program: Program, ex: tvm_mxplan.Executable, least: float = 1.0) -> None:
    """Everything that counts runs in oneDNN, and the result is onnxruntime's."""
    assert ex.report.offloaded >= least
    inputs = inputs_of(program)
    assert [port.name for port in ex.signature.inputs] == list(inputs)
    expected = onnxruntime_outputs(model, inputs)[0]
    assert relative_l2(ex(**inputs)[0].numpy(), expected) < 2e-5


@pytest.mark.parametrize("name", ["resnet18", pytest.param("mobilenet_v2", marks=pytest.mark.slow)])
def test_a_network_of_images_from_text_and_parameters(tmp_path: Path, name: str) -> None:
    model = smaller(zoo.load(name), 64)
    program = relay_of(model)
    path, weights = tmp_path / f"{name}.relay", tmp_path / f"{name}.params"
    path.write_text(as_text(program.params, program.result))
    weights.write_bytes(tvm.runtime.save_param_dict(program.weights))
    assert weights.read_bytes()[:8] == parameter_bytes(program.weights)[:8]
    ex = tvm_mxplan.compile(path, params=weights, options=OPTIONS)
    assert len(ex.report.regions) == 1
    check(model, program, ex)


@pytest.mark.parametrize("form", [pytest.param("text", marks=pytest.mark.slow), "metadata", "json"])
def test_bert(tmp_path: Path, form: str) -> None:
    model = bert()
    program = relay_of(model, constants=form != "text")
    path = tmp_path / "bert"
    if form == "json":
        path.write_text(as_json(program.params, program.result))
    else:
        path.write_text(as_text(program.params, program.result))
    params = tmp_path / "bert.npz"
    np.savez(params, **program.weights)
    check(
        model, program, tvm_mxplan.compile(path, params=params if form == "text" else None, options=OPTIONS)
    )


def test_a_network_from_json_and_parameters(tmp_path: Path) -> None:
    model = zoo.load(zoo.TINY)
    program = relay_of(model)
    path, weights = tmp_path / "tiny.json", tmp_path / "tiny.params"
    path.write_text(as_json(program.params, program.result))
    weights.write_bytes(parameter_bytes(program.weights))
    check(model, program, tvm_mxplan.compile(path, params=weights, options=OPTIONS))


def test_metadata_that_the_text_leaves_out(tmp_path: Path) -> None:
    program = relay_of(zoo.load(zoo.TINY), constants=True)
    path = tmp_path / "tiny.relay"
    path.write_text(as_text(program.params, program.result, metadata=False))
    with pytest.raises(
        InvalidInputError, match=r"tiny.relay:3:\d+: 'meta\[relay.Constant\]\[0\]' stands in the"
    ):
        tvm_mxplan.compile(path)
