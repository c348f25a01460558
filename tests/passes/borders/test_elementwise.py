"""The table of elementwise operators against TVM's own kernels: what they make of the zeros of a tail."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from relax_programs import TARGET
from tvm import relax

from tvm_mxplan.passes.borders.elementwise import OPERATORS, is_clean, tail_of

OPERANDS = {"clip": 3, "where": 3}
NO_INTEGERS = ("atan2", "log_add_exp", "power")
TRAPS_AT_ZERO = ("acosh", "divide", "floor_divide", "floor_mod", "log", "mod", "rsqrt")
TWO = [name for name, function in OPERATORS.items() if getattr(function, "nin", 1) == 2]


def dtypes_of(name: str) -> list[str]:
    if name.startswith("logical"):
        return ["bool"]
    if name.startswith("bitwise") or name.endswith("shift"):
        return ["int32"]
    integers = name in (*TWO, "abs", "sign", "negative", "clip") and name not in NO_INTEGERS
    return ["float32", "int32"] if integers else ["float32"]


def operands_of(name: str) -> int:
    return OPERANDS.get(name, 2 if name in TWO else 1)


def on_zeros(name: str, dtype: str) -> np.ndarray:
    """The result of TVM's kernel on zeros."""
    call = relax.op
    for part in name.split("."):
        call = getattr(call, part)
    builder = relax.BlockBuilder()
    kinds = [dtype] * operands_of(name)
    if name == "where":
        kinds[0] = "bool"
    params = [relax.Var(f"x{i}", relax.TensorType((16,), kind)) for i, kind in enumerate(kinds)]
    with builder.function("main", params):
        if name == "clip":
            value = call(params[0], -1, 1)
        elif name == "astype":
            value = call(params[0], "float16")
        else:
            value = call(*params)
        builder.emit_func_output(builder.emit(value))
    vm = relax.VirtualMachine(tvm.compile(builder.get(), TARGET), tvm.cpu())
    return vm["main"](*(tvm.runtime.tensor(np.zeros(16, kind)) for kind in kinds)).numpy()


CASES = [(name, dtype) for name in OPERATORS for dtype in dtypes_of(name)]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_tail_that_is_called_clean_is_clean(name: str, dtype: str) -> None:
    """Every byte that TVM writes is 0 where the table says +0; where it says another number, TVM says so."""
    zero = np.zeros((), dtype)[()]
    operands = [zero] * operands_of(name)
    if name == "where":
        operands[0] = np.bool_(False)
    if name == "clip":
        operands[1:] = [np.asarray(-1)[()], np.asarray(1)[()]]
    tail = tail_of(name, operands, "float16" if name == "astype" else dtype)
    if tail is None:
        assert name in TRAPS_AT_ZERO
        return
    result = on_zeros(name, dtype)
    if is_clean(tail):
        assert not result.view("uint8").any()
    else:
        np.testing.assert_allclose(result.astype("float32"), np.float32(tail), rtol=1e-5, atol=1e-6)


def test_all_of_tvms_elementwise_operators_are_known() -> None:
    """Those of a module that works element by element; a fused multiply-add comes from nowhere."""
    modules = (relax.op.unary, relax.op.binary, relax.op.ternary)
    names = {
        name for module in modules for name, one in vars(module).items() if _is_operator(module, name, one)
    }
    assert len(names) > 50
    assert names - set(OPERATORS) == {"ewise_fma"}
    assert {"nn.relu", "nn.selu", "astype", "where"} <= set(OPERATORS)


def _is_operator(module: object, name: str, one: object) -> bool:
    return getattr(one, "__module__", "") == module.__name__ and name[0] != "_"  # type: ignore[attr-defined]


def test_most_operators_are_known_to_keep_a_tail_clean() -> None:
    keep = [n for n in OPERATORS if operands_of(n) == 1 and is_clean(tail_of(n, [np.float32(0)], "float32"))]
    assert {"sin", "erf", "floor", "sign", "tanh", "abs", "nn.relu"} <= set(keep)
    assert not {"cos", "exp", "sigmoid", "negative", "logical_not"} & set(keep)


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("rsqrt", 4.0, 0.5),
        ("sigmoid", 0.0, 0.5),
        ("sigmoid", 2.0, 0.880797),
        ("erf", 0.5, 0.520500),
        ("nn.relu", -2.5, 0.0),
        ("nn.relu", 0.5, 0.5),
        ("astype", -2.5, -2.5),
        ("nn.selu", 2.0, 2.101402),
        ("nn.selu", -2.0, -1.520166),
    ],
)
def test_operators_that_numpy_lacks(name: str, number: float, expected: float) -> None:
    """On what a tail may hold besides zeros."""
    assert tail_of(name, [np.float32(number)], "float32") == pytest.approx(expected, rel=1e-5)


def test_what_would_trap_or_is_not_known_has_no_tail() -> None:
    assert tail_of("floor_divide", [np.int32(0), np.int32(0)], "int32") is None
    assert tail_of("log", [np.float32(0)], "float32") is None
    zero = np.float32(0)
    assert tail_of("sin", [None], "float32") is None
    assert tail_of("where", [None, zero, zero], "float32") is None
    assert tail_of("where", [np.bool_(True), None, zero], "float32") is None


def test_scalars_take_part() -> None:
    zero = np.float32(0)
    assert is_clean(tail_of("multiply", [zero, np.float32(3)], "float32"))
    assert not is_clean(tail_of("multiply", [zero, np.float32(-3)], "float32"))  # -0.0
    assert not is_clean(tail_of("add", [zero, np.float32(3)], "float32"))
    assert is_clean(tail_of("greater", [zero, np.float32(3)], "bool"))
