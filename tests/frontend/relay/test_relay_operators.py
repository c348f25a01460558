"""Operators of Relay in text, held against numpy, onnxruntime or ONNX's reference: many in one function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relay_operator_cases import GROUPS
from relay_references import QUICK, RANDOM, VALUES

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.relay import parser
from tvm_mxplan.frontend.relay.attributes import _NAMED as NAMED
from tvm_mxplan.frontend.relay.attributes import TYPES
from tvm_mxplan.frontend.relay.converters.table import TABLE
from tvm_mxplan.frontend.relay.importer import import_program


def module_text(expressions: list[str]) -> str:
    heads = ", ".join(
        f"%{name}: Tensor[({', '.join(map(str, value.shape))}), {value.dtype}]"
        for name, value in VALUES.items()
    )
    lines = "\n".join(f"  %{number} = {text};" for number, text in enumerate(expressions))
    result = ", ".join(f"%{number}" for number in range(len(expressions)))
    return f'#[version = "0.0.5"]\ndef @main({heads}) {{\n{lines}\n  ({result},)\n}}\n'


def imported(text: str) -> Any:
    return import_program(*parser.parse(text, "net.relay"), {})


@pytest.mark.parametrize("group", GROUPS)
def test_operators(group: str) -> None:
    cases = GROUPS[group]
    mod = imported(module_text([case.text for case in cases]))
    results = tvm_mxplan.compile(mod, QUICK, options={"cache": "disabled"})(**VALUES)
    assert len(results) == len(cases)
    for case, result in zip(cases, results, strict=True):
        actual, expected = result.numpy(), np.asarray(case.expected())
        assert actual.shape == expected.shape, case.text
        assert actual.dtype.kind == expected.dtype.kind, case.text
        np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5, err_msg=case.text)


def test_every_operator_with_attributes_has_a_type_and_a_converter() -> None:
    assert {f"{name}Attrs" for name in NAMED.values()} == set(TYPES)
    assert set(NAMED) <= set(TABLE)


@pytest.mark.parametrize(
    "text, words",
    [
        ("nn.foo(%x)", ["3:8: nn.foo: this operator of Relay's is not read", "ONNX"]),
        ("qnn.conv2d(%x, %w)", ["qnn.conv2d", "before it is quantised"]),
        ("dyn.reshape(%x, %k)", ["DynamicToStatic"]),
        ("nn.contrib_conv2d_NCHWc(%x, %w)", ["before relay.build's passes"]),
        ('nn.conv2d(%x, %w, data_layout="NCHW16c", groups=2)', ["'NCHW16c'", "without blocks"]),
        ("nn.conv2d(%x, %w, strides=[1, 2, 3], groups=2)", ["2 numbers as strides", "[1, 2, 3]"]),
        ("nn.conv2d(%x, %m)", ["rank 4", "4 and 2"]),
        ("nn.conv2d(%x)", ["2 operands or more, got 1"]),
        ("nn.conv2d(%x, (%w, %w))", ["got a tuple"]),
        ("nn.conv2d(%x, %w)", ["cannot be imported"]),
        ("nn.max_pool2d(%x)", ["attribute pool_size is missing"]),
        ("clip(%x, a_min=0f)", ["attribute a_max is missing"]),
        ("reshape(%x, newshape=[0, -1, -1])", ["expected -1 once"]),
        ("reshape(%x, newshape=[11, -1])", ["420 elements do not fill"]),
        ("reshape(%m, newshape=[0, 0, 0])", ["one that fits the shape"]),
        ('reshape(%m, newshape=["a"])', ["numbers as newshape"]),
        ("concatenate(%x, axis=0)", ["a tuple of tensors"]),
        ("split(%x, indices_or_sections=2).7", ["field 7 of 2 fields"]),
        ("nn.softmax(%x, axis=4)", ["axis = 4; expected -4 to 3"]),
        ("take(%x, %k, axis=0, batch_dims=1)", ["batch_dims = 1"]),
        ("zeros(shape=[999999, 999999, 99])", ["at most 2,147,483,648 elements"]),
        ('arange(0f, 1f, 0f, dtype="float32")', ["a step that is not 0"]),
        ("add(%x, %m.0)", ["field 0 of a tensor"]),
        ("@other(%x)", ["'other' is no function"]),
        ("nn.conv2d(%x, %w, groups=0)", ["cannot be imported"]),
        ("nn.conv2d(%x, %w, groups=2, strides=[0, 0])", ["cannot be imported"]),
        ("split(%x, indices_or_sections=99999999)", ["99999999 sections of 2"]),
        ("split(%x, indices_or_sections=0)", ["0 sections of 2"]),
        ("expand_dims(%m, axis=0, num_newaxis=99999999)", ["99999999 axes at 0"]),
        ("repeat(%m, repeats=-1, axis=0)", ["repeats = -1"]),
        ("tile(%m, reps=[-1])", ["reps = [-1]"]),
        ("one_hot(%k, 1f, 0f, depth=-1)", ["depth -1"]),
        ("nn.upsampling(%x, scale_h=nanf, scale_w=1f)", ["scales (nan, 1.0)"]),
        ("image.resize2d(%x, size=[-1, 5])", ["size = [-1, 5]"]),
        ("nn.lrn(%x, size=-3)", ["an odd number"]),
        ('cast(%x, dtype="foo")', ["foo"]),
        ("topk(%m, k=99)", ["k = 99 of 5"]),
        ("cumsum(%m, axis=9)", ["axis = 9"]),
        ("nn.adaptive_avg_pool2d(%x, output_size=[-3, 2])", ["output_size = [-3, 2]"]),
        ("nn.group_norm(%x, %v, %v)", ["num_groups = 0"]),
        ("concatenate((), axis=0)", ["cannot be imported"]),
    ],
)
def test_what_is_refused_is_one_line_with_the_place(text: str, words: list[str]) -> None:
    with pytest.raises((InvalidInputError, UnsupportedError)) as error:
        imported(module_text([text]))
    message = str(error.value)
    assert message.startswith("net.relay:3:") and "\n" not in message
    assert all(word in message for word in words), message


def test_symbols_stay_symbols() -> None:
    text = """#[version = "0.0.5"]
    def @main(%x: Tensor[(?, 4, ?), float32]) {
      %0 = reshape(%x, newshape=[0, 2, -1]);
      %1 = reshape(%x, newshape=[-3, -1]);
      (%0, %1)
    }"""
    mod = imported(text)
    ex = tvm_mxplan.compile(mod, "llvm", options={"cache": "disabled"})
    assert ex.signature.inputs[0].shape == ("x_0", 4, "x_2")
    x = RANDOM.standard_normal((3, 4, 5), np.float32)
    first, second = (result.numpy() for result in ex(x))
    assert np.array_equal(first, x.reshape(3, 2, -1))
    assert np.array_equal(second, x.reshape(12, -1))
