"""Operators of com.microsoft against onnxruntime, on odd sizes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import check, normal

import tvm_mxplan
from tvm_mxplan.errors import UnsupportedError

RANDOM = np.random.default_rng(11)


def contributed(
    kind: str,
    inputs: dict[str, np.ndarray],
    order: list[str],
    outputs: list[str],
    constants: dict[str, np.ndarray] | None = None,
    shapes: dict[str, list] | None = None,
    domain: str = "com.microsoft",
    **attributes: object,
) -> onnx.ModelProto:
    """A model of one operator; inputs have their own shapes, or those in ``shapes``."""

    def info(name: str, data: np.ndarray) -> onnx.ValueInfoProto:
        shape = (shapes or {}).get(name, data.shape)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), shape)

    node = helper.make_node(kind, order, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [info(name, data) for name, data in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs if name],
        [numpy_helper.from_array(data, name) for name, data in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def check_all(cases: list[tuple[onnx.ModelProto, dict[str, np.ndarray]]], atol: float = 1e-5) -> None:
    """Check models as one: compiling takes the time."""
    inputs: dict[str, np.ndarray] = {}
    whole = onnx.ModelProto()
    whole.CopyFrom(cases[0][0])
    whole.graph.CopyFrom(onnx.GraphProto(name="all"))
    for at, (parsed, operands) in enumerate(cases):
        one = onnx.compose.add_prefix(parsed, f"m{at}_").graph
        inputs |= {f"m{at}_{name}": data for name, data in operands.items()}
        for field in ("node", "input", "output", "initializer"):
            getattr(whole.graph, field).extend(getattr(one, field))
    check(whole, inputs, atol)


def test_pointwise() -> None:
    rows: list[tuple[str, dict[str, np.ndarray], dict]] = [
        ("BiasGelu", {"x": normal(2, 3, 17), "b": normal(17)}, {}),
        ("FastGelu", {"x": normal(2, 3, 17), "b": normal(17)}, {}),
        ("FastGelu", {"x": normal(2, 3, 17)}, {}),
        ("QuickGelu", {"x": normal(2, 3, 17)}, {"alpha": 1.5}),
        (
            "FusedMatMul",
            {"a": normal(3, 7, 5), "b": normal(3, 11, 7)},
            {"transA": 1, "transB": 1, "alpha": 0.3},
        ),
        ("FusedMatMul", {"a": normal(5, 3, 7), "b": normal(3, 7, 11)}, {"transBatchA": 1}),
        ("SkipLayerNormalization", {"x": normal(2, 3, 17), "s": normal(2, 3, 17), "g": normal(17)}, {}),
    ]
    check_all(
        [
            (contributed(kind, operands, list(operands), ["y"], **attributes), operands)
            for kind, operands, attributes in rows
        ]
    )


def test_sums_that_are_normalized_are_results_too() -> None:
    cases = []
    for kind in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        operands = {"x": normal(2, 3, 17), "s": normal(2, 3, 17), "g": normal(17)}
        if kind == "SkipLayerNormalization":
            operands["beta"] = normal(17)
        operands["bias"] = normal(17)
        outputs = ["y", "", "", "total"]
        cases.append((contributed(kind, operands, list(operands), outputs, epsilon=1e-5), operands))
    check_all(cases)


def test_simplified_layer_normalization_in_the_standard_domain() -> None:
    operands = {"x": normal(2, 3, 17), "g": normal(17)}
    check(contributed("SimplifiedLayerNormalization", operands, ["x", "g"], ["y"], domain=""), operands)


def test_embeddings() -> None:
    check_all([embedding(segments=False), embedding(segments=True)])


def embedding(*, segments: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = {
        "ids": RANDOM.integers(0, 19, (2, 5)).astype("int32"),
        "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "int32"),
    }
    constants = {"words": normal(19, 17), "places": normal(7, 17), "g": normal(17), "b": normal(17)}
    order = ["ids", "", "words", "places", "", "g", "b", "mask"]
    if segments:
        inputs["segments"] = RANDOM.integers(0, 2, (2, 5)).astype("int32")
        constants["kinds"] = normal(2, 17)
        order[1], order[4] = "segments", "kinds"
    outputs = ["y", "lengths", "total"]
    parsed = contributed("EmbedLayerNormalization", inputs, order, outputs, constants, mask_index_type=1)
    return parsed, inputs


def tables(length: int, half: int) -> dict[str, np.ndarray]:
    angles = np.outer(np.arange(length), 0.7 ** np.arange(half))
    return {"cos": np.cos(angles).astype("float32"), "sin": np.sin(angles).astype("float32")}


@pytest.mark.slow
def test_rotary_embeddings() -> None:
    cases = []
    for interleaved in (0, 1):
        for shape, half, attributes in (
            ((2, 5, 3 * 8), 4, {}),
            ((2, 3, 5, 8), 4, {}),
            ((2, 5, 3 * 8), 2, {"num_heads": 3, "rotary_embedding_dim": 4}),
        ):
            for positions in (np.array([2]), RANDOM.integers(0, 9, (2, 5))):
                inputs = {"x": normal(*shape), "p": positions.astype("int64")}
                order, options = ["x", "p", "cos", "sin"], {"interleaved": interleaved, **attributes}
                parsed = contributed("RotaryEmbedding", inputs, order, ["y"], tables(9, half), **options)
                cases.append((parsed, inputs))
    check_all(cases)


@pytest.mark.slow
def test_attention_with_a_projection_of_its_own() -> None:
    rows: list[tuple[np.ndarray | None, dict[str, np.ndarray], dict]] = [
        (None, {}, {}),
        (np.array([3, 5], "int32"), {}, {}),
        (np.array([3, 5, 1, 0], "int32"), {}, {}),
        (np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], "int32"), {}, {"unidirectional": 1}),
        (None, {"past": normal(2, 2, 3, 4, 8)}, {"unidirectional": 1}),
        (None, {"bias": normal(1, 3, 5, 5)}, {"scale": 0.2}),
    ]
    cases = []
    for mask, extra, attributes in rows:
        inputs = {"x": normal(2, 5, 11)}
        constants = {"w": normal(11, 72) / 3, "b": normal(72)}
        order = ["x", "w", "b", "", "", ""]
        if mask is not None:
            inputs["mask"], order[3] = mask, "mask"
        for name, data in extra.items():
            inputs[name], order[4 if name == "past" else 5] = data, name
        outputs = ["y", "present"] if "past" in extra else ["y"]
        parsed = contributed("Attention", inputs, order, outputs, constants, num_heads=3, **attributes)
        cases.append((parsed, inputs))
    check_all(cases)


MULTI_HEAD = ["query", "key", "value", "bias", "key_padding_mask", "attention_bias", "past_key", "past_value"]


@pytest.mark.slow
def test_multi_head_attention() -> None:
    rows: list[tuple[tuple[int, int], dict[str, np.ndarray], dict]] = [
        ((5, 7), {}, {}),
        ((5, 5), {}, {"unidirectional": 1}),
        ((5, 7), {"key_padding_mask": np.array([4, 7], "int32")}, {"scale": 0.3}),
        ((5, 7), {"key_padding_mask": (RANDOM.random((2, 7)) > 0.3).astype("int32")}, {}),
        ((5, 7), {"attention_bias": normal(2, 3, 5, 7)}, {}),
        ((1, 1), {"past_key": normal(2, 3, 4, 8), "past_value": normal(2, 3, 4, 8)}, {}),
    ]
    cases = []
    for (length, total), extra, attributes in rows:
        inputs = {"query": normal(2, length, 24), "key": normal(2, total, 24), "value": normal(2, total, 24)}
        inputs |= {"bias": normal(72)} | extra
        order = [name if name in inputs else "" for name in MULTI_HEAD]
        outputs = ["y", "present_key", "present_value"] if "past_key" in extra else ["y"]
        parsed = contributed("MultiHeadAttention", inputs, order, outputs, num_heads=3, **attributes)
        cases.append((parsed, inputs))
    check_all(cases)


def group_query(
    length: int, past: int, lasts: list[int], *, packed: bool = False
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Inputs of 6 heads over 2 of keys, and their order."""
    batch = len(lasts)
    inputs = {"query": normal(batch, length, (6 + 4 * packed) * 16)}
    if not packed:
        inputs |= {"key": normal(batch, length, 32), "value": normal(batch, length, 32)}
    if past:
        inputs |= {"past_key": normal(batch, 2, past, 16), "past_value": normal(batch, 2, past, 16)}
    inputs["last"] = np.array(lasts, "int32")
    inputs["total"] = np.array(max(lasts) + 1, "int32")
    names = ["query", "key", "value", "past_key", "past_value", "last", "total", "cos", "sin"]
    return inputs, [name if name in inputs or name in ("cos", "sin") else "" for name in names]


@pytest.mark.slow
def test_group_query_attention() -> None:
    rows = [
        (group_query(5, 0, [4, 4]), {}),
        (group_query(5, 0, [4, 4], packed=True), {"do_rotary": 1}),
        (group_query(1, 4, [4, 4]), {"do_rotary": 1}),
        (group_query(1, 6, [6, 6]), {"do_rotary": 1, "local_window_size": 3}),
        (group_query(3, 4, [6]), {"softcap": 2.0, "scale": 0.4}),
    ]
    cases = []
    for (inputs, order), attributes in rows:
        parsed = contributed(
            "GroupQueryAttention",
            inputs,
            order if attributes.get("do_rotary") else order[:7],
            ["y", "present_key", "present_value"],
            tables(12, 8) if attributes.get("do_rotary") else {},
            num_heads=6,
            kv_num_heads=2,
            **attributes,
        )
        cases.append((parsed, inputs))
    check_all(cases)


@pytest.mark.slow
def test_group_query_attention_with_named_sizes() -> None:
    inputs, order = group_query(1, 4, [4, 4])
    shapes = {
        "query": ["b", "s", 96],
        "key": ["b", "s", 32],
        "value": ["b", "s", 32],
        "past_key": ["b", 2, "p", 16],
        "past_value": ["b", 2, "p", 16],
        "last": ["b"],
    }
    outputs = ["y", "present_key", "present_value"]
    parsed = contributed(
        "GroupQueryAttention", inputs, order[:7], outputs, shapes=shapes, num_heads=6, kv_num_heads=2
    )
    check(parsed, inputs)


def test_weights_of_four_bits() -> None:
    cases = []
    for depth, block, zeros in ((32, 16, True), (48, 32, False), (67, 16, True)):
        blocks = -(-depth // block)
        constants = {
            "w": RANDOM.integers(0, 256, (17, blocks, block // 2)).astype("uint8"),
            "scales": (RANDOM.random(17 * blocks) + 0.5).astype("float32"),
        }
        if zeros:
            constants["zeros"] = RANDOM.integers(0, 256, (17 * -(-blocks // 2),)).astype("uint8")
        inputs = {"x": normal(3, depth)}
        options = {"K": depth, "N": 17, "bits": 4, "block_size": block}
        parsed = contributed("MatMulNBits", inputs, ["x", *constants], ["y"], constants, **options)
        cases.append((parsed, inputs))
    check_all(cases, atol=1e-3)


def test_what_is_not_computed_is_said() -> None:
    inputs, order = group_query(5, 0, [4, 4])
    parsed = contributed(
        "GroupQueryAttention", inputs, order[:7], ["y", "", ""], num_heads=6, kv_num_heads=2, qk_output=1
    )
    with pytest.raises(UnsupportedError, match=r"GroupQueryAttention\): scores as a result"):
        tvm_mxplan.compile(parsed, "llvm")
