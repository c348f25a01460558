"""ONNX's own test cases (``onnx.backend.test``): models with inputs and the outputs to expect.

A case may hold several sets of inputs and outputs.  The networks of the kind ``real`` are ONNX's light ones,
whose weights are one number each and whose inputs rise from 0 to 1; networks to download are left out.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
"""Folders of ``onnx.backend.test`` whose cases come with numbers; node cases are made by the package."""

NETWORKS = "networks"
"""The name under which the light networks are counted, in the place of an operator."""


@dataclass(frozen=True)
class Case:
    """One case: a model in memory or in a folder, made by the package or read from it.

    Attributes
    ----------
    data : inputs and outputs of each set; None where they stand in ``folder``.
    light : the file of a light network, with its outputs beside it.
    """

    name: str
    kind: str
    rtol: float
    atol: float
    proto: onnx.ModelProto | None = None
    data: Sequence[tuple[Sequence[Any], Sequence[Any]]] | None = None
    folder: Path | None = None
    light: Path | None = None

    def model(self) -> onnx.ModelProto:
        """The model of the case."""
        if self.proto is not None:
            return self.proto
        if self.light is not None:
            return onnx.load(self.light)
        assert self.folder is not None
        return onnx.load(self.folder / "model.onnx")

    def sets(self) -> list[tuple[list[Any], list[Any]]]:
        """Inputs and expected outputs, set by set."""
        if self.data is not None:
            return [(_arrays(inputs), _arrays(outputs)) for inputs, outputs in self.data]
        model = self.model()
        if self.light is not None:
            return [_light_set(self.light, model)]
        assert self.folder is not None
        return [
            (_read_all(folder, "input", model.graph.input), _read_all(folder, "output", model.graph.output))
            for folder in sorted(self.folder.glob("test_data_set_*"))
        ]


def all_cases(kinds: Sequence[str] = KINDS) -> dict[str, Case]:
    """Cases by their names, in the order of the kinds."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return _cases(case for kind in kinds for case in load_model_tests(kind=kind))


def node_cases(*modules: str) -> dict[str, Case]:
    """The node cases of some modules of ``onnx.backend.test.case.node``; all take most of a minute."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for module in modules:
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
    from onnx.backend.test.case.node import _NodeTestCases

    return _cases(_NodeTestCases)


def _cases(loaded: Iterable[TestCase]) -> dict[str, Case]:
    found = {}
    for case in sorted(loaded, key=lambda case: (KINDS.index(case.kind), case.name)):
        folder = None if case.model_dir is None else Path(case.model_dir)
        light = _light_file(case.url)
        if case.model is not None or folder is not None or light is not None:
            found[case.name] = Case(
                case.name, case.kind, case.rtol, case.atol, case.model, case.data_sets, folder, light
            )
    return found


def _light_file(url: str | None) -> Path | None:
    """The file of a network that the package holds, by the address in its description."""
    if not (url or "").startswith("onnx/backend/test/data/light/"):
        return None
    return Path(onnx.__file__).parents[1] / str(url)


def _light_set(file: Path, model: onnx.ModelProto) -> tuple[list[Any], list[Any]]:
    """Inputs as ONNX's own runner makes them, and the outputs that stand beside a light network."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = []
    for value in model.graph.input:
        if value.name not in weights:
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            inputs.append((np.arange(count).reshape(shape) / count).astype("float32"))
    outputs = [
        _read(file.with_name(f"{file.stem}_output_{number}.pb"), value.type)
        for number, value in enumerate(model.graph.output)
    ]
    return inputs, outputs


def operator_of(case: Case) -> str:
    """The operator that a case is about: the one its model consists of, the most frequent one of several."""
    if case.light is not None:
        return NETWORKS
    kinds = [node.op_type for node in case.model().graph.node]
    if case.kind == "node" and len(set(kinds)) > 1:
        # The expansion of a function into its parts: named for the function.
        return re.sub(r"^test_|_expanded.*$", "", case.name).split("_")[0]
    return max(sorted(set(kinds)), key=kinds.count) if kinds else "none"


def by_operator(cases: Mapping[str, Case]) -> dict[str, list[str]]:
    """Names of cases by the operator that they are about."""
    found: dict[str, list[str]] = {}
    for name, case in cases.items():
        found.setdefault(operator_of(case), []).append(name)
    return found


def _arrays(values: Sequence[Any]) -> list[Any]:
    """Values with arrays in the place of tensors in ONNX's format, in which types that numpy lacks come."""
    return [
        numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in values
    ]


def _read_all(folder: Path, stem: str, declared: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    files = sorted(folder.glob(f"{stem}_*.pb"), key=lambda file: int(file.stem.rpartition("_")[2]))
    return [_read(file, value.type) for file, value in zip(files, declared, strict=False)]


def _read(file: Path, type_: onnx.TypeProto) -> Any:
    kind = type_.WhichOneof("value")
    message = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(
        kind or "", onnx.TensorProto
    )()
    message.ParseFromString(file.read_bytes())
    if isinstance(message, onnx.SequenceProto):
        return numpy_helper.to_list(message)
    if isinstance(message, onnx.OptionalProto):
        return numpy_helper.to_optional(message)
    return numpy_helper.to_array(message)
