"""Errors for calls of ``compile``, of an executable or of ``load`` that are wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan import InvalidInputError, UnsupportedError
from tvm_mxplan.testing import zoo

X = zoo.random_images((1, 3, 32, 32))


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return zoo.load("tiny")


@pytest.fixture(scope="module")
def ex(model: onnx.ModelProto) -> tvm_mxplan.Executable:
    ex = tvm_mxplan.compile(model)
    assert ex.report.regions
    return ex


def two_inputs() -> tvm.IRModule:
    """``main(x, y) = x + y`` over one symbolic dimension."""
    n = tvm.tirx.Var("n", "int64")
    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType((n, 3), "float32")) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.add(x, y))
        builder.emit_func_output(out)
    return builder.get()


# --- calls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, words",
    [
        (X[:, :, :31], ["image", "[1, 3, 32, 32]", "[1, 3, 31, 32]"]),
        (X[0], ["image", "[1, 3, 32, 32]", "[3, 32, 32]"]),
        (np.float32(1), ["image", "[1, 3, 32, 32]"]),
        (X.astype(np.float64), ["image", "float32", "float64"]),
        (X.astype(">f4"), ["image", "float32", ">f4"]),
        (X.tolist(), ["image", "numpy array", "list"]),
        (None, ["image", "numpy array", "NoneType"]),
        (tvm.runtime.tensor(X.astype(np.int32)), ["image", "float32", "int32"]),
    ],
)
def test_wrong_values(ex, value, words):
    for args, kwargs in (((value,), {}), ((), {"image": value})):
        with pytest.raises(InvalidInputError) as error:
            ex(*args, **kwargs)
        assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    "args, kwargs, words",
    [
        ((), {}, ["'image'", "missing"]),
        ((X, X), {}, ["2 inputs given", "1 expected", "image"]),
        ((), {"picture": X}, ["'picture'", "image"]),
        ((X,), {"image": X}, ["'image'", "twice"]),
    ],
)
def test_wrong_names_and_numbers(ex, args, kwargs, words):
    with pytest.raises(InvalidInputError) as error:
        ex(*args, **kwargs)
    assert all(word in str(error.value) for word in words), error.value


def test_a_symbol_has_one_value_in_all_inputs():
    ex = tvm_mxplan.compile(two_inputs())
    assert len(ex.report.regions) == 1
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(ex(x, x)[0].numpy(), 2 * x)
    with pytest.raises(InvalidInputError, match=r"y: float32\[n, 3\].*\[5, 3\]; n is 4 in input x"):
        ex(x, np.ones((5, 3), np.float32))


def test_a_wrong_call_does_no_harm(ex):
    (expected,) = ex(X)
    with pytest.raises(InvalidInputError):
        ex(X[:, :2])
    np.testing.assert_array_equal(ex(X)[0].numpy(), expected.numpy())


# --- compile ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 3, b"onnx", [1, 2]])
def test_wrong_types_of_models(value):
    with pytest.raises(InvalidInputError, match=f"{type(value).__name__}.*ModelProto"):
        tvm_mxplan.compile(value)


def test_wrong_relax_modules(model):
    module = two_inputs()
    with pytest.raises(InvalidInputError, match="no function main"):
        tvm_mxplan.compile(tvm.IRModule({"other": module["main"].with_attr("global_symbol", "other")}))
    with pytest.raises(InvalidInputError, match="shapes are for ONNX and Relay models"):
        tvm_mxplan.compile(module, shapes={"x": (1, 3)})
    with pytest.raises(InvalidInputError, match=r"no open dimension 'm'; the open dimensions are: n$"):
        tvm_mxplan.compile(module, bounds={"m": (1, 3)})
    empty = module.clone()
    empty["main"] = module["main"].with_attr("tir_var_upper_bound", {"n": -1})
    with pytest.raises(InvalidInputError, match=r"symbol 'n'.*tir_var_upper_bound -1"):
        tvm_mxplan.compile(empty)


@pytest.mark.parametrize(
    "attributes, stated, allowed",
    [
        ({"tir_var_upper_bound": {"n": 4, "other": 1}}, None, (0, 4)),
        ({"tir_var_upper_bound": {"n": 4}, "tir_var_lower_bound": {"n": 2}}, None, (2, 4)),
        ({"tir_var_lower_bound": {"n": 3}}, None, (3, None)),
        ({"tir_var_upper_bound": {"n": 9}}, {"n": (1, 4)}, (1, 4)),
        ({}, {"n": (2, 3)}, (2, 3)),
    ],
)
def test_bounds_of_a_relax_module_hold_its_calls(attributes, stated, allowed):
    module = two_inputs()
    for name, values in attributes.items():
        module["main"] = module["main"].with_attr(name, values)
    executable = tvm_mxplan.compile(module, bounds=stated)
    low, high = allowed
    rows = np.float32([[0.5, -1.5, 2.25]])
    for count in {max(low, 1), high or 11}:
        (result,) = executable(np.tile(rows, (count, 1)), np.ones((count, 3), "float32"))
        np.testing.assert_array_equal(result.numpy(), np.tile(rows + 1, (count, 1)))
    for count in {low - 1, (high or -2) + 1} - {-1}:
        wanted = f"{low} or more" if high is None else f"{low} to {high}"
        with pytest.raises(InvalidInputError, match=f"dimension n is {count}; expected {wanted}, as stated"):
            executable(np.ones((count, 3), "float32"), np.ones((count, 3), "float32"))


@pytest.mark.parametrize(
    "shapes, words",
    [
        ({"picture": (1, 3, 32, 32)}, ["'picture'", "image"]),
        ({"image": (1, 3)}, ["'image'", "4 dimensions", "[1, 3]"]),
        ({"image": (0, 3, 32, 32)}, ["'image'", "positive", "[0, 3, 32, 32]"]),
        ({"image": (1, 3, "h w", 32)}, ["'image'", "'h w'", "a name"]),
        ({"image": (1, 5, 32, 32)}, ["model", "channel"]),
    ],
)
def test_wrong_shapes(model, shapes, words):
    with pytest.raises(InvalidInputError) as error:
        tvm_mxplan.compile(model, shapes=shapes)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    "options, words",
    [
        ({"colour": "blue"}, ["'colour'", "layouts"]),
        ({"layouts": "diagonal"}, ["'diagonal'", "channels_last", "blocked", "plain"]),
        ({"tune": "often"}, ["'often'", "measure"]),
        ({"tune_seconds": 0}, ["tune_seconds", "above 0"]),
        (3, ["Options", "int"]),
    ],
)
def test_wrong_options(model, options, words):
    with pytest.raises(InvalidInputError) as error:
        tvm_mxplan.compile(model, options=options)
    assert all(word in str(error.value) for word in words), error.value


def test_a_model_without_operators_and_one_with_an_unknown_operator(model):
    with pytest.raises(InvalidInputError):
        tvm_mxplan.compile(onnx.ModelProto())
    unknown = onnx.ModelProto()
    unknown.CopyFrom(model)
    unknown.graph.node[0].op_type = "Frobnicate"
    with pytest.raises(UnsupportedError, match="Frobnicate"):
        tvm_mxplan.compile(unknown)


def test_an_input_without_a_rank_needs_a_shape(model):
    unknown = onnx.ModelProto()
    unknown.CopyFrom(model)
    unknown.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(InvalidInputError, match=r"'image' has no shape"):
        tvm_mxplan.compile(unknown)
    ex = tvm_mxplan.compile(unknown, shapes={"image": X.shape})
    assert ex.report.regions
    assert ex(X)[0].shape == (1, 10)


def test_tvm_without_its_compiler_compiles_nothing(model, tmp_path):
    script = f"import tvm_mxplan; tvm_mxplan.compile({str(tmp_path / 'tiny.onnx')!r})"
    onnx.save(model, tmp_path / "tiny.onnx")
    environment = {**os.environ, "TVM_USE_RUNTIME_LIB": "1"}
    tvmc = ["-m", "tvm_mxplan.tvmc", "compile", str(tmp_path / "tiny.onnx"), "-o", str(tmp_path / "m.so")]
    for arguments in (["-c", script], tvmc):
        done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == 1
        assert "its runtime alone, which compiles nothing; unset TVM_USE_RUNTIME_LIB" in done.stderr


# --- export and load ----------------------------------------------------------------------------------


def test_export_refuses_other_suffixes_and_missing_folders(ex, tmp_path):
    long = f"{'m' * 300}.so"
    for path, word in (
        (tmp_path / "m.tar", ".so"),
        (tmp_path / "no" / "m.so", "no folder"),
        (tmp_path / long, "name too long"),
    ):
        with pytest.raises(InvalidInputError, match=word):
            ex.export(path)
    assert list(tmp_path.iterdir()) == []


def test_export_without_a_compiler(ex, tmp_path, monkeypatch):
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="no C compiler"):
        ex.export(tmp_path / "m.so")
    assert list(tmp_path.iterdir()) == []


def test_a_loaded_library_is_not_exported_again(ex, tmp_path):
    ex.export(tmp_path / "m.so")
    with pytest.raises(InvalidInputError, match="copying"):
        tvm_mxplan.load(tmp_path / "m.so").export(tmp_path / "n.so")
    assert [path.name for path in tmp_path.iterdir()] == ["m.so"]


def test_load_refuses_what_is_no_library(tmp_path):
    path = tmp_path / "m.so"
    with pytest.raises(InvalidInputError, match="no such file"):
        tvm_mxplan.load(path)
    path.write_text("hello")
    with pytest.raises(InvalidInputError, match="not a shared library"):
        tvm_mxplan.load(path)


def test_a_report_of_another_version_is_refused_when_it_is_read(ex, tmp_path):
    path = tmp_path / "m.so"
    ex.module.export_library(str(path))  # TVM's, so without a digest
    data = path.read_bytes()
    assert data.count(b'"post_ops"')
    path.write_bytes(data.replace(b'"post_ops"', b'"pre_ops_"'))
    loaded = tvm_mxplan.load(path)
    np.testing.assert_array_equal(loaded(X)[0].numpy(), ex(X)[0].numpy())
    with pytest.raises(InvalidInputError, match=f"{path}: a report that is damaged, or of another version"):
        _ = loaded.report
