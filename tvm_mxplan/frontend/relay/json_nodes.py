"""The graph of numbered nodes that TVM up to 0.19 wrote as JSON (``tvm.ir.save_json``).

    {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "IRModule", "attrs": {"functions": "2"}}, ...],
     "b64ndarrays": ["..."], "attrs": {"tvm_version": "0.19.0"}}

Node 0 is None.  A node's fields are texts: numbers of other nodes, or values themselves, as each type has it.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
from typing import Any

import numpy as np

from ...errors import InvalidInputError
from ..relax.tvm_tensors import read_tensor
from .places import NodePlaces, invalid, quoted
from .syntax import Dim, OtherType, TensorType, TupleType, Type

_DEEPEST = 32
"""Lists and types inside of each other."""
_NONE = ""


def looks_like_nodes(data: object) -> bool:
    """Whether a JSON document is such a graph."""
    return isinstance(data, dict) and "root" in data and isinstance(data.get("nodes"), list)


class Nodes:
    """Typed access to the nodes; every number that one states is checked when it is followed."""

    def __init__(self, text: str, source: str) -> None:
        self.places = NodePlaces(source)
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, ValueError) else "too deep"
            raise InvalidInputError(f"{source}: is no JSON or truncated ({reason}); save it again") from error
        if not looks_like_nodes(data):
            raise InvalidInputError(f"{source}: expected root and nodes, as tvm.ir.save_json wrote them")
        self._nodes: list[Any] = data["nodes"]
        self._arrays: Any = data.get("b64ndarrays", [])
        self.root = self._index(data["root"], 0)

    def kind(self, at: int) -> str:
        """The type of a node; '' for none."""
        node = self._nodes[at]
        kind = node.get("type_key") if isinstance(node, dict) else None
        if not isinstance(kind, str):
            invalid(self.places, at, "has no type_key; expected the type of an object")
        return kind

    def field(self, at: int, name: str) -> str:
        """A field of an object as it is written."""
        fields = self._nodes[at].get("attrs", {})
        text = fields.get(name) if isinstance(fields, dict) else None
        if not isinstance(text, str):
            invalid(self.places, at, f"({self.kind(at)}) has no field {name!r}; expected one")
        return text

    def has(self, at: int, name: str) -> bool:
        fields = self._nodes[at].get("attrs", {})
        return isinstance(fields, dict) and isinstance(fields.get(name), str)

    def follow(self, at: int, name: str) -> int:
        """The node that a field names."""
        return self._index(self.field(at, name), at)

    def members(self, at: int) -> list[int]:
        """The elements of an Array."""
        if self.kind(at) != "Array":
            invalid(self.places, at, f"is a {quoted(self.kind(at))}; expected an Array")
        return self._data(at)

    def entries(self, at: int) -> dict[str | int, int]:
        """The values of a Map by their keys: texts, or the nodes that are keys."""
        if self.kind(at) != "Map":
            invalid(self.places, at, f"is a {quoted(self.kind(at))}; expected a Map")
        data, keys = self._data(at), self._nodes[at].get("keys")
        if keys is None:
            if len(data) % 2:
                invalid(self.places, at, f"has {len(data)} entries; expected keys and values in turns")
            return dict(zip(data[::2], data[1::2], strict=True))
        if (
            not isinstance(keys, list)
            or len(keys) != len(data)
            or not all(isinstance(key, str) for key in keys)
        ):
            invalid(self.places, at, "has other keys than values; expected a text for each")
        return dict(zip(keys, data, strict=True))

    def integer(self, at: int, name: str) -> int:
        text = self.field(at, name)
        if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > 20:
            invalid(self.places, at, f"({self.kind(at)}): expected a number as {name}, got {quoted(text)}")
        return int(text)

    def real(self, at: int, name: str) -> float:
        try:
            return float(self.field(at, name))
        except ValueError:
            text = quoted(self.field(at, name))
            invalid(self.places, at, f"({self.kind(at)}): expected a number as {name}, got {text}")

    def text(self, at: int, name: str) -> str:
        """A field that is a text, or names a node that is one."""
        text = self.field(at, name)
        return self.string(self._index(text, at)) if text.isdecimal() else text

    def string(self, at: int) -> str:
        """Returns the text of a node whose type is written as a text."""
        if self.kind(at) == _NONE:
            return ""
        node = self._nodes[at]
        text = node.get("repr_str")
        if text is None and isinstance(node.get("repr_b64"), str):
            blob = self._decoded(node["repr_b64"], at)
            text = blob[8:].decode("utf-8", "replace")
        if text is None and self.kind(at) in ("runtime.String", "SourceName"):
            text = ""  # an empty text is not written
        if not isinstance(text, str):
            invalid(self.places, at, f"({self.kind(at)}) is written without repr_str; expected a text")
        return text

    def array(self, at: int, name: str) -> np.ndarray:
        """The tensor that a field names."""
        number = self.integer(at, name)
        if not isinstance(self._arrays, list) or not 0 <= number < len(self._arrays):
            invalid(self.places, at, f"names the array {number}, and b64ndarrays has not as many")
        if not isinstance(self._arrays[number], str):
            invalid(self.places, at, f"names the array {number}, which is no text in base64")
        blob = self._decoded(self._arrays[number], at)
        return read_tensor(io.BytesIO(blob), len(blob), self.places.named(at))

    def plain(self, at: int, depth: int = 0) -> Any:
        """A value that is no expression: a number, a text, a list, a tensor; None for all else."""
        if depth > _DEEPEST:
            invalid(self.places, at, f"lists stand inside of each other more than {_DEEPEST} deep")
        kind = self.kind(at)
        if kind == _NONE:
            return None
        if kind in ("IntImm", "runtime.Int"):
            value = self.integer(at, "value")
            return bool(value) if self.field(at, "dtype") == "bool" else value
        if kind == "FloatImm":
            return self.real(at, "value")
        if kind == "runtime.String":
            return self.string(at)
        if kind.startswith("runtime.Box"):
            return self._boxed(at)
        if kind == "Array":
            return [self.plain(member, depth + 1) for member in self.members(at)]
        if kind == "relay.Constant":
            return self.array(at, "data")
        if kind in ("tir.Var", "tir.SizeVar"):
            return self.text(at, "name")
        return None

    def type(self, at: int, depth: int = 0) -> Type:
        if depth > _DEEPEST:
            invalid(self.places, at, f"types stand inside of each other more than {_DEEPEST} deep")
        kind = self.kind(at)
        if kind in (_NONE, "IncompleteType"):
            return None
        if kind == "relay.TensorType":
            dims = self.members(self.follow(at, "shape"))
            return TensorType(tuple(self._dim(dim) for dim in dims), self.field(at, "dtype"))
        if kind == "TupleType":
            fields = self.members(self.follow(at, "fields"))
            return TupleType(tuple(self.type(field, depth + 1) for field in fields))
        return OtherType(kind)

    def _dim(self, at: int) -> Dim:
        value = self.plain(at)
        if (isinstance(value, int) and value < 0) or not (value is None or isinstance(value, int | str)):
            invalid(self.places, at, f"({self.kind(at)}): expected an extent of 0 or more")
        return value

    def _boxed(self, at: int) -> Any:
        text = self.string(at)
        if text in ("true", "false"):
            return text == "true"
        try:
            return int(text) if self.kind(at) == "runtime.BoxInt" else float(text)
        except ValueError:
            invalid(self.places, at, f"({self.kind(at)}): expected a number, got {quoted(text)}")

    def _decoded(self, text: str, at: int) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            invalid(self.places, at, f"holds no bytes in base64 ({error}); save it again")

    def _data(self, at: int) -> list[int]:
        data = self._nodes[at].get("data", [])
        if not isinstance(data, list):
            invalid(self.places, at, "holds no list of nodes; expected numbers")
        return [self._index(number, at) for number in data]

    def _index(self, number: Any, at: int) -> int:
        if isinstance(number, str) and number.isdecimal() and number.isascii() and len(number) < 12:
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self._nodes):
            invalid(
                self.places, at, f"names the node {quoted(str(number))}, and there are {len(self._nodes):,}"
            )
        return number
