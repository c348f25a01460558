"""Assignments to slices, one after the other: which become one join; numbers are right either way."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
import tvm
from stand_ins_of_torch import Operator, Schema
from tvm import relax

import tvm_mxplan
from tvm_mxplan.frontend.origins import OriginBuilder
from tvm_mxplan.frontend.torch import converters, graph
from tvm_mxplan.frontend.torch.node import Emitter, Node, Stated

SHAPE = (3, 6, 4)
X = np.arange(72, dtype="float32").reshape(SHAPE)
Call = tuple[str, dict[str, int], bool]
"""An operator, its operands but the tensors, and whether nothing else reads what it puts into."""


def parts_of(calls: list[Call]) -> list[np.ndarray]:
    """A tensor to put for each call."""
    found = []
    for number, (operator, operands, _) in enumerate(calls):
        where = X.copy()
        view = select(where, operands) if operator == "select_scatter.default" else cut(where, operands)
        found.append(np.full(view.shape, 100 + number, "float32"))
    return found


def select(array: np.ndarray, operands: dict[str, int]) -> np.ndarray:
    return np.moveaxis(array, operands["dim"], 0)[operands["index"]]


def cut(array: np.ndarray, operands: dict[str, int]) -> np.ndarray:
    places = [slice(None)] * array.ndim
    places[operands["dim"]] = slice(operands["start"], operands["end"], operands["step"])
    return array[tuple(places)]


def module_of(calls: list[Call], parts: list[np.ndarray]) -> tvm.IRModule:
    builder = OriginBuilder()
    params = [
        relax.Var(f"p{at}", relax.TensorType(one.shape, "float32")) for at, one in enumerate([X, *parts])
    ]
    with builder.function("main", params):
        with builder.dataflow():
            emitter, value = Emitter(builder), params[0]
            for (operator, operands, alone), part in zip(calls, params[1:], strict=True):
                sole = frozenset({"self"} if alone else ())
                stated = [Stated(SHAPE, "float32")]
                node = Node(f"aten.{operator}", {"self": value, "src": part, **operands}, stated, sole=sole)
                value = converters.TABLE[node.operator](emitter, node)
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def compiled(calls: list[Call]) -> tuple[np.ndarray, tvm_mxplan.Executable]:
    parts = parts_of(calls)
    executable = tvm_mxplan.compile(module_of(calls, parts), options={"cache": "disabled"})
    (found,) = executable(X, *parts)
    return found.numpy(), executable


def expected(calls: list[Call]) -> np.ndarray:
    result = X.copy()
    for (operator, operands, _), part in zip(calls, parts_of(calls), strict=True):
        place = select(result, operands) if operator == "select_scatter.default" else cut(result, operands)
        place[...] = part
    return result


def at(index: int, dim: int = 1, alone: bool = True) -> Call:
    return "select_scatter.default", {"dim": dim, "index": index}, alone


def within(start: int, end: int, step: int = 1, dim: int = 1, alone: bool = True) -> Call:
    return "slice_scatter.default", {"dim": dim, "start": start, "end": end, "step": step}, alone


def kinds(executable: tvm_mxplan.Executable) -> list[str]:
    return [step.kind for region in executable.report.regions for step in region.steps]


def test_all_of_an_axis_put_one_by_one_is_one_join() -> None:
    calls = [at(index) for index in range(6)]
    found, executable = compiled(calls)
    assert kinds(executable).count("concat") == 1 and "put" not in kinds(executable)
    np.testing.assert_array_equal(found, expected(calls))


def test_what_was_not_put_is_taken_from_where_it_was() -> None:
    calls = [within(1, 3), within(2, 5), at(-6)]
    found, executable = compiled(calls)
    assert "concat" in kinds(executable) and "put" not in kinds(executable)
    np.testing.assert_array_equal(found, expected(calls))


def test_what_is_read_between_is_not_joined() -> None:
    """Joining all of it again for each reader would cost the square of the puts."""
    calls = [at(index, alone=False) for index in range(3)]
    found, executable = compiled(calls)
    assert kinds(executable).count("put") == 3 and "concat" not in kinds(executable)
    np.testing.assert_array_equal(found, expected(calls))


@pytest.mark.parametrize("seed", range(12))
def test_any_sequence(seed: int) -> None:
    dice = random.Random(seed)
    calls = []
    for _ in range(dice.randint(2, 7)):
        dim = dice.choice([1, 1, 1, 2])
        extent, alone = SHAPE[dim], dice.random() < 0.8
        start = dice.randrange(extent)
        end = dice.randint(start, extent)
        calls.append(
            dice.choice(
                [
                    at(dice.randrange(-extent, extent), dim, alone),
                    within(start, end, 1, dim, alone),
                    within(start, end, dice.choice([1, 2]), dim, alone),
                ]
            )
        )
    found, _ = compiled(calls)
    np.testing.assert_array_equal(found, expected(calls))


def called(operator: str, *args: SimpleNamespace) -> SimpleNamespace:
    """A node of PyTorch's graph, which becomes a user of its arguments."""
    target = Operator(operator)
    target._schema = Schema(tuple(SimpleNamespace(name=name) for name in ("self", "src")[: len(args)]))
    node = SimpleNamespace(target=target, args=args, kwargs={}, users=[])
    for one in args:
        one.users.append(node)
    return node


@pytest.mark.parametrize(
    "readers, sole",
    [
        ([], {"self", "src"}),
        (["aten.copy.default"], {"self", "src"}),
        (["aten.slice.Tensor", "aten.select.int", "aten.copy.default"], {"self", "src"}),
        (["aten.tanh.default"], {"src"}),
        (["aten.select.int", "aten.tanh.default"], {"src"}),
    ],
)
def test_a_copy_does_not_read_what_it_replaces(readers: list[str], sole: set[str]) -> None:
    """Of each chain of readers only the last decides, where those before cut parts out."""
    value, part = called("aten.zeros.default"), called("aten.ones.default")
    put = called("aten.select_scatter.default", value, part)
    other = value
    for name in readers:
        more = [called("aten.ones.default")] if "copy" in name else []
        other = called(name, other, *more)
    assert graph._sole_operands(put) == sole


def test_a_copy_reads_what_it_puts() -> None:
    value, part = called("aten.zeros.default"), called("aten.ones.default")
    put = called("aten.select_scatter.default", value, part)
    called("aten.copy.default", called("aten.zeros.default"), value)
    assert graph._sole_operands(put) == {"src"}
