"""The command line of scripts/bench onnx: ONNX models of your own, ours against other engines.

    scripts/bench onnx detector.onnx classifier.onnx --threads 1,2
    scripts/bench onnx decoder.onnx --inputs inputs.npz --engines ours,onnxruntime

Models run as they stand in their files. Inputs are those of --inputs, else of the .npz file of the model's
name beside it; what is not there is made up: numbers from 0 to 1, integers from 0 to 127. onnxruntime's
answer to them is the reference, and an engine that differs is not timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from tvm_mxplan.errors import MxplanError
from tvm_mxplan.execution.runner import fill_inputs, read_inputs
from tvm_mxplan.execution.signature import ANY, Port, Signature
from tvm_mxplan.frontend.onnx.dimensions.open_dimensions import dims_of
from tvm_mxplan.frontend.onnx.model import input_names, read_model
from tvm_mxplan.tvmc.arguments import input_shapes

from ..harness.command import Case, add_options, complain, run
from ..harness.files import INPUT_SEED, write_exported

PROG = "bench onnx"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        inputs = [
            inputs_of(path, _given(path, options.inputs), options.input_shapes) for path in options.FILE
        ]
    except MxplanError as error:
        return complain(PROG, str(error))
    cases = (
        Case(
            path.stem, None, partial(write_exported, path, of_path), "give inputs that it takes with --inputs"
        )
        for path, of_path in zip(options.FILE, inputs, strict=True)
    )
    return run(PROG, options, cases)


def _given(model: Path, stated: Path | None) -> dict[str, np.ndarray]:
    beside = model.with_suffix(".npz")
    path = stated or (beside if beside.exists() else None)
    return {} if path is None else read_inputs(path)


def inputs_of(
    path: Path, given: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int]] | None = None
) -> dict[str, np.ndarray]:
    """The inputs of a model by name: those ``given``, and made-up ones for the rest.

    ``shapes`` are by name, for inputs with open dimensions; an open dimension that nothing states is 1.

    Raises
    ------
    InvalidInputError : no ONNX model, an input that it does not have, or one whose shape cannot be known.
    """
    model = read_model(path)
    names = set(input_names(model))
    ports = tuple(_ports(value for value in model.graph.input if value.name in names))
    return fill_inputs(Signature(ports, ()), "random", INPUT_SEED, shapes, given)


def _ports(values: Iterator[onnx.ValueInfoProto]) -> Iterator[Port]:
    """The inputs; open dimensions of one name are one symbol, and those without a name one each."""
    symbols: dict[str, str] = {}
    for value in values:
        elements = value.type.tensor_type.elem_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(elements).name if elements else ""
        stated = dims_of(value)
        shape = [
            dim.dim_value
            if dim.HasField("dim_value")
            else symbols.setdefault(dim.dim_param or f"{value.name}:{at}", f"d{len(symbols)}")
            for at, dim in enumerate(stated or ())
        ]
        yield Port(value.name, ANY if stated is None else tuple(shape), dtype)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("FILE", type=Path, nargs="+", help="ONNX models")
    parser.add_argument("-i", "--inputs", type=Path, help="an .npz file with inputs by name, for all models")
    parser.add_argument(
        "--input-shapes",
        type=input_shapes,
        metavar="SHAPES",
        help='shapes of inputs with open dimensions (else 1), as "data:[1,3,224,224] mask:[1]"',
    )
    add_options(parser)
    return parser
