"""One model under several options of ours, compiled in one process and taking turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import tvm_mxplan
from tvm_mxplan.core.program.program import Program
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

from ..inputs.named import network
from .schedule import rotated

TEN = (
    "vgg19",
    "resnet18",
    "resnet50",
    "densenet121",
    "mobilenet_v2",
    "squeezenet",
    "inception_v1",
    "inception_v2",
    "bvlc_alexnet",
    "shufflenet",
)
"""The published networks of the tables."""
TOLERANCE = 1e-4
CALLS = 3
"""Timed calls of a turn, after one that is not: the other variants have emptied the caches."""


def median_times(
    name: str, batch: int, variants: Mapping[str, Mapping[str, Any]], rounds: int
) -> dict[str, float]:
    """Median milliseconds of a model under each variant's options; results are checked first.

    Variants whose regions run the same programs are one, and have the same median.
    """
    model, inputs = network(name, batch)
    expected = onnxruntime_outputs(model, inputs)
    calls: dict[str, Callable[[], object]] = {}
    same: dict[str, str] = {}
    programs: dict[str, list[Program]] = {}
    for variant, options in variants.items():
        executable = tvm_mxplan.compile(model, options=dict(options))
        error = worst_relative_l2([tensor.numpy() for tensor in executable(**inputs)], expected)
        if not error <= TOLERANCE:
            raise SystemExit(f"{name} as {variant} is off by {error:.1e}")
        programs[variant] = decoded_programs(executable.module)
        same[variant] = next(other for other, known in programs.items() if known == programs[variant])
        if same[variant] == variant:
            calls[variant] = lambda executable=executable: executable(**inputs)
    times: dict[str, list[float]] = {variant: [] for variant in calls}
    for turn in range(rounds):
        for variant in rotated(list(calls), turn):
            calls[variant]()
            for _ in range(CALLS):
                start = time.perf_counter()
                calls[variant]()
                times[variant].append(1e3 * (time.perf_counter() - start))
    return {variant: statistics.median(times[same[variant]]) for variant in variants}
