"""Results that PyTorch has otherwise than a formula at hand: held against PyTorch, where it is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")

from cases_run import Results, results_of  # noqa: E402

import tvm_mxplan  # noqa: E402

NAN, INF = float("nan"), float("inf")
A = torch.tensor([1.0, -1.0, 0.3, 6.0, 7.5, -7.5, 0.7, 2.1, -0.9])
B = torch.tensor([0.1, 0.1, 0.1, 0.2, -2.0, 2.0, 0.1, 0.7, 0.3])
ENDS = torch.tensor([5.0, -5.0, 0.0, INF, 5.0, -5.0])
OF_ENDS = torch.tensor([INF, INF, INF, 2.0, -INF, -INF])
SMALL = torch.tensor([1e-8, 1e-6, 1e-4, 1e-3, -1e-8, -1e-4, 0.0])
TWO, TEN = 2.0 ** torch.arange(-30, 31).float(), 10.0 ** torch.arange(-20, 21).float()
U = torch.tensor([200, 5, 255, 128], dtype=torch.uint8)
S = torch.tensor([-56, 5, -1, -128], dtype=torch.int8)
H = torch.tensor([1.0, 1.0009765625, 65504.0, 0.1], dtype=torch.float16)
I = torch.tensor([0, 1, 2, 5])  # noqa: E741
X = torch.tensor([[0.25, -1.5, 3.0, 0.5], [2.0, 1.0, -4.0, 0.0], [0.1, 0.2, 0.3, 7.0]])
ROWS = torch.tensor([[1.0, NAN, 3.0, 4.0, 5.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
MANY_ROWS = torch.cat([ROWS, torch.tensor([[-INF] * 5, [NAN] * 5, [2.0, INF, NAN, -INF, 1.0]])])
LEFT, RIGHT = torch.tensor([[INF, NAN, 3.0, NAN, -INF, 0.0, NAN], [NAN, -INF, 4.0, 2.0, 1.0, 0.0, NAN]])
NONE, NO_ROWS = torch.zeros(0), torch.zeros(3, 0)
IMAGE = (torch.arange(105).reshape(1, 3, 7, 5) * 37 % 256).to(torch.uint8)
REAL_FUNCTIONS = ("exp", "sin", "cos", "tanh", "sigmoid", "log2", "log10", "log1p", "expm1", "sqrt", "rsqrt")
MORE_FUNCTIONS = ("erf", "erfc", "atan", "sinh", "cosh", "asinh", "reciprocal", "exp2")


ALONG = ("sum", "prod", "amax", "amin", "argmax", "argmin", "logsumexp")


def _of_integers(x: Any) -> list[Any]:
    return [getattr(torch, name)(x) for name in (*REAL_FUNCTIONS, *MORE_FUNCTIONS)]


def _shifts(x: Any, y: Any) -> list[Any]:
    return [x << y, x >> y, -x >> y, x << -y, x << 32]


CASES: dict[str, tuple[Any, ...]] = {
    "whole parts of quotients": (lambda x, y: (x // y, x // 0.1, x // 0.0), A, B),
    "whole parts with infinities": (lambda x, y: x // y, ENDS, OF_ENDS),
    "remainders": (lambda x, y: (x % y, x % 0.1, x % 0.0), A, B),
    "remainders with infinities": (lambda x, y: x % y, ENDS, OF_ENDS),
    "remainders in 16 bits": (lambda x, y: (x % y, x // y), A.half(), B.half()),
    "medians of rows with NaN": (lambda x: (x.median(), x.median(1), x.median(0, keepdim=True)), ROWS),
    "k-th values of rows with NaN": (lambda x: (x.kthvalue(5, 1), x.kthvalue(2, 1)), ROWS),
    "running extremes behind NaN": (lambda x: (x.cummax(1)[0], x.cummin(1)[0]), ROWS),
    "types of which none holds the other": (lambda x, y: (x == y, x < y, y > x, y == x), U, S),
    "two types of 16 bits": (lambda x, y: (x == y, x < y, y > x), H, torch.ones(4, dtype=torch.bfloat16)),
    "small numbers": (lambda x: [f(x) for f in (torch.expm1, torch.log1p, torch.sinh, torch.asinh)], SMALL),
    "tails": (torch.erfc, torch.tensor([0.5, 2.0, 3.0, 4.0, 5.0, 8.0, -5.0])),
    "powers of two": (lambda x: (x.log2().floor(), x.log2().ceil()), TWO),
    "powers of ten": (lambda x: x.log10().floor(), TEN),
    "functions of integers": (_of_integers, I),
    "functions of booleans": (lambda x: (x.exp(), x.log1p(), x.sigmoid()), I > 1),
    "angles of integers": (torch.atan2, I, I + 1),
    "powers of integers": (lambda x: (2**x, x**5, x**0, x**0.5, 2.5**x), I),
    "any of no elements": (lambda x: ((x > 0).any(), (x > 0).all()), NONE),
    "any of empty rows": (lambda x: ((x > 0).any(1), (x > 0).all(1, keepdim=True)), NO_ROWS),
    "variances": (lambda x: (x.var(0, correction=5), x.std(0, correction=3), x.var(dim=()), x.mean(())), X),
    "variances and averages": (lambda x: (*torch.var_mean(x, 1), *torch.std_mean(x, 0, correction=0)), X),
    "lengths of complex numbers": (lambda x, y: torch.complex(x, y).abs(), X * 1e25, X.flip(1) * 1e25),
    "lengths with infinities": (
        lambda x, y: (x.hypot(y), y.hypot(x), torch.complex(x, y).abs()),
        LEFT,
        RIGHT,
    ),
    "roots as powers": (lambda x: (x**0.5, x**-0.5), torch.tensor([-INF, -2.0, -0.0, 0.0, 3.0, INF, NAN])),
    "NaN is not zero": (
        lambda x: (x != 0, x.any(1), x.count_nonzero(1), torch.where(x != 1, x, 0)),
        ROWS * 0,
    ),
    "NaN beside other numbers": (lambda x, y: (x != y, x == y, ~(x < y)), LEFT, RIGHT),
    "places of extremes with NaN": (
        lambda x: (x.argmax(1), x.argmin(0), x.argmax(), x.max(1)[1], x.min(1)[1]),
        MANY_ROWS,
    ),
    "sorted with NaN": (
        lambda x: (
            x.topk(3)[0],
            x.topk(3, largest=False)[0],
            *x.sort(dim=1, stable=True),
            x.argsort(1, True),
        ),
        MANY_ROWS,
    ),
    "sorted with NaN in 16 bits": (
        lambda x: (x.argmax(1), x.topk(2)[0], x.sort(dim=1, stable=True)[1]),
        MANY_ROWS.half(),
    ),
    "places of NaN": (
        lambda x, y: (torch.bucketize(x, y), torch.searchsorted(y, x, right=True)),
        torch.tensor([[0.0, 2.0, NAN], [INF, -INF, 5.5]]),
        torch.tensor([1.0, 2.0, 2.0, 5.0, INF]),
    ),
    "softplus far below zero": (
        lambda x: torch.nn.functional.softplus(x).log() / 10,
        torch.tensor([-80.0, -50.0, -30.0, -20.0, -17.0, -15.5, -12.0, -1.0, 0.0, 25.0]),
    ),
    "mish far below zero": (torch.nn.functional.mish, torch.tensor([-4.0, -1.0, 0.0, 20.0, NAN])),
    "what is rounded to bfloat16 ahead of arithmetic": (
        lambda x: ((x.bfloat16() * 2).float(), x.bfloat16().relu().float(), (x.bfloat16() * 4).int()),
        X * 1.2345,
    ),
    "quotients of complex numbers": (
        lambda x, y: torch.view_as_real(torch.complex(x, y) / torch.complex(y, x)),
        X[:, :3] * 1e25,
        X[:, :3].flip(0) * 1e25,
    ),
    "inverses and choices of complex numbers": (
        lambda x, y: torch.view_as_real(torch.where(x > 0, 1 / torch.complex(x, y), torch.complex(y, x))),
        X,
        X.flip(0) + 0.5,
    ),
    "shifts of 32 bits": (_shifts, I.int() + 90, torch.tensor([32, 33, 1, 31], dtype=torch.int32)),
    "shifts of 8 bits": (lambda x: (x << 8, x >> 8, x >> 1, x << 1), U),
    "bits of two types": (lambda x, y: (x & 255, x | y, (x > 0) & 3, (x > 0) ^ (y > 3)), S, U),
    "numbers that wrap": (lambda x: (x + -1, x * -1, x + 300, -x, x.sign()), U),
    "reductions of no axes": (
        lambda x: (
            [getattr(x, name)(0) for name in (*ALONG, "any", "all")] + [x.mean(0), x.var(0, correction=0)]
        ),
        torch.tensor(-2.5),
    ),
    "extremes of booleans": (lambda x: (x.amax(1), x.amin(), x.int().argmax(1)), X > 0.5),
    "norms in float64": (
        lambda x, y: (torch.layer_norm(x, (4,)), torch.group_norm(x.T[None], 2, y, y)),
        X.double(),
        torch.arange(4.0).double(),
    ),
    "sorted in 16 bits": (lambda x: (*x.topk(3), *x.sort(-1)), X.half()),
    "sorted stably": (lambda x: torch.sort(x, stable=True, descending=True), torch.arange(40.0) % 4),
    "the largest unsorted": (lambda x: x.topk(3, sorted=False)[0].sort(-1)[0], X),
    "nothing to sort": (lambda x: (x.topk(0)[0], x.sum().sort(0), x.sum().topk(1)), X),
    "joined of two types": (lambda x, y: (torch.cat([x, y]), torch.stack([x, y], -1)), I, I + 0.5),
    "joined with an empty one": (lambda x, y: torch.cat([x, torch.empty(0), y], 1), X, X),
    "pixels larger": (lambda x: torch.nn.functional.interpolate(x, size=(14, 10), mode="bilinear"), IMAGE),
    "pixels smoothed": (
        lambda x: torch.nn.functional.interpolate(x, size=(9, 11), mode="bilinear", antialias=True),
        IMAGE,
    ),
}


if importlib.util.find_spec("torchvision"):
    import torchvision

    CASES["regions of images"] = (
        lambda x, y: [torchvision.ops.roi_align(x, y, (3, 2), 0.25, ratio, True) for ratio in (2, -1)],
        torch.arange(360.0).reshape(1, 3, 10, 12).sin(),
        torch.tensor([[0, 3.0, 4.0, 30.0, 25.0], [0, 0.0, 0.0, 44.0, 36.0], [0, -20.0, -5.0, 5.0, 35.0]]),
    )


@pytest.fixture(scope="module")
def results() -> Results:
    return results_of(CASES)


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch_has_it(name, results):
    for expected, found in results[name]:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind in "biu":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5 if expected.itemsize > 2 else 2e-3, atol=0)


PADDED = torch.tensor([[True, True, False, False], [False] * 4])[:, None, None]
LATER = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
FAR = -1e9
MASKINGS = {
    "twice": lambda s: s.masked_fill(LATER, FAR).masked_fill(PADDED, FAR),
    "then added": lambda s: s.masked_fill(LATER, FAR) + torch.zeros(PADDED.shape).masked_fill(PADDED, FAR),
    "added first": lambda s: (s + torch.zeros(PADDED.shape).masked_fill(PADDED, FAR)).masked_fill(LATER, FAR),
    "scaled away": lambda s: s.masked_fill(LATER, FAR) * 1e-9,
}


@pytest.mark.parametrize("name", MASKINGS)
def test_attention_of_rows_that_masks_leave_nothing_of(name):
    class Masked(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.softmax(MASKINGS[name](x @ x.transpose(-1, -2)), -1) @ x

    x = torch.sin(torch.arange(192.0)).reshape(2, 3, 4, 8)
    executable = tvm_mxplan.compile(torch.export.export(Masked(), (x,)), options={"cache": "disabled"})
    np.testing.assert_allclose(executable(x.numpy())[0].numpy(), Masked()(x).numpy(), rtol=1e-4, atol=1e-5)


class _OfSizes(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        n = x.shape[0]
        return x * n**-0.5, x * (1.0 / n), x + n * 0.5, x * torch.sym_sqrt(n), x * (n / 4 - 3 / n)


def test_numbers_that_follow_from_sizes():
    shapes = ({0: torch.export.Dim("n", min=2, max=64)},)
    program = torch.export.export(_OfSizes(), (X,), dynamic_shapes=shapes)
    executable = tvm_mxplan.compile(program, options={"cache": "disabled"})
    for x in (X, torch.arange(28.0).reshape(7, 4)):
        for found, expected in zip(executable(x.numpy()), _OfSizes()(x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_named_sizes_times_a_number(mode):
    class Resized(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return [
                torch.nn.functional.interpolate(x, scale_factor=factor, mode=mode) for factor in (0.5, 2.25)
            ]

    shapes = ({2: torch.export.Dim("h", min=4, max=64)},)
    program = torch.export.export(Resized(), (torch.randn(1, 2, 8, 6),), dynamic_shapes=shapes)
    executable = tvm_mxplan.compile(program, options={"cache": "disabled"})
    for height in (8, 9, 13):
        x = torch.randn(1, 2, height, 6)
        for found, expected in zip(executable(x.numpy()), Resized()(x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
