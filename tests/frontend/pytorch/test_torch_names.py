"""Names of modules, results and dimensions, and sizes: what needs no PyTorch."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tvm
from stand_ins_of_torch import Dim, Integer, Operator, Shaped, Symbol, expression, from_torch, stack
from tvm import tirx

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.torch import is_torch, kinds
from tvm_mxplan.frontend.torch.compiled_graph import Sample, sampled_bytes
from tvm_mxplan.frontend.torch.dimensions import (
    Bound,
    axis_names,
    named_bounds,
    with_dimensions,
)
from tvm_mxplan.frontend.torch.export import dimensions_of
from tvm_mxplan.frontend.torch.names import module_path, operator_name, result_names
from tvm_mxplan.frontend.torch.sizes import size_of


def test_kinds_are_told_by_class_and_package():
    module = from_torch("Module")
    users = type("Net", (module,), {"__module__": "__main__"})
    assert kinds.is_module(users()) and is_torch(users())
    assert kinds.is_program(from_torch("ExportedProgram")())
    assert kinds.is_scripted(from_torch("ScriptModule", module)())
    mine = type("Module", (), {"__module__": "torchlike.nn"})
    assert not is_torch(mine()) and not is_torch(np.zeros(3)) and not is_torch("model.onnx")


def test_a_module_is_called_as_state_dict_calls_it():
    assert module_path(stack("", "layer1", "layer1.0", "layer1.0.conv1")) == "layer1.0.conv1"
    assert module_path({"nn_module_stack": {"a": ("L['self'].layer1.0", "x")}}) == "layer1.0"
    assert module_path(stack("")) == "" and module_path({}) == ""


def test_an_operator_is_called_with_its_namespace():
    import operator

    assert operator_name(Operator("aten.add.Tensor")) == "aten.add.Tensor"
    assert operator_name(operator.getitem) == "_operator.getitem"


def test_results_have_the_keys_of_what_is_returned():
    key = type("Key", (), {"__init__": lambda self, key: setattr(self, "key", key)})
    index = type("Index", (), {"__init__": lambda self, idx: setattr(self, "idx", idx)})
    assert result_names([()]) == ["output0"]
    assert result_names([(index(0),), (index(1), index(2))]) == ["output0", "output1_2"]
    assert result_names([(key("logits"),), (key("past"), index(0))]) == ["logits", "past_0"]
    assert result_names([(key("a.b"),), (key("a_b"),)]) == ["a_b", "a_b_2"]


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: "batch", -1: Dim("width")}, "more": {"ids": ("batch", None)}},
        ({0: "batch", 3: "width"}, {"ids": ["batch", 7]}),
    ],
)
def test_axes_have_the_users_names(shapes):
    arguments = {"x": Shaped(2, 3, 8, 9), "more": {"ids": Shaped(2, 7), "rest": Shaped(1)}}
    names = axis_names(arguments, shapes)
    assert names == {("x", 0): "batch", ("x", 3): "width", ("more_ids", 0): "batch"}


def test_hints_without_a_name_name_nothing():
    assert axis_names({"x": Shaped(2)}, {"x": {0: Integer(3)}}) == {}
    assert axis_names({"x": Shaped(2)}, None) == {}


def test_symbols_get_names_and_keep_bounds():
    places = [("x", 0, "s1"), ("x", 2, "s7"), ("y", 0, "s1"), ("y", 1, "s9")]
    found = named_bounds(places, {"s1": (1, 8), "s7": (0, None)}, {("y", 0): "batch", ("y", 1): "x_2"})
    assert found == {"s1": Bound("batch", 1, 8), "s7": Bound("x_2"), "s9": Bound("x_2_2")}


def test_symbols_without_limits_have_no_bounds():
    """PyTorch writes infinities, which are no integers, where numbers decide a size."""

    class Endless(Symbol):
        def __int__(self) -> int:
            raise AttributeError("'Infinity' object has no attribute '_mpf_'")

    limits = SimpleNamespace(lower=Endless("-oo"), upper=Endless("oo"))
    size = SimpleNamespace(node=SimpleNamespace(expr=Symbol("u0")))
    node = SimpleNamespace(name="x", op="placeholder", meta={"val": Shaped(size)})
    program = SimpleNamespace(range_constraints={Symbol("u0"): limits}, graph=SimpleNamespace(nodes=[node]))
    assert dimensions_of(program, {}) == named_bounds([("x", 0, "u0")], {"u0": (0, None)}, {})


def test_the_same_text_is_the_same_dimension():
    made = with_dimensions({"x": {0: "n"}, "y": [("n", "m"), 3, None]}, Dim)
    assert made["x"][0] is made["y"][0][0] and made["y"][0][1].__name__ == "m"
    assert made["y"][1:] == [3, None]
    assert with_dimensions(None, Dim) is None


def test_sizes_become_expressions():
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    variables = {"s0": n, "s1": m, "s2": 5}
    s0, s1, s2 = map(Symbol, ("s0", "s1", "s2"))
    cases = [
        (7, 7),
        (Integer(4), 4),
        (s2, 5),
        (expression("Add", expression("Mul", Integer(2), s0), s1), n * 2 + m),
        (expression("FloorDiv", expression("Add", s0, Integer(-1)), Integer(2)), tirx.floordiv(n - 1, 2)),
        (expression("Pow", s0, Integer(2)), n * n),
        (expression("Max", s0, Integer(3)), tirx.max(n, tirx.const(3, "int64"))),
        (expression("Mul", s2, s2), 25),
    ]
    for size, expected in cases:
        found = size_of(size, variables)
        if isinstance(expected, int):
            assert found == expected
        else:
            assert tvm.sym.Analyzer().can_prove_equal(found, expected)


@pytest.mark.parametrize(
    "size, text",
    [
        (Symbol("u0"), "size u0 depends on numbers in a tensor"),
        (expression("FloatTrueDiv", Symbol("s0"), Integer(2)), "is computed by FloatTrueDiv"),
        (expression("Pow", Symbol("s0"), Integer(-1)), "is computed by Pow"),
    ],
)
def test_sizes_that_are_refused(size, text):
    with pytest.raises(UnsupportedError, match=text):
        size_of(size, {"s0": tirx.Var("n", "int64")})


def test_examples_are_for_models_of_pytorch():
    with pytest.raises(InvalidInputError, match=r"for models of PyTorch's, not for a str"):
        tvm_mxplan.compile("model.onnx", args=(np.zeros(3),))
    with pytest.raises(InvalidInputError, match=r"say dynamic_shapes"):
        tvm_mxplan.compile(from_torch("Module")(), shapes={"x": [1]})
    scripted = from_torch("ScriptModule", from_torch("Module"))
    with pytest.raises(InvalidInputError, match=r"is TorchScript"):
        tvm_mxplan.compile(scripted())


def test_the_backend_is_known_to_pytorch_by_an_entry_point():
    import configparser
    import importlib
    from pathlib import Path

    config = configparser.ConfigParser()
    config.read(Path(__file__).resolve().parents[3] / "setup.cfg")
    text = config["options.entry_points"]["torch_dynamo_backends"].strip()
    name, _, place = text.partition(" = ")
    module, _, function = place.partition(":")
    assert name == "mxplan"
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize(
    "tensor",
    [
        lambda memory: memory.reshape(16, 15),
        lambda memory: memory.reshape(16, 15).T,
        lambda memory: memory.reshape(2, 4, 5, 6).transpose(0, 3, 1, 2),
        lambda memory: memory[7:].reshape(-1)[: 3 * 50 : 3],
        lambda memory: np.lib.stride_tricks.as_strided(memory[5:], (4, 3), (0, 8)),
        lambda memory: memory[3:4].reshape(()),
        lambda memory: memory[:0].reshape(0, 4),
    ],
)
def test_elements_spread_over_a_tensor_are_looked_at(tensor):
    memory = np.arange(240, dtype="float32")
    view = tensor(memory)
    begin = (view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]) // 4
    places = sampled_bytes(view.shape, [stride // 4 for stride in view.strides], begin, 4)
    flat = view.reshape(-1)
    np.testing.assert_array_equal(
        memory.view("uint8")[places].view("float32"), flat[:: max(1, -(-flat.size // 16))]
    )


def test_a_write_to_all_elements_is_seen():
    memory = np.arange(240, dtype="float32")
    sample = Sample.of(memory.view("uint8"), sampled_bytes((15, 16), (1, 15), 0, 4))
    assert len(sample.before) == 4 * 16 and sample.is_unchanged()
    memory *= 3
    assert not sample.is_unchanged()
