"""Rows of a batch in functions of Relax: those that stay apart do, by numbers, and the others are found."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from relax_programs import TARGET, normal, parse

from tvm_mxplan.operators.attention import ROTARY, Attention, attention
from tvm_mxplan.passes.sizes.row_rules import RULES
from tvm_mxplan.passes.sizes.rows_apart import why_rows_meet

X = {"x": "(n, 6, 8, 10)"}
APART = {
    "conv2d": ("R.nn.conv2d(x, w, padding=1)", {**X, "w": "(4, 6, 3, 3)"}),
    "conv2d in another layout": (
        "R.nn.conv2d(x, w, data_layout='NHWC', kernel_layout='OIHW', out_layout='NHWC')",
        {"x": "(n, 8, 10, 6)", "w": "(4, 6, 3, 3)"},
    ),
    "conv1d_transpose": ("R.nn.conv1d_transpose(x, w)", {"x": "(n, 6, 8)", "w": "(6, 4, 3)"}),
    "max_pool2d": ("R.nn.max_pool2d(x, pool_size=(2, 2))", X),
    "adaptive_avg_pool2d": ("R.nn.adaptive_avg_pool2d(x, output_size=(3, 3))", X),
    "broadcast": ("R.add(R.nn.relu(x), b)", {**X, "b": "(6, 1, 1)"}),
    "where": ("R.where(R.greater(x, y), x, y)", {**X, "y": "(n, 1, 8, 10)"}),
    "mean": ("R.mean(x, axis=[2, 3])", X),
    "mean keeps": ("R.mean(x, axis=[-1, 1], keepdims=True)", X),
    "argmax": ("R.argmax(x, axis=1)", X),
    "softmax": ("R.nn.softmax(x, axis=-3)", X),
    "cumsum": ("R.cumsum(x, axis=2)", X),
    "layer_norm": (
        "R.nn.layer_norm(x, g, b, axes=[-2, -1])",
        {**X, "g": "(8, 10)", "b": "(8, 10)"},
    ),
    "group_norm": (
        "R.nn.group_norm(x, g, b, num_groups=2, channel_axis=1, axes=[2, 3])",
        {**X, "g": "(6,)", "b": "(6,)"},
    ),
    "batch_norm": (
        "R.nn.batch_norm(x, g, b, m, v, axis=1, training=False)[0]",
        {**X, "g": "(6,)", "b": "(6,)", "m": "(6,)", "v": "(6,)"},
    ),
    "matmul by a matrix": ("R.matmul(R.reshape(x, (n, 6, 80)), w)", {**X, "w": "(80, 5)"}),
    "matmul of rows": ("R.matmul(R.reshape(x, (n, 480)), w)", {**X, "w": "(480, 5)"}),
    "matmul of two": ("R.matmul(x, R.permute_dims(x, axes=[0, 1, 3, 2]))", X),
    "heads": (
        "R.reshape(R.permute_dims(R.reshape(x, (n, 6, 2, 4, 10)), axes=[0, 2, 1, 3, 4]), (n * 2, 6, 40))",
        X,
    ),
    "there and back": ("R.reshape(R.nn.relu(R.reshape(x, (n * 6, 80))), (n, 480))", X),
    "class token": ("R.concat((R.broadcast_to(c, (n, 1, 8, 10)), x), axis=1)", {**X, "c": "(1, 1, 8, 10)"}),
    "stack and sum": ("R.sum(R.stack((x, R.exp(x)), axis=0), axis=[0])", X),
    "split": ("R.split(x, 2, axis=1)[1]", X),
    "slice": ("R.strided_slice(x, axes=[1, 3], begin=[1, 0], end=[4, 9])", X),
    "take of a table": (
        "R.take(t, R.astype(R.clip(x, 0, 3), 'int32'), axis=0)",
        {"x": "(n, 6)", "t": "(4, 3)"},
    ),
    "take from rows": ("R.take(x, R.const(2, 'int64'), axis=1)", X),
    "pad": ("R.nn.pad(x, [0, 0, 1, 1, 0, 0, 2, 0])", X),
    "flip, repeat": ("R.repeat(R.flip(x, axis=2), 2, axis=1)", X),
    "tril": ("R.tril(x)", X),
    "resize": ("R.image.resize2d(x, R.shape([4, 5]), layout='NCHW')", X),
    "zeros": ("R.add(x, R.zeros(R.shape([n, 1, 1, 10]), 'float32'))", X),
    "topk": ("R.topk(x, k=2, axis=1)[0]", X),
    "gather_elements": ("R.gather_elements(x, R.argsort(x, axis=1, dtype='int64'), axis=1)", X),
    "gather_nd of each row": (
        "R.gather_nd(x, R.astype(R.clip(i, 0, 3), 'int64'), batch_dims=1)",
        {**X, "i": "(n, 5, 2)"},
    ),
    "gather_nd of a table": (
        "R.gather_nd(t, R.astype(R.clip(i, 0, 3), 'int64'))",
        {"i": "(n, 5, 2)", "t": "(4, 7, 3)"},
    ),
    "grid_sample": (
        "R.image.grid_sample(x, R.strided_slice(x, axes=[1], begin=[0], end=[2]))",
        X,
    ),
    "axis behind": ("R.permute_dims(R.exp(R.permute_dims(x, axes=[1, 2, 0, 3])), axes=[2, 0, 1, 3])", X),
    "softmax of others": ("R.multiply(x, R.nn.softmax(w, axis=0))", {**X, "w": "(6, 8, 10)"}),
    "images of others": ("R.add(x, R.nn.max_pool2d(w, pool_size=(2, 2)))", {**X, "w": "(1, 6, 9, 11)"}),
    "zeros like it": ("R.add(x, R.zeros_like(R.exp(x)))", X),
    "one row for all": ("R.add(x, w)", {**X, "w": "(1, 6, 8, 10)"}),
    "a matrix for all": ("R.matmul(x, w)", {**X, "w": "(1, 6, 10, 3)"}),
    "no rows": ("R.add(x, R.sum(w, axis=[0]))", {**X, "w": "(7, 6, 8, 10)"}),
}
MEET = {
    "a sum over rows": ("R.add(x, R.sum(x, axis=[0], keepdims=True))", X, "over the batch"),
    "a sum of all": ("R.add(x, R.sum(x))", X, "over the batch"),
    "softmax over rows": ("R.nn.softmax(x, axis=0)", X, "over the batch"),
    "batch statistics": (
        "R.nn.batch_norm(x, g, b, m, v, axis=1, training=True)[0]",
        {**X, "g": "(6,)", "b": "(6,)", "m": "(6,)", "v": "(6,)"},
        "statistics",
    ),
    "rows by rows": (
        "R.matmul(R.reshape(x, (n, 480)), R.permute_dims(R.reshape(x, (n, 480))))",
        X,
        "each row",
    ),
    "a product over rows": (
        "R.matmul(R.permute_dims(R.reshape(x, (n, 480))), R.reshape(x, (n, 480)))",
        X,
        "sums over the batch",
    ),
    "turned, then joined": (
        "R.reshape(R.permute_dims(x, axes=[1, 0, 2, 3]), (n, 480))",
        X,
        "where other axes",
    ),
    "a concatenation of rows": ("R.concat((x, x), axis=0)", X, "joins over the batch"),
    "a row in front of rows": (
        "R.concat((c, x), axis=0)",
        {**X, "c": "(1, 6, 8, 10)"},
        "different places, or without",
    ),
    "repeated rows": ("R.repeat(x, 2, axis=0)", X, "repeats over the batch"),
    "repeated elements": ("R.repeat(x, 2)", X, "repeats all elements"),
    "more rows": ("R.nn.pad(x, [0, 1, 0, 0, 0, 0, 0, 0])", X, "adds rows"),
    "rows in front": ("R.nn.pad(x, [2, 0, 0, 0, 0, 0, 0, 0])", X, "adds rows"),
    "a triangle of rows": ("R.tril(x)", {"x": "(n, 6)"}, "masks over the batch"),
    "as many rows as it takes": ("R.add(x, w)", {**X, "w": "(7, 6, 8, 10)"}, "numbers for each row"),
    "a matrix for each row": ("R.matmul(x, w)", {**X, "w": "(7, 6, 10, 3)"}, "numbers for each row"),
    "rows as filters": ("R.nn.conv2d(w, x)", {"x": "(n, 6, 3, 3)", "w": "(2, 6, 8, 8)"}, "operand 1 has"),
    "rows taken from rows": ("R.take(x, i, axis=0)", {**X, "i": "(2,) int64"}, "takes over the batch"),
    "entries of rows": ("R.gather_nd(x, i)", {**X, "i": "(5, 2) int64"}, "in different places"),
    "a grid for all": ("R.image.grid_sample(x, w)", {**X, "w": "(7, 2, 8, 10)"}, "in different places"),
    "rows in another order": ("R.flip(x, axis=0)", X, "over the batch"),
    "a number of rows": (
        "R.divide(x, R.astype(R.shape_to_tensor(R.shape([n])), 'float32'))",
        X,
        "number of rows",
    ),
    "each row its number": (
        "R.add(R.sum(x, axis=[1, 2, 3]), R.arange(0, n, 1, 'float32'))",
        X,
        "number of rows",
    ),
    "the result's other axis": ("R.permute_dims(x, axes=[1, 0, 2, 3])", X, "the result"),
    "an input's other axis": ("R.exp(x)", {"x": "(6, n)"}, "input x"),
    "unknown": ("R.scatter_nd(x, i, x)", {"x": "(n, 6)", "i": "(n, 6, 2) int64"}, "nothing is known"),
    "rows as images": (
        "R.nn.max_pool2d(x, pool_size=(2, 2), layout='CHWN')",
        {"x": "(n, 8, 10, 6)"},
        "images CHWN",
    ),
}


def module(expression: str, shapes: dict[str, str]) -> tvm.IRModule:
    parameters = []
    for name, text in shapes.items():
        shape, _, dtype = text.partition(") ")
        shape = shape.rstrip(")") + ")"
        quoted = shape.replace("n", '"n"')
        parameters.append(f'{name}: R.Tensor({quoted}, "{dtype or "float32"}")')
    return parse(f"n = T.int64()\ny = {expression}\nreturn y", ", ".join(parameters))


def batch_of(mod: tvm.IRModule) -> tirx.Var:
    (symbol,) = relax.analysis.defined_symbolic_vars(mod["main"])
    return symbol


def numbers(shape: str, rows: int, seed: int) -> np.ndarray:
    dims = [rows if one.strip() == "n" else int(one) for one in shape.strip("()").split(",") if one.strip()]
    return normal(seed, *dims)


@pytest.mark.parametrize("case", APART)
def test_rows_stay_apart(case: str) -> None:
    expression, shapes = APART[case]
    mod = module(expression, shapes)
    assert why_rows_meet(mod["main"], batch_of(mod)) == ""
    # What stands in other rows, and how many there are, changes nothing.
    vm = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())
    given = {name: numbers(shape, 3, at) for at, (name, shape) in enumerate(shapes.items())}
    given |= {"v": abs(given["v"])} if "v" in given else {}
    more = {
        name: np.concatenate([value[:2], numbers(shape, 3, 50 + at)]) if "n" in shape else value
        for at, (name, value, shape) in enumerate(zip(given, given.values(), shapes.values(), strict=True))
    }
    few, many = (vm["main"](*map(tvm.runtime.tensor, one.values())).numpy() for one in (given, more))
    each = few.shape[0] // 3
    assert each * 5 == many.shape[0] and np.ptp(few.astype("float64")) > 0
    np.testing.assert_array_equal(few[: 2 * each], many[: 2 * each])


@pytest.mark.parametrize("case", MEET)
def test_rows_that_meet_are_found(case: str) -> None:
    expression, shapes, reason = MEET[case]
    mod = module(expression, shapes)
    assert reason in why_rows_meet(mod["main"], batch_of(mod))


def test_attention_keeps_batches_apart() -> None:
    n = tirx.Var("n", "int64")
    for mask, apart in (((n, 1, 4, 4), True), ((4, 4), True), ((4, n, 4, 4), False)):
        names = [relax.Var(name, relax.TensorType([n, 2, 4, 8], "float32")) for name in "qkv"]
        names.append(relax.Var("m", relax.TensorType(list(mask), "float32")))
        builder = relax.BlockBuilder()
        with builder.function("main", names):
            builder.emit_func_output(builder.emit(attention(Attention(0.5), *names)))
        assert (why_rows_meet(builder.get()["main"], n) == "") is apart


def test_kernels_and_branches_are_not_known() -> None:
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n, 6], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = relax.Call(relax.ExternFunc("kernel"), [x], ty_args=[x.ty])
        builder.emit_func_output(builder.emit(call))
    assert "nothing is known of it" in why_rows_meet(builder.get()["main"], n)


def test_every_rule_is_of_an_operator() -> None:
    attention(Attention(1.0), *[relax.Var(name, relax.TensorType(ndim=4)) for name in "qkv"])
    ROTARY.register()
    known = set(tvm.ir.Op.list_op_names())
    assert not [name for name in RULES if f"relax.{name}" not in known]
