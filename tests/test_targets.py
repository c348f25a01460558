"""Target strings: what they mean, and which are refused."""

from __future__ import annotations

import pytest
import tvm
from tvm.target import codegen

from tvm_mxplan import InvalidInputError, UnsupportedError
from tvm_mxplan.targets import parse_target


@pytest.mark.parametrize(
    "text, libraries",
    [
        ("dnnl, llvm", ("onednn",)),
        ("llvm,dnnl", ("onednn",)),
        ("dnnl", ("onednn",)),
        ("onednn, mkldnn, dnnl", ("onednn",)),
        ("llvm", ()),
    ],
)
def test_libraries_and_this_machines_cpu(text, libraries):
    parsed = parse_target(text)
    assert parsed.libraries == libraries
    assert parsed.host.kind.name == "llvm"
    assert parsed.host.attrs["mcpu"] == codegen.llvm_get_system_cpu()


@pytest.mark.parametrize(
    "text, order, absent",
    [
        ("dnnl, llvm", ("onednn", "llvm"), ()),
        ("llvm, dnnl", ("llvm", "onednn"), ()),
        ("dnnl", ("onednn", "llvm"), ()),
        ("cudnn, dnnl, llvm", ("cudnn", "onednn", "llvm"), ("cudnn",)),
        ("cudnn, dnnl, cuda -arch=sm_90", ("cudnn", "onednn", "llvm"), ("onednn",)),
        ("cudnn, cuda -arch=sm_90", ("cudnn", "llvm"), ()),
        ("cudnn, cuda -arch=sm_90, dnnl, llvm", ("cudnn", "onednn", "llvm"), ()),
    ],
)
def test_the_order_is_kept_and_what_is_absent_is_told(text, order, absent):
    parsed = parse_target(text)
    assert parsed.order == order
    assert tuple(name for name, _ in parsed.absent) == absent
    assert all("it runs beside" in reason for _, reason in parsed.absent)
    assert not set(absent) & set(parsed.libraries)


def test_options_of_llvm():
    host = parse_target("dnnl, llvm -mcpu=x86-64-v3 -mattr=+avx2,-sse4a -num-cores=2").host
    assert host.attrs["mcpu"] == "x86-64-v3"
    assert list(host.attrs["mattr"]) == ["+avx2", "-sse4a"]
    assert host.attrs["num-cores"] == 2


def test_targets_of_tvm_are_taken_as_they_are():
    host = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v2"})
    assert parse_target(host).host == host


@pytest.mark.parametrize(
    "target, error, words",
    [
        ("", InvalidInputError, ["empty", "dnnl, llvm"]),
        (" , ", InvalidInputError, ["empty"]),
        ("dnnl, foo", InvalidInputError, ["'foo'", "dnnl, onednn, mkldnn, cudnn, host, llvm, cuda"]),
        ("llvm, llvm", InvalidInputError, ["more than one"]),
        ("dnnl -threads=2", InvalidInputError, ["dnnl takes no options"]),
        ("llvm mcpu", InvalidInputError, ["-name=value", "'mcpu'"]),
        ("llvm -mcpu", InvalidInputError, ["-name=value", "'-mcpu'"]),
        ("llvm -mcpu=pentium9", InvalidInputError, ["'pentium9'"]),
        ("llvm -colour=blue", InvalidInputError, ["'colour'", "'mcpu'"]),
        ("cudnn", UnsupportedError, ["cudnn", "cuda", "dnnl, llvm"]),
        ("cudnn, cuda, cuda, llvm", InvalidInputError, ["more than one", "for a device"]),
        ("cuda arch", InvalidInputError, ["-name=value", "'arch'"]),
        (tvm.target.Target("c"), UnsupportedError, ["'c'", "llvm"]),
        (3, InvalidInputError, ["int", "dnnl, llvm"]),
    ],
)
def test_refused(target, error, words):
    with pytest.raises(error) as refusal:
        parse_target(target)
    assert all(word in str(refusal.value) for word in words), refusal.value
