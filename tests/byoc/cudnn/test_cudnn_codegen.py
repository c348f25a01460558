"""Composites as programs and operation graphs: worked out as the graphs say, against TVM's own kernels."""

from __future__ import annotations

import pytest
import tvm
from cudnn_programs import checked_against_tvm, checked_module, on_h200
from cudnn_stand_in import StandIn
from relax_programs import normal, parse
from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention import Attention, attention
from tvm_mxplan.passes.canonicalize import RecoverAttention

IMAGE, RESULT = (2, 6, 7, 9), (2, 8, 7, 9)
FILTERS, CHANNELS = (8, 6, 3, 3), (1, 8, 1, 1)
CONV = "a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])"
CASES: dict[str, tuple[list[str], dict[str, tuple[int, ...]], tuple[str, ...]]] = {
    # lines, shapes of what they name (x and z are inputs, all else is constant), post-ops
    "convolution": ([CONV], {"x": IMAGE, "w": FILTERS}, ()),
    "strides, dilation": (
        ["a = R.nn.conv2d(x, w, strides=[2, 1], padding=[2, 1, 2, 1], dilation=[1, 2])"],
        {"x": IMAGE, "w": FILTERS},
        (),
    ),
    "groups": (
        ["a = R.nn.conv2d(x, w, groups=2, padding=[1, 1, 1, 1])", "b = R.nn.relu(a)"],
        {"x": IMAGE, "w": (8, 3, 3, 3)},
        ("relu",),
    ),
    "depthwise": (
        ["a = R.nn.conv2d(x, w, groups=6, padding=[1, 1, 1, 1])"],
        {"x": IMAGE, "w": (12, 1, 3, 3)},
        (),
    ),
    "padding that differs at begin and end": (
        ["a = R.nn.conv2d(x, w, padding=[2, 0, 1, 3])"],
        {"x": IMAGE, "w": FILTERS},
        (),
    ),
    "of rows": (
        ["a = R.nn.conv1d(x, w, strides=[2], padding=[2, 1])", "b = R.nn.relu(a)"],
        {"x": (2, 6, 11), "w": (8, 6, 3)},
        ("relu",),
    ),
    "of volumes": (
        ["a = R.nn.conv3d(x, w, padding=[1, 0, 1, 1, 0, 1])"],
        {"x": (1, 3, 4, 5, 6), "w": (5, 3, 3, 2, 3)},
        (),
    ),
    "transposed": (
        [
            "a = R.nn.conv2d_transpose(x, w, strides=[2, 3], padding=[1, 0, 0, 2], output_padding=[1, 0])",
            "b = R.multiply(a, s)",
            "c = R.add(b, v)",
            "d = R.nn.relu(c)",
        ],
        {"x": (2, 6, 5, 4), "w": (6, 8, 3, 4), "s": CHANNELS, "v": CHANNELS},
        ("relu",),
    ),
    "transposed, groups, dilation": (
        [
            "a = R.nn.conv2d_transpose(x, w, groups=2, dilation=[2, 1], strides=[1, 2])",
            "b = R.multiply(a, s)",
        ],
        {"x": (2, 6, 5, 4), "w": (6, 4, 3, 2), "s": CHANNELS},
        (),
    ),
    "swish": ([CONV, "b = R.nn.silu(a)"], {"x": IMAGE, "w": FILTERS}, ("swish",)),
    "clip": (
        [CONV, "b = R.clip(a, R.prim_value(0), R.prim_value(6))"],
        {"x": IMAGE, "w": FILTERS},
        ("clip_v2",),
    ),
    "bias": ([CONV, "b = R.add(v, a)"], {"x": IMAGE, "w": FILTERS, "v": CHANNELS}, ()),
    "tanh": ([CONV, "b = R.tanh(a)"], {"x": IMAGE, "w": FILTERS}, ("tanh",)),
    "residual": ([CONV, "b = R.add(z, a)"], {"x": IMAGE, "w": FILTERS, "z": RESULT}, ("add",)),
    "batch norm, residual, relu": (
        [
            CONV,
            "b = R.subtract(a, u)",
            "c = R.multiply(s, b)",
            "d = R.add(c, v)",
            "e = R.add(d, z)",
            "f = R.nn.relu(e)",
        ],
        {"x": IMAGE, "w": FILTERS, "u": CHANNELS, "s": (8, 1, 1), "v": CHANNELS, "z": RESULT},
        ("add", "relu"),
    ),
    "batch norm, scale, relu": (
        [
            CONV,
            "b = R.subtract(a, u)",
            "c = R.multiply(b, s)",
            "d = R.add(c, v)",
            "e = R.multiply(d, t)",
            "f = R.add(e, q)",
            "g = R.nn.relu(f)",
        ],
        {"x": IMAGE, "w": FILTERS, **dict.fromkeys("usvtq", CHANNELS)},
        ("relu",),
    ),
    "scale, sigmoid": (
        [CONV, "b = R.multiply(a, s)", "c = R.sigmoid(b)"],
        {"x": IMAGE, "w": FILTERS, "s": CHANNELS},
        ("logistic",),
    ),
    "product": (["a = R.matmul(x, w)"], {"x": (3, 5, 7), "w": (7, 11)}, ()),
    "product, bias, residual, gelu": (
        ["a = R.matmul(x, w)", "b = R.add(a, v)", "c = R.add(z, b)", "d = R.nn.gelu(c)"],
        {"x": (3, 5, 7), "w": (7, 11), "v": (11,), "z": (3, 5, 11)},
        ("add", "gelu_erf"),
    ),
    "product, transposed, bias, relu": (
        ["t = R.permute_dims(w)", "a = R.matmul(x, t)", "b = R.add(a, v)", "c = R.nn.relu(b)"],
        {"x": (5, 7), "w": (11, 7), "v": (11,)},
        ("relu",),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_composite_computes_what_its_operators_do(planner: StandIn, case: str) -> None:
    lines, shapes, post_ops = CASES[case]
    (step,) = checked_against_tvm(lines, shapes)
    assert isinstance(step.attrs, ir.Convolution | ir.Deconvolution)
    assert tuple(one.algorithm for one in step.post_ops) == post_ops  # type: ignore[union-attr]


OTHERS: dict[str, tuple[list[str], dict[str, tuple[int, ...]], tuple[str, ...]]] = {
    # lines, shapes, kinds of the steps that are left
    "max pool": (
        ["a = R.nn.max_pool2d(x, pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 1])"],
        {"x": IMAGE},
        ("pooling",),
    ),
    "max pool, ceil mode": (
        ["a = R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], ceil_mode=True)"],
        {"x": (2, 6, 8, 10)},
        ("pooling",),
    ),
    "average pool": (
        ["a = R.nn.avg_pool2d(x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])"],
        {"x": IMAGE},
        ("pooling",),
    ),
    "average pool that counts padding": (
        ["a = R.nn.avg_pool2d(x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True)"],
        {"x": IMAGE},
        ("pooling",),
    ),
    "adaptive pool": (
        ["a = R.nn.adaptive_avg_pool2d(x, output_size=[2, 3])"],
        {"x": (2, 5, 8, 9)},
        ("pooling",),
    ),
    "mean of an image": (["a = R.mean(x, axis=[2, 3])"], {"x": IMAGE}, ("pooling",)),
    "maximum of an image": (["a = R.max(x, axis=[-1, -2], keepdims=True)"], {"x": IMAGE}, ("pooling",)),
    "sum of the last axes": (["a = R.sum(x, axis=[-1])"], {"x": (3, 4, 5)}, ("reduction",)),
    "mean of the last axes": (
        ["a = R.mean(x, axis=[1, 2], keepdims=True)", "b = R.add(a, z)"],
        {"x": (3, 4, 5, 2)[:3], "z": (3, 1, 1)},
        ("reduction", "eltwise"),
    ),
    "softmax": (["a = R.nn.softmax(x, axis=-1)"], {"x": (3, 4, 5)}, ("softmax",)),
    "softmax of channels": (["a = R.nn.softmax(x, axis=1)"], {"x": (2, 4, 5, 3)}, ("softmax",)),
    "logarithm of softmax": (["a = R.nn.log_softmax(x, axis=0)"], {"x": (4, 5)}, ("softmax",)),
    "layer norm": (
        ["a = R.nn.layer_norm(x, v, u, axes=[-1], epsilon=1e-3)"],
        {"x": (3, 4, 6), "v": (6,), "u": (6,)},
        ("layer_normalization",),
    ),
    "layer norm of two axes": (
        ["a = R.nn.layer_norm(x, v, u, axes=[1, 2], epsilon=1e-3)"],
        {"x": (3, 4, 6), "v": (4, 6), "u": (4, 6)},
        ("layer_normalization",),
    ),
    "group norm": (
        ["a = R.nn.group_norm(x, v, u, num_groups=2, channel_axis=1, axes=[2, 3], epsilon=1e-3)"],
        {"x": (2, 6, 3, 4), "v": (6,), "u": (6,)},
        ("layer_normalization", "binary"),
    ),
    "instance norm": (
        ["a = R.nn.instance_norm(x, v, u, channel_axis=1, axes=[2, 3], epsilon=1e-3)"],
        {"x": (2, 6, 3, 4), "v": (6,), "u": (6,)},
        ("layer_normalization", "binary"),
    ),
    "instance norm over an axis of one image": (
        ["a = R.nn.instance_norm(x, v, u, channel_axis=1, axes=[0, 2, 3], epsilon=1e-3)"],
        {"x": (1, 6, 3, 4), "v": (6,), "u": (6,)},
        ("layer_normalization", "binary"),
    ),
    "images one behind the other": (
        ["a = R.nn.max_pool2d(x, pool_size=[2, 2])", "b = R.concat((a, z, a), axis=1)", "c = R.nn.relu(b)"],
        {"x": (2, 4, 7, 9), "z": (2, 8, 6, 8)},
        ("pooling", "concat", "eltwise"),
    ),
    "and a constant one": (
        ["a = R.concat((v, x), axis=1)", "b = R.add(a, z)"],
        {"x": (1, 5, 8), "v": (1, 1, 8), "z": (1, 6, 8)},
        ("concat", "binary"),
    ),
    "boxes of an image": (
        [
            "a = R.strided_slice(x, axes=[1, 3], begin=[4, 1], end=[8, 7])",
            "b = R.strided_slice(x, axes=[1, 3], begin=[0, -6], end=[4, 10], strides=[1, 1])",
            "c = R.multiply(a, b)",
        ],
        {"x": (2, 8, 4, 8)},
        ("slice", "slice", "binary"),
    ),
    "rows one behind the other": (["a = R.concat((x, z), axis=-1)"], {"x": (3, 4), "z": (3, 5)}, ("concat",)),
    "chain": (
        [
            "a = R.multiply(x, x)",
            "b = R.add(a, z)",
            "c = R.nn.silu(b)",
            "d = R.subtract(R.const(1.5), c)",
            "e = R.clip(d, R.prim_value(-1.0), R.prim_value(1.25))",
        ],
        {"x": IMAGE, "z": IMAGE},
        ("binary",),
    ),
    "batch norm of a concatenation, and a scale": (
        [
            "a = R.concat((x, z), axis=1)",
            "b = R.subtract(a, u)",
            "c = R.multiply(s, b)",
            "d = R.add(c, v)",
            "e = R.multiply(d, w)",
            "f = R.add(e, q)",
            "g = R.nn.relu(f)",
        ],
        {"x": (2, 4, 5, 3), "z": (2, 4, 5, 3), **dict.fromkeys("suvwq", (1, 8, 1, 1))},
        ("concat", "binary"),
    ),
    "numbers for each channel, divided": (
        ["a = R.divide(x, z)", "b = R.nn.leakyrelu(a, alpha=0.1)"],
        {"x": IMAGE, "z": (6, 1, 1)},
        ("binary",),
    ),
    "hardswish": (
        [
            "a = R.add(x, R.const(3.0))",
            "b = R.clip(a, R.prim_value(0), R.prim_value(6))",
            "c = R.multiply(x, b)",
            "d = R.divide(c, R.const(6.0))",
        ],
        {"x": IMAGE},
        ("eltwise",),
    ),
    "exponential of a difference": (
        ["a = R.subtract(x, z)", "b = R.exp(a)", "c = R.sqrt(b)", "d = R.negative(c)"],
        {"x": (3, 5), "z": (3, 5)},
        ("binary",),
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_composites_compute_what_their_operators_do(planner: StandIn, case: str) -> None:
    lines, shapes, kinds = OTHERS[case]
    assert tuple(step.kind for step in checked_against_tvm(lines, shapes)) == kinds


SCORES = [
    "t = R.permute_dims(z, [0, 1, 3, 2])",
    "s = R.matmul(x, t)",
    "c = R.multiply(s, R.const(0.25))",
]
WEIGHTED = ["w = R.nn.softmax(m, axis=-1)", "a = R.matmul(w, z)"]
UNMASKED = ["w = R.nn.softmax(c, axis=-1)", WEIGHTED[1]]
QUERIES, KEYS = (2, 3, 5, 8), (2, 3, 7, 8)


@pytest.mark.parametrize(
    "mask, post_ops",
    [
        ((1, 1, 5, 7), ["linear"]),  # differs between rows, and is for all batches: a step of its own
        ((1, 1, 1, 7), ["linear", "add"]),
        ((2, 1, 1, 7), ["linear"]),  # for some of the batches of the product
        ((), ["linear"]),
    ],
)
def test_attention_in_float32_is_its_parts(
    planner: StandIn, mask: tuple[int, ...], post_ops: list[str]
) -> None:
    shapes = {"x": QUERIES, "z": KEYS, **({"u": mask} if mask else {})}
    lines = [*SCORES, "m = R.add(c, u)", *WEIGHTED] if mask else [*SCORES, *UNMASKED]
    first, *added, softmax, second = checked_against_tvm(lines, shapes, [RecoverAttention()], tf32=True)
    assert (first.kind, softmax.kind, second.kind) == ("matmul", "softmax", "matmul")
    assert [one.algorithm for one in first.post_ops] == post_ops  # type: ignore[union-attr]
    assert [one.kind for one in added] == (["binary"] if mask and "add" not in post_ops else [])


def test_attention_in_exact_float32_multiplies_by_heads(planner: StandIn) -> None:
    shapes = {"x": QUERIES, "z": KEYS, "u": (2, 1, 1, 7)}
    lines = [*SCORES, "m = R.add(c, u)", *WEIGHTED]
    steps = checked_against_tvm(lines, shapes, [RecoverAttention()])
    assert [step.kind for step in steps] == ["convolution", "binary", "softmax", "convolution"]
    assert all(step.attrs.groups == 6 for step in (steps[0], steps[-1]))  # type: ignore[union-attr]


def causal(kind: str, rows: int, columns: int) -> tvm.IRModule:
    """Attention as an operator, in which rows see columns up to their own."""
    builder = relax.BlockBuilder()
    operands = [
        relax.Var(name, relax.TensorType((1, 2, extent, 8), "float32"))
        for name, extent in (("q", rows), ("k", columns), ("v", columns))
    ]
    with builder.function("main", operands):
        with builder.dataflow():
            out = builder.emit_output(attention(Attention(0.5, kind), *operands))  # type: ignore[arg-type]
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize("kind, rows, columns", [("first", 5, 7), ("first", 7, 5), ("last", 5, 7)])
def test_causal_attention_has_a_mask_of_its_own(planner: StandIn, kind: str, rows: int, columns: int) -> None:
    mod = causal(kind, rows, columns)
    steps = checked_module(
        mod, dict(zip("qkv", (normal(1, 1, 2, n, 8) for n in (rows, columns, columns)), strict=True))
    )
    assert [step.kind for step in steps] == ["convolution", "binary", "softmax", "convolution"]


def test_rows_that_see_nothing_are_left_to_tvm(planner: StandIn) -> None:
    told: list[str] = []
    patterns = on_h200().patterns(lambda operator, reason: told.append(f"{operator}: {reason}"))
    relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(causal("last", 7, 5))
    assert any("rows may see nothing" in one for one in told), told


REFUSED = {
    # lines, shapes, words of the reason
    "uneven windows": (
        ["a = R.nn.adaptive_avg_pool2d(x, output_size=[2, 3])"],
        {"x": IMAGE},
        "windows differ in size",
    ),
    "a piece between two words": (
        ["a = R.concat((x, z), axis=1)"],
        {"x": (1, 5), "z": (1, 3)},
        "begins at byte 20",
    ),
    "a box between two words": (
        ["a = R.strided_slice(x, axes=[1], begin=[1], end=[4])"],
        {"x": (1, 5)},
        "begins at byte 4",
    ),
    "every second element": (
        ["a = R.strided_slice(x, axes=[1], begin=[0], end=[8], strides=[2])"],
        {"x": (1, 8)},
        "strides",
    ),
    "sums over other axes": (["a = R.sum(x, axis=[0])"], {"x": IMAGE}, "not the last ones"),
    "a first operand that is broadcast": (
        ["a = R.subtract(x, z)"],
        {"x": (6, 1, 1), "z": IMAGE},
        "the first operand",
    ),
    "integers": ([CONV], {"x": IMAGE, "w": FILTERS}, "element type int32"),
    "a product of which both factors are broadcast": (
        ["a = R.matmul(x, z)"],
        {"x": (2, 1, 4, 5), "z": (1, 3, 5, 6)},
        "both are broadcast",
    ),
    "a product with a vector": (["a = R.matmul(x, z)"], {"x": (4, 5), "z": (5,)}, "expected matrices"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_has_a_reason(planner: StandIn, case: str) -> None:
    lines, shapes, words = REFUSED[case]
    dtype = "int32" if case == "integers" else "float32"
    parameters = ", ".join(f'{name}: R.Tensor({shape}, "{dtype}")' for name, shape in shapes.items())
    plain = parse("\n".join([*lines, "return a"]), parameters)
    arrays = {name: normal(1, *shape).astype(dtype) for name, shape in shapes.items() if name == "w"}
    bound = relax.transform.BindParams("main", arrays)(plain)
    told: list[str] = []
    patterns = on_h200().patterns(lambda operator, reason: told.append(f"{operator}: {reason}"))
    found = relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(
        relax.transform.ConvertToDataflow(1)(bound)
    )
    assert not [f for f in found.functions.values() if f.attrs and "Composite" in f.attrs]
    assert any(words in one for one in told), told
