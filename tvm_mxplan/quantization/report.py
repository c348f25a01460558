"""The text on a quantised model: layers that cost accuracy, and what leaving them in float32 takes."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from .calibration import Samples
from .layers import layer_errors
from .making import Made

_HEADER = ("node", "kind", "alone", "together", "results without", "int8 us", "f32 us")


def layer_report(made: Made, samples: Samples, layers: int = 10) -> str:
    """A table of the layers that are off by most, in words what its columns are, and the whole's error."""
    errors = layer_errors(made, samples, layers)
    shown = errors.layers[:layers]
    lines = [f"results are off by {errors.whole:.2e} (relative, L2) on {len(samples)} samples"]
    if not shown:
        return lines[0]
    shapes = {name: list(array.shape) for name, array in samples[0].items()}
    integers, real = node_times(made.integers, shapes), node_times(made.real, shapes)
    rows = [
        (
            layer.node,
            layer.kind,
            f"{layer.alone:.2e}",
            f"{layer.together:.2e}",
            "-" if layer.without is None else f"{layer.without:.2e}",
            _us(integers.get(layer.node)),
            _us(real.get(layer.node)),
        )
        for layer in shown
    ]
    widths = [max(len(row[at]) for row in (_HEADER, *rows)) for at in range(len(_HEADER))]
    for row in (_HEADER, *rows):
        lines.append("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    lines.append(
        "alone: the layer's own error, where its operands are right; together: in the quantised model;"
    )
    lines.append("results without: the error of the results with this layer in float32 (--exclude NODE)")
    return "\n".join(lines)


def node_times(model: onnx.ModelProto, shapes: Mapping[str, list[int]]) -> dict[str, float]:
    """Estimated microseconds of the steps that nodes run in, by their names, where these are known."""
    from .. import compile

    report = compile(model, shapes=dict(shapes), options={"verify": "off"}).report
    decisions = {one.operator: one for one in report.dispatch}
    found: dict[str, float] = {}
    for decision in decisions.values():
        step = decisions.get(decision.runs, decision)
        if step.chosen.cost_us is None:
            continue
        for origin in decision.origins:
            found[origin.name] = max(found.get(origin.name, 0.0), step.chosen.cost_us)
    return found


def _us(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:,.1f}"
