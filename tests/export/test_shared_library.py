"""Truncated and foreign libraries are told from whole ones without loading any."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import tvm
from tvm import relax

from tvm_mxplan import InvalidInputError
from tvm_mxplan.export.shared_library import check_library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    path = tmp_path_factory.mktemp("library") / "m.so"
    tvm.compile(builder.get(), tvm.target.Target("llvm")).export_library(str(path))
    return path.read_bytes()


def test_a_library_of_stock_tvm_passes(library, tmp_path):
    path = tmp_path / "m.so"
    path.write_bytes(library)
    check_library(path)
    assert tvm.runtime.load_module(str(path))["vm_load_executable"]() is not None
    path.write_bytes(library[:-1])
    with pytest.raises(InvalidInputError, match="truncated"):
        check_library(path)


def test_truncations_are_noticed_wherever_they_are(library, tmp_path):
    path = tmp_path / "m.so"
    for size in [0, 1, 5, 16, 63, 64, *range(65, len(library), len(library) // 50), len(library) - 1]:
        path.write_bytes(library[:size])
        with pytest.raises(InvalidInputError, match=r"truncated|empty|not a shared library"):
            check_library(path)


def test_headers_full_of_nonsense_are_refused(library, tmp_path):
    path = tmp_path / "m.so"
    for offset in range(32, 64):  # where the tables are, how long, and how long their entries
        damaged = bytearray(library)
        damaged[offset] ^= 0xFF
        path.write_bytes(damaged)
        try:
            check_library(path)
        except InvalidInputError as error:
            assert str(path) in str(error)


@pytest.mark.parametrize("name", ["numpy._core._multiarray_umath", "tvm_ffi.core"])
def test_libraries_of_others_are_refused(name):
    path = Path(str(importlib.import_module(name).__file__))
    with pytest.raises(InvalidInputError, match="none of TVM's"):
        check_library(path)
