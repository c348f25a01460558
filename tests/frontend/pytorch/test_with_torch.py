"""Modules, exported programs and torch.compile, where torch is installed."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is no dependency")
_pytree = torch.utils._pytree

import tvm_mxplan  # noqa: E402
from tvm_mxplan.errors import InvalidInputError, UnsupportedError  # noqa: E402
from tvm_mxplan.frontend.torch import dynamo  # noqa: E402

OPTIONS = {"cache": "disabled"}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Sequential(torch.nn.Conv2d(3, 17, 3), torch.nn.ReLU())
        self.head = torch.nn.Linear(17, 5)

    def forward(self, image, *, mask):
        features = self.layer(image).mean((2, 3))
        return {"logits": self.head(features), "kept": mask.cumsum(0)}


INPUTS = {"image": torch.rand(2, 3, 9, 9), "mask": torch.rand(4) > 0.5}


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


def check(executable, net, inputs):
    with torch.no_grad():
        expected = net(**inputs)
    actual = executable(**{name: tensor.numpy() for name, tensor in inputs.items()})
    for value, found in zip(expected.values(), actual, strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-5, atol=1e-5)


def test_a_module_with_named_dimensions(net):
    shapes = {"image": {0: "batch"}, "mask": {0: torch.export.Dim("count", max=9)}}
    executable = tvm_mxplan.compile(net, kwargs=INPUTS, dynamic_shapes=shapes, options=OPTIONS)
    assert executable.report.regions
    inputs, outputs = executable.signature.inputs, executable.signature.outputs
    assert [(port.name, port.shape) for port in inputs] == [
        ("image", ("batch", 3, 9, 9)),
        ("mask", ("count",)),
    ]
    assert [port.name for port in outputs] == ["logits", "kept"]
    check(executable, net, INPUTS)
    check(executable, net, {"image": torch.rand(5, 3, 9, 9), "mask": torch.rand(7) > 0.5})


def test_an_exported_program_does_not_follow_its_module(net):
    program = torch.export.export(net, (), INPUTS)
    executable = tvm_mxplan.compile(program, options=OPTIONS)
    before = [result.numpy() for result in executable(**{k: v.numpy() for k, v in INPUTS.items()})]
    check(executable, net, INPUTS)
    with torch.no_grad():
        net.head.bias.add_(1)
    after = [result.numpy() for result in executable(**{k: v.numpy() for k, v in INPUTS.items()})]
    np.testing.assert_array_equal(before[0], after[0])


def test_refusals(net):
    with pytest.raises(InvalidInputError, match=r"Net is in training mode; call model.eval\(\) first"):
        tvm_mxplan.compile(Net(), kwargs=INPUTS)
    with pytest.raises(InvalidInputError, match=r"needs example inputs"):
        tvm_mxplan.compile(net)

    class Random(torch.nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls.add_(1)
            return x * self.calls

    for kind, text in ((Random, "random numbers differ"), (Counting, "writes to its buffer 'calls'")):
        with pytest.raises(UnsupportedError, match=text):
            tvm_mxplan.compile(kind().eval(), args=(torch.rand(3),))


def test_torch_compile_shares_weights_and_sees_new_ones(net):
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="mxplan", options=OPTIONS)
    with torch.no_grad():
        for _ in range(2):
            for name, value in net(**INPUTS).items():
                torch.testing.assert_close(compiled(**INPUTS)[name], value)
            (executable,) = dynamo.executables()
            assert executable.report.regions
            net.head.weight.mul_(2)


def test_training_runs_in_pytorch_and_says_so(net):
    torch._dynamo.reset()
    dynamo._said.clear()
    compiled = torch.compile(net, backend="mxplan", options=OPTIONS)
    with pytest.warns(UserWarning, match=r"require gradients; call it under torch.no_grad\(\)"):
        compiled(**INPUTS)["logits"].sum().backward()
    assert net.head.weight.grad is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_written_through_data_are_seen(dtype):
    torch._dynamo.reset()
    net = torch.nn.Linear(6, 5).to(dtype).eval()
    compiled = torch.compile(net, backend="mxplan", options=OPTIONS)
    x = torch.rand(3, 6).to(dtype)
    # Sums of six products of numbers up to 3, rounded once at least.
    within = {"rtol": 4 * torch.finfo(dtype).eps, "atol": 8 * torch.finfo(dtype).eps}
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), net(x), **within)
        assert dynamo.executables()
        before = net.weight._version
        net.weight.data.mul_(3)
        assert net.weight._version == before  # PyTorch has not counted it
        torch.testing.assert_close(compiled(x), net(x), **within)


def test_a_graph_that_cannot_be_compiled_warns_once():
    torch._dynamo.reset()
    dynamo._said.clear()
    x = torch.rand(3, 4)
    compiled = torch.compile(lambda x: torch.randn_like(x) * 0 + x, backend="mxplan", options=OPTIONS)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        for _ in range(3):
            torch.testing.assert_close(compiled(x), x)
    (said,) = [str(one.message) for one in caught if "tvm_mxplan" in str(one.message)]
    assert "random numbers" in said


def test_options_are_checked():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x + 1, backend="mxplan", options={"no_such": 1})
    with pytest.raises(Exception, match="no_such"):
        compiled(torch.rand(3))


class Recurrent(torch.nn.Module):
    """Layers of cells; ``states`` of them are inputs."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x, states=None):
        return self.layers(x, states)


RECURRENT = {
    "lstm": (torch.nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}, 0, 2),
    "lstm with states": (torch.nn.LSTM, {}, 2, 1),
    "gru without bias": (torch.nn.GRU, {"num_layers": 2, "bias": False}, 0, 2),
    "gru with states": (torch.nn.GRU, {"bidirectional": True}, 1, 1),
    "relu": (torch.nn.RNN, {"nonlinearity": "relu"}, 0, 1),
    "projected": (torch.nn.LSTM, {"proj_size": 3}, 0, 0),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers(name):
    """Each is one step; what has a projection PyTorch takes apart."""
    kind, options, states, steps = RECURRENT[name]
    torch.manual_seed(0)
    module = Recurrent(kind(5, 7, **options)).eval()
    directions = 2 if options.get("bidirectional") else 1
    given = [torch.randn(options.get("num_layers", 1) * directions, 2, 7) for _ in range(states)]
    x = torch.randn(2, 4, 5) if options.get("batch_first") else torch.randn(4, 2, 5)
    arguments = (x, *([tuple(given) if states > 1 else given[0]] if states else []))
    executable = tvm_mxplan.compile(torch.export.export(module, arguments), options=OPTIONS)
    kinds = [step.kind for region in executable.report.regions for step in region.steps]
    assert kinds.count("recurrent") == steps
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(module(*arguments))
    for found, value in zip(executable(x.numpy(), *(s.numpy() for s in given)), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-4, atol=1e-6)


def test_assignments_in_a_loop_are_one_join():
    """PyTorch reads the old part before each, for a copy that does not look at its numbers."""

    class Loop(torch.nn.Module):
        def forward(self, x):
            result = torch.zeros_like(x)
            for at in range(x.shape[1]):
                result[:, at] = torch.tanh(x[:, at])
            return result

    x = torch.linspace(-2, 2, 30).reshape(2, 5, 3)
    executable = tvm_mxplan.compile(torch.export.export(Loop(), (x,)), options=OPTIONS)
    kinds = [step.kind for region in executable.report.regions for step in region.steps]
    assert kinds.count("concat") == 1 and "put_slice" not in str(executable.report)
    np.testing.assert_allclose(executable(x.numpy())[0].numpy(), Loop()(x).numpy(), rtol=1e-5, atol=1e-6)


def test_recurrent_weights_that_are_inputs():
    class Given(torch.nn.Module):
        def forward(self, x, h, w, r):
            return torch._VF.gru(x, h, [w, r], False, 1, 0.0, False, False, False)

    torch.manual_seed(0)
    tensors = (torch.randn(4, 2, 5), torch.randn(1, 2, 7), torch.randn(21, 5), torch.randn(21, 7))
    executable = tvm_mxplan.compile(torch.export.export(Given(), tensors), options=OPTIONS)
    assert "recurrent" in [step.kind for region in executable.report.regions for step in region.steps]
    for found, value in zip(executable(*(t.numpy() for t in tensors)), Given()(*tensors), strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_model_in_16_bits_is_right_to_one_rounding_of_its_results(net, dtype):
    inputs = {"image": INPUTS["image"].to(dtype), "mask": INPUTS["mask"]}
    program = torch.export.export(net.to(dtype), (), inputs)
    options = {**OPTIONS, "precision": "f32"}
    executable = tvm_mxplan.compile(program, options=options)
    assert not {"relax.matmul", "relax.nn.conv2d"} & {kept.kind for kept in executable.report.kept}
    given = inputs["image"].view(torch.int16).numpy()
    given = given.view(np.float16 if dtype is torch.float16 else ml_dtypes.bfloat16)
    found = executable(image=given, mask=inputs["mask"].numpy())[0].numpy()
    with torch.no_grad():
        expected = net.double()(inputs["image"].double(), mask=inputs["mask"])["logits"].numpy()
    assert found.dtype == given.dtype
    error = np.linalg.norm(found.astype("float64") - expected) / np.linalg.norm(expected)
    assert 0 < error < torch.finfo(dtype).eps / 2


def test_numbers_next_to_the_ends_of_ranges_are_counted_where_pytorch_does() -> None:
    dice = np.random.default_rng(0)
    for _ in range(6):
        bins, low = int(dice.integers(1, 200)), float(np.float32(dice.normal() * 10))
        high = float(np.float32(low + abs(dice.normal()) * 10 + 0.1))
        ends = (low + np.arange(bins + 1) * (high - low) / bins).astype("float32")
        beside = [np.nextafter(ends, np.float32(way * np.inf)) for way in (-1, 1)]
        x = torch.from_numpy(np.concatenate([ends, *beside]))

        class Counted(torch.nn.Module):
            def forward(self, x, bins=bins, low=low, high=high):
                return torch.histc(x, bins, low, high)

        executable = tvm_mxplan.compile(torch.export.export(Counted(), (x,)), options=OPTIONS)
        np.testing.assert_array_equal(executable(x.numpy())[0].numpy(), torch.histc(x, bins, low, high))


def _product():
    """A product with weights that stand in memory column after column."""

    class Product(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(96, 64).t())

        def forward(self, x):
            return x @ self.weight

    return Product().eval()


def _compiled(net):
    torch._dynamo.reset()
    return torch.compile(net, backend="mxplan", options={"cache": "disabled", "verify": "off"})


def test_writes_through_data_are_seen_in_any_order_of_elements():
    torch.manual_seed(0)
    filters = torch.nn.Conv2d(8, 8, 3, bias=False).eval().to(memory_format=torch.channels_last)
    for net, x in ((filters, torch.randn(1, 8, 9, 9)), (_product(), torch.randn(3, 64))):
        assert not net.weight.is_contiguous()
        compiled = _compiled(net)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-4)
            assert all(executable.report.regions for executable in dynamo.executables())
            net.weight.data.mul_(3)
            torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-4)


def test_other_weights_do_not_come_to_stand_where_compiled_ones_stood():
    torch.manual_seed(0)
    net, x = _product(), torch.randn(3, 64)
    compiled = _compiled(net)
    places = set()
    with torch.no_grad():
        for _ in range(6):
            torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-4)
            places.add(net.weight.data_ptr())
            net.weight = None
            net.weight = torch.nn.Parameter(torch.randn(96, 64).t())
    assert len(places) == 6


class Answer(dict):
    """A mapping that PyTorch knows as a node without names for its parts, as diffusers' outputs are."""


class Answering(torch.nn.Module):
    """A model that returns such a mapping, with a tuple in it."""

    def forward(self, x: torch.Tensor) -> Answer:
        return Answer(sample=x.relu(), pair=(x.tanh(), x.sigmoid()))


def test_results_in_a_class_that_does_not_name_its_parts() -> None:
    _pytree.register_pytree_node(
        Answer,
        lambda answer: (list(answer.values()), list(answer)),
        lambda values, keys: Answer(zip(keys, values, strict=True)),
    )
    x = torch.randn(2, 5)
    executable = tvm_mxplan.compile(torch.export.export(Answering(), (x,)), options={"cache": "disabled"})
    assert [port.name for port in executable.signature.outputs] == ["sample", "pair_0", "pair_1"]
    for result, expected in zip(executable(x.numpy()), (x.relu(), x.tanh(), x.sigmoid()), strict=True):
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)
