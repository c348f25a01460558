"""The check of a rewritten function: right ones pass, and each thing that can be wrong is told by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import relax_programs as rp
import tvm
from storage_bodies import BUSY, X
from tvm import relax, tirx

from tvm_mxplan.passes.storage import StorageRewrite
from tvm_mxplan.passes.storage.storage_check import _count_branches, _in_units, _paths, check_storage

BRANCHES = """
a = R.permute_dims(x)
if c:
    b = R.permute_dims(a)
    r = R.exp(b)
else:
    e = R.flip(a, 0)
    r = R.permute_dims(e)
s = R.flip(r, 0)
return R.exp(s)
"""

Change = Callable[[relax.VarBinding], list[relax.VarBinding]]


def pair(body: str, parameters: str = X) -> tuple[relax.Function, relax.Function]:
    mod = rp.lower(rp.parse(body, parameters))
    return mod["main"], StorageRewrite()(mod)["main"]


def changed(function: relax.Function, change: Change) -> relax.Function:
    """``function`` with each binding replaced by what ``change`` makes of it, branches included."""
    return relax.Function(
        function.params, sequence(function.body, change), function.ret_ty, function.is_pure, function.attrs
    )


def sequence(seq: relax.SeqExpr, change: Change) -> relax.SeqExpr:
    blocks = []
    for block in seq.blocks:
        bindings = []
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.If):
                then, otherwise = (sequence(side, change) for side in (value.true_branch, value.false_branch))
                binding = relax.VarBinding(binding.var, relax.If(value.cond, then, otherwise))
            bindings += change(binding)
        blocks.append(relax.BindingBlock(bindings))
    return relax.SeqExpr(blocks, seq.body)


def is_call(binding: relax.VarBinding, name: str) -> bool:
    value = binding.value
    return isinstance(value, tvm.ir.Call) and getattr(value.op, "name", "") == name


def placed(function: relax.Function) -> list[tvm.ir.Var]:
    """The tensors that stand in the arena, in the order of the text."""
    found: list[tvm.ir.Var] = []

    def note(binding: relax.VarBinding) -> list[relax.VarBinding]:
        if is_call(binding, "relax.memory.alloc_tensor"):
            found.append(binding.var)
        return [binding]

    changed(function, note)
    return found


def moved(function: relax.Function, which: tvm.ir.Var, distance: int) -> relax.Function:
    """``function`` with one tensor at another offset."""

    def change(binding: relax.VarBinding) -> list[relax.VarBinding]:
        if binding.var.same_as(which):
            storage, offset, shape, dtype, *rest = binding.value.args
            args = [storage, tirx.IntImm("int64", int(offset.value) + distance), shape, dtype, *rest]
            value = binding.value
            return [
                relax.VarBinding(
                    binding.var, tvm.ir.Call(value.op, args, value.attrs, value.ty_args, value.span, value.ty)
                )
            ]
        return [binding]

    return changed(function, change)


@pytest.fixture(scope="module")
def busy() -> tuple[relax.Function, relax.Function]:
    before, after = pair(BUSY)
    assert len(placed(after)) >= 2
    return before, after


@pytest.fixture(scope="module")
def forked() -> tuple[relax.Function, relax.Function]:
    return pair(BRANCHES, X + ', c: R.Tensor((), "bool")')


def test_right_ones_pass(busy, forked):
    assert check_storage(*busy) == []
    assert check_storage(*forked) == []
    assert check_storage(busy[0], busy[0]) == []


@pytest.mark.parametrize("distance", [1, 32, -1])
def test_tensors_begin_at_multiples_of_64(busy, distance):
    before, after = busy
    which = placed(after)[1]
    reasons = check_storage(before, moved(after, which, distance))
    assert f"{which.name} takes bytes" in reasons[0]
    assert "expected a multiple of 64 and an end inside" in reasons[0]


def test_tensors_stay_inside_of_their_storage(busy):
    before, after = busy
    for which in placed(after):
        for distance in (-(1 << 20), 1 << 20):
            reasons = check_storage(before, moved(after, which, distance))
            assert f"{which.name} takes bytes" in reasons[0]


def test_a_storage_of_exactly_the_height_does(busy):
    """One byte less does not."""
    before, after = busy
    (size,) = rp.storages(tvm.IRModule({"main": after}))

    def sized(nbytes: int) -> relax.Function:
        def change(binding: relax.VarBinding) -> list[relax.VarBinding]:
            if is_call(binding, "relax.memory.alloc_storage"):
                storage = relax.op.memory.alloc_storage(relax.ShapeExpr([nbytes]), 0, "global", "uint8")
                return [relax.VarBinding(binding.var, storage)]
            return [binding]

        return changed(after, change)

    assert check_storage(before, sized(size)) == []
    assert f"of a storage of {size - 1}" in check_storage(before, sized(size - 1))[0]


def test_operands_that_something_else_has_taken(busy):
    """Of two tensors of one life on the same bytes, a call reads one that is not there any more."""
    before, after = busy
    tensors = placed(after)
    offsets = {}

    def note(binding: relax.VarBinding) -> list[relax.VarBinding]:
        if binding.var in tensors:
            offsets[binding.var] = int(binding.value.args[1].value)
        return [binding]

    changed(after, note)
    refused = []
    for which, other in itertools.permutations(tensors, 2):
        wrong = moved(after, which, offsets[other] - offsets[which])
        refused += [reason for reason in check_storage(before, wrong) if offsets[other] != offsets[which]]
    assert any("reads" in reason and "whose bytes something else has taken" in reason for reason in refused)
    assert any("over its own operand" in reason for reason in refused)


@pytest.mark.parametrize("side", ["true_branch", "false_branch"])
def test_a_storage_in_a_branch_is_refused(forked, side):
    before, after = forked

    def inward(seq: relax.SeqExpr, storage: relax.VarBinding) -> relax.SeqExpr:
        return relax.SeqExpr([relax.BindingBlock([storage]), *seq.blocks], seq.body)

    kept: list[relax.VarBinding] = []

    def change(binding: relax.VarBinding) -> list[relax.VarBinding]:
        if is_call(binding, "relax.memory.alloc_storage"):
            kept.append(binding)
            return [binding]
        value = binding.value
        if isinstance(value, relax.If):
            again = relax.VarBinding(relax.Var("again", kept[0].var.ty), kept[0].value)
            sides = {name: getattr(value, name) for name in ("true_branch", "false_branch")}
            sides[side] = inward(sides[side], again)
            branch = relax.If(value.cond, sides["true_branch"], sides["false_branch"])
            return [relax.VarBinding(binding.var, branch)]
        return [binding]

    assert "again is allocated in a branch, not at the entry" in check_storage(before, changed(after, change))


def test_what_does_not_dominate_is_refused(busy, forked):
    """A tensor before its storage, an alias before its tensor."""
    before, after = busy
    storage = next(
        binding
        for block in after.body.blocks
        for binding in block.bindings
        if is_call(binding, "relax.memory.alloc_storage")
    )
    elsewhere = relax.Var("elsewhere", storage.var.ty)

    def rename(binding: relax.VarBinding) -> list[relax.VarBinding]:
        if binding.var.same_as(storage.var):
            return [relax.VarBinding(elsewhere, storage.value)]
        return [binding]

    reasons = check_storage(before, changed(after, rename))
    assert reasons[0].endswith("stands in a storage that does not dominate it")


def test_what_is_returned_stands_outside(busy):
    """The function that returns what it has in its arena."""
    before, after = busy
    inner = next(
        binding.var
        for block in before.body.blocks
        for binding in block.bindings
        if binding.var in placed(after)
    )
    returning = relax.Function(
        before.params, relax.SeqExpr(before.body.blocks, inner), inner.ty, before.is_pure, before.attrs
    )
    assert f"{inner.name} is returned and stands in an arena" in check_storage(returning, after)


def test_every_side_of_every_branch_is_walked(forked):
    """Each tensor of a branch moved onto what that branch reads: the other side would not see it."""
    before, after = forked
    tensors = placed(after)
    assert len(tensors) >= 3
    refused = {
        which.name
        for which in tensors
        for distance in (-128, 128)
        for reason in check_storage(before, moved(after, which, distance))
        if "taken" in reason or "operand" in reason
    }
    assert len(refused) >= 2


def test_sizes_read_off_a_tensor_do_not_hold_it() -> None:
    """A tensor whose shape was read may be overwritten before the shape is used."""
    body = """
a = R.permute_dims(x)
s = R.shape_of(a)
b = R.permute_dims(a)
e = R.permute_dims(b)
c = R.permute_dims(e)
d = R.call_pure_packed("with_shape", c, s, ty_args=(R.Tensor((4, 6), "float32"),))
return R.permute_dims(d)
"""
    before, after = pair(body)
    assert check_storage(before, after) == []
    assert len(placed(after)) >= 2


# --- details -----------------------------------------------------------------------------------------------


def test_branches_are_counted_at_every_depth() -> None:
    body = """
if c:
    a = R.exp(x)
    if c:
        b = R.exp(a)
    else:
        b = R.tanh(a)
    r = b
else:
    r = R.exp(x)
if c:
    s = R.exp(r)
else:
    if c:
        t = R.exp(r)
    else:
        t = R.tanh(r)
    s = t
return s
"""
    mod = rp.parse(body, X + ', c: R.Tensor((), "bool")')
    assert _count_branches(mod["main"].body) == 4
    assert _count_branches(rp.parse("return R.exp(x)", X)["main"].body) == 0


def taken(branches: int) -> list[tuple[bool, ...]]:
    return [tuple(itertools.islice(path, branches)) for path in _paths(branches)]


@pytest.mark.parametrize("branches", [0, 1, 2, 3])
def test_few_branches_are_walked_in_every_way(branches: int) -> None:
    assert sorted(taken(branches)) == sorted(itertools.product((False, True), repeat=branches))


@pytest.mark.parametrize("branches", [4, 20])
def test_of_many_ways_some_are_walked(branches: int) -> None:
    """All the one way, all the other, and six that are neither."""
    found = taken(branches)
    assert len(found) == 8
    assert found[:2] == [(True,) * branches, (False,) * branches]
    assert all(len(path) == branches for path in found)
    assert len(set(found)) >= 5
    assert found == taken(branches)
    shares = [sum(path) / branches for path in found[2:]]
    assert 0.25 < sum(shares) / len(shares) < 0.75


def test_offsets_in_units_of_an_expression() -> None:
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    number = tirx.IntImm("int64", 96)
    assert _in_units(number, None) == 96
    assert _in_units(n * number, n) == 96
    assert _in_units(n, n) == 1
    assert _in_units(tirx.IntImm("int64", 0), n) == 0
    assert _in_units(number, n) == -1
    assert _in_units(m * number, n) == -1
    assert _in_units(n + number, n) == -1
    assert _in_units(n * number, None) == -1
    bounded = tirx.Select(n <= 8, number, tirx.IntImm("int64", 0))
    assert _in_units(bounded, None) == 96
    assert _in_units(tirx.Select(n <= 8, bounded, tirx.IntImm("int64", 0)), None) == 96
