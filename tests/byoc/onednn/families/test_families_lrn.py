"""Local response normalization spread over eight operators: which of its forms are oneDNN's one step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.families import lrn
from tvm_mxplan.core.program import program as ir

N = tvm.tirx.Var("n", "int64")
GIVEN: Mapping[str, object] = {
    "shape": (2, 32, 7, 9),
    "axis": [1],
    "size": [5, 1, 1],
    "strides": [1, 1, 1],
    "padding": [2, 0, 0, 2, 0, 0],
    "counted": True,
    "layout": "NCDHW",
    "alpha": 1e-4,
    "bias": 1.0,
    "beta": 0.75,
}


def number(value: object) -> relax.Expr:
    return relax.const(np.asarray(value, "float32"))


def spread(**changed: object) -> tuple[relax.Var, dict[tvm.ir.Var, relax.Expr], relax.Var]:
    """The eight operators: the parameter, the values of all variables, and the last of them."""
    kind = {**GIVEN, **changed}
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(kind["shape"], "float32"))
    with builder.function("main", [x]):
        square = builder.emit(relax.op.multiply(x, x))
        expanded = builder.emit(relax.op.expand_dims(square, kind["axis"]))
        window = builder.emit(
            relax.op.nn.avg_pool3d(
                expanded,
                kind["size"],
                kind["strides"],
                kind["padding"],
                count_include_pad=kind["counted"],
                layout=kind["layout"],
            )
        )
        squeezed = builder.emit(relax.op.squeeze(window, kind["axis"]))
        scaled = builder.emit(relax.op.multiply(squeezed, number(kind["alpha"])))
        moved = builder.emit(relax.op.add(number(kind["bias"]), scaled))
        power = builder.emit(relax.op.power(moved, number(kind["beta"])))
        same = tvm_ffi.structural_equal(x.ty, power.ty)  # a strange window gives another shape
        result = builder.emit(relax.op.divide(x if same else power, power))
        builder.emit_func_output(result)
    values = dict(relax.analysis.get_var2val(builder.get()["main"]).items())
    return x, values, result


def checked(**changed: object) -> str | None:
    kind = {**GIVEN, **changed}
    _, values, result = spread(**changed)
    calls = {value.op.name.removeprefix("relax."): value for value in values.values()}
    found = {"root": result, "expanded": calls["expand_dims"], "window": calls["nn.avg_pool3d"]}
    return lrn.check({**found, **{name: number(kind[name]) for name in ("alpha", "bias", "beta")}})


def test_the_pattern_finds_all_eight_and_their_numbers() -> None:
    pattern, named = lrn.pattern()
    x, values, result = spread()
    match = pattern.extract_matched_expr(result, values)
    assert match is not None and len(values) == 8
    assert match[named["x"]].same_as(x)
    found = {name: match[named[name]] for name in ("alpha", "bias", "beta")}
    assert {name: float(one.value.numpy()) for name, one in found.items()} == pytest.approx(
        {"alpha": 1e-4, "bias": 1.0, "beta": 0.75}
    )
    assert match[named["window"]].op.name == "relax.nn.avg_pool3d"
    assert match[named["expanded"]].op.name == "relax.expand_dims"


OTHER_WINDOWS = None if "avx512" in library.isa() else "oneDNN has reference code only on "
"""Said of windows of other than five channels: there is code for them where there is AVX-512."""


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"size": [3, 1, 1], "padding": [1, 0, 0, 1, 0, 0], "bias": 2.0}, OTHER_WINDOWS),
        ({"shape": (N, 32, 7, 9)}, None),
        ({"size": [4, 1, 1]}, "LRN window [4, 1, 1], expected an odd number"),
        ({"size": [5, 3, 1]}, "LRN window [5, 3, 1]"),
        ({"axis": [2]}, "over another axis than the channels"),
        ({"strides": [2, 1, 1]}, "LRN with strides"),
        ({"strides": [1, 1, 2]}, "LRN with strides"),
        ({"layout": "NDHWC"}, "or another layout"),
        ({"padding": [1, 0, 0, 3, 0, 0]}, "LRN padding [1, 0, 0, 3, 0, 0], expected a centred window"),
        ({"padding": [2, 0, 1, 2, 0, 1]}, "expected a centred window"),
        ({"counted": False}, "expected a centred window that counts it"),
        (
            {"alpha": [1e-4, 2e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4]},
            "parameters that are not numbers",
        ),
        ({"bias": [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}, "parameters that are not numbers"),
        ({"beta": 0.5}, "LRN with beta 0.5: oneDNN has reference code only, but for 0.75"),
    ],
)
def test_forms_of_one_step(changed: dict[str, object], reason: str | None) -> None:
    answer = checked(**changed)
    assert answer is None if reason is None else reason in str(answer)


@pytest.mark.parametrize("rank", [3, 5])
def test_images_alone_have_one(rank: int) -> None:
    calls = {value.op.name: value for value in spread()[1].values()}
    match = {
        "root": relax.Var("y", relax.TensorType((2, 32, 7, 9, 4)[:rank], "float32")),
        "expanded": calls["relax.expand_dims"],
        "window": calls["relax.nn.avg_pool3d"],
        **{name: number(GIVEN[name]) for name in ("alpha", "bias", "beta")},
    }
    assert "expected an odd number of channels of an image" in str(lrn.check(match))


def test_only_where_it_generates_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lrn, "has_code", lambda attrs, shape: asked.append((attrs, shape)) or False)
    asked: list[object] = []
    assert "LRN over 5 of 32 channels: oneDNN has reference code only on" in str(checked())
    assert "LRN over 5 of 8 channels" in str(checked(shape=(2, N, 7, 9))), "of an extent that is not known"
    attrs = ir.LRN(5, float(np.float32(1e-4)), 0.75, 1.0)
    assert asked == [(attrs, (2, 32, 7, 9)), (attrs, (2, 8, 7, 9))]


def test_code_is_asked_for_in_every_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is generated for is enough; errors and reference code are none."""
    attrs, shape = ir.LRN(5, 1e-4, 0.75, 1.0), (2, 32, 7, 9)

    class Info:
        def __init__(self, error: str, is_reference: bool) -> None:
            self.error, self.is_reference = error, is_reference

    class Described:
        def __init__(self, info: Info) -> None:
            self.steps = (info,)

    for good, answer in (("aBcd16b", Info("", False)), ("", None)):
        asked: list[str] = []

        def describe(program: ir.Program, good: str = good, asked: list[str] = asked) -> Described:
            src, dst = program.values
            (step,) = program.steps
            assert (step.attrs, src.shape, dst.shape, src.layout) == (attrs, shape, shape, dst.layout)
            asked.append(src.layout)
            if src.layout == good:
                return Described(Info("", False))
            return Described(Info("none", False) if len(asked) % 2 else Info("", True))

        monkeypatch.setattr(lrn.library, "describe", describe)
        lrn.has_code.cache_clear()
        assert lrn.has_code(attrs, shape) == (answer is not None)
        assert asked == ["abcd", "acdb", "aBcd8b", "aBcd16b"]
    lrn.has_code.cache_clear()
