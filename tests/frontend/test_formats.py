"""A file is taken for what its bytes say, and for what its name says where they do not tell."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.formats import Format, format_of
from tvm_mxplan.testing import large_graphs


def archive(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, b"0")
    return out.getvalue()


def arrays() -> bytes:
    out = io.BytesIO()
    np.savez(out, a=np.ones(3))
    return out.getvalue()


ONNX = large_graphs.build("residual", 4).SerializeToString()
SAFE = struct.pack("<Q", 40) + b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
PARAMS = tvm.runtime.save_param_dict({"w": np.ones(3, np.float32)})


@pytest.mark.parametrize(
    "name, data, words",
    [
        (
            "m.ort",
            b"\x10\0\0\0ORTM" + bytes(40),
            "ONNX Runtime's own format is not read; compile the .onnx file",
        ),
        ("m.onnx", b"\x10\0\0\0ORTM" + bytes(40), "ONNX Runtime's own format"),
        (
            "m.tflite",
            b"\x1c\0\0\0TFL3" + bytes(40),
            "TFLite models are not read; convert it to ONNX (python -m tf2onnx",
        ),
        ("m", b"\x1c\0\0\0TFL3" + bytes(40), "TFLite models"),
        (
            "m.pt",
            archive("m/data.pkl", "m/version"),
            "a PyTorch file is not read from here; load it in Python",
        ),
        ("m.bin", archive("archive/data.pkl"), "a PyTorch file"),
        ("m.pth", pickle.dumps({}, 2), "a PyTorch file"),
        ("m", pickle.dumps({}, 4), "a PyTorch file"),
        ("m.pt2", archive("m/models/model.json", "m/archive_format"), "torch.export.load"),
        ("m", archive("serialized_exported_program.json"), "torch.export.load"),
        ("m.pb", b"\x0a\x05abcde", "TensorFlow models are not read; convert it to ONNX (python -m tf2onnx"),
        ("m.mlmodel", b"\x08\x04\x12\x00", "Core ML models are not read; export the network"),
        ("m.safetensors", SAFE, "holds weights alone; load them into their network"),
        ("m", SAFE, "holds weights alone"),
        ("m.gguf", b"GGUF" + bytes(20), "holds weights alone"),
        ("m.h5", b"\x89HDF\r\n\x1a\n", "Keras models are not read"),
        ("m.keras", archive("config.json", "model.weights.h5"), "Keras models are not read"),
        ("m.npz", arrays(), "holds parameters alone; give the model's file, and this one as params"),
        ("m.params", PARAMS, "holds parameters alone"),
        ("m.onnx", PARAMS, "holds parameters alone"),
        ("m.pdmodel", b"\x0a\x00", "paddle2onnx"),
        ("m.xml", b"<net/>", "OpenVINO models are not read"),
        ("m.engine", b"ptrt", "kernels of a GPU"),
        ("m.so", b"\x7fELF\x02", "is a compiled library; load it (tvm_mxplan.load)"),
        (
            "m.json",
            b'{"nodes": [{"op": "null", "name": "x"}], "heads": []}',
            "the graph of a library that TVM built",
        ),
        ("m.zip", archive("m.onnx"), "is an archive; unpack it"),
    ],
)
def test_what_is_not_read_is_one_line_with_the_way_out(
    tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UnsupportedError) as error:
        format_of(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)
    assert words in str(error.value)


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    assert format_of(tmp_path / "net") is None
    (tmp_path / "net" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(UnsupportedError, match="tf2onnx"):
        format_of(tmp_path / "net")


def module() -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, relax.const(np.ones((2, 3), np.float32)))))
    return builder.get()


@pytest.mark.parametrize("name", ["model", "model.onnx", "model.pb", "model.bin", "model.pt"])
def test_onnx_under_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(ONNX)
    assert format_of(tmp_path / name) is Format.ONNX


@pytest.mark.parametrize("name", ["model", "model.txt", "model.py", "model.json", "model.relay"])
def test_text_under_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    forms = {
        Format.RELAX_TEXT: module().script(show_meta=True),
        Format.RELAX_JSON: tvm.ir.save_json(module()),
        Format.RELAY_TEXT: '#[version = "0.0.5"]\ndef @main() { 1 }',
        Format.RELAY_JSON: '{\n  "root": 1, \n  "nodes": [\n    {\n      "type_key": ""\n    }]}',
    }
    for form, text in forms.items():
        if (name, form) not in (("model.json", Format.RELAX_TEXT), ("model.py", Format.RELAX_JSON)):
            path.write_text(text)
            assert format_of(path) is form, form


def test_what_nothing_tells(tmp_path: Path) -> None:
    path = tmp_path / "model.dat"
    path.write_bytes(b"0123456789")
    assert format_of(path) is None
    assert format_of(tmp_path / "missing") is None
    assert format_of(tmp_path / "missing.onnx") is Format.ONNX
    (tmp_path / "model.json").write_text('{"layers": []}')
    with pytest.raises(InvalidInputError, match=r"model.json: expected a Relax or Relay module"):
        format_of(tmp_path / "model.json")


def test_nothing_of_tvm_is_imported_to_tell() -> None:
    names = "tvm_mxplan.frontend.formats, tvm_mxplan.frontend.parameters, tvm_mxplan.api"
    code = f"import sys, {names}; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
