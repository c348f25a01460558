"""``DispatchOperators``: the annotated IR, the order of preference, and what options make of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import tvm
from dataflow_text import dataflow
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from tvm_mxplan.byoc.backend import Refuse
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.patterns import COMPOSITES
from tvm_mxplan.core.decisions.dispatch import DispatchDecision
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.annotations import dispatch_of
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import Preference, Trial, preference_of
from tvm_mxplan.passes.region import BuildPrograms, NameOperators, PartitionRegions
from tvm_mxplan.passes.relax_types import operator_name

LINES = "a = R.nn.relu(x)\nb = R.floor(a)\nc = R.exp(b)\ny = R.nn.softmax(c)"


class Library:
    """A library that takes some elementwise operators, and refuses those in ``refused``."""

    def __init__(self, library: str, *operators: str, refused: str = "") -> None:
        self.library = library
        self.name = f"mxplan_{library}"
        self._operators = operators
        self._refused = refused

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        def check(context: relax.transform.PatternCheckContext) -> bool:
            name = context.matched_expr.op.name
            if name == f"relax.{self._refused}":
                refuse(name, f"{self.library} dislikes it")
            return name != f"relax.{self._refused}"

        return [
            relax.transform.FusionPattern(f"{self.name}.one", is_op(f"relax.{name}")(wildcard()), {}, check)
            for name in self._operators
        ]


def dispatched(
    preference: Preference, lines: str = LINES, journal: Journal | None = None
) -> tuple[tvm.IRModule, dict[str, DispatchDecision]]:
    journal = Journal() if journal is None else journal
    step = DispatchOperators(preference, journal)
    mod = NameOperators()(dataflow(lines))
    return step.transform_module(mod, tvm.transform.PassContext()), journal.dispatched


def chosen(preference: Preference, lines: str = LINES) -> dict[str, str]:
    """The library that runs each operator, the IR and the decisions agreeing on it."""
    mod, decisions = dispatched(preference, lines)
    written = dispatch_of(mod["main"])
    assert written == {name: decision.chosen.backend for name, decision in decisions.items()}
    assert {name for name, library in written.items() if library != "llvm"} == _in_composites(mod)
    return written


def _in_composites(mod: tvm.IRModule) -> set[str]:
    """Operators that stand in composites of the library that is written on the function."""
    found: set[str] = set()
    written = dispatch_of(mod["main"])
    for function in mod.functions.values():
        composite = str(function.attrs.get("Composite") or "") if function.attrs else ""

        def visit(expr: relax.Expr, composite: str = composite) -> None:
            if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op) and composite:
                assert composite.startswith(f"mxplan_{written[operator_name(expr)]}.")
                found.add(str(operator_name(expr)))

        relax.analysis.post_order_visit(function, visit)
    return found


# --- the IR ------------------------------------------------------------------------------------------------

EXPECTED = """
@I.ir_module
class Module:
    @R.function(private=True)
    def fused_relax_nn_relu(x: R.Tensor((2, 3, 4, 4), "float32")) -> R.Tensor((2, 3, 4, 4), "float32"):
        R.func_attr({"Composite": "mxplan_onednn.eltwise", "Primitive": True, "mxplan.operator": "relu_0"})
        with R.dataflow():
            gv = R.nn.relu(x)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((2, 3, 4, 4), "float32")) -> R.Tensor((2, 3, 4, 4), "float32"):
        R.func_attr({"mxplan.dispatch": {"floor_0": "llvm", "relu_0": "onednn"}})
        cls = Module
        with R.dataflow():
            a = R.floor(x)
            y = cls.fused_relax_nn_relu(a)
            R.output(y)
        return y
"""


def test_who_runs_what_is_written_on_the_ir():
    mod, _ = dispatched(preference_of([OneDNN()]), "a = R.floor(x)\ny = R.nn.relu(a)")
    tvm.ir.assert_structural_equal(mod, tvm.script.from_source(EXPECTED))


def test_operators_without_names_are_not_written():
    mod = DispatchOperators(preference_of([OneDNN()]))(dataflow("a = R.floor(x)\ny = R.nn.relu(a)"))
    assert dispatch_of(mod["main"]) == {}
    assert sum(bool(f.attrs and f.attrs.get("Composite")) for f in mod.functions.values()) == 1


def test_what_goes_back_to_tvm_is_written_too():
    journal = Journal()
    mod, _ = dispatched(preference_of([OneDNN()]), "y = R.permute_dims(x)", journal)
    assert dispatch_of(mod["main"]) == {"permute_dims_0": "onednn"}
    mod = BuildPrograms(OneDNN(), journal)(PartitionRegions()(mod))
    assert dispatch_of(mod["main"]) == {"permute_dims_0": "llvm"}
    assert "only moves data" in journal.refused["permute_dims_0"] == journal.refused["relax.permute_dims"]


# --- the order ---------------------------------------------------------------------------------------------


def test_onednn_then_tvm():
    expected = {"relu_0": "onednn", "floor_0": "llvm", "exp_0": "onednn", "softmax_0": "onednn"}
    assert chosen(preference_of([OneDNN()], ["onednn", "llvm"])) == expected
    assert chosen(preference_of([OneDNN()])) == expected


def test_tvm_first_leaves_nothing_to_onednn():
    preference = preference_of([OneDNN()], ["llvm", "onednn"])
    assert set(chosen(preference).values()) == {"llvm"}
    _, decisions = dispatched(preference)
    assert decisions["relu_0"].candidates[1].out == "after llvm in the order of preference"


def test_tvm_can_lower_whatever_onednn_takes():
    """TVM takes everything, so nothing is left to a library behind it."""
    for label in {row.label for row in COMPOSITES}:
        if f"relax.{label}" in tvm.ir.Op.list_op_names():
            assert tvm.ir.Op.get(f"relax.{label}").get_attr("FLegalize") is not None


def test_what_tvm_cannot_lower_goes_to_a_library_behind_it():
    preference = preference_of([Library("a", "nonzero")], ["llvm", "a"])
    assert chosen(preference, "y = R.nonzero(x)") == {"nonzero_0": "a"}
    _, decisions = dispatched(preference, "y = R.nonzero(x)")
    assert decisions["nonzero_0"].candidates[0].out == "TVM has no lowering of relax.nonzero"


@pytest.mark.parametrize(
    "order, expected",
    [
        (["a", "b", "llvm"], {"relu_0": "a", "exp_0": "a"}),
        (["b", "a", "llvm"], {"relu_0": "a", "exp_0": "b"}),
    ],
)
def test_the_first_library_that_takes_an_operator_has_it(order, expected):
    libraries = {"a": Library("a", "nn.relu", "exp"), "b": Library("b", "exp")}
    preference = preference_of([libraries[name] for name in order if name in libraries], order)
    assert chosen(preference) == {"floor_0": "llvm", "softmax_0": "llvm", **expected}


def test_an_operator_that_waits_comes_back_if_it_is_refused():
    libraries = [Library("a", "nn.relu", "exp"), Library("b", "exp", "nn.relu", refused="exp")]
    preference = preference_of(libraries, first={"exp": "b", "relu": "b"})
    assert chosen(preference) == {"relu_0": "b", "floor_0": "llvm", "exp_0": "a", "softmax_0": "llvm"}
    _, decisions = dispatched(preference)
    assert [(one.backend, one.out) for one in decisions["exp_0"].candidates] == [
        ("b", "b dislikes it"),
        ("a", ""),
        ("llvm", "after a in the order of preference"),
    ]


def test_a_library_behind_the_one_that_takes_it_is_out_for_that():
    libraries = [Library("a", "exp"), Library("b", "exp")]
    for preference, reasons in (
        (preference_of(libraries), ["", "after a in the order of preference"]),
        (preference_of(libraries, first={"exp": "b"}), ["", "option prefer: exp=b"]),
    ):
        _, decisions = dispatched(preference)
        assert [one.out for one in decisions["exp_0"].candidates][:2] == reasons


def test_what_is_switched_off_is_tvms_whatever_it_can_lower():
    preference = preference_of([Library("a", "nonzero")], off={"nonzero_0"})
    assert chosen(preference, "y = R.nonzero(x)") == {"nonzero_0": "llvm"}


def test_composites_of_several_libraries_become_regions_of_each():
    mod, _ = dispatched(preference_of([Library("a", "nn.relu"), Library("b", "exp")]))
    regions = {
        gvar.name_hint: str(function.attrs["Codegen"])
        for gvar, function in PartitionRegions()(mod).functions.items()
        if function.attrs and function.attrs.get("Codegen")
    }
    assert regions == {"mxplan_a_0": "mxplan_a", "mxplan_b_0": "mxplan_b"}


def test_what_is_absent_drops_out_with_its_reason():
    preference = preference_of([OneDNN()], ["cudnn", "onednn", "llvm"], {"cudnn": "no such thing here"})
    _, decisions = dispatched(preference)
    assert [(one.backend, one.out) for one in decisions["relu_0"].candidates] == [
        ("cudnn", "no such thing here"),
        ("onednn", ""),
        ("llvm", "after onednn in the order of preference"),
    ]
    assert decisions["floor_0"].candidates[1].out == "no implementation in the library"


# --- options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order, first, offloaded",
    [
        (["onednn", "llvm"], {"softmax": "llvm"}, {"relu_0", "exp_0"}),
        (["onednn", "llvm"], {"exp_0": "llvm"}, {"relu_0", "softmax_0"}),
        (["llvm", "onednn"], {"exp": "onednn"}, {"exp_0"}),
        (["llvm", "onednn"], {"exp": "onednn", "exp_0": "llvm"}, set()),
        # a kind that the library does not take stays where it is
        (["onednn", "llvm"], {"floor": "onednn"}, {"relu_0", "exp_0", "softmax_0"}),
    ],
)
def test_prefer(order: list[str], first: Mapping[str, str], offloaded: set[str]):
    found = chosen(preference_of([OneDNN()], order, first=first))
    assert {name for name, library in found.items() if library == "onednn"} == offloaded


def test_reasons_speak_of_the_option():
    journal = Journal()
    preference = preference_of([OneDNN()], first={"softmax": "llvm"}, off={"exp_0"})
    _, decisions = dispatched(preference, journal=journal)
    assert decisions["softmax_0"].candidates[1].out == "option prefer: softmax=llvm"
    assert decisions["exp_0"].candidates[0].out == "switched off by option: exp_0"
    assert journal.refused["relax.nn.softmax"] == "option prefer: softmax=llvm"
    assert journal.refused["relax.exp"] == "switched off by option: exp_0"


def test_a_pattern_of_several_operators_needs_all_of_them():
    lines = "a = R.sigmoid(x)\ny = R.multiply(a, x)"
    assert chosen(preference_of([OneDNN()]), lines) == {"sigmoid_0": "onednn", "multiply_0": "onednn"}
    preference = preference_of([OneDNN()], first={"sigmoid": "llvm"})
    assert chosen(preference, lines) == {"sigmoid_0": "llvm", "multiply_0": "onednn"}


@pytest.mark.parametrize(
    "first, message",
    [
        ({"floor_0": "onednn"}, "floor_0 cannot run in onednn: no implementation in the library"),
        ({"relu_0": "cudnn"}, "relu_0 cannot run in cudnn: no such thing here"),
        ({"relu": "tensorrt"}, "relu=tensorrt: the target does not name it; it has onednn, cudnn, llvm"),
        ({"tvm_call_packed": "llvm"}, "Relax has no operator 'tvm_call_packed'"),
        ({"sofmax": "llvm"}, "no operator 'sofmax'; the nearest are softmax"),
    ],
)
def test_what_cannot_be_is_told(first, message):
    with pytest.raises(InvalidInputError, match=message):
        dispatched(preference_of([OneDNN()], absent={"cudnn": "no such thing here"}, first=first))


# --- trials of whole plans ---------------------------------------------------------------------------------


def test_kinds_that_measured_faster_in_tvm_go_there():
    trials = {
        "softmax": Trial("llvm", ("softmax",), 0.9, taken=True),
        "exp": Trial("llvm", ("exp",), 1.25, taken=False),
    }
    preference = preference_of([OneDNN()], trials=trials)
    expected = {"relu_0": "onednn", "floor_0": "llvm", "exp_0": "onednn", "softmax_0": "llvm"}
    assert chosen(preference) == expected
    _, decisions = dispatched(preference)
    outs = {name: [one.out for one in decision.candidates if one.out] for name, decision in decisions.items()}
    assert outs["softmax_0"] == ["whole plan with softmax in llvm measured 0.900 times as long"]
    assert outs["exp_0"] == ["whole plan with exp in llvm measured 1.250 times as long"]
    assert outs["relu_0"] == ["after onednn in the order of preference"]


@pytest.mark.parametrize("key", ["softmax", "softmax_0"])
def test_what_a_user_prefers_comes_before_trials(key):
    trials = {"softmax": Trial("llvm", ("softmax",), 0.9, taken=True)}
    preference = preference_of([OneDNN()], first={key: "onednn"}, trials=trials)
    assert chosen(preference)["softmax_0"] == "onednn"
    _, decisions = dispatched(preference)
    assert decisions["softmax_0"].candidates[1].out == f"option prefer: {key}=onednn"
