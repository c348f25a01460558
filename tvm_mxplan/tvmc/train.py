"""``tvmc train``: train an ONNX model on arrays from a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .arguments import Parser, add_input_shapes, add_verbosity, positive
from .output import results_stream


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "train",
        help="train a model",
        description="Train an ONNX model on arrays from a file, and write it with its new weights.",
    )
    parser.set_defaults(verb=train_model)
    parser.add_argument("FILE", type=Path, help="the ONNX model")
    parser.add_argument(
        "--data", type=Path, required=True, help="an .npz file: inputs, and labels or targets"
    )
    parser.add_argument("--validation", type=Path, help="likewise, for the accuracy after each epoch")
    parser.add_argument("--epochs", type=positive, default=1, help="times over the data (%(default)s)")
    add_input_shapes(parser, "shapes of inputs; the first number is the batch")
    parser.add_argument(
        "--loss",
        choices=("softmax_cross_entropy", "mean_squared_error"),
        default="softmax_cross_entropy",
        help="%(default)s unless given",
    )
    parser.add_argument(
        "--optimizer", choices=("sgd", "adam", "adamw"), default="sgd", help="%(default)s unless given"
    )
    parser.add_argument("--learning-rate", type=float, default=0.01, help="%(default)s unless given")
    parser.add_argument("--momentum", type=float, default=0.9, help="of sgd (%(default)s)")
    parser.add_argument("--weight-decay", type=float, default=0.0, help="%(default)s unless given")
    parser.add_argument("--clip-norm", type=float, help="the norm of all gradients is at most this")
    parser.add_argument("--seed", type=int, default=0, help="of the order of samples and of dropouts")
    parser.add_argument("--checkpoint", type=Path, help="an .npz file: gone on from if it is there, and kept")
    parser.add_argument("--curves", type=Path, help="an .svg file: loss and accuracies over the epochs")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the trained ONNX model")
    add_verbosity(parser)


def train_model(args: argparse.Namespace) -> str:
    """Train and write; each epoch is a line as soon as it is over, the text says what was written."""
    from .. import training
    from ..execution.runner import read_inputs
    from ..export.files import check_destination
    from ..training.curves import draw, panels_of
    from ..training.loop import run_epochs

    check_destination(args.output, ".onnx")
    if args.checkpoint:
        check_destination(args.checkpoint, ".npz")
    if args.curves:
        check_destination(args.curves, ".svg")
    data = read_inputs(args.data)
    validation = read_inputs(args.validation) if args.validation else None
    if args.optimizer == "sgd":
        optimizer: Any = training.SGD(args.learning_rate, args.momentum, weight_decay=args.weight_decay)
    else:
        kind = {"adam": training.Adam, "adamw": training.AdamW}[args.optimizer]
        optimizer = kind(args.learning_rate, weight_decay=args.weight_decay)
    step = training.compile(
        args.FILE,
        args.loss,
        optimizer,
        inputs=args.input_shapes,
        clip_norm=args.clip_norm,
        seed=args.seed,
    )
    with results_stream() as told:
        if args.checkpoint and args.checkpoint.exists():
            step.load_checkpoint(args.checkpoint)
            print(f"goes on from {args.checkpoint}, behind step {step.steps}", file=told, flush=True)
        epochs = []
        for epoch in run_epochs(step, data, args.epochs, seed=args.seed + step.steps, validation=validation):
            epochs.append(epoch)
            print(epoch, file=told, flush=True)
            if args.curves:
                draw(args.curves, panels_of(epochs))
            if args.checkpoint:
                step.save_checkpoint(args.checkpoint)
    step.save(args.output)
    return f"{args.output}: trained for {step.steps} steps"
