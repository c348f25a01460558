"""Relay's JSON: what the nodes of a program may be, how deep they go, and faults with their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from relay_printer import Call, Const, Item, Param, Tup, _Graph, as_json

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.relay import json_program
from tvm_mxplan.frontend.relay.importer import import_program

X = Param("x", (2, 3))
VALUE = np.random.default_rng(8).standard_normal((2, 3), np.float32)


def imported(text: str) -> Any:
    return import_program(*json_program.read(text, "net.json"), {})


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    ex = tvm_mxplan.compile(imported(text), "llvm -opt-level=0", options={"cache": "disabled"})
    return [result.numpy() for result in ex(*inputs)]


def test_constants_of_every_type_tuples_and_boxed_numbers() -> None:
    values = [
        VALUE,
        np.asarray(2.5, np.float32),
        np.asarray([[True, False, True]]),
        np.asarray([3, -4, 5], np.int64),
        np.asarray([1.5, 0, 2], np.float16),
    ]
    parts = Call("split", [X], {"indices_or_sections": [1], "axis": 1})
    halves = Call("split", [Call("concatenate", [Tup([X, X])], {"axis": 0})], {"indices_or_sections": 2})
    results = [Call("add", [X, Const(values[0])]), Call("multiply", [X, Const(values[1])])]
    results += [Call("copy", [Const(value)]) for value in values[2:]]
    results += [Item(parts, 1), Item(halves, 1)]
    found = run(as_json([X], Tup(results)), VALUE)
    expected = [VALUE + VALUE, VALUE * np.float32(2.5), *values[2:], VALUE[:, 1:], VALUE]
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.dtype == wanted.dtype
        assert np.array_equal(actual, wanted)


def test_defaults_are_what_is_written() -> None:
    src = Param("x", (1, 6, 5, 5))
    dst = Call("nn.max_pool2d", [src], {"pool_size": [3, 3], "padding": [1, 1]})
    value = np.random.default_rng(2).standard_normal((1, 6, 5, 5), np.float32)
    (found,) = run(as_json([src], Call("nn.lrn", [dst])), value)
    padded = np.pad(value, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    most = np.stack([padded[..., a : a + 5, b : b + 5] for a in range(3) for b in range(3)]).max(0)
    squares = np.pad(most**2, [(0, 0), (2, 2), (0, 0), (0, 0)])
    totals = sum(squares[:, at : at + 6] for at in range(5))
    assert np.allclose(found, most / (2 + 0.0001 * totals / 5) ** 0.75, atol=1e-6)


def test_a_chain_of_thousands_takes_no_stack() -> None:
    expr: Any = X
    for _ in range(6000):
        expr = Call("nn.relu", [expr])
    assert len(imported(as_json([X], expr))["main"].body.blocks[0].bindings) >= 6000


def lets(count: int) -> str:
    graph = _Graph()
    vid = graph.add("relay.Id", {"name_hint": str(graph.string("x"))})
    x = graph.expr("relay.Var", vid=vid, type_annotation=graph.type(X))
    op, names = graph.add("Op", repr_str="nn.relu"), [x]
    values = []
    for number in range(count):
        args = graph.array([names[-1]])
        values.append(graph.expr("relay.Call", op=op, args=args, attrs=0, type_args=graph.array([])))
        own = graph.add("relay.Id", {"name_hint": str(graph.string(f"v{number}"))})
        names.append(graph.expr("relay.Var", vid=own, type_annotation=0))
    body = names[-1]
    for name, value in zip(reversed(names[1:]), reversed(values), strict=True):
        body = graph.expr("relay.Let", var=name, value=value, body=body)
    empty = graph.array([])
    function = graph.expr(
        "relay.Function", params=graph.array([x]), body=body, ret_type=0, type_params=empty, attrs=0
    )
    return graph.text(function)


def test_lets_and_a_function_at_the_root() -> None:
    assert np.allclose(run(lets(3), VALUE)[0], np.maximum(VALUE, 0))
    assert len(imported(lets(4000))["main"].body.blocks[0].bindings) >= 4000


def node_of(data: dict[str, Any], kind: str) -> int:
    return next(at for at, node in enumerate(data["nodes"]) if node["type_key"] == kind)


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    dst = Call("nn.softmax", [Call("add", [X, Const(VALUE)])], {"axis": 1})
    data = json.loads(as_json([X], dst))
    change(data)
    return json.dumps(data)


def setting(kind: str, field: str, value: str) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["nodes"][node_of(data, kind)]["attrs"][field] = value

    return change


def looped(data: dict[str, Any]) -> None:
    call = node_of(data, "relay.Call")
    args = int(data["nodes"][call]["attrs"]["args"])
    data["nodes"][args]["data"] = [call]


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda data: data.pop("nodes"), "expected root and nodes"),
        (lambda data: data.update(root=10**6), "there are"),
        (lambda data: data.update(root="x"), "names the node 'x'"),
        (lambda data: data.update(b64ndarrays=[]), "b64ndarrays has not as many"),
        (lambda data: data.update(b64ndarrays=["@@"]), "no bytes in base64"),
        (lambda data: data.update(b64ndarrays=["AAAA"]), "a tensor of TVM"),
        (lambda data: data.update(b64ndarrays=[data["b64ndarrays"][0][:80]]), "truncated"),
        (
            lambda data: data["nodes"][data["root"]].update(type_key="PrimFunc"),
            "'PrimFunc'; expected a Relay module",
        ),
        (lambda data: data["nodes"].__setitem__(node_of(data, "relay.Call"), 3), "has no type_key"),
        (setting("relay.Call", "args", "-1"), "names the node '-1'"),
        (setting("relay.Call", "args", "1"), "expected an Array"),
        (setting("relay.attrs.SoftmaxAttrs", "axis", "one"), "expected a number as axis, got 'one'"),
        (setting("relay.attrs.SoftmaxAttrs", "axis", "7"), "nn.softmax: axis = 7"),
        (setting("relay.Var", "type_annotation", "0"), "no tensor's type"),
        (setting("relay.TensorType", "dtype", "float99"), "float99"),
        (looped, "is part of itself"),
    ],
)
def test_faults(change: Callable[[dict[str, Any]], object], words: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        imported(changed(change))
    assert str(error.value).startswith("net.json") and "\n" not in str(error.value)
    assert words in str(error.value)


def test_an_expression_that_is_not_read() -> None:
    def change(data: dict[str, Any]) -> None:
        data["nodes"][node_of(data, "relay.Call")]["type_key"] = "relay.Match"

    with pytest.raises(UnsupportedError, match=r"net.json: node \d+: is a 'relay.Match'; expected calls"):
        imported(changed(change))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "[" * 100000, '{"root": 0, "nodes": []}'])
def test_what_is_no_such_graph(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^net.json: "):
        imported(text)
