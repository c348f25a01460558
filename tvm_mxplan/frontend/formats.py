"""Tells the kind of model in a file, by its bytes and then by its name; nothing of TVM is imported for it.

    onnx                      read by ``frontend/onnx``
    Relax as text, as JSON    read by ``frontend/relax_file``
    Relay as text, as JSON    read by ``frontend/relay``

All else that people have is refused in one line with the way out.
"""

from __future__ import annotations

import mmap
import os
import re
import zipfile
from enum import Enum
from pathlib import Path

from ..errors import InvalidInputError, UnsupportedError
from .relax.tvm_magic import LIST_START
from .wire import Message


class Format(Enum):
    """A format that is read; its value is what the command line calls it."""

    ONNX = "onnx"
    RELAX_TEXT = "relax"
    RELAX_JSON = "relax-json"
    RELAY_TEXT = "relay"
    RELAY_JSON = "relay-json"


_ORT = "ONNX Runtime's own format is not read; compile the .onnx file that it was made from"
_TFLITE = (
    "TFLite models are not read; convert it to ONNX "
    "(python -m tf2onnx.convert --tflite MODEL --output MODEL.onnx)"
)
_TORCH = (
    "a PyTorch file is not read from here; load it in Python, and export the network to ONNX "
    "(torch.onnx.export(model, inputs, 'model.onnx', dynamo=True))"
)
_PT2 = (
    "an exported program of PyTorch is not read from here; load it in Python (torch.export.load) and export "
    "it to ONNX (torch.onnx.export(program, f='model.onnx', dynamo=True))"
)
_TENSORFLOW = "TensorFlow models are not read; convert it to ONNX (python -m tf2onnx.convert)"
_KERAS = (
    "Keras models are not read; load it in Python and export it to ONNX "
    "(model.export('model.onnx', format='onnx'))"
)
_COREML = "Core ML models are not read; export the network that it was made from to ONNX"
_WEIGHTS = "holds weights alone; load them into their network in Python, and export that to ONNX"
_LIBRARY = "is a compiled library; load it (tvm_mxplan.load), or compile the model that it was made from"
_PARAMETERS = "holds parameters alone; give the model's file, and this one as params"
_PADDLE = "Paddle models are not read; convert it to ONNX (paddle2onnx)"
_OPENVINO = "OpenVINO models are not read; compile the ONNX model that it was made from"
_ENGINE = "TensorRT engines hold kernels of a GPU; compile the ONNX model that it was made from"
_BUILT = (
    "is the graph of a library that TVM built, whose kernels stand elsewhere; "
    "give the Relay module that it was built from"
)

_STARTS: tuple[tuple[int, bytes, str], ...] = (
    (4, b"ORTM", _ORT),
    (4, b"TFL3", _TFLITE),
    (0, b"\x89HDF\r\n\x1a\n", _KERAS),
    (0, b"\x7fELF", _LIBRARY),
    (0, b"GGUF", _WEIGHTS),
    (0, b"\x93NUMPY", _PARAMETERS),
    (0, LIST_START, _PARAMETERS),
    (0, b"ptrt", _ENGINE),
    (0, b"ftrt", _ENGINE),
)
"""Bytes at an offset, and what to say of a file that has them."""

_SUFFIXES: dict[str, str] = {
    ".ort": _ORT,
    ".tflite": _TFLITE,
    ".lite": _TFLITE,
    ".pt": _TORCH,
    ".pth": _TORCH,
    ".ckpt": _TORCH,
    ".pt2": _PT2,
    ".pb": _TENSORFLOW,
    ".pbtxt": _TENSORFLOW,
    ".h5": _KERAS,
    ".keras": _KERAS,
    ".mlmodel": _COREML,
    ".mlpackage": _COREML,
    ".safetensors": _WEIGHTS,
    ".gguf": _WEIGHTS,
    ".npz": _PARAMETERS,
    ".params": _PARAMETERS,
    ".pdmodel": _PADDLE,
    ".xml": _OPENVINO,
    ".engine": _ENGINE,
    ".plan": _ENGINE,
    ".so": _LIBRARY,
}
"""Messages about files that nothing but their names tell."""

_READ = {".onnx": Format.ONNX, ".relay": Format.RELAY_TEXT}
_HEAD = 4096
_SCRIPT = re.compile(
    rb"^\s*@\s*(?:I\.ir_module|R\.function|ir_module|tvm\.script)|from tvm\.script import", re.M
)
_RELAY = re.compile(rb"\s*#\[version\s*=|\s*v0\.0\.\d+\s")
_RELAX_JSON = re.compile(rb'\A\s*\{[^{]*"(?:root_index)"|\A\s*\{\s*"nodes"\s*:\s*\[\s*\{\s*"type"\s*:')
_RELAY_JSON = re.compile(rb'\A\s*\{[^{]*"root"\s*:|\A\s*\{\s*"nodes"\s*:\s*\[\s*\{\s*"type_key"')
_GRAPH_JSON = re.compile(rb'\A\s*\{\s*"nodes"\s*:\s*\[\s*\{\s*"op"')


def format_of(path: str | os.PathLike[str]) -> Format | None:
    """The format of a file; None where neither its bytes nor its name tell, or it cannot be read.

    Raises
    ------
    UnsupportedError : a format that is known and not read.
    InvalidInputError : a file that is no model.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        if (path / "saved_model.pb").exists() or suffix == ".mlpackage":
            raise UnsupportedError(f"{path}: {_TENSORFLOW if suffix != '.mlpackage' else _COREML}")
        return None
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return _READ.get(suffix)
    for offset, start, message in _STARTS:
        if head[offset : offset + len(start)] == start:
            raise UnsupportedError(f"{path}: {message}")
    if head.startswith(b"PK\x03\x04"):
        raise UnsupportedError(f"{path}: {_in_archive(path)}")
    text = _text_format(path, head, suffix)
    if text is not None:
        return text
    if suffix not in _READ and _is_onnx(path):
        return Format.ONNX
    if suffix in _SUFFIXES:
        raise UnsupportedError(f"{path}: {_SUFFIXES[suffix]}")
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and suffix not in _READ:
        raise UnsupportedError(f"{path}: {_TORCH}")
    if _is_safetensors(head):
        raise UnsupportedError(f"{path}: {_WEIGHTS}")
    return _READ.get(suffix)


def _text_format(path: Path, head: bytes, suffix: str) -> Format | None:
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _RELAY.match(head):
        return Format.RELAY_TEXT
    if suffix == ".json" or head.lstrip()[:1] == b"{":
        if _RELAX_JSON.match(head):
            return Format.RELAX_JSON
        if _GRAPH_JSON.match(head):
            raise UnsupportedError(f"{path}: {_BUILT}")
        if _RELAY_JSON.match(head):
            return Format.RELAY_JSON
        if suffix == ".json":
            raise InvalidInputError(
                f"{path}: expected a Relax or Relay module as tvm.ir.save_json writes it; save it again"
            )
    if suffix == ".py" or _SCRIPT.search(head):
        return Format.RELAX_TEXT
    return None


def _in_archive(path: Path) -> str:
    """Returns the message about a zip file, by what stands in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        names = []
    if any(name.endswith(".npy") for name in names):
        return _PARAMETERS
    if any(name.endswith("model.weights.h5") for name in names):
        return _KERAS
    if path.suffix.lower() == ".pt2" or any("models/" in name and name.endswith(".json") for name in names):
        return _PT2
    if any(name.endswith(("data.pkl", "serialized_exported_program.json")) for name in names):
        return _PT2 if any(name.endswith("serialized_exported_program.json") for name in names) else _TORCH
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()]
    return "is an archive; unpack it, and give the model's file in it"


def _is_onnx(path: Path) -> bool:
    """Whether a file is a message with the fields of an ONNX model: opsets, and a graph that has nodes."""
    try:
        with path.open("rb") as file:
            model = Message(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
        return bool(model.all(_OPSETS)) and bool(Message(model.merged(_GRAPH)).all(_NODES))
    except (OSError, ValueError):
        return False


_GRAPH, _OPSETS, _NODES = 7, 8, 1
"""Numbers of fields in onnx.proto."""


def _is_safetensors(head: bytes) -> bool:
    """A number of bytes, and as much JSON behind it."""
    return len(head) > 9 and head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 1 << 32
