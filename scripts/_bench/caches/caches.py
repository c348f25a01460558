"""The command line of scripts/bench caches: what the caches save, each section a table of its own.

primitives  milliseconds of a call with primitives held, fetched from the process's cache for each call, and
            made again for each call, from oneDNN's own cache or without; batch 1 and 8
first       seconds from the start of a process to its first answer, cold and warm, beside onnxruntime (also
            from the graph it has optimised and saved) and OpenVINO with its model cache
compile     seconds of tvm_mxplan.compile on a model's file in a fresh process, importing TVM not counted:
            without the cache, with it on an empty folder (cold), and when the folder has the result (warm)

Ratios are of the same round, median (least to greatest).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.statistics import median, ratio_text
from .first_answer import first_answer_table
from .primitives import primitives_table

MODELS = "resnet50,vgg19,densenet121"
_MODELS = {"compile": MODELS, "first": MODELS, "primitives": "resnet50,mobilenet_v2"}
COMPILE_HEADER = (
    "| model | without s | cold s | warm s | cold / without | warm / without | warm / cold | file MB |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)
_WAYS = {"without": ("disabled", "off"), "cold": ("on_compile", "miss"), "warm": ("on_compile", "hit")}
"""The option ``cache`` of each way, and what the report must say then."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print tables in Markdown; returns the exit status."""
    options = _parse(arguments)
    if options.child:
        print(json.dumps(_compile_once(*options.child)))
        return 0
    print(format_environment(environment(Path(__file__).resolve().parents[3])))
    for section in options.sections.split(","):
        models = options.models or _MODELS[section]
        for line in SECTIONS[section](models.split(","), options.rounds):
            print(line, flush=True)
    return 0


def compile_table(models: Sequence[str], rounds: int) -> Iterator[str]:
    yield f"\n## compile, {rounds} rounds\n\n{COMPILE_HEADER}"
    for name in models:
        with tempfile.TemporaryDirectory(prefix="bench-caches-") as folder:
            yield _compile_row(name, rounds, Path(folder))


SECTIONS: dict[str, Callable[[Sequence[str], int], Iterator[str]]] = {
    "compile": compile_table,
    "primitives": primitives_table,
    "first": first_answer_table,
}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench caches", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="", help=f"comma-separated, from the zoo; by default {_MODELS}")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each way (5)")
    parser.add_argument("--sections", default=",".join(SECTIONS), help="comma-separated (all)")
    parser.add_argument("--child", nargs=2, metavar=("MODEL", "CACHE"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _compile_row(name: str, rounds: int, folder: Path) -> str:
    import onnx

    model = folder / f"{name}.onnx"
    onnx.save(zoo.load(name), model)
    seconds: dict[str, list[float]] = {way: [] for way in _WAYS}
    nbytes = 0
    for number in range(rounds):
        answers = set()
        cache = folder / f"cache{number}"
        for way, (option, outcome) in _WAYS.items():
            record = _in_a_process(model, option, cache)
            if record["outcome"] != outcome or record["not stored"]:
                raise RuntimeError(
                    f"{name}, {way}: {record['outcome']}, not {outcome} {record['not stored']}"
                )
            seconds[way].append(record["seconds"])
            answers.add(record["answer"])
        if len(answers) != 1:
            raise RuntimeError(f"{name}: the answers differ with and without a cache")
        nbytes = sum(file.stat().st_size for file in cache.glob("*.mxcache"))
        shutil.rmtree(cache)
        cache.mkdir()
    medians = [f"{median(seconds[way]):.2f}" for way in _WAYS]
    pairs = (("cold", "without"), ("warm", "without"), ("warm", "cold"))
    ratios = [ratio_text(seconds[a], seconds[b]) for a, b in pairs]
    return f"| {name} | {' | '.join([*medians, *ratios])} | {nbytes / 1e6:.2f} |"


def _in_a_process(model: Path, option: str, cache: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "_bench.caches.caches", "--child", str(model), option]
    settings = {**os.environ, "TVM_MXPLAN_CACHE_DIR": str(cache)}
    output = subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout
    record: dict[str, Any] = json.loads(output.splitlines()[-1])
    return record


def _compile_once(model: str, option: str) -> dict[str, Any]:
    """In a process of its own: seconds of one compilation, and a digest of its answer."""
    import hashlib

    import onnx

    import tvm_mxplan
    from tvm_mxplan import api, compiler  # noqa: F401  (loads what compile needs, TVM's compiler too)

    start = time.perf_counter()
    ex = tvm_mxplan.compile(model, options={"cache": option})
    seconds = time.perf_counter() - start
    inputs = zoo.random_inputs(onnx.load(model))
    answer = b"".join(output.numpy().tobytes() for output in ex(**inputs))
    cache = ex.report.cache
    not_stored = cache.reason.partition("not stored: ")[2]
    digest = hashlib.sha256(answer).hexdigest()
    return {"seconds": seconds, "outcome": cache.outcome, "not stored": not_stored, "answer": digest}


if __name__ == "__main__":
    sys.exit(main())
