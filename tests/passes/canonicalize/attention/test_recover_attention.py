"""``RecoverAttention``: every way of writing attention is one operator; what is only like it stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import tvm
from dataflow_text import calls
from tvm import relax

import tvm_mxplan
from tvm_mxplan.operators.attention import NAME, attention_of, parts
from tvm_mxplan.passes.canonicalize import RecoverAttention

op = relax.op
N, H, S, T, D, W = 2, 3, 7, 11, 17, 5
SCALE = 0.25
Emit = Callable[[relax.Expr], relax.Expr]


class Parts:
    """A function being written: its operands, and the pieces that attention is made of."""

    def __init__(self, groups: int = H, mask: Sequence[int] | None = None, flat: bool = False) -> None:
        lead = (N,) if flat else (N, H)
        heads = (N,) if flat else (N, groups)
        self.builder = relax.BlockBuilder()
        self.q = self._input("q", (*lead, S, D))
        self.k = self._input("k", (*heads, T, D))
        self.v = self._input("v", (*heads, T, W))
        self.mask = None if mask is None else self._input("mask", mask)
        self.rank = len(lead) + 2

    @staticmethod
    def _input(name: str, shape: Sequence[int]) -> relax.Var:
        return relax.Var(name, relax.TensorType(shape, "float32"))

    def emit(self, expr: relax.Expr) -> relax.Expr:
        return self.builder.emit(expr)

    def turned(self) -> relax.Expr:
        return self.emit(op.permute_dims(self.k, [*range(self.rank - 2), self.rank - 1, self.rank - 2]))

    def scores(self) -> relax.Expr:
        return self.emit(op.matmul(self.q, self.turned()))

    def scaled(self) -> relax.Expr:
        return self.emit(op.multiply(self.scores(), number(SCALE)))

    def weighted(self, scores: relax.Expr) -> relax.Expr:
        return self.emit(op.matmul(self.emit(op.nn.softmax(scores, -1)), self.v))


def number(value: float) -> relax.Expr:
    return relax.const(value, "float32")


def module(p: Parts, write: Callable[[Parts], relax.Expr | Sequence[relax.Expr]]) -> tvm.IRModule:
    params = [p.q, p.k, p.v, *([p.mask] if p.mask is not None else [])]
    with p.builder.function("main", params):
        with p.builder.dataflow():
            result = p.builder.emit_output(write(p))
        p.builder.emit_func_output(result)
    return p.builder.get()


def names(mod: tvm.IRModule) -> list[str]:
    return sorted(str(call.op.name).removeprefix("relax.") for call in calls(mod))


def operands(p: Parts) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    given = [p.q, p.k, p.v, *([p.mask] if p.mask is not None else [])]
    return [
        random.standard_normal([int(dim) for dim in one.ty.shape.values]).astype("float32") for one in given
    ]


def run_by_tvm(mod: tvm.IRModule, arrays: Sequence[np.ndarray]) -> np.ndarray:
    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return machine["main"](*[tvm.runtime.tensor(array) for array in arrays]).numpy()


def result_of(executable: tvm_mxplan.Executable, arrays: Sequence[np.ndarray]) -> np.ndarray:
    (result,) = executable(*arrays)
    return result.numpy()


def assert_runs_as(mod: tvm.IRModule, written: tvm.IRModule, arrays: Sequence[np.ndarray]) -> None:
    """Assert that attention is one step of oneDNN's, and that it gives what TVM makes of a module."""
    executable = tvm_mxplan.compile(mod)
    kinds = [step.kind for region in executable.report.regions for step in region.steps]
    assert kinds.count("attention") == 1 and not {"matmul", "softmax"} & set(kinds)
    expected = run_by_tvm(written, arrays)
    np.testing.assert_allclose(result_of(executable, arrays), expected, rtol=2e-6, atol=2e-6)


def causal_choice(p: Parts) -> relax.Expr:
    seen = relax.const(np.tri(S, T, 4, dtype=bool))
    return p.weighted(p.emit(op.where(seen, p.scaled(), number(-np.inf))))


def hidden_choice(p: Parts) -> relax.Expr:
    hidden = relax.const(~np.tri(S, T, 4, dtype=bool))
    return p.weighted(p.emit(op.where(hidden, number(-1e30), p.scaled())))


def nan_to_zero(p: Parts) -> relax.Expr:
    weights = p.emit(op.nn.softmax(p.scaled(), -1))
    return p.emit(op.matmul(p.emit(op.where(p.emit(op.isnan(weights)), number(0.0), weights)), p.v))


def dead_to_zero(p: Parts) -> relax.Expr:
    """Rows of which the mask leaves nothing are 0, as in ONNX's definition of its operator."""
    weights = p.emit(op.nn.softmax(p.emit(op.add(p.scaled(), p.mask)), -1))
    most = p.emit(op.max(p.mask, -1, keepdims=True))
    dead = p.emit(op.less(most, number(0.5)))
    return p.emit(op.matmul(p.emit(op.where(dead, number(0.0), weights)), p.v))


def roots(p: Parts) -> relax.Expr:
    """The root of the scale in front of both operands, keys before they are turned."""
    q = p.emit(op.multiply(p.q, number(0.5)))
    k = p.emit(op.multiply(number(0.5), p.k))
    return p.weighted(p.emit(op.matmul(q, p.emit(op.permute_dims(k, [0, 1, 3, 2])))))


def roots_of_turned(p: Parts) -> relax.Expr:
    q = p.emit(op.divide(p.q, number(2.0)))
    return p.weighted(p.emit(op.matmul(q, p.emit(op.divide(p.turned(), number(2.0))))))


def turned_in_three(p: Parts) -> relax.Expr:
    flat = p.emit(op.reshape(p.k, [N * H, T, D]))
    turned = p.emit(op.reshape(p.emit(op.permute_dims(flat, [0, 2, 1])), [N, H, D, T]))
    return p.weighted(p.emit(op.multiply(p.emit(op.matmul(p.q, turned)), number(SCALE))))


def masked(p: Parts) -> relax.Expr:
    return p.weighted(p.emit(op.add(p.scaled(), p.mask)))


def masked_first(p: Parts) -> relax.Expr:
    """The scale behind the mask."""
    return p.weighted(p.emit(op.multiply(p.emit(op.add(p.mask, p.scores())), number(SCALE))))


def masked_twice(p: Parts) -> relax.Expr:
    bias = relax.const(np.linspace(-1, 1, H * S * T, dtype="float32").reshape(1, H, S, T))
    return p.weighted(p.emit(op.add(bias, p.emit(op.add(p.scaled(), p.mask)))))


def windowed(images: int) -> Callable[[Parts], relax.Expr]:
    """A mask for each window, added while images and windows are apart."""

    def write(p: Parts) -> relax.Expr:
        bias = relax.const(np.linspace(-1, 1, H * S * T, dtype="float32").reshape(1, H, S, T))
        scores = p.emit(op.add(p.scaled(), bias))
        apart = p.emit(op.reshape(scores, [images, N // images, H, S, T]))
        added = p.emit(op.add(apart, p.emit(op.expand_dims(p.mask, [0, 2]))))
        return p.weighted(p.emit(op.reshape(added, [N, H, S, T])))

    return write


def spread(p: Parts) -> relax.Expr:
    """Heads of keys and values repeated as PyTorch's exporters write it."""

    def repeated(x: relax.Expr, width: int) -> relax.Expr:
        apart = p.emit(op.expand_dims(x, 2))
        return p.emit(op.reshape(p.emit(op.broadcast_to(apart, [N, 1, H, T, width])), [N, H, T, width]))

    k = p.emit(op.permute_dims(repeated(p.k, D), [0, 1, 3, 2]))
    scores = p.emit(op.multiply(p.emit(op.matmul(p.q, k)), number(SCALE)))
    return p.emit(op.matmul(p.emit(op.nn.softmax(scores, -1)), repeated(p.v, W)))


def repeated(p: Parts) -> relax.Expr:
    k = p.emit(op.permute_dims(p.emit(op.repeat(p.k, H, 1)), [0, 1, 3, 2]))
    scores = p.emit(op.multiply(p.emit(op.matmul(p.q, k)), number(SCALE)))
    return p.emit(op.matmul(p.emit(op.nn.softmax(scores, -1)), p.emit(op.repeat(p.v, H, 1))))


FORMS: dict[str, tuple[Callable[[], Parts], Callable[[Parts], relax.Expr]]] = {
    "scaled": (Parts, lambda p: p.weighted(p.scaled())),
    "three dimensions": (lambda: Parts(flat=True), lambda p: p.weighted(p.scaled())),
    "roots": (Parts, roots),
    "roots of turned": (Parts, roots_of_turned),
    "turned in three": (Parts, turned_in_three),
    "masked": (lambda: Parts(mask=(N, 1, S, T)), masked),
    "masked by keys": (lambda: Parts(mask=(T,)), masked),
    "masked in three": (lambda: Parts(mask=(1, S, T), flat=True), masked),
    "masked in three by rows": (lambda: Parts(mask=(S, T), flat=True), masked),
    "masked first": (lambda: Parts(mask=(N, 1, 1, T)), masked_first),
    "masked twice": (lambda: Parts(mask=(N, 1, 1, T)), masked_twice),
    "windows of an image": (lambda: Parts(mask=(N, S, T)), windowed(1)),
    "windows with one mask": (lambda: Parts(mask=(1, S, T)), windowed(1)),
    "images of one window": (lambda: Parts(mask=(1, S, T)), windowed(N)),
    "causal choice": (Parts, causal_choice),
    "hidden choice": (Parts, hidden_choice),
    "dead to zero": (lambda: Parts(mask=(S, T)), dead_to_zero),
    "nan to zero": (Parts, nan_to_zero),
    "spread": (lambda: Parts(groups=1), spread),
    "repeated": (lambda: Parts(groups=1), repeated),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_one_operator_and_compute_the_same(name):
    make, write = FORMS[name]
    p = make()
    mod = module(p, write)
    found = RecoverAttention()(mod)
    relax.analysis.well_formed(found)
    (call,) = (call for call in calls(found) if call.op.name == NAME)
    assert attention_of(call).scale == pytest.approx(SCALE)
    assert not {"nn.softmax", "matmul", "isnan", "repeat", "broadcast_to"} & set(names(found))
    assert "permute_dims" not in names(found), "keys are read as they came"
    assert int(call.args[1].ty.shape.values[1]) == int(p.k.ty.shape.values[1] if p.rank == 4 else 1)
    assert_runs_as(mod, mod, operands(p))


def test_masks_of_windows_are_those_of_each_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.N", 6)
    p = Parts(mask=(3, S, T))
    mod = module(p, windowed(2))
    found = RecoverAttention()(mod)
    (call,) = (call for call in calls(found) if call.op.name == NAME)
    assert [int(dim) for dim in call.args[3].ty.shape.values] == [6, H, S, T]
    arrays = operands(p)
    executable = tvm_mxplan.compile(mod)
    kinds = [step.kind for region in executable.report.regions for step in region.steps]
    assert kinds.count("attention") == 1
    np.testing.assert_allclose(result_of(executable, arrays), run_by_tvm(mod, arrays), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("lead", [(N, H), (N, 1, H), (N * H,)])
def test_keys_turned_in_three_dimensions_are_read_from_where_they_come(lead):
    """As they are, or split into heads once, whatever axes they have."""
    p = Parts()
    p.k = p._input("k", (*lead, T, D))
    mod = module(p, turned_in_three)
    found = RecoverAttention()(mod)
    again = [] if lead == (N, H) else ["reshape"]
    assert names(found) == sorted([*again, NAME.removeprefix("relax.")])
    arrays = operands(p)
    np.testing.assert_allclose(
        result_of(tvm_mxplan.compile(mod), arrays), run_by_tvm(mod, arrays), rtol=2e-6, atol=2e-6
    )


def shown(p: Parts) -> Sequence[relax.Expr]:
    weights = p.emit(op.nn.softmax(p.scaled(), -1))
    return relax.Tuple([p.emit(op.matmul(weights, p.v)), weights])


def scores_shown(p: Parts) -> Sequence[relax.Expr]:
    scores = p.scaled()
    return relax.Tuple([p.weighted(scores), scores])


def other_axis(p: Parts) -> relax.Expr:
    return p.emit(op.matmul(p.emit(op.nn.softmax(p.scaled(), 2)), p.v))


def near_choice(p: Parts) -> relax.Expr:
    """A choice that leaves something of what it is made in place of."""
    return p.weighted(p.emit(op.where(relax.const(np.tri(S, T, dtype=bool)), p.scaled(), number(-5.0))))


def other_nan(p: Parts) -> relax.Expr:
    weights = p.emit(op.nn.softmax(p.scaled(), -1))
    return p.emit(op.matmul(p.emit(op.where(p.emit(op.isnan(weights)), number(1.0), weights)), p.v))


def scale_of_heads(p: Parts) -> relax.Expr:
    scale = relax.const(np.linspace(0.5, 2, H, dtype="float32").reshape(H, 1, 1))
    return p.weighted(p.emit(op.multiply(p.scores(), scale)))


def tiled(p: Parts) -> relax.Expr:
    """Query heads read the heads of keys in turn, not one after the other has been read as often."""

    def again(x: relax.Expr, width: int) -> relax.Expr:
        apart = p.emit(op.expand_dims(x, 1))
        return p.emit(op.reshape(p.emit(op.broadcast_to(apart, [N, H, H, T, width])), [N, H * H, T, width]))

    k = p.emit(op.permute_dims(again(p.k, D), [0, 1, 3, 2]))
    scores = p.emit(op.multiply(p.emit(op.matmul(p.q, k)), number(SCALE)))
    return p.emit(op.matmul(p.emit(op.nn.softmax(scores, -1)), again(p.v, W)))


def test_heads_that_are_repeated_in_turn_are_read_as_they_are() -> None:
    p = Parts()
    p.q = p._input("q", (N, H * H, S, D))
    mod = module(p, tiled)
    (call,) = (call for call in calls(RecoverAttention()(mod)) if call.op.name == NAME)
    assert [int(arg.ty.shape.values[1]) for arg in call.args[:3]] == [H * H] * 3
    arrays = operands(p)
    np.testing.assert_allclose(
        result_of(tvm_mxplan.compile(mod), arrays), run_by_tvm(mod, arrays), rtol=2e-6, atol=2e-6
    )


def squared(p: Parts) -> relax.Expr:
    return p.weighted(p.emit(op.square(p.scores())))


@pytest.mark.parametrize(
    "write", [shown, scores_shown, other_axis, near_choice, other_nan, scale_of_heads, squared]
)
def test_what_is_only_like_it_stays(write):
    mod = module(Parts(), write)
    found = RecoverAttention()(mod)
    assert NAME.removeprefix("relax.") not in names(found)
    tvm.ir.assert_structural_equal(found, relax.transform.DeadCodeElimination()(mod))


@pytest.mark.slow
def test_where_no_library_takes_it_tvm_runs_its_parts():
    p = Parts(groups=1, mask=(N, 1, S, T))
    arrays = operands(p)

    def write(p: Parts) -> relax.Expr:
        return spread_masked(p)

    mod = module(p, write)
    executable = tvm_mxplan.compile(mod, "llvm")
    assert not executable.report.regions
    np.testing.assert_allclose(result_of(executable, arrays), run_by_tvm(mod, arrays), rtol=2e-6, atol=2e-6)


def spread_masked(p: Parts) -> relax.Expr:
    k = p.emit(op.permute_dims(p.emit(op.repeat(p.k, H, 1)), [0, 1, 3, 2]))
    scores = p.emit(op.multiply(p.emit(op.matmul(p.q, k)), number(SCALE)))
    weights = p.emit(op.nn.softmax(p.emit(op.add(scores, p.mask)), -1))
    return p.emit(op.matmul(weights, p.emit(op.repeat(p.v, H, 1))))


@pytest.mark.slow
@pytest.mark.parametrize("causal", ["first", "last"])
def test_the_parts_of_a_causal_one(causal):
    from tvm_mxplan.operators.attention import Attention, attention

    p = Parts()
    kind = Attention(SCALE, causal, nan_is_zero=True)
    mod = module(p, lambda p: p.emit(attention(kind, p.q, p.k, p.v)))
    apart = Parts()
    call = attention(kind, apart.q, apart.k, apart.v)
    written = module(apart, lambda p: parts(call, p.emit))
    assert_runs_as(mod, written, operands(p))
