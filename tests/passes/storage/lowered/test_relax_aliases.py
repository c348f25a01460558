"""Variables stand for allocations: each kind of binding of a lowered function, and what escapes."""

from __future__ import annotations

import re

import pytest
import tvm
from tvm import relax

from tvm_mxplan.passes.storage.relax_aliases import (
    Alias,
    Branch,
    Node,
    Places,
    StorageStep,
    Trace,
    name_of,
    trace_function,
    union,
)

HEAD = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def f(a: T.Buffer((T.int64(24),), "float32"), b: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("f"):
                v = T.axis.spatial(T.int64(24), i)
                b[v] = a[v]

    @R.function(private=True)
    def pick(a: R.Tensor((24,), "float32")) -> R.Tensor((24,), "float32"):
        return a

    @R.function(pure=False)
    def main(x: R.Tensor((24,), "float32"), c: R.Tensor((), "bool")):
        cls = Module
"""
MAKE = '{} = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))'
LOOK = '_ = R.call_packed("look", {}, ty_args=(R.Tensor((24,), "float32"),))'
TENSOR = 'R.Tensor((24,), "float32")'


def trace(body: str) -> Trace:
    """The trace of ``main``; ``new a`` is an allocation of 24 numbers, ``look a, b`` a call of somebody."""
    body = re.sub(r"new (\w+)", lambda made: MAKE.format(made[1]), body.strip("\n"))
    body = re.sub(r"look (.*)", lambda looked: LOOK.format(looked[1]), body)
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    mod = tvm.script.from_source(HEAD + lines, check_well_formed=False)
    return trace_function(mod, mod["main"])


def steps(of: Trace, nodes: tuple[Node, ...] | None = None) -> list[StorageStep]:
    found: list[StorageStep] = []
    for node in of.nodes if nodes is None else nodes:
        if isinstance(node, StorageStep):
            found.append(node)
        elif isinstance(node, Branch):
            found += [*steps(of, node.then), *steps(of, node.otherwise)]
    return found


def names(of: Trace, alias: Alias) -> object:
    """``{"a"}`` where an alias may be a, ``"a"`` where it is all of it, and tuples of those."""
    if isinstance(alias, Places):
        found = {of.tensors[number].var.name for number in alias.tensors}
        return found.pop() if alias.exact else found
    return tuple(names(of, field) for field in alias)


def last_arguments(body: str) -> list[object]:
    """The places of the last call's arguments."""
    of = trace(body)
    return [names(of, arg) for arg in steps(of)[-1].args]


def escaping(body: str) -> set[str]:
    of = trace(body)
    return {of.tensors[number].var.name for number in of.escaping}


SAME = f"""
new a
cls.f(x, a)
b = a
c1 = R.memory.ensure_zero_offset(b)
d = R.reshape(c1, R.shape([24]))
e = R.call_packed("vm.builtin.reshape", d, R.shape([24]), ty_args=({TENSOR},))
new z
look e, z
return x
"""
PICKED = f"""
new a
new b
p = R.call_packed("somebody", a, b, ty_args=({TENSOR},))
new z
look p, z
return x
"""
OURS = """
new a
p = cls.pick(a)
new z
look p, z
return x
"""
TUPLES = """
new a
new b
t = (a, (x, b))
u = t[1]
v = u[1]
w = t[0]
cls.f(w, v)
return x
"""
VIEW = """
new a
p = R.memory.view(a, R.shape([12]), R.dtype("float32"), R.prim_value(0))
new z
look p, z
return x
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (SAME, ["a", "z"]),
        (PICKED, [{"a", "b"}, "z"]),
        (OURS, [{"a"}, "z"]),
        (TUPLES, ["a", "b"]),
        (VIEW, [{"a"}, "z"]),
        ("new z\ncls.f(x, z)\nreturn x", [set(), "z"]),
    ],
    ids=["the same bytes", "an unknown function", "a function of ours", "tuples", "a part", "no allocation"],
)
def test_where_arguments_are(body: str, expected: list[object]) -> None:
    assert last_arguments(body) == expected
    assert escaping(body) == set()


@pytest.mark.parametrize(
    "call",
    [
        "R.reshape(a, R.shape([24]))",
        "R.memory.ensure_zero_offset(a)",
        "R.builtin.stop_lift_params(a)",
        f'R.call_packed("vm.builtin.reshape", a, R.shape([24]), ty_args=({TENSOR},))',
        f'R.call_packed("vm.builtin.ensure_zero_offset", a, ty_args=({TENSOR},))',
    ],
)
def test_whatever_gives_its_operand_is_all_of_it_and_no_call(call: str) -> None:
    of = trace(f"new a\nb = {call}\nlook b\nreturn x")
    assert [[names(of, arg) for arg in step.args] for step in steps(of)] == [["a"]]


def test_a_part_is_one_of_what_it_is_made_from() -> None:
    """The other operands of a view are numbers, or hold nothing."""
    of = trace('new a\nnew b\np = R.memory.view(a, R.shape([12]), R.dtype("float32"))\nlook p, b\nreturn x')
    assert [names(of, arg) for arg in steps(of)[-1].args] == [{"a"}, "b"]


def test_a_kernel_writes_into_its_arguments() -> None:
    of = trace("new a\ncls.f(x, a)\nreturn x")
    assert [names(of, arg) for arg in steps(of)[0].args] == [set(), "a"]
    assert steps(of)[0].touches == {0}
    assert len(of.nodes) == 2


def test_sizes_are_copies() -> None:
    """Shapes and numbers that a call reads off a tensor do not hold it."""
    body = """
new a
s = R.call_packed("shape_of", a, ty_args=(R.Shape(ndim=1),))
n = R.call_packed("number_of", a, ty_args=(R.prim("int64"),))
q = R.call_packed("somebody", s, n, ty_args=(R.Tensor((24,), "float32"),))
return x
""".replace('R.prim("int64")', 'R.Prim("int64")')
    of = trace(body)
    assert [union(step.args) for step in steps(of)] == [{0}, {0}, frozenset()]
    assert of.escaping == set()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("new a\ncls.f(x, a)\nreturn a", {"a"}),
        ("new a\nnew b\ncls.f(x, a)\nreturn (x, (b, x))", {"b"}),
        ("new a\nb = R.memory.ensure_zero_offset(a)\nreturn b", {"a"}),
        (f'new a\np = R.call_packed("somebody", a, ty_args=({TENSOR},))\nreturn p', {"a"}),
        ("new a\nnew b\nt = (a, b)\nreturn t[1]", {"b"}),
        ("new a\nr = R.exp(a)\nreturn x", {"a"}),
        ("new a\nnew b\nif c:\n    r = a\nelse:\n    r = b\nreturn r", {"a", "b"}),
    ],
    ids=["returned", "in tuples", "by another name", "by an unknown call", "a field", "kept", "by a branch"],
)
def test_what_is_returned_or_kept_escapes(body: str, expected: set[str]) -> None:
    assert escaping(body) == expected


FORK = """
new a
cls.f(x, a)
if c:
    new b
    cls.f(a, b)
    if c:
        new d
        cls.f(b, d)
        q = (d, b)
    else:
        new e
        cls.f(b, e)
        q = (e, b)
    r = q
else:
    new g
    cls.f(a, g)
    r = (g, a)
s = r[0]
t = r[1]
cls.f(s, t)
return x
"""


def test_branches() -> None:
    of = trace(FORK)
    assert [tensor.var.name for tensor in of.tensors] == ["a", "b", "d", "e", "g"]
    assert [tensor.branches for tensor in of.tensors] == [
        (),
        ((0, True),),
        ((0, True), (1, True)),
        ((0, True), (1, False)),
        ((0, False),),
    ]
    assert [names(of, arg) for arg in steps(of)[-1].args] == [{"d", "e", "g"}, {"b", "a"}]
    (outer,) = [node for node in of.nodes if isinstance(node, Branch)]
    (inner,) = [node for node in outer.then if isinstance(node, Branch)]
    # The inner results are one of two, so the outer ones are nothing exactly.
    assert sorted(inner.joined) == [(1, 1), (2, 3)]
    assert outer.joined == ()
    assert [len(node) for node in (outer.then, outer.otherwise, inner.then, inner.otherwise)] == [3, 2, 2, 2]


def test_the_condition_is_touched() -> None:
    body = """
new a
cls.f(x, a)
k = R.call_packed("decide", a, ty_args=(R.Tensor((), "bool"),))
if k:
    r = R.shape([1])
else:
    r = R.shape([2])
return x
"""
    (fork,) = [node for node in trace(body).nodes if isinstance(node, Branch)]
    assert (fork.touches, fork.joined) == ({0}, ())


def test_results_of_different_forms_are_one_of_all() -> None:
    """A pair on one side, one tensor on the other."""
    body = "new a\nnew b\nnew d\nif c:\n    r = (a, b)\nelse:\n    r = d\nlook r, x\nreturn x"
    of = trace(body)
    assert names(of, steps(of)[-1].args[0]) == {"a", "b", "d"}
    (fork,) = [node for node in of.nodes if isinstance(node, Branch)]
    assert fork.joined == ()


def test_a_function_inside_keeps_what_it_sees() -> None:
    body = """
new a
new b
@R.function
def inner(y: R.Tensor((24,), "float32")):
    r = R.add(y, a)
    return r
cls.f(x, b)
return x
"""
    assert escaping(body) == {"a"}


def test_names_of_calls() -> None:
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    assert name_of(relax.op.exp(x)) == "relax.exp"
    assert name_of(tvm.ir.Call(relax.ExternFunc("somebody"), [x])) == "somebody"
    assert name_of(tvm.ir.Call(tvm.ir.GlobalVar("f"), [x])) == ""


def test_all_of_a_nested_alias() -> None:
    a, b, c = (Places(frozenset([number]), True) for number in range(3))
    assert union([a, (b, (c, Places()))]) == {0, 1, 2}
    assert union([]) == union([(), Places()]) == frozenset()
