"""``tvmc quantize``: an ONNX model with integers of 8 bits, by onnxruntime's tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .arguments import Parser, add_verbosity, positive


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "quantize",
        help="make an int8 model",
        description="Quantise an ONNX model with onnxruntime's tools, and tell how accurate each layer is.",
    )
    parser.set_defaults(verb=quantize_model)
    parser.add_argument("FILE", type=Path, help="the ONNX model, in float32")
    parser.add_argument(
        "--data",
        type=Path,
        help="an .npz file with an array of samples for each input: what ranges and errors are measured on",
    )
    parser.add_argument(
        "--dynamic",
        action="store_true",
        help="scales of activations from each call, without calibration; --data is for the report alone then",
    )
    parser.add_argument("--per-channel", action="store_true", help="a scale for each output of a product")
    parser.add_argument(
        "--activations", choices=("u8", "s8"), default="u8", help="integers of activations (%(default)s)"
    )
    parser.add_argument("--weights", choices=("s8", "u8"), default="s8", help="of weights (%(default)s)")
    parser.add_argument(
        "--reduce-range", action="store_true", help="weights of 7 bits, for processors without VNNI"
    )
    parser.add_argument(
        "--method",
        choices=("minmax", "entropy", "percentile"),
        default="minmax",
        help="how ranges follow from samples (%(default)s)",
    )
    parser.add_argument(
        "--format", choices=("qdq", "qoperator"), default="qdq", help="of a static model (%(default)s)"
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="NODE",
        help="a node that stays in float32; repeatable",
    )
    parser.add_argument(
        "--operators",
        default="",
        metavar="KINDS",
        help="kinds of nodes to quantise, as MatMul,Gemm; by default all",
    )
    parser.add_argument(
        "--layers",
        type=positive,
        default=10,
        help="layers in the report, the least accurate first (%(default)s)",
    )
    parser.add_argument(
        "--report-samples", type=positive, default=4, help="samples that the report is made on (%(default)s)"
    )
    parser.add_argument("--no-report", action="store_true", help="write the model, compare nothing")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the quantised ONNX model")
    add_verbosity(parser)


def quantize_model(args: argparse.Namespace) -> str:
    """Quantise and write; the text says what was written, and how far off each layer is."""
    from .. import quantization
    from ..errors import InvalidInputError
    from ..execution.runner import read_inputs
    from ..frontend.onnx.model import read_model

    if args.data is None and not args.dynamic:
        raise InvalidInputError("--data: no calibration data; give an .npz file, or --dynamic")
    samples = quantization.samples_of(read_model(args.FILE), read_inputs(args.data)) if args.data else []
    settings = quantization.Settings(
        args.dynamic,
        args.activations,
        args.weights,
        args.per_channel,
        args.reduce_range,
        tuple(args.exclude),
        tuple(kind for kind in args.operators.split(",") if kind),
        args.format,
        args.method,
    )
    made = quantization.quantize(args.FILE, args.output, samples, settings)
    told = f"{args.output}: {'dynamic' if args.dynamic else 'static'}, {len(samples)} samples"
    if args.no_report or not samples:
        return told
    return "\n".join([told, quantization.layer_report(made, samples[: args.report_samples], args.layers)])
