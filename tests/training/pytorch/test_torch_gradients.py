"""Gradients that PyTorch stops, divides at ties or keeps from rows and layers: steps against PyTorch's."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")

from tvm_mxplan import training  # noqa: E402
from tvm_mxplan.errors import InvalidInputError, UnsupportedError  # noqa: E402

nn, F = torch.nn, torch.nn.functional
MOMENTUM, DECAY = 0.9, 0.05
OPTIONS = {"machine": "default", "cache": "disabled"}


class Two(nn.Module):
    """Two products; ``function`` says what becomes of them."""

    def __init__(self, function):
        super().__init__()
        self.a, self.b, self.function = nn.Linear(4, 5), nn.Linear(5, 3), function

    def forward(self, x):
        return self.function(self, x)


class Numbers(nn.Module):
    """A row of numbers that are trained."""

    def __init__(self, numbers, function):
        super().__init__()
        self.numbers, self.function = nn.Parameter(torch.tensor(numbers)), function

    def forward(self, x):
        return self.function(x, self.numbers) + 0.5


class Words(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.table, self.head = nn.Embedding(6, 4, **options), nn.Linear(4, 3)
        with torch.no_grad():
            self.table.weight += 1  # padding too, as after weights are loaded

    def forward(self, ids):
        return self.head(self.table(ids))


class Bags(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(6, 4, mode=mode, padding_idx=0), nn.Linear(4, 3)

    def forward(self, ids):
        return self.head(self.bag(ids))


class Normal(nn.Module):
    """A batch norm that is called twice, one call behind no_grad(), and another one."""

    def __init__(self):
        super().__init__()
        self.a, self.norm, self.other = nn.Conv2d(3, 6, 1), nn.BatchNorm2d(6), nn.BatchNorm2d(6)

    def forward(self, x):
        with torch.no_grad():
            first = F.relu(self.norm(self.a(x)), inplace=True)
        return self.other(self.norm(self.a(x)) * first.sigmoid())


def compiled(model, *args, rate=0.1, strict=False):
    program = torch.export.export(model, args, strict=strict)
    sgd = training.SGD(rate, MOMENTUM, weight_decay=DECAY)
    return training.compile(program, "mean_squared_error", sgd, options=OPTIONS, keep_gradients=True)


def check(model, *args, steps=2):
    """Loss, gradients and state of steps towards 0 are PyTorch's."""
    model = copy.deepcopy(model)
    step = compiled(copy.deepcopy(model), *args)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, MOMENTUM, weight_decay=DECAY)
    for _ in range(steps):
        optimizer.zero_grad()
        result = model(*args)
        loss = F.mse_loss(result, torch.zeros_like(result))
        loss.backward()
        found = step(*[one.numpy() for one in args], np.zeros(tuple(result.shape), "float32"))
        assert found == pytest.approx(float(loss.detach()), rel=1e-4)
        for name, parameter in model.named_parameters():
            assert (name in step.gradients) == (parameter.grad is not None)
            if parameter.grad is None:
                continue
            grad = parameter.grad
            np.testing.assert_allclose(step.gradients[name], grad.numpy(), rtol=1e-3, atol=2e-6, err_msg=name)
        optimizer.step()
    expected = model.state_dict()
    for name, array in step.state_dict()["model"].items():
        np.testing.assert_allclose(array, expected[name].numpy(), rtol=1e-3, atol=1e-5, err_msg=name)


def without_gradient(m, x):
    with torch.no_grad():
        hidden = m.a(x)
    return m.b(hidden) + m.a(x).sum(1, keepdim=True)


def detached_in_place(m, x):
    hidden = m.a(x) * 2
    hidden.detach_()
    return m.b(hidden)


STOPPED = {
    "whole": lambda m, x: m.b(m.a(x).detach()),
    "one_of_two": lambda m, x: m.b(m.a(x).detach() + 0.5 * m.a(x)),
    "gate": lambda m, x: m.b(m.a(x) * m.a(x).sigmoid().detach()),
    "straight_through": lambda m, x: m.b(m.a(x) + (m.a(x).round() - m.a(x)).detach()),
    "behind_what_has_no_gradient": lambda m, x: m.b(m.a(x) * m.a(x).cumprod(1).detach()),
    "weight": lambda m, x: F.linear(m.a(x), m.b.weight.detach(), m.b.bias),
    "no_grad": without_gradient,
    "in_place": detached_in_place,
}


@pytest.mark.parametrize("function", STOPPED.values(), ids=list(STOPPED))
def test_detach_and_no_grad_stop_gradients(function):
    torch.manual_seed(0)
    check(Two(function), torch.randn(6, 4))


def test_nothing_that_stops_gradients_runs():
    step = compiled(Two(STOPPED["gate"]), torch.randn(6, 4))
    assert "no_grad" not in str(step.report)
    step(np.ones((6, 4), "float32"), np.zeros((6, 3), "float32"))
    model = Two(STOPPED["gate"])
    step.load_state_dict(
        {**step.state_dict(), "model": {k: v.numpy() for k, v in model.state_dict().items()}}
    )
    x = torch.randn(6, 4)
    np.testing.assert_allclose(step.evaluate(x.numpy())[0], model(x).detach().numpy(), rtol=1e-4, atol=1e-6)


def test_a_loss_without_weights_is_refused():
    with pytest.raises(InvalidInputError, match="the loss depends on none of the weights that are trained"):
        compiled(Two(lambda m, x: m.b(m.a(x)).detach()), torch.randn(6, 4))


def doubled(m, x):
    hidden = m.a(x)
    stopped = hidden.detach()
    stopped.mul_(2)
    return m.b(hidden + stopped)


def doubled_after(m, x):
    hidden = m.a(x)
    stopped = hidden.detach()
    hidden.view(-1).mul_(2)
    return m.b(hidden + stopped)


def doubled_without_gradient(m, x):
    hidden = m.a(x)
    with torch.no_grad():
        hidden.mul_(2)
    return m.b(hidden)


@pytest.mark.parametrize("function", [doubled, doubled_after, doubled_without_gradient])
def test_a_write_that_a_stopped_tensor_would_miss_is_refused(function):
    with pytest.raises(UnsupportedError, match=r"aten\.mul_\.Tensor in the model writes to a tensor whose"):
        compiled(Two(function), torch.randn(6, 4))


def test_data_of_a_weight_is_refused():
    model = Two(lambda m, x: F.linear(m.a(x), m.b.weight.data))
    with pytest.raises(UnsupportedError, match=r"a constant without values, as \.data of a weight leaves it"):
        compiled(model, torch.randn(6, 4), strict=True)


AT = [0.0, 1.0, -1.0]
TIES = {
    "relu6": (AT, lambda x, w: x * F.relu6(w)),
    "hardtanh": (AT, lambda x, w: x * F.hardtanh(w)),
    "clamp": (AT, lambda x, w: x * w.clamp(-1, 1)),
    "clamp_min": (AT, lambda x, w: x * (w.clamp(min=0) + w.clamp(min=1.0))),
    "clamp_max": (AT, lambda x, w: x * (w.clamp(max=0) + w.clamp(max=1.0))),
    "clamp_by_tensors": (AT, lambda x, w: x * torch.clamp(w, torch.zeros(3), torch.ones(3))),
    "activations": (
        [0.0, 3.0, -3.0],
        lambda x, w: x * (F.hardswish(w) + F.hardsigmoid(w) + F.logsigmoid(w) + F.softshrink(w, 3.0)),
    ),
    "elu": (AT, lambda x, w: x * (F.elu(w, 0.7) + F.selu(w) + F.celu(w, 2.0))),
    "elu_of_large_numbers": ([100.0, -1.0, 0.5], lambda x, w: x * (F.elu(w) + F.selu(w) + F.celu(w, 2.0))),
    "distance": (AT, lambda x, w: x * (w - torch.tensor([0.0, 1.0, 0.0])).abs()),
    "norm": (AT, lambda x, w: x * w[:1].norm()),
    "maximum": ([2.0, 2.0, 1.0], lambda x, w: x * torch.maximum(w[:1], w) + torch.minimum(w, w[1:2])),
    "largest_and_where": ([2.0, 2.0, 1.0], lambda x, w: (x * w).max(1)[0] - (x * w).min(1, keepdim=True)[0]),
    "largest": ([2.0, 2.0, 1.0], lambda x, w: (x * w).amax(1)),
    "largest_of_parts": (
        [2.0, 2.0, 1.0],
        lambda x, w: F.adaptive_max_pool2d((x[:, :, None] * w)[None], (1, 2))[0],
    ),
    "sorted": ([3.0, 2.0, 1.0], lambda x, w: (x * w).sort(1)[0] * torch.arange(3.0)),
}


@pytest.mark.parametrize(("numbers", "function"), TIES.values(), ids=list(TIES))
def test_gradients_at_ties_and_bounds(numbers, function):
    check(Numbers(numbers, function), torch.ones(2, 3), steps=1)


IDS = torch.tensor([[0, 1, 2, 0], [3, 0, 0, 4]])


@pytest.mark.parametrize(
    "model",
    [
        lambda: Words(padding_idx=0),
        lambda: Words(padding_idx=-2),
        *(lambda m=m: Bags(m) for m in ("sum", "mean", "max")),
    ],
    ids=["rows", "rows_from_the_end", "sum", "mean", "max"],
)
def test_rows_of_padding_get_no_gradient(model):
    torch.manual_seed(0)
    check(model(), IDS)


def test_gradients_by_frequency_are_refused():
    with pytest.raises(UnsupportedError, match=r"aten\.embedding\.default in table: scale_grad_by_freq=True"):
        compiled(Words(scale_grad_by_freq=True), IDS)


def test_a_frozen_batch_norm_stays_and_another_is_called_twice():
    torch.manual_seed(0)
    image = torch.randn(4, 3, 5, 3)
    model = Normal().train()
    with torch.no_grad():
        model.other.running_mean += 0.3
    check(model, image)
    model.other.eval()
    check(model, image)
    assert any("other.running_mean" in name for name in model.state_dict())


@pytest.mark.parametrize("training_mode", [True, False])
def test_dropouts_of_channels_drop(training_mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Dropout2d(0.5)).train(training_mode)
    image = torch.randn(2, 3, 4, 5)
    step = compiled(model, image, rate=0.0)
    zeros = np.zeros((2, 8, 4, 5), "float32")
    assert len({step(image.numpy(), zeros) for _ in range(4)}) > 1
    found = step.evaluate(image.numpy())[0]
    np.testing.assert_allclose(found, model.eval()(image).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (nn.AlphaDropout(0.5), "alpha_dropout.default in 1: an alpha dropout cannot be trained yet"),
        (nn.InstanceNorm2d(8, track_running_stats=True), "instance_norm.default in 1: running statistics of"),
        (nn.BatchNorm2d(8, momentum=None), "batch_norm.default in 1: its momentum is None or 0"),
    ],
    ids=["alpha_dropout", "instance_norm", "momentum"],
)
def test_layers_that_would_train_otherwise_are_refused(layer, reason):
    model = nn.Sequential(nn.Conv2d(3, 8, 1), layer).eval()
    with pytest.raises(UnsupportedError, match=reason):
        compiled(model, torch.randn(2, 3, 4, 5))
