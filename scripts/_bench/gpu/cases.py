"""Cases: a model at a batch in a type of numbers, and its inputs."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from _shared.half_models import half

from tvm_mxplan.testing import zoo

if TYPE_CHECKING:
    import onnx

KINDS = {"f16": "float16", "tf32": "float32", "f32": "float32"}
"""Names of precisions, and the type of the tensors."""
SUFFIX = ".onnx"
_SEED = 1
_INTEGERS = 2
"""Made-up integers are below: places and masks of a model may be no larger."""


@dataclass(frozen=True)
class Case:
    """One model at one batch in one kind of numbers."""

    name: str
    """Of the zoo, or the path of a file."""
    batch: int
    kind: str
    source: onnx.ModelProto
    """In float32, never changed."""
    inputs: Mapping[str, np.ndarray]
    folder: Path
    """For files of this case."""
    device: Path
    """The properties of the GPU."""

    @property
    def tf32(self) -> bool:
        return self.kind == "tf32"

    @property
    def title(self) -> str:
        return f"{Path(self.name).stem if of_file(self.name) else self.name} {self.kind}"

    @property
    def tolerance(self) -> float:
        """Of the relative L2 error."""
        from ..harness.engines import BF16_TOLERANCE, FLOAT_TOLERANCE

        return FLOAT_TOLERANCE if self.kind == "f32" else BF16_TOLERANCE

    def model(self) -> onnx.ModelProto:
        """A model of this case's type of tensors, to be kept or changed."""
        own = copy.deepcopy(self.source)
        return half(own) if KINDS[self.kind] == "float16" else own

    def feeds(self) -> list[np.ndarray]:
        """The inputs in order, real numbers in this case's type."""
        dtype = KINDS[self.kind]
        return [value.astype(dtype) if value.dtype == np.float32 else value for value in self.inputs.values()]


def of_file(name: str) -> bool:
    return name.endswith(SUFFIX)


def read(name: str, batch: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model at a batch and made-up inputs.

    Raises
    ------
    ValueError : a file whose inputs have other dimensions without a size than the batch.
    """
    if not of_file(name):
        model = zoo.load(name, batch)
        return model, zoo.random_inputs(model, _SEED)
    import onnx

    model = onnx.load(name)
    _fix_batch(model, name, batch)
    return model, _made_up(model)


def batches(name: str, wanted: Sequence[int]) -> list[int]:
    """The batches at which a model is measured: a file of fixed sizes has one, its own."""
    if not of_file(name):
        return list(wanted)
    import onnx

    inputs = _inputs(onnx.load(name, load_external_data=False))
    if any(dim.HasField("dim_param") for dim in _batch_dims(inputs)):
        return list(wanted)
    return [next((int(dim.dim_value) for dim in _batch_dims(inputs)), 1)]


def _inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def _batch_dims(inputs: Sequence[onnx.ValueInfoProto]) -> list[onnx.TensorShapeProto.Dimension]:
    shapes = (value.type.tensor_type.shape.dim for value in inputs)
    return [dims[0] for dims in shapes if dims]


def _fix_batch(model: onnx.ModelProto, name: str, batch: int) -> None:
    """Gives the first dimension of inputs, by its name wherever it stands, the batch as its size."""
    inputs = _inputs(model)
    named = {dim.dim_param for dim in _batch_dims(inputs) if dim.HasField("dim_param")}
    for value in [*inputs, *model.graph.output, *model.graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in named:
                dim.dim_value = batch
    for value in inputs:
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                raise ValueError(
                    f"{name}: input {value.name!r} has a dimension {dim.dim_param!r} without a size; "
                    "expected sizes but for the batch: fix it in the file (onnx.tools.update_model_dims)"
                )


def _made_up(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    from onnx import helper

    random = np.random.default_rng(_SEED)
    found = {}
    for value in _inputs(model):
        tensor = value.type.tensor_type
        shape = tuple(dim.dim_value for dim in tensor.shape.dim)
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.floating):
            made = zoo.random_images(shape, _SEED) if len(shape) == 4 else random.standard_normal(shape)
        else:
            made = random.integers(0, _INTEGERS, shape)
        found[value.name] = made.astype(dtype)
    return found
