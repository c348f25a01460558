"""Operators that TVM's importer lacks, or takes with numbers as sizes only: held against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")

from cases_run import OPTIONS, Results, results_of  # noqa: E402

import tvm_mxplan  # noqa: E402
from tvm_mxplan.errors import UnsupportedError  # noqa: E402

F = torch.nn.functional
NAN, INF = float("nan"), float("inf")
WIDE = torch.tensor([-3.7, -1.5, -0.3, -0.0, 0.0, 1e-3, 0.2, 0.9, 1.0, 2.5, 7.0, 15.9, 16.1, 30.0, NAN])
ABOVE = WIDE[5:]
BELOW_ONE = torch.tensor([-1.0, -0.999999, -0.7, -0.5, -1e-4, 0.0, 1e-8, 0.3, 0.5001, 0.99, 1.0, 1.5, NAN])
ENDS = torch.tensor([0.0, 1.0, -3.0, 1e-40, INF, 0.3, -0.0])
DIVIDENDS = torch.tensor([12, 18, 0, -12, 7, 2**40, 3])
DIVISORS = torch.tensor([8, 0, 0, 18, -21, 2**30 * 6, 5])
X = torch.arange(35.0).reshape(5, 7).cos()
LACKING = torch.tensor([[1, NAN, 3, NAN, 2], [NAN] * 5, [5, 4, 3, 2, 1]])
OFTEN = torch.tensor([[1.0, 2.0, 2.0, 1.0, 0.0], [3.0, 3.0, 1.0, 1.0, 3.0]])
IMAGE = torch.arange(126.0).reshape(3, 6, 7).sin()
WEIGHT = torch.arange(72.0).reshape(3, 4, 3, 2).sin()
GRID = torch.linspace(-1.3, 1.2, 24).reshape(1, 4, 3, 2)
VOLUME = torch.arange(240.0).reshape(1, 2, 4, 5, 6).sin()
SPECIAL = ("i0e", "i1", "i1e", "erfcx", "bessel_j0", "bessel_y1", "log_ndtr")


def _special(x: Any) -> list[Any]:
    return [
        torch.lgamma(x),
        torch.digamma(x),
        torch.i0(x),
        *(getattr(torch.special, one)(x) for one in SPECIAL),
    ]


def _samples(x: Any, grid: Any) -> list[Any]:
    return [
        F.grid_sample(x, grid, padding_mode=padding, align_corners=corners)
        for padding in ("zeros", "border", "reflection")
        for corners in (True, False)
    ]


def _transposed(x: Any, w: Any) -> list[Any]:
    return [
        F.conv_transpose2d(x, w, stride=(2, 3), padding=(1, 0), output_padding=(2, 1), dilation=3),
        F.conv_transpose2d(x, w, padding=1, output_padding=2, dilation=(3, 4)),
        F.conv_transpose2d(x, w, w.sum((0, 2, 3)), output_padding=1, dilation=2),
    ]


def _assigned(x: Any) -> list[Any]:
    whole, some, read = torch.zeros_like(x), x.clone(), torch.zeros_like(x)
    for at in range(5):
        whole[at] = x[at - 1] * at
    some[:, 1:4], some[:, 3:5], some[:, 0] = x[:, :3] + 1, x[:, 5:] * 2, 7.0
    for at in range(5):
        read[at] = read[at - 1] + x[at]
    return [whole, some, read]


def _averages(x: Any) -> list[Any]:
    return [
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, divisor_override=5),
        F.avg_pool1d(x, 3, 2, 1, ceil_mode=True),
    ]


def _of_booleans(x: Any, y: Any) -> list[Any]:
    two = [torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y)]
    return [x >= y, x > y, x <= y, x < y, *two, *x.max(1), *x.min(0), x.max(), x.min(), *x.cummax(1)]


def _of_bits(x: Any) -> list[Any]:
    return [x.view(torch.int32), x.view(torch.uint8), x[:14].view(torch.float64), x.view(torch.int16)]


OF_ROWS = torch.tensor([1, 3, 1, 1, 3])


def _averaged(x: Any, rows: Any) -> list[Any]:
    """Means of rows; the last place of each is one that nothing is written to."""
    index = rows[:, None].expand(-1, 4)
    start = torch.ones(5, 4)
    return [
        *(start.scatter_reduce(0, index, x, "mean", include_self=whole) for whole in (True, False)),
        start.long().scatter_reduce(0, index, x.long(), "mean"),
        start.scatter_reduce(1, index[:, :2], x, "mean", include_self=False),
    ]


def _written_complex(x: Any) -> list[Any]:
    """Frequencies put among zeros, as Fourier layers do."""
    found = torch.fft.rfft2(x)
    kept, other, row = torch.zeros_like(found), torch.full_like(found, 2 - 3j), found.clone()
    kept[:, :3, :2] = found[:, :3, :2] * (1 + 2j)
    other[:, -2:, ::2] = x[:, :2, :3]
    row[..., -1] = found[..., 0]
    return [torch.fft.irfft2(kept, s=x.shape[-2:]), torch.view_as_real(other), torch.view_as_real(row)]


CASES: dict[str, tuple[Any, ...]] = {
    "special functions": (_special, WIDE),
    "special functions in float64": (_special, WIDE.double()),
    "inverse of erf": (torch.erfinv, BELOW_ONE),
    "derivatives of digamma": (lambda x: [torch.polygamma(n, x) for n in range(4)], ABOVE),
    "derivatives of digamma below 0": (
        lambda x: [torch.polygamma(n, x) for n in (2, 3, 6)],
        torch.tensor([-20.3, -7.75, -3.0, -2.5, -0.5, 0.0, 0.25, 0.49]),
    ),
    "signs": (lambda x: (torch.signbit(x), torch.signbit(x.double()), torch.angle(x)), WIDE),
    "signs of others": (lambda x, y: (torch.copysign(x, y), torch.copysign(x, -2)), WIDE, WIDE.flip(0)),
    "neighbours": (torch.nextafter, WIDE[:-1], WIDE[:-1].flip(0)),
    "bits as other types": (_of_bits, WIDE),
    "taken apart and put together": (lambda x: (*torch.frexp(x), torch.ldexp(*torch.frexp(x))), ENDS),
    "divisors": (lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)), DIVIDENDS, DIVISORS),
    "divisors of 32 bits": (torch.gcd, (DIVIDENDS % 1000).int(), (DIVISORS % 1000).int()),
    "most frequent": (lambda x: (*x.mode(0), *x.mode(1, keepdim=True), (x > 1).mode()[0]), OFTEN),
    "medians of numbers": (lambda x: (x.nanmedian(), *x.nanmedian(1), x.nanmedian(0)[0]), LACKING),
    "written in order": (lambda x, y: x.masked_scatter(x > 0, y), X, torch.arange(40.0)),
    "written on diagonals": (
        lambda x: (torch.diagonal_scatter(x, x[0, :5], 1), torch.diagonal_scatter(x, x[0, :4], -1)),
        X,
    ),
    "written at an index": (
        lambda x: (torch.select_scatter(x, x[0] + 2, 0, -2), x.slice_scatter(x[:2], 0, 1, 4, 2)),
        X,
    ),
    "written one after the other": (_assigned, X),
    "averages where indices say": (_averaged, torch.arange(20.0).reshape(5, 4) ** 2 - 9, OF_ROWS),
    "written among complex numbers": (_written_complex, torch.sin(torch.arange(96.0)).reshape(2, 6, 8)),
    "comparisons of booleans": (_of_booleans, X > 0, X > 0.5),
    "bounds of booleans": (lambda x: ((x > 0).clamp_min(x > 0.5), (x > 0).clamp_max(x > 0.5)), X),
    "read by strides": (lambda x: x.as_strided((4, 2, 3), (7, 1, 2), 1), X),
    "read in a row": (lambda x: x.as_strided((7, 1, 5), (5, 99, 1)), X),
    "read with gaps": (lambda x: x.as_strided((5, 5), (7, 1)), X),
    "averages that reach beyond": (_averages, IMAGE),
    "transposed with more behind": (_transposed, IMAGE[None], WEIGHT),
    "variances of nothing": (lambda x: (*torch.var_mean(x[:0], 0), torch.std(x[:, :0], 1)), X),
    "softmax of one number": (lambda x: (x[0, 0].softmax(0), x[0, 0].log_softmax(0), x.softmax(0)), X),
    "pairs of rows": (lambda x: (F.pdist(x), F.pdist(x, 1)), X),
    "samples of one pixel": (_samples, IMAGE[None, :, :1, :1], GRID),
    "samples of volumes": (_samples, VOLUME, torch.linspace(-1.2, 1.3, 72).reshape(1, 2, 3, 4, 3)),
    "images of one pixel": (
        lambda x: [F.interpolate(x, (1, n), mode="bilinear", align_corners=True) for n in (1, 3)],
        IMAGE[None],
    ),
    "to bfloat16 and back": (lambda x: (x.bfloat16().float(), x.bfloat16().T.reshape(7, 5).float() + 1), X),
    "parts": (lambda x: (*x.split([2, 0, 5], 1), *x.split([7], 1)), X),
}


@pytest.fixture(scope="module")
def results() -> Results:
    return results_of(CASES, "llvm")


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch_has_it(name, results):
    assert results[name]
    for expected, found in results[name]:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind in "biu":
            np.testing.assert_array_equal(found, expected)
        else:
            rtol = 2e-5 if expected.itemsize == 4 else 1e-9
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6 if "reach" in name else 1e-7)


def _written(x: Any) -> Any:
    x = x.clone()
    x[1:, 0] = 5.0
    return x


OF_SIZES: dict[str, Any] = {
    "repeated": lambda x: (x.repeat(x.shape[0], 1), x.repeat(2, 1, 3)),
    "padded": lambda x: (F.pad(x, (0, x.shape[0])), F.pad(x, (0, 0, 0, 64 - x.shape[0]), value=1.5)),
    "padded around": lambda x: F.pad(x[None], (1, 2), mode="circular"),
    "picked": lambda x: (x[x.shape[0] - 1], x[x.shape[0] // 2], x[-1]),
    "cut": lambda x: (x[1:-1], x[-2:], x[::2], x[x.shape[0] - 1 :], x[-3::2], x[2 : x.shape[0] - 1]),
    "narrowed": lambda x: (x.narrow(0, 0, x.shape[0] - 1), x[: x.shape[0] // 2]),
    "split": lambda x: x.split([2, x.shape[0] - 2]),
    "written": _written,
    "put": lambda x: (torch.select_scatter(x, x[0] * 2, 0, -1), x.slice_scatter(x[:1] * 2, 0, 1, 2)),
    "windows": lambda x: F.unfold(x[None, None], (2, 2)),
    "picked in rows": lambda x: x[torch.arange(x.shape[0]), x.argmax(1) - 1],
    "medians": lambda x: (x.median(), *x.median(1), x.median(0)[0], *x.mode(0)),
    "products": lambda x: (torch.einsum("ij,kj->ik", x, x), x.view(-1)),
}


class _Averages(torch.nn.Module):
    """An average of images whose channels stand last, which PyTorch writes by its strides."""

    def forward(self, x: Any) -> Any:
        return torch.flatten(torch.nn.functional.adaptive_avg_pool2d(torch.relu(x).permute(0, 3, 1, 2), 1), 1)


def test_averages_of_channels_that_stand_last_need_no_kernel():
    x = torch.randn(2, 6, 5, 32)
    executable = tvm_mxplan.compile(torch.export.export(_Averages(), (x,)), options=OPTIONS)
    assert len(executable.report.regions) == 1 and "relax.call_tir" not in str(executable.report.kept)
    np.testing.assert_allclose(executable(x.numpy())[0].numpy(), _Averages()(x).numpy(), rtol=1e-5, atol=1e-6)


class _OfSizes(torch.nn.Module):
    def forward(self, x: Any) -> dict[str, list[Any]]:
        return {name: torch.utils._pytree.tree_leaves(case(x)) for name, case in OF_SIZES.items()}


def test_operators_of_named_sizes():
    x = torch.arange(48.0).reshape(6, 8).sin()
    shapes = ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},)
    program = torch.export.export(_OfSizes(), (x,), dynamic_shapes=shapes)
    executable = tvm_mxplan.compile(program, "llvm", options=OPTIONS)
    assert executable.signature.inputs[0].shape == ("x_0", "x_1")
    for rows, columns in ((6, 8), (9, 5), (12, 8)):
        x = torch.arange(float(rows * columns)).reshape(rows, columns).cos()
        expected = _OfSizes()(x)
        found = iter(executable(x.numpy()))
        for name, results in expected.items():
            for one in results:
                np.testing.assert_allclose(
                    next(found).numpy(), one.numpy(), rtol=1e-5, atol=1e-6, err_msg=f"{name} of {rows}"
                )


def test_strides_of_what_stands_in_no_row_are_refused():
    class Turned(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.T.as_strided((2, 2), (1, 2))

    with pytest.raises(UnsupportedError, match=r"as_strided.*reads memory by strides"):
        tvm_mxplan.compile(torch.export.export(Turned(), (X,)), "llvm", options=OPTIONS)


def test_averages_of_integers_by_a_divisor_are_refused():
    """They were rounded before they were divided."""

    class Averages(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ops.aten.avg_pool2d(x, [3, 3], [1, 1], [1, 1], False, True, 2)

    program = torch.export.export(Averages(), (torch.arange(81).reshape(1, 1, 9, 9),))
    with pytest.raises(UnsupportedError, match=r"averages of integers.*expected floating-point numbers"):
        tvm_mxplan.compile(program, "llvm", options=OPTIONS)
