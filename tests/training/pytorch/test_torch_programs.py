"""Exported programs of PyTorch as models: whole steps against PyTorch's, where torch is installed."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")

from tvm_mxplan import training  # noqa: E402
from tvm_mxplan.errors import InvalidInputError, UnsupportedError  # noqa: E402
from tvm_mxplan.testing.reference import relative_l2  # noqa: E402

nn = torch.nn
OPTIONS = {"machine": "default", "cache": "disabled"}
RATE, MOMENTUM = 0.05, 0.9


class Net(nn.Module):
    """Convolutions, batch norms, a table of rows, attention, and one weight under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.BatchNorm2d(12), nn.Hardswish())
        self.table = nn.Embedding(9, 12)
        self.norm = nn.LayerNorm(12)
        self.inner, self.outer = nn.Linear(12, 12, bias=False), nn.Linear(12, 12)
        self.outer.weight = self.inner.weight
        self.head = nn.Linear(12, 5)
        self.frozen = nn.Parameter(torch.ones(12), requires_grad=False)

    def forward(self, image, ids):
        rows = self.stem(image).flatten(2).transpose(1, 2)
        rows = torch.cat([self.table(ids), rows], 1) * self.frozen
        query = self.inner(self.norm(rows))
        rows = rows + nn.functional.scaled_dot_product_attention(query, query, rows)
        return self.head(nn.functional.gelu(self.outer(rows)).mean(1))


def batch(seed):
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(4, 3, 9, 8, generator=generator)
    ids = torch.randint(0, 9, (4, 3), generator=generator)
    return image, ids, torch.randint(0, 5, (4,), generator=generator)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net()


def compiled(model, **settings):
    with torch.no_grad():
        program = torch.export.export(model, batch(0)[:2], strict=False)
    sgd = training.SGD(RATE, MOMENTUM)
    return training.compile(program, "softmax_cross_entropy", sgd, options=OPTIONS, **settings)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_three_steps_agree_with_pytorch(net, mode):
    model = copy.deepcopy(net)
    step = compiled(getattr(model, mode)(), keep_gradients=True)
    assert {one.kind for region in step.report.regions for one in region.steps} >= {
        "convolution",
        "convolution_backward_weights",
        "batch_normalization_training",
    }
    model.train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], RATE, MOMENTUM)
    for number in range(3):
        image, ids, labels = batch(number)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image, ids), labels)
        loss.backward()
        assert step(image.numpy(), ids.numpy(), labels.numpy()) == pytest.approx(
            float(loss.detach()), rel=1e-5
        )
        grads = {name: p.grad.numpy() for name, p in model.named_parameters() if p.requires_grad}
        assert set(step.gradients) == set(grads)
        assert "outer.weight" not in grads  # PyTorch names a weight of two modules once, and so do we
        for name, grad in grads.items():
            if name != "stem.0.bias":  # a shift that the batch norm behind it takes out: all rounding
                assert relative_l2(step.gradients[name], grad) < 1e-4, name
        optimizer.step()
    expected = {name: value.numpy() for name, value in model.state_dict().items()}
    found = step.state_dict()["model"]
    assert {"stem.1.running_mean", "stem.1.running_var", "frozen"} <= set(found)
    for name, array in found.items():
        assert relative_l2(array, expected[name]) < 1e-4, name
    np.testing.assert_array_equal(found["frozen"], np.ones(12, "float32"))
    model.eval()
    image, ids, _ = batch(7)
    with torch.no_grad():
        wanted = model(image, ids).numpy()
    np.testing.assert_allclose(step.evaluate(image.numpy(), ids.numpy())[0], wanted, rtol=1e-4, atol=1e-5)


class Drops(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.drop, self.head = nn.Dropout(rate), nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.drop(x))


def test_dropouts_drop_whatever_mode_the_program_is_of():
    x = torch.ones(3, 6)
    model = Drops(0.5).eval()
    program = torch.export.export(model, (x,), strict=False)
    step = training.compile(program, "softmax_cross_entropy", "sgd", options=OPTIONS)
    labels = np.array([0, 1, 2])
    losses = [step(x.numpy(), labels) for _ in range(3)]
    whole = float(nn.functional.cross_entropy(model(x), torch.from_numpy(labels)).detach())
    assert abs(losses[0] - whole) > 1e-4
    np.testing.assert_allclose(
        step.evaluate(x.numpy())[0][0], step.evaluate(x.numpy())[0][1]
    )  # nothing drops there
    assert program.graph.nodes  # the user's program is as it was
    assert any("dropout" in str(node.target) and node.args[2] is False for node in program.graph.nodes)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 4)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        y = self.head(x)
        self.seen.add_(y.sum(0))
        return y


def test_what_cannot_be_trained_is_refused():
    x = torch.randn(3, 6)
    program = torch.export.export(Counts().train(), (x,), strict=False)
    with pytest.raises(UnsupportedError, match="writes to 'seen', and of a model's buffers"):
        training.compile(program, "softmax_cross_entropy", "sgd")
    half = torch.export.export(nn.Linear(6, 4).half(), (x.half(),), strict=False)
    with pytest.raises(UnsupportedError, match="'weight' is of float16; training needs float32 or float64"):
        training.compile(half, "softmax_cross_entropy", "sgd")
    rows = torch.export.Dim("rows", min=2, max=9)
    named = torch.export.export(nn.Linear(6, 4), (x,), dynamic_shapes=({0: rows},), strict=False)
    with pytest.raises(UnsupportedError, match="training needs shapes that are numbers: export the model"):
        training.compile(named, "softmax_cross_entropy", "sgd")
    with pytest.raises(InvalidInputError, match=r"cannot train a Linear as it is; pass torch\.export"):
        training.compile(nn.Linear(6, 4), "softmax_cross_entropy", "sgd")


class Layers(nn.Module):
    """Two recurrent layers in both directions, from states of zeros; scores by outputs and last states."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layers = getattr(nn, kind)(7, 9, num_layers=2, bidirectional=True, batch_first=True)
        self.outputs, self.last = nn.Linear(18, 5), nn.Linear(9, 5)

    def forward(self, x):
        every, states = self.layers(x)
        states = states if isinstance(states, tuple) else (states,)
        return self.outputs(every.mean(1)) + self.last(sum(state[-1] for state in states))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_steps_of_recurrent_layers_agree_with_pytorch(kind):
    torch.manual_seed(0)
    model = Layers(kind).train()
    generator = torch.Generator().manual_seed(1)
    program = torch.export.export(model, (torch.randn(3, 6, 7, generator=generator),), strict=False)
    step = training.compile(
        program,
        "softmax_cross_entropy",
        training.SGD(RATE, MOMENTUM),
        options={**OPTIONS, "verify": "off"},
        keep_gradients=True,
    )
    ran = [one.kind for region in step.report.regions for one in region.steps]
    assert ran.count("recurrent_training") == ran.count("recurrent_backward") == 2
    optimizer = torch.optim.SGD(model.parameters(), RATE, MOMENTUM)
    for _ in range(10):
        x = torch.randn(3, 6, 7, generator=generator)
        labels = torch.randint(0, 5, (3,), generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        assert step(x.numpy(), labels.numpy()) == pytest.approx(float(loss.detach()), rel=1e-5)
        for name, parameter in model.named_parameters():
            assert relative_l2(step.gradients[name], parameter.grad.numpy()) < 1e-4, name
        optimizer.step()
    for name, array in step.state_dict()["model"].items():
        assert relative_l2(array, model.state_dict()[name].numpy()) < 1e-5, name
