"""Relay's text: the forms that the printer has, long programs, and faults with their places."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.relay import parser
from tvm_mxplan.frontend.relay.importer import import_program
from tvm_mxplan.frontend.relay.syntax import Block, Call, Constant, Function, If, Item, TensorType, Tuple

HEAD = '#[version = "0.0.5"]\n'
X = np.random.default_rng(3).standard_normal((2, 3), np.float32)


def parsed(text: str) -> Function:
    return parser.parse(HEAD + text, "net.relay")[0].functions["main"]


def body(text: str, params: str = "%x: Tensor[(2, 3), float32]") -> object:
    return parsed(f"def @main({params}) {{ {text} }}").body


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    mod = import_program(*parser.parse(HEAD + text, "net.relay"), {})
    ex = tvm_mxplan.compile(mod, "llvm -opt-level=0", options={"cache": "disabled"})
    return [result.numpy() for result in ex(*inputs)]


def test_names_with_dots_colons_and_slashes() -> None:
    names = [
        "x.1",
        "layer1.0.weight",
        "aten::conv_1.bias",
        "/model/Conv_output_0",
        "input:0",
        "v0.weight",
        "a-b",
    ]
    params = ", ".join(f"%{name}: float32" for name in names)
    found = parsed(f"def @main({params}) {{ ({', '.join('%' + name for name in names)}) }}")
    assert [param.name for param in found.params] == names
    assert isinstance(found.body, Tuple) and list(found.body.fields) == list(found.params)


def test_a_number_behind_a_name_is_a_field_unless_it_is_the_name() -> None:
    found = body("let %y = (%x, (%x, %x.0)); %y.1.0", "%x: float32, %x.0: float32")
    assert isinstance(found, Block)
    item = found.result
    assert isinstance(item, Item) and item.index == 0
    assert isinstance(item.source, Item) and item.source.index == 1
    assert found.bindings[0][1].fields[1].fields[1].name == "x.0"


@pytest.mark.parametrize(
    "text, value, dtype",
    [
        ("1", 1, "int32"),
        ("-7", -7, "int32"),
        ("3000000000", 3000000000, "int64"),
        ("5i64", 5, "int64"),
        ("4i16", 4, "int16"),
        ("1f", 1, "float32"),
        ("-0.5f", -0.5, "float32"),
        ("1e-05f", 1e-5, "float32"),
        ("2.5e+10f64", 2.5e10, "float64"),
        ("1.5f16", 1.5, "float16"),
        ("inff", np.inf, "float32"),
        ("-inff", -np.inf, "float32"),
        ("True", True, "bool"),
    ],
)
def test_literals(text: str, value: float, dtype: str) -> None:
    found = body(text)
    assert isinstance(found, Constant)
    assert found.value == np.asarray(value, dtype)
    assert str(found.value.dtype) == dtype


def test_types_of_parameters() -> None:
    text = "%a: Tensor[(1, ?, 3), float32], %b: int64, %c: (float32, Tensor[(2), bool])"
    text += ", %d: fn (int32) -> int32, %e"
    params = parsed(f"def @main({text}) -> (float32,) {{ %a }}").params
    assert params[0].type == TensorType((1, None, 3), "float32")
    assert params[1].type == TensorType((), "int64")
    assert params[2].type.fields[1] == TensorType((2,), "bool")
    assert params[4].type is None


def test_attributes() -> None:
    found = body('f(%x, a=[1, [2, -3]], b="NCHW", c=None, d=True, e=1e-05f, f=?, g=[])')
    assert isinstance(found, Call)
    expected = {"a": [1, [2, -3]], "b": "NCHW", "c": None, "d": True, "f": None, "g": []}
    assert {**found.attributes, "e": None} == {**expected, "e": None}
    assert found.attributes["e"] == pytest.approx(1e-5)


def test_signs_between_expressions() -> None:
    found = body("%x + %x * 2f - %x / (%x - 1f)")
    assert found.callee == "subtract"
    assert [arg.callee for arg in found.args] == ["add", "divide"]
    assert found.args[0].args[1].callee == "multiply"
    found = body("%x + 1f <= 2f * %x == True")
    assert found.callee == "equal" and found.args[0].callee == "less_equal"
    assert body("%x\n" + "+ %x" * 2000).callee == "add"


def test_comments_anywhere_also_inside_of_each_other() -> None:
    found = body("/* a /* b */ c */ nn.relu(%x /* ty=Tensor[(2, 3), float32] span=/a/b:0:0 */) // end\n")
    assert isinstance(found, Call) and found.callee == "nn.relu"


def test_what_stands_beside_parameters_is_skipped() -> None:
    text = 'def @main(%x {virtual_device_="cpu"}: float32, hash="ab", Compiler="dnnl", n=[1]) { %x }'
    assert [param.name for param in parsed(text).params] == ["x"]


def test_functions_are_written_out_where_they_are_called() -> None:
    text = """
    def @twice(%a: Tensor[(2, 3), float32]) { add(%a, %a) }
    def @main(%x: Tensor[(2, 3), float32]) {
      %0 = fn (%b: Tensor[(2, 3), float32], Primitive=1) { nn.relu(@twice(%b)) };
      %1 = %0(%x);
      (%1, @twice(%1), %0(negative(%x)))
    }"""
    first, second, third = run(text, X)
    assert np.allclose(first, np.maximum(2 * X, 0))
    assert np.allclose(second, 2 * first)
    assert np.allclose(third, np.maximum(-2 * X, 0))


def test_a_function_that_a_let_binds() -> None:
    text = """def @main(%x: Tensor[(2, 3), float32]) {
      let %f = fn (%a: Tensor[(2, 3), float32]) { let %b = exp(%a); %b + %a };
      let %y = %f(%x);
      %f(device_copy(%y))
    }"""
    y = np.exp(X) + X
    assert np.allclose(run(text, X)[0], np.exp(y) + y, rtol=1e-5)


def test_let_if_and_tuples() -> None:
    text = """
    def @main(%x: Tensor[(2, 3), float32], %c: bool) {
      let %a: Tensor[(2, 3), float32] = tanh(%x);
      %0 = if (%c) { %1 = add(%a, 1f); (%1, %a) } else { let %z = exp(%a); (%a, %z) };
      (%0.0, %0.1)
    }"""
    for chosen in (True, False):
        first, second = run(text, X, np.asarray(chosen))
        a = np.tanh(X)
        assert np.allclose(first, a + 1 if chosen else a, atol=1e-6)
        assert np.allclose(second, a if chosen else np.exp(a), atol=1e-6)


def test_a_let_chain_in_a_known_branch() -> None:
    text = """def @main(%x: Tensor[(2, 3), float32]) {
      if (True) { let %a = exp(%x); let %b = add(%a, %a); %b } else { %x }
    }"""
    assert np.allclose(run(text, X)[0], 2 * np.exp(X))


def test_a_function_alone_and_an_expression_over_free_variables() -> None:
    assert [param.name for param in parsed("fn (%x: float32) { exp(%x) }").params] == ["x"]
    found = parsed("free_var %x: Tensor[(2, 3), float32];\nfree_var %y: float32;\n%0 = add(%x, %y);\nexp(%0)")
    assert [param.name for param in found.params] == ["x", "y"]
    assert isinstance(found.body, Call) and found.body.callee == "exp"


@pytest.mark.parametrize("form", ["graph", "let"])
def test_programs_of_thousands_of_lines(form: str) -> None:
    """Neither reading nor importing takes stack for them."""
    count = 6000
    if form == "graph":
        lines = [f"%{number} = nn.relu({f'%{number - 1}' if number else '%x'});" for number in range(count)]
        text = "\n".join([*lines, f"%{count - 1}"])
    else:
        lines = [
            f"let %v{number} = nn.relu({f'%v{number - 1}' if number else '%x'});" for number in range(count)
        ]
        text = "\n".join([*lines, f"%v{count - 1}"])
    text = f"{HEAD}def @main(%x: Tensor[(2, 3), float32]) {{\n{text}\n}}"
    mod = import_program(*parser.parse(text, "net.relay"), {})
    assert len(mod["main"].body.blocks[0].bindings) >= count


@pytest.mark.parametrize(
    "text, place, words",
    [
        ("def @main(%x: float32) { nn.relu(%y) }", "2:34", "'%y' is not defined before"),
        ("def @main(%x: float32) {\n  nn.relu(%x\n}", "4:1", "expected ,, got '}'"),
        ("def @main(%x: float32) { %x ", "2:29", "got the end of the text"),
        ("def @main(%x: float32) { $ }", "2:26", "no word"),
        ("def @main(%x: float32) { /* a }", "2:26", "does not end"),
        ("def @main(%x: float32) { %0 = %x; }", "2:35", "expected an expression"),
        ("def @main(%x: float32) { f(%x, a=1, a=2) }", "2:37", "given twice"),
        ("def @main(%x: float32) { f(%x, a=nn) }", "2:34", "an attribute's value"),
        ("def @main(%x: Tensor[(-1), float32]) { %x }", "2:23", "an extent of 0 or more"),
        ("def @main(%x: 3) { %x }", "2:15", "expected a type"),
        ("def @main(%x: float32) { nn.relu }", "2:34", "expected ( behind the operator 'nn.relu'"),
        ("def @main(%x: float32) { meta[relay.Constant][0] }", "2:26", "which this file leaves out"),
        ("def @main(%x: float32) { %x }\ndef @main(%x: float32) { %x }", "3:5", "defined twice"),
        ("def @main(%x: float32) { 1f9 }", "2:26", "no number"),
        ("def @main(%x: float32) { if (%x) { %x } }", "2:41", "expected else"),
        ("", "2:1", "no function"),
    ],
)
def test_faults_of_the_text(text: str, place: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^net\.relay:{place}: .*{re.escape(words)}"):
        parser.parse(HEAD + text, "net.relay")


@pytest.mark.parametrize(
    "text, words",
    [
        ("type List[A] { Nil, Cons(A, List[A]), }", "algebraic data types"),
        ("def @main(%x: float32) { match (%x) { } }", "match is not read"),
        ("def @main[A](%x: A) { %x }", "functions over types"),
        ("def @main(%x: float32) { ref(%x) }", "ref is not read"),
    ],
)
def test_what_is_not_read(text: str, words: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^net\.relay:2:\d+: .*{words}"):
        parser.parse(HEAD + text, "net.relay")


@pytest.mark.parametrize("text", ["v0.0.4\nfn () { 1 }", '#[version = "0.1"]\n', "", "def @main() { 1 }"])
def test_other_versions(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"net.relay:1:1: .*0\.0\.5"):
        parser.parse(text, "net.relay")


@pytest.mark.parametrize("opening, closing", [("(", ")"), ("nn.relu(", ")"), ("{", "}"), ("f(a=[", "])")])
def test_depth_has_a_bound(opening: str, closing: str) -> None:
    text = f"def @main(%x: float32) {{ {opening * 5000}%x{closing * 5000} }}"
    with pytest.raises(InvalidInputError, match=r"net.relay:2:\d+: (more than 100|expected)"):
        parsed(text)


@pytest.mark.parametrize(
    "text", ["(%x, %f)", "exp(%f)", "%f", "@main", "(@main,).0", "if (%f) { %x } else { %x }"]
)
def test_a_function_is_no_value(text: str) -> None:
    text = f"def @main(%x: float32) {{ let %f = fn (%a: float32) {{ %a }}; {text} }}"
    with pytest.raises(UnsupportedError, match=r"net.relay:2:\d+: a function stands as a value"):
        run(text)


def test_a_function_that_calls_itself() -> None:
    text = "def @f(%x: float32) { @f(%x) }\ndef @main(%x: float32) { @f(%x) }"
    with pytest.raises(UnsupportedError, match=r"net.relay:2:\d+: a function calls itself"):
        run(text)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"z": X}, "no parameter 'z' in main, which has 'x', 'w'"),
        ({"w": X.T.copy()}, r"2:\d+: parameter 'w': expected float32\[2, 3\], got float32\[3, 2\]"),
        ({"w": X.astype("float64")}, "got float64"),
    ],
)
def test_parameters_that_do_not_fit(parameters: dict[str, np.ndarray], words: str) -> None:
    text = "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(2, 3), float32]) { add(%x, %w) }"
    with pytest.raises(InvalidInputError, match=words):
        import_program(*parser.parse(HEAD + text, "net.relay"), parameters)


def test_a_parameter_under_the_name_that_the_printer_gave_it() -> None:
    text = (
        "def @main(%x: Tensor[(2, 3), float32], %v0.weight: Tensor[(2, 3), float32]) { add(%x, %v0.weight) }"
    )
    mod = import_program(*parser.parse(HEAD + text, "net.relay"), {"0.weight": X})
    assert [param.name for param in mod["main"].params] == ["x"]


def test_shapes_in_place_of_those_stated() -> None:
    text = "def @main(%x: Tensor[(?, 3), float32]) { exp(%x) }"
    program = parser.parse(HEAD + text, "net.relay")
    mod = import_program(*program, {}, {"x": [5, 3]})
    assert [int(dim) for dim in mod["main"].params[0].ty.shape.values] == [5, 3]
    with pytest.raises(InvalidInputError, match="no input 'y'; the inputs are x"):
        import_program(*program, {}, {"y": [5, 3]})
    with pytest.raises(InvalidInputError, match="expected 2 dimensions"):
        import_program(*program, {}, {"x": [5]})


def test_the_kinds_of_expressions() -> None:
    found = body("if (%x) { (%x,) } else { () }")
    assert isinstance(found, If)
    assert isinstance(found.then, Tuple) and len(found.then.fields) == 1
    assert isinstance(found.otherwise, Tuple) and not found.otherwise.fields
