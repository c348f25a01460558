"""Operators without gradients in front of weights, and gradients of picks and products, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")

from tvm_mxplan import training  # noqa: E402
from tvm_mxplan.errors import InvalidInputError, UnsupportedError  # noqa: E402

nn, F = torch.nn, torch.nn.functional
OPTIONS = {"machine": "default", "cache": "disabled"}


class Net(nn.Module):
    """A convolution with a function of data in front of it, or of its result behind."""

    def __init__(self, front, behind):
        super().__init__()
        self.layer, self.front, self.behind = nn.Conv2d(3, 4, 3), front, behind

    def forward(self, x):
        return self.behind(self.layer(self.front(x)))


def same(x):
    return x


def check(front, behind=same):
    """Loss and gradients of a step towards 0 are PyTorch's; the convolution runs in a library."""
    torch.manual_seed(0)
    model, x = Net(front, behind), torch.randn(2, 3, 8, 8)
    program = torch.export.export(model, (x,))
    step = training.compile(program, "mean_squared_error", "sgd", options=OPTIONS, keep_gradients=True)
    kinds = {one.kind for region in step.report.regions for one in region.steps}
    assert "convolution_backward_weights" in kinds
    result = model(x)
    loss = F.mse_loss(result, torch.zeros_like(result))
    loss.backward()
    found = step(x.numpy(), np.zeros(tuple(result.shape), "float32"))
    assert found == pytest.approx(float(loss.detach()), rel=1e-4)
    assert set(step.gradients) == {"layer.weight", "layer.bias"}
    for name, grad in step.gradients.items():
        expected = model.get_parameter(name).grad.numpy()
        np.testing.assert_allclose(grad, expected, rtol=1e-3, atol=2e-6, err_msg=name)


FRONT = {
    "resize": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "remainder": lambda x: x % 0.5,
    "crop": lambda x: F.pad(x, (-1, -1, 1, -1)),
    "sums_and_data": lambda x: torch.cat([x[:, :1].cumprod(1), x[:, 1:].asinh()], 1),
    "behind_whole_numbers": lambda x: x * x.cumprod(3).round().long().float(),
}


@pytest.mark.parametrize("front", FRONT.values(), ids=list(FRONT))
def test_data_wants_no_gradients(front):
    check(front)


def test_a_concatenation_of_results_and_data():
    """The operator behind data enters by a tuple beside a result that has a gradient."""
    check(same, lambda y: torch.cat([y, torch.ones_like(y).cumprod(1) * 0.3], 1).sum(1))


def test_whole_numbers_out_of_results_have_no_gradients():
    check(same, lambda y: y * y.cumprod(1).round().long().float())


BEHIND = {
    "flip": lambda y: y.flip(3, 1) * torch.arange(6.0),
    "topk": lambda y: y.topk(3, 2)[0] * torch.arange(6.0),
    "picked": lambda y: y[:, torch.tensor([0, -1, 0]), torch.tensor([2, 1, 2])] * torch.arange(6.0),
    "product": lambda y: y.prod(1) + y.prod(2, keepdim=True).sum(1),
}


@pytest.mark.parametrize("behind", BEHIND.values(), ids=list(BEHIND))
def test_gradients_of_picks_and_products(behind):
    check(same, behind)


def test_an_operator_without_a_gradient_is_named_with_its_layer():
    model = Net(same, lambda y: y.cumprod(1))
    with pytest.raises(UnsupportedError, match=r"relax.cumprod \(.+\) has no gradient here"):
        training.compile(torch.export.export(model, (torch.randn(2, 3, 8, 8),)), "mean_squared_error", "sgd")


def test_first_values_beside_a_program_are_refused():
    program = torch.export.export(nn.Linear(6, 3), (torch.randn(4, 6),))
    with pytest.raises(InvalidInputError, match="params: an exported program holds its weights"):
        training.compile(program, "mean_squared_error", "sgd", params={"weight": np.zeros((3, 6))})
