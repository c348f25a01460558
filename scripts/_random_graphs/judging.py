"""The reference, and how far from it a right result may be.

onnxruntime without its optimiser computes what the model says. A result that is not close to it is held
against what rounding alone does to the graph: the distance of onnxruntime's results from those with every
number between two nodes moved by about a rounding of the mode. Ill-conditioned graphs show large distances
there, wrong kernels do not. What is further off is held against a float64 evaluation by ONNX's own reference,
beside the distance of onnxruntime's results from that: onnxruntime errs too (products of unsigned and signed
8 bits saturate without VNNI).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

Array = np.ndarray
Feed = Mapping[str, Array]


@dataclass(frozen=True)
class Rule:
    """The error that a mode may have.

    Attributes
    ----------
    floor : relative error, in the L2 norm, that is always right.
    noise : numbers between nodes are moved by about this share of themselves to see what rounding does.
    factor : a result may be as many times as far off as those.
    """

    floor: float
    noise: float
    factor: float


RULES = {
    "f32": Rule(2e-5, 3e-7, 10.0),
    "sym": Rule(2e-5, 3e-7, 10.0),
    "host": Rule(2e-5, 3e-7, 10.0),
    "bf16": Rule(1e-2, 4e-3, 4.0),
    "int8": Rule(2e-3, 1e-5, 5.0),
}
_DRAWS = 4
_WINOGRAD = 20.0
CHAOTIC = 0.05
"""A difference by rounding alone that leaves a comparison nothing to show."""


class Reference:
    """A model's results by others than us."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._plain = _session(model)

    def results(self, feed: Feed) -> list[Array]:
        return [np.asarray(one) for one in self._plain.run(None, dict(feed))]

    def spread(self, feed: Feed, expected: Sequence[Array], rule: Rule) -> list[float]:
        """The distance between right results, for each of them: what noise makes of onnxruntime's."""
        wraps = [_jittered(rule.noise, draw) for draw in range(_DRAWS)]
        if rule.noise > 1e-3:
            wraps.append(_shortened)
        others = [_session(_between_nodes(self.model, wrap)).run(None, dict(feed)) for wrap in wraps]
        return [
            max(distance(np.asarray(other[at]), one) for other in others) for at, one in enumerate(expected)
        ]

    def exact(self, feed: Feed) -> list[Array] | None:
        """In float64, by ONNX's reference; None where it cannot."""
        from _shared.exact import exact_outputs

        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return exact_outputs(self.model, feed)
        except Exception:
            return None


@dataclass(frozen=True)
class Judgement:
    """Of one run: ``status`` is '' where all is right; ``apart`` where ONNX's reference had to say so."""

    status: str
    reason: str
    error: float
    apart: bool = False


def judge(
    reference: Reference,
    feed: Feed,
    actual: Sequence[Array],
    expected: Sequence[Array],
    rule: Rule,
    winograd: bool = False,
) -> Judgement:
    """Holds results against others'; ``winograd``: that algorithm may add to what rounding does."""
    errors = [distance(got, want) for got, want in zip(actual, expected, strict=True)]
    worst = max(errors, default=0.0)
    if worst <= rule.floor:
        return Judgement("", "", worst)
    spreads = reference.spread(feed, expected, rule)
    times = rule.factor * (_WINOGRAD if winograd else 1)
    chaotic = [
        spread for error, spread in zip(errors, spreads, strict=True)
        if error > rule.floor and spread > CHAOTIC * max(1.0, rule.floor / 1e-3)
    ]  # fmt: skip
    if chaotic:
        return Judgement("dull", f"rounding leaves {max(chaotic):.2g}", worst)
    far = [at for at, error in enumerate(errors) if error > max(rule.floor, times * spreads[at])]
    exact = reference.exact(feed) if far else None
    for at in far:
        what = f"result {at} differs by {errors[at]:.2g}, where rounding leaves {spreads[at]:.2g}"
        if exact is None or exact[at].shape != actual[at].shape:
            return Judgement("wrong", what, worst)
        own, theirs = distance(actual[at], exact[at]), distance(expected[at], exact[at])
        if own > max(rule.floor, times * spreads[at]) and own > rule.factor * theirs:
            more = f"; by {own:.2g} from ONNX's reference, onnxruntime by {theirs:.2g}"
            return Judgement("wrong", what + more, worst)
    return Judgement("", "", worst, bool(far))


def distance(actual: Array, expected: Array) -> float:
    """Relative, in the L2 norm; infinite where shapes, types of numbers, or infinities and NaN differ."""
    if actual.shape != expected.shape:
        return float("inf")
    a, b = np.asarray(actual, "float64"), np.asarray(expected, "float64")
    strange = ~np.isfinite(b)
    if not np.array_equal(a[strange], b[strange], equal_nan=True) or not np.isfinite(a[~strange]).all():
        return float("inf")
    a, b = a[~strange], b[~strange]
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)) if a.size else 0.0


def is_telling(results: Sequence[Array]) -> bool:
    """False where no result would show an error: all zero, or nothing but NaN, or beyond all measure."""
    found = False
    for one in results:
        numbers = np.asarray(one, "float64")
        if not np.isfinite(numbers).all() or np.abs(numbers).max(initial=0) > 1e6:
            return False
        found |= bool(numbers.size > 1 and numbers.std() > 1e-6 * np.abs(numbers).max())
    return found


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _fixed(model: onnx.ModelProto) -> set[str]:
    """Constants that have to stay as they are: sizes of images, and exponents of numbers below 0."""
    operators = ("Resize", "Pow")
    return {name for node in model.graph.node if node.op_type in operators for name in node.input[1:]}


Wrap = Callable[[str, str], list[onnx.NodeProto]]
"""Makes the nodes that give one value in the place of another."""


def _shortened(name: str, result: str) -> list[onnx.NodeProto]:
    """Rounds to bfloat16."""
    return [
        helper.make_node("Cast", [name], [f"{result}_short"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", [f"{result}_short"], [result], to=TensorProto.FLOAT),
    ]


def _jittered(share: float, seed: int) -> Wrap:
    """Moves each number by about a share of itself."""

    def nodes(name: str, result: str) -> list[onnx.NodeProto]:
        noise = f"{result}_noise"
        drawn = {"mean": 1.0, "scale": share, "seed": float(seed)}
        return [
            helper.make_node("RandomNormalLike", [name], [noise], dtype=TensorProto.FLOAT, **drawn),
            helper.make_node("Mul", [name, noise], [result]),
        ]

    return nodes


def _between_nodes(model: onnx.ModelProto, wrap: Wrap) -> onnx.ModelProto:
    """The model with every real number that a node reads changed."""
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {
        value.name: value.type.tensor_type.elem_type
        for value in (*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input)
    }
    types |= {tensor.name: tensor.data_type for tensor in inferred.graph.initializer}
    exempt = _fixed(model)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for opset in changed.opset_import:  # onnxruntime draws no numbers in 22, which has more types alone
        opset.version = min(opset.version, 21)
    nodes: list[onnx.NodeProto] = []
    known: dict[str, str] = {}
    for node in changed.graph.node:
        for at, name in enumerate(node.input):
            if types.get(name) != TensorProto.FLOAT or name in exempt:
                continue
            if name not in known:
                known[name] = f"{name}_changed"
                nodes += wrap(name, known[name])
            node.input[at] = known[name]
        nodes.append(node)
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del changed.graph.node[:]
    changed.graph.node.extend(kept)
    return changed
