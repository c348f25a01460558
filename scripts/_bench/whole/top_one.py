"""The command line of scripts/bench top_one: classes that networks name in bf16, beside float32.

    scripts/bench top_one --models squeezenet,resnet18 --images 1000 --batch 8

Each engine gives the same random images a class, in one thread of this process: ours in bf16, and OpenVINO in
bf16 where it is installed. *agree* is the share of images whose class is that of ours in float32, *error* the
relative L2 of all results against those in float32. Of images on which engines do not agree, *margin* is the
largest distance of the two classes in float32, over the largest result. Status 1 where ours agrees on fewer
than --least of the images.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tvm_mxplan
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.engines import ENGINES
from ..harness.files import Files, write_model
from ..harness.variants import TEN

OURS, PEER = "ours_bf16", "openvino_bf16"
Answer = Callable[[dict[str, np.ndarray]], np.ndarray]


@dataclass(frozen=True)
class Agreement:
    """Results of an engine, beside those in float32."""

    images: int
    agreeing: int
    error: float
    margin: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    engines = [OURS] + ([PEER] if importlib.util.find_spec("openvino") else [])
    print(f"| model | images | {' | '.join(f'{name} agree | error | margin' for name in engines)} |")
    print(f"| --- | ---: | {' | '.join('---: | ---: | ---:' for _ in engines)} |")
    enough = True
    for name in options.models.split(","):
        with with_threads(1):
            found = agreements(name, options.images, options.batch, engines)
        cells = [
            f"{one.agreeing / one.images:.1%} | {one.error:.1e} | {one.margin:.1e}" for one in found.values()
        ]
        print(f"| {name} | {found[OURS].images} | {' | '.join(cells)} |", flush=True)
        enough = enough and found[OURS].agreeing >= options.least * found[OURS].images
    return 0 if enough else 1


def agreements(name: str, images: int, batch: int, engines: Sequence[str]) -> dict[str, Agreement]:
    """Agreement of each engine with ours in float32, over at least so many random images."""
    with tempfile.TemporaryDirectory(prefix="bench_top_one_") as directory:
        files = Files(Path(directory))
        model = write_model(name, batch, files)
        exact = _ours(files.model, "f32")
        answers = {
            engine: _ours(files.model, "bf16") if engine == OURS else _peer(engine, files.model, model)
            for engine in engines
        }
        rows: dict[str, list[np.ndarray]] = {key: [] for key in ("f32", *engines)}
        for seed in range(-(-images // batch)):
            inputs = zoo.random_inputs(model, seed)
            rows["f32"].append(exact(inputs))
            for engine, answer in answers.items():
                rows[engine].append(answer(inputs))
    found = {key: np.concatenate([row.reshape(batch, -1) for row in made]) for key, made in rows.items()}
    return {engine: compared(found["f32"], found[engine]) for engine in engines}


def compared(exact: np.ndarray, found: np.ndarray) -> Agreement:
    """Rows of results beside those in float32."""
    right, named = exact.argmax(1), found.argmax(1)
    rows = np.arange(len(exact))
    margins = (exact[rows, right] - exact[rows, named]) / np.abs(exact).max(1)
    error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    return Agreement(len(exact), int((right == named).sum()), error, float(margins.max()))


def _ours(model: Path, precision: str) -> Answer:
    executable = tvm_mxplan.compile(str(model), options={"precision": precision})
    return lambda inputs: executable.run(inputs)[0]


def _peer(engine: str, model: Path, proto: object) -> Answer:
    held = zoo.random_inputs(proto, 0)  # type: ignore[arg-type]
    runner = ENGINES[engine].load(str(model), held, 1)

    def answer(inputs: dict[str, np.ndarray]) -> np.ndarray:
        for key, array in inputs.items():
            held[key][...] = array
        return runner.fetch(runner.call())[0]

    return answer


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench top_one", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(TEN), help="comma-separated (ten networks)")
    parser.add_argument("--images", type=int, default=1000, help="at least so many (1000)")
    parser.add_argument("--batch", type=int, default=8, help="images at once (8)")
    parser.add_argument("--least", type=float, default=0.95, help="of images that ours agrees on (0.95)")
    return parser.parse_args(arguments)
