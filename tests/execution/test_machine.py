"""A compiled model runs without TVM's Python package, and with it when it is imported later."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import onnx
import pytest

import tvm_mxplan
from tvm_mxplan.errors import InternalError, InvalidInputError, UnsupportedError
from tvm_mxplan.execution import executable
from tvm_mxplan.testing import zoo


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, an input, its output, and the library; the cache has the compilation."""
    folder = tmp_path_factory.mktemp("machine")
    tiny = zoo.load("tiny")
    onnx.save(tiny, folder / "tiny.onnx")
    (x,) = zoo.random_inputs(tiny).values()
    np.save(folder / "x.npy", x)
    environment = pytest.MonkeyPatch()
    environment.setenv("TVM_MXPLAN_CACHE_DIR", str(folder / "cache"))
    ex = tvm_mxplan.compile(folder / "tiny.onnx", options={"cache": "on_compile"})
    environment.undo()
    assert ex.report.regions and ex.report.cache.outcome == "miss"
    ex.export(folder / "tiny.so")
    np.save(folder / "y.npy", ex(x)[0].numpy())
    return folder


WAYS = {
    "library": "ex = tvm_mxplan.load('tiny.so')",
    "cache": "ex = tvm_mxplan.compile('tiny.onnx', options={'cache': 'on_compile'})",
}
START = """
    import sys
    import numpy as np
    import tvm_mxplan
    x, expected = np.load("x.npy"), np.load("y.npy")
    {way}
    y, = ex(x)
    np.testing.assert_array_equal(y.numpy(), expected)
"""


def run(folder, monkeypatch, way: str, more: str) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(folder / "cache"))
    code = textwrap.dedent(START).format(way=WAYS[way]) + textwrap.dedent(more)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)


@pytest.mark.parametrize("way", WAYS)
def test_the_first_answer_imports_neither_tvm_nor_onnx_nor_scipy(folder, monkeypatch, way):
    more = """
        assert not {"tvm", "onnx", "scipy"} & set(sys.modules)
        assert y.shape == expected.shape and str(y.dtype) == "float32"
        assert str(y) == str(expected)
        np.testing.assert_array_equal(np.from_dlpack(y), expected)
        np.testing.assert_array_equal(ex(tvm_mxplan.execution.machine.tensor_of(x))[0].numpy(), expected)
        assert not ex.report.regions or "tvm" not in sys.modules
    """
    run(folder, monkeypatch, way, more)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_tvm_imported_afterwards(folder, monkeypatch, way):
    """One runtime, tensors and modules that are TVM's, and the plug-in where TVM looks for it."""
    more = """
        loaded = [line for line in open("/proc/self/maps") if "libtvm_runtime.so" in line]
        import tvm
        from tvm import relax
        again = [line for line in open("/proc/self/maps") if "libtvm_runtime.so" in line]
        assert {line.split()[-1] for line in loaded} == {line.split()[-1] for line in again}
        assert isinstance(y, tvm.runtime.Tensor)
        np.testing.assert_array_equal(y.copyto(tvm.cpu()).numpy(), expected)
        later = tvm.runtime.tensor(np.zeros_like(expected))
        later.copyto(y)
        assert not y.numpy().any()
        assert type(ex(tvm.runtime.tensor(x))[0]) is tvm.runtime.Tensor
        module = getattr(ex.module, "mod", ex.module)
        vm = relax.VirtualMachine(module, tvm.cpu())
        np.testing.assert_array_equal(vm["main"](tvm.runtime.tensor(x)).numpy(), expected)
        assert "mxplan" in relax.pipeline.PIPELINE_MAP
        assert tvm_mxplan.compile("tiny.onnx").report.regions
    """
    run(folder, monkeypatch, way, more)


@pytest.mark.slow
def test_what_was_read_from_the_cache_is_exported(folder, monkeypatch):
    more = """
        ex.export("again.so")
        np.testing.assert_array_equal(tvm_mxplan.load("again.so")(x)[0].numpy(), expected)
    """
    run(folder, monkeypatch, "cache", more)


@pytest.mark.slow
def test_functions_that_only_tvms_python_registers(tmp_path):
    """A library whose machine needs one makes `tvm` be imported."""
    import tvm
    from tvm import relax
    from tvm.script import relax as R

    @R.function
    def main(x: R.Tensor((3,), "float32")):
        R.func_attr({"global_symbol": "main"})
        return R.unique(x)

    ex = relax.build(tvm.IRModule({"main": main}), "llvm")
    ex.export_library(str(tmp_path / "unique.so"))
    code = """
        import sys
        import numpy as np
        import tvm_mxplan
        ex = tvm_mxplan.load("unique.so")
        assert "tvm" in sys.modules
        y, = ex(np.array([3, 1, 3], np.float32))
        assert sorted(y.numpy()) == [1, 3]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=tmp_path)


def test_the_environment_is_read_without_tvm_too(folder, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_PRIMITIVE_CACHE", "7")
    more = """
        assert "tvm" not in sys.modules
        assert tvm_mxplan.cache_statistics()["primitives"].most_entries == 7
    """
    run(folder, monkeypatch, "library", more)


def test_a_mistake_in_the_environment_is_a_warning(folder, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_PRIMITIVE_CACHE", "many")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    with pytest.raises(subprocess.CalledProcessError):
        run(folder, monkeypatch, "library", "")
    monkeypatch.delenv("PYTHONWARNINGS")
    run(folder, monkeypatch, "library", "")


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("start", OSError("libtvm_runtime.so: no such file")),
        ("virtual_machine", UnsupportedError("no GPU")),
        ("virtual_machine", InternalError("a step of an unknown kind")),
    ],
)
def test_what_is_wrong_with_the_machine_is_not_said_of_the_file(folder, monkeypatch, step, error):
    assert tvm_mxplan.load(folder / "tiny.so").report.regions

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(executable.machine, step, fails)
    with pytest.raises(type(error)) as caught:
        tvm_mxplan.load(folder / "tiny.so")
    assert caught.value is error


def test_what_tvm_says_of_the_file_is(folder, monkeypatch):
    def fails(_module: object) -> None:
        raise ValueError("Check failed\nbytecode of another version")

    monkeypatch.setattr(executable.machine, "virtual_machine", fails)
    said = r"tiny\.so: not a compiled model, or truncated \(bytecode of another version\)"
    with pytest.raises(InvalidInputError, match=said):
        tvm_mxplan.load(folder / "tiny.so")
