"""Tensors between the regions of a function: the graph of functions written as text."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan.errors import InternalError
from tvm_mxplan.passes.borders.border_analysis import FunctionBorders, analyse
from tvm_mxplan.passes.borders.border_choice import BorderOperator, Give, Take
from tvm_mxplan.passes.borders.border_programs import Borders

PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
IMAGE = 'R.Tensor((1, 17, 4, 4), "float32")'
ONE = {"region": Borders(((LAST,),), (BLOCKED,))}


def module(body: str, regions: str, parameters: str) -> tvm.IRModule:
    lines = ["@I.ir_module", "class Module:"]
    lines += [f"    {line}" for line in regions.strip("\n").splitlines()]
    lines += ["    @R.function", f"    def main({parameters}):", "        cls = Module"]
    lines += [f"        {line}" for line in body.strip("\n").splitlines()]
    return tvm.script.from_source("\n".join(lines) + "\n")


REGION = f"""
@R.function
def region(p: {IMAGE}) -> {IMAGE}:
    return p
@R.function
def pair(p: {IMAGE}, q: {IMAGE}) -> R.Tuple({IMAGE}, {IMAGE}):
    return (p, q)
"""


def borders(
    body: str, parameters: str = f"x: {IMAGE}", regions: str = REGION, **of: Borders
) -> FunctionBorders:
    mod = module(body, regions, parameters)
    return analyse(mod["main"], {mod.get_global_var(name): one for name, one in (of or ONE).items()})


def named(found: FunctionBorders) -> dict[str, int]:
    return {var.name_hint if hasattr(var, "name_hint") else var.name: n for var, n in found.numbers.items()}


def pinned(found: FunctionBorders) -> set[str]:
    return {name for name, number in named(found).items() if number in found.graph.pinned}


def tail(found: FunctionBorders, name: str) -> float | None:
    value = found.graph.tensors[named(found)[name]].tail
    return None if value is None else float(value)


def test_a_region_an_operator_and_a_region() -> None:
    found = borders("a = cls.region(x)\nb = R.sin(a)\nc = cls.region(b)\nreturn c")
    at = named(found)
    assert set(at) == {"x", "a", "b", "c"}
    assert found.graph.takes == (Take(at["x"], (LAST,)), Take(at["b"], (LAST,)))
    assert found.graph.gives == (Give(at["a"], BLOCKED), Give(at["c"], BLOCKED))
    assert found.graph.operators == (BorderOperator((at["a"],), at["b"]),)
    assert pinned(found) == {"c"}
    assert [(tail(found, name)) for name in "xabc"] == [None, 0.0, 0.0, 0.0]
    assert {tensor.shape for tensor in found.graph.tensors} == {(1, 17, 4, 4)}
    assert {tensor.dtype for tensor in found.graph.tensors} == {"float32"}
    calls = {var.name: (call.gvar.name_hint, call.takes, call.gives) for var, call in found.calls.items()}
    assert calls == {"a": ("region", [0], [0]), "c": ("region", [1], [1])}
    assert [(var.name, number) for var, number in found.operators.items()] == [("b", 0)]
    assert not any(call.whole for call in found.calls.values())


PAIR = {"pair": Borders(((LAST,), (PLAIN, LAST)), (LAST, BLOCKED))}


def test_fields_of_a_tuple_are_the_results() -> None:
    found = borders("t = cls.pair(x, x)\na = t[1]\nb = t[0]\nc = R.add(a, b)\nreturn c", **PAIR)
    at = named(found)
    assert [give.layout for give in found.graph.gives] == [LAST, BLOCKED]
    assert (at["b"], at["a"]) == tuple(give.value for give in found.graph.gives)
    assert found.graph.operators == (BorderOperator((at["a"], at["b"]), at["c"]),)
    assert [take.layouts for take in found.graph.takes] == [(LAST,), (PLAIN, LAST)]
    assert pinned(found) == {"c"}
    (call,) = found.calls.values()
    assert (call.whole, call.takes, call.gives) == (False, [0, 1], [0, 1])


def test_a_tuple_that_is_read_as_a_whole_pins_all_of_it() -> None:
    found = borders("t = cls.pair(x, x)\na = t[1]\nb = R.sin(a)\nreturn (t, b)", **PAIR)
    (call,) = found.calls.values()
    assert call.whole
    assert found.graph.pinned == {give.value for give in found.graph.gives} | {named(found)["b"]}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = cls.region(x)\nb = R.nn.softmax(a)\nreturn b", {"a", "b"}),
        ("a = cls.region(x)\nb = a\nc = R.sin(b)\nreturn c", {"a", "c"}),
        ("a = cls.region(x)\nt = (a, x)\nreturn x", {"a", "x"}),
        (f'a = cls.region(x)\nb = R.call_pure_packed("f", a, ty_args=({IMAGE},))\nreturn x', {"a", "x"}),
        ("a = cls.region(x)\nb = cls.pair(x, a)\nreturn x", {"a", "x"}),
    ],
    ids=["another operator", "another name", "a tuple", "an unknown function", "another function"],
)
def test_whatever_else_reads_a_tensor_pins_it(body: str, expected: set[str]) -> None:
    found = borders(body)
    assert pinned(found) - {"b"} == expected - {"b"}


def test_branches_pin_what_they_read() -> None:
    body = """
a = cls.region(x)
if k:
    r = R.sin(a)
else:
    r = R.cos(x)
b = R.sin(r)
return b
"""
    found = borders(body, parameters=f'x: {IMAGE}, k: R.Tensor((), "bool")')
    assert {"a", "x", "k", "b"} <= pinned(found)
    assert [operator.operands for operator in found.graph.operators] == [(named(found)["r"],)]


NUMBERS = {
    'R.add(a, R.const(2.0, "float32"))': 2.0,
    'R.multiply(a, R.const(2.0, "float32"))': 0.0,
    'R.multiply(a, R.const(float("inf"), "float32"))': None,
    "R.clip(a, 1, 3)": 1.0,
    "R.exp(a)": 1.0,
    "R.log(a)": None,
    "R.add(a, x)": None,
    "R.add(R.exp(a), a)": 1.0,
}


@pytest.mark.parametrize("expression", NUMBERS)
def test_tails_follow_the_operators(expression: str) -> None:
    found = borders(f"a = cls.region(x)\nb = {expression}\nreturn b")
    expected = NUMBERS[expression]
    value = tail(found, "b")
    assert value == expected
    assert len(found.graph.operators) == expression.count("R.") - expression.count("R.const")


def test_tails_know_their_type() -> None:
    found = borders('a = cls.region(x)\nb = R.astype(R.exp(a), "float16")\nreturn b')
    value = found.graph.tensors[named(found)["b"]]
    assert (value.dtype, value.tail.dtype.name) == ("float16", "float16")


def constant(array: np.ndarray) -> FunctionBorders:
    """a = region(x); b = a + array"""
    mod = module("a = cls.region(x)\nreturn a", REGION, f"x: {IMAGE}")
    region, main = mod.get_global_var("region"), mod["main"]
    builder = relax.BlockBuilder()
    x = main.params[0]
    a = relax.Var("a", x.ty)
    b = relax.Var("b", x.ty)
    call = relax.Call(region, [x])
    add = builder.normalize(relax.op.add(a, relax.const(array, str(array.dtype))))
    block = relax.BindingBlock([relax.VarBinding(a, call), relax.VarBinding(b, add)])
    function = relax.Function([x], relax.SeqExpr([block], b), x.ty)
    return analyse(function, {region: ONE["region"]})


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), 3.0),
        ((1,), 3.0),
        ((1, 1, 1, 1), 3.0),
        ((17, 1, 1), 0.0),
        ((1, 17, 1, 1), 0.0),
        ((1, 17, 4, 4), 0.0),
        ((4,), None),
        ((4, 4), None),
        ((1, 4, 4), None),
        ((1, 1, 4, 1), None),
    ],
)
def test_constants_that_broadcast_take_part(shape: tuple[int, ...], expected: float | None) -> None:
    """One number stands in the tail as well; numbers for each channel are padded with zeros."""
    found = constant(np.full(shape, 3.0, "float32"))
    assert len(found.graph.operators) == 1
    assert found.graph.operators[0].operands == (named(found)["a"],)
    assert tail(found, "b") == expected
    assert pinned(found) == {"b"}


@pytest.mark.parametrize(
    "lines",
    [
        'b = R.add(R.mean(a, [0], keepdims=True), R.const([[[[1.0]]], [[[2.0]]]], "float32"))',
        "b = R.add(a, s)",
    ],
)
def test_operators_on_other_shapes_are_none(lines: str) -> None:
    """A constant or a tensor that is not of the result's shape, or larger."""
    found = borders(
        f"a = cls.region(x)\n{lines}\nreturn b", parameters=f'x: {IMAGE}, s: R.Tensor((17, 1, 1), "float32")'
    )
    assert found.graph.operators == ()
    assert "a" in pinned(found)


def test_an_operator_without_an_operand_is_none() -> None:
    found = borders('a = R.exp(R.const([1.0, 2.0], "float32"))\nreturn a')
    assert found.graph.operators == ()
    assert set(named(found)) == {"x", "a"}, "its result is a tensor like others"


def test_layouts_may_block_channels_alone_and_known_ones() -> None:
    named_size = 'R.Tensor((1, "n", 4, 4), "float32")'
    regions = f"@R.function\ndef region(p: {named_size}) -> {named_size}:\n    return p\n"
    for layout, usable in ((BLOCKED, False), (LAST, True)):
        found = borders(
            "a = cls.region(x)\nreturn R.sin(a)",
            parameters=f"x: {named_size}",
            regions=regions,
            region=Borders(((layout,),), (layout,)),
        )
        expected = layout if usable else PLAIN
        assert (found.graph.takes[0].layouts, found.graph.gives[0].layout) == ((expected,), expected)
    found = borders("a = cls.region(x)\nreturn a", region=Borders((("Abcd16a", LAST),), ("ABcd16b16a",)))
    assert (found.graph.takes[0].layouts, found.graph.gives[0].layout) == ((PLAIN, LAST), PLAIN)


def test_arguments_that_are_no_tensors_are_left_out() -> None:
    sized = 'R.Tensor(("n", 17, 4, 4), "float32")'
    head = f'@R.function\ndef region(p: {sized}, s: R.Shape(["n"])) -> {sized}:\n'
    regions = f"{head}    n = T.int64()\n    return p\n"
    body = "n = T.int64()\na = cls.region(x, R.shape([n]))\nb = R.sin(a)\nreturn b"
    found = borders(body, parameters=f"x: {sized}", regions=regions, **ONE)
    assert len(found.graph.takes) == 1
    assert found.graph.tensors[0].shape[1:] == (17, 4, 4)
    assert isinstance(found.graph.tensors[0].shape[0], int)


def test_what_has_no_shape_is_not_followed() -> None:
    found = borders(
        'a = R.call_pure_packed("f", x, ty_args=(R.Tensor(ndim=4, dtype="float32"),))\nb = R.sin(a)\nreturn b'
    )
    assert named(found) == {"x": 0}
    assert found.graph.operators == ()


def test_a_region_that_takes_what_is_not_known_is_an_error() -> None:
    unknown = 'R.Tensor(ndim=4, dtype="float32")'
    regions = f"@R.function\ndef region(p: {unknown}) -> {unknown}:\n    return p\n"
    with pytest.raises(InternalError, match="a region takes or gives"):
        borders("a = cls.region(x)\nreturn a", parameters=f"x: {unknown}", regions=regions, **ONE)
