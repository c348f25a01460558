"""Decisions on operators as plain data: what they hold, print and save."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tvm_mxplan.core.decisions.dispatch import Candidate, Dispatch, DispatchDecision, is_operator_name
from tvm_mxplan.core.decisions.origin import Origin
from tvm_mxplan.core.description import Refused

DIRECT = Candidate(
    "onednn",
    "brgconv:avx512_core",
    ("acdb", "aBcd16b"),
    "direct",
    98.04,
    "model",
    out="winograd_f4 costs less",
)
WINOGRAD = Candidate("onednn", "winograd_f4", ("acdb", "acdb"), "winograd_f4", 61.3, "measured", 2e-6, 4096)
STOCK = Candidate("llvm", out="after onednn in the order of preference")
CONVOLUTION = DispatchDecision("conv2d_3", "conv2d", (DIRECT, WINOGRAD, STOCK), "conv2d_3")
FUSED = DispatchDecision("relu_3", "relu", (Candidate("onednn"), STOCK), "conv2d_3")
VIEW = DispatchDecision("reshape_0", "reshape", (Candidate("onednn"), STOCK), "", "a view")
OTHER = DispatchDecision("floor_0", "floor", (Candidate("onednn", out="no pattern"), Candidate("llvm")))
WHOLE = Dispatch(("onednn", "llvm"), (("cudnn", "not here"),), (CONVOLUTION, FUSED, VIEW, OTHER))


def test_the_chosen_one_is_the_one_that_is_not_out():
    assert CONVOLUTION.chosen is WINOGRAD
    assert OTHER.chosen.backend == "llvm"
    assert [decision.is_fused for decision in WHOLE] == [False, True, False, False]


@pytest.mark.parametrize("candidates", [(), (STOCK, DIRECT), (WINOGRAD, Candidate("llvm"))])
def test_a_decision_takes_exactly_one(candidates):
    with pytest.raises(ValueError, match="expected one"):
        DispatchDecision("conv2d_0", "conv2d", candidates)


def test_json_round_trips():
    assert Dispatch.from_json(json.loads(json.dumps(WHOLE.to_json()))) == WHOLE
    assert Dispatch.from_json(Dispatch().to_json()) == Dispatch()
    refused = replace(WINOGRAD, refused=(Refused("jit", "wrong"), Refused("ref", "slow")), in_place=True)
    assert Candidate.from_json(json.loads(json.dumps(refused.to_json()))) == refused


def test_json_leaves_out_what_is_as_ever():
    assert STOCK.to_json() == {"backend": "llvm", "out": STOCK.out}


def test_operators_are_found_by_name():
    assert WHOLE["relu_3"] is FUSED
    with pytest.raises(KeyError, match="no operator 'conv2d_4'; the nearest are conv2d_3"):
        WHOLE["conv2d_4"]
    with pytest.raises(KeyError, match=r"the nearest are conv2d_3, relu_3, reshape_0, floor_0\W*$"):
        WHOLE["zzz"]
    many = replace(WHOLE, decisions=[replace(FUSED, operator=f"relu_{at}") for at in range(9)])
    for name, nearest in (
        ("relu_11", "relu_1, relu_[0-9], relu_[0-9], relu_[0-9]"),
        ("q", "relu_0, relu_1, relu_2, relu_3"),
    ):
        with pytest.raises(KeyError, match=rf"the nearest are {nearest}\W*$"):
            many[name]
    with pytest.raises(KeyError, match="no operator was decided on"):
        Dispatch()["conv2d_0"]


def test_operators_are_found_by_what_they_come_from():
    """All that come from a part of the model, in order; an operator's own name goes before."""
    first, second = Origin("/layer/conv", "Conv"), Origin("relu_3", "Relu")
    fused = replace(FUSED, origins=(second, first))
    whole = replace(
        WHOLE, decisions=(replace(CONVOLUTION, origins=(first,)), fused, replace(VIEW, origins=(second,)))
    )
    assert [one.operator for one in whole.about("conv")] == ["conv2d_3", "relu_3"]
    assert [one.operator for one in whole.about("relu_3")] == ["relu_3"]
    with pytest.raises(KeyError, match="no operator 'pool'"):
        whole.about("pool")


def test_text():
    assert str(WHOLE).splitlines() == [
        "order of preference: onednn, llvm",
        "  absent  cudnn: not here",
        "conv2d_3 runs in onednn: winograd_f4, acdb, 61.3 us measured, scratchpad 4,096 bytes, error 2e-06",
        "  out  onednn direct, brgconv:avx512_core, acdb -> aBcd16b, 98.0 us  winograd_f4 costs less",
        "  out  llvm" + " " * 58 + "after onednn in the order of preference",
        "relu_3 runs inside conv2d_3, in onednn",
        "reshape_0 runs in onednn: a view",
        "  out  llvm  after onednn in the order of preference",
        "floor_0 runs in llvm",
        "  out  onednn  no pattern",
    ]
    assert str(Dispatch()).splitlines() == [
        "order of preference: TVM alone",
        "TVM runs every operator; nothing was decided",
    ]


def test_words_are_what_is_known():
    """Nothing is said of what is not known, and nothing twice."""
    assert Candidate().words() == []
    assert Candidate(implementation="jit", algorithm="jit").words() == ["jit"]
    full = Candidate(
        backend="onednn",
        implementation="brgconv",
        layouts=("acdb", "acdb", "abcd"),
        algorithm="direct",
        cost_us=1234.56,
        source="measured",
        relative_error=2e-6,
        scratchpad_bytes=4096,
        in_place=True,
        refused=(Refused("jit", "wrong"),),
    )
    assert full.words() == [
        "direct",
        "brgconv",
        "acdb -> abcd",
        "1,234.6 us measured",
        "in place",
        "scratchpad 4,096 bytes",
        "error 2e-06",
        "jit refused (wrong)",
    ]
    out = replace(full, out="costs more", source="model", relative_error=0.0, in_place=False)
    assert out.words() == ["direct", "brgconv", "acdb -> abcd", "1,234.6 us"]
    assert Candidate(cost_us=0.0).words() == ["0.0 us"]
    assert Candidate(scratchpad_bytes=1).words() == ["scratchpad 1 bytes"]
    assert Candidate(scratchpad_bytes=0).words() == []


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("conv2d_3", True),
        ("conv2d", False),
        ("log_softmax", False),
        ("max_pool2d_10", True),
        ("conv2d_", False),
    ],
)
def test_names_of_operators_end_in_their_number(text, one):
    assert is_operator_name(text) is one
