"""Named sizes: conditions that PyTorch puts on them, arithmetic on them, as many groups as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")

import tvm_mxplan  # noqa: E402
from tvm_mxplan.errors import InvalidInputError  # noqa: E402

OPTIONS = {"cache": "disabled"}
Dim = torch.export.Dim


def module(function):
    class Module(torch.nn.Module):
        def forward(self, x, y):
            return function(x, y)

    return Module().eval()


def _padded(x, y):
    extra = (4 - x.shape[1] % 4) % 4
    if extra > 0:
        x = torch.nn.functional.pad(x, (0, extra))
    return x.unflatten(1, (-1, 4)).amax(2)


def _checked(x, y):
    torch._check(x.shape[1] % 2 == 1)
    return x * 2


GUARDED = {
    "branch": (lambda x, y: x * 2 if x.shape[1] % 2 else x * 3, r"x_1 % 2 != 0, got x_1 = 16"),
    "half": (lambda x, y: x[:, : int(x.shape[1] / 2)], r"trunc\(x_1 / 2\) == 6, got x_1 = 16"),
    "relation": (
        lambda x, y: x.sum(1) + (y.sum(1) if x.shape[1] < y.shape[1] else -y.sum(1)),
        r"x_1 < y_1, got x_1 = 16, y_1 = 15",
    ),
    "padded": (_padded, r"\(4 \+ -1 \* \(x_1 % 4\)\) % 4 > 0, got x_1 = 16"),
    "checked": (_checked, r"x_1 % 2 == 1, got x_1 = 16"),
}


@pytest.mark.parametrize(
    "name, deferred", [*((name, False) for name in GUARDED), ("branch", True), ("checked", True)]
)
def test_calls_are_held_to_the_branch_that_was_exported(name, deferred):
    function, text = GUARDED[name]
    dims = ({1: Dim.AUTO}, {1: Dim.AUTO})
    net = module(function)
    program = torch.export.export(
        net,
        (torch.randn(3, 13), torch.randn(3, 15)),
        dynamic_shapes=dims,
        prefer_deferred_runtime_asserts_over_guards=deferred,
    )
    executable = tvm_mxplan.compile(program, options=OPTIONS)
    assert executable.signature.conditions
    for size in (13, 16):
        x, y = torch.randn(3, size), torch.randn(3, 15)
        if size == 13:
            found = executable(x.numpy(), y.numpy())[0].numpy()
            np.testing.assert_allclose(found, net(x, y).numpy(), rtol=1e-5, atol=1e-5)
            continue
        with pytest.raises((AssertionError, RuntimeError)):
            program.module()(x, y)
        with pytest.raises(InvalidInputError, match=text):
            executable(x.numpy(), y.numpy())


def test_programs_without_branches_state_nothing():
    dims = ({0: "batch", 1: "length"}, None)
    net = module(lambda x, y: torch.softmax(x.reshape(-1), 0).reshape(x.shape[1], x.shape[0]))
    executable = tvm_mxplan.compile(
        net, args=(torch.randn(3, 13), torch.randn(2)), dynamic_shapes=dims, options=OPTIONS
    )
    assert not executable.signature.conditions


def _ranges(x):
    size = x.shape[1]
    return [
        torch.nn.functional.pad(x, (0, math.ceil(size / 4) * 4 - size)),
        x[:, : math.floor(size / 3)],
        x[:, : round(size * 0.5)],
        x[:, : round((size - 1) / 6)],
        x[:, : math.ceil(size * -0.25)],
        x[:, : math.floor((size - 3) / 2 + 1)],
        torch.arange(size - 1, -size, -1.0),
        torch.arange(size, 0, -3),
        torch.arange(0, size, 0.5),
    ]


def test_whole_numbers_made_of_quotients():
    class Ranges(torch.nn.Module):
        def forward(self, x):
            return _ranges(x)

    program = torch.export.export(Ranges(), (torch.randn(3, 29),), dynamic_shapes=({1: Dim.AUTO},))
    executable = tvm_mxplan.compile(program, options=OPTIONS)
    for size in (*range(14, 31), 48, 49, 100):
        x = torch.randn(3, size)
        for found, expected in zip(executable(x.numpy()), _ranges(x), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("options", [{"padding": 1}, {"padding": (1, 2), "stride": 2, "dilation": (2, 1)}])
def test_filters_of_each_image_of_a_named_batch(options):
    def modulated(x, filters):
        batch, channels, *sizes = x.shape
        flat = filters.reshape(-1, channels, 3, 3)
        found = torch.conv2d(x.reshape(1, batch * channels, *sizes), flat, groups=batch, **options)
        return found.view(batch, -1, *found.shape[2:])

    shapes = ({0: (batch := Dim("batch", max=8)), 2: Dim("height", min=9)}, {0: batch})
    inputs = [(torch.randn(b, 4, h, 8), torch.randn(b, 5, 4, 3, 3)) for b, h in ((3, 12), (1, 9), (8, 11))]
    net = module(modulated)
    program = torch.export.export(net, inputs[0], dynamic_shapes=shapes)
    executable = tvm_mxplan.compile(program, options=OPTIONS)
    assert "relax.nn.conv2d" not in {kept.kind for kept in executable.report.kept}
    for given in inputs:
        found = executable(*(tensor.numpy() for tensor in given))[0].numpy()
        np.testing.assert_allclose(found, net(*given).numpy(), rtol=1e-4, atol=1e-4)


def test_groups_of_transposed_convolutions_are_refused():
    def transposed(x, filters):
        flat = filters.reshape(-1, 5, 3, 3)
        return torch.conv_transpose2d(x.reshape(1, -1, 8, 8), flat, groups=x.shape[0])

    batch = {0: Dim("batch", max=8)}
    given = (torch.randn(3, 4, 8, 8), torch.randn(3, 4, 5, 3, 3))
    program = torch.export.export(module(transposed), given, dynamic_shapes=(batch, batch))
    with pytest.raises(
        tvm_mxplan.UnsupportedError, match=r"a number of groups that varies.*with a fixed batch"
    ):
        tvm_mxplan.compile(program, options=OPTIONS)
