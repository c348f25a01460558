"""A damaged library is refused before TVM's loaders, which would crash, can see it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan import InvalidInputError
from tvm_mxplan.testing import zoo
from tvm_mxplan.tvmc.main import main

X = zoo.random_images((1, 3, 32, 32))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "tiny.so"
    ex = tvm_mxplan.compile(zoo.load("tiny"))
    assert ex.report.regions
    ex.export(path)
    return path


def test_stock_tvm_loads_it(library):
    expected = tvm_mxplan.load(library)(X)[0].numpy()
    vm = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](tvm.runtime.tensor(X)).numpy(), expected)


def test_flipped_bits_are_found_wherever_they_are(library, tmp_path):
    data = bytearray(library.read_bytes())
    damaged = tmp_path / "damaged.so"
    content = len(data) - 56
    for at in [*range(1000, content, content // 40), content - 1, content + 16, content + 30, len(data) - 1]:
        data[at] ^= 4
        damaged.write_bytes(data)
        with pytest.raises(InvalidInputError, match=r"damaged|truncated|none of TVM's"):
            tvm_mxplan.load(damaged)
        data[at] ^= 4
    damaged.write_bytes(data)
    tvm_mxplan.load(damaged)


def test_tvmc_run_says_so_in_one_line(library, tmp_path, capfd):
    data = bytearray(library.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "damaged.so").write_bytes(data)
    assert main(["run", str(tmp_path / "damaged.so")]) == 1
    error = capfd.readouterr().err
    assert "damaged.so: damaged, its content does not match the digest" in error
    assert error.count("\n") == 1


def test_libraries_without_a_digest_load(library, tmp_path):
    """Those of stock TVM's export, and stripped ones."""
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", str(stripped), str(library)], check=True)
    assert b"mxplan-digest" not in stripped.read_bytes()[-56:]
    expected = tvm_mxplan.load(library)(X)[0].numpy()
    np.testing.assert_array_equal(tvm_mxplan.load(stripped)(X)[0].numpy(), expected)
