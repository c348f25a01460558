"""Relax modules from files: TVMScript, of which nothing but TVMScript is executed, and JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.relax.relax_file import read_json, read_script
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import relative_l2

RANDOM = np.random.default_rng(31)
WEIGHTS = RANDOM.standard_normal((3, 4), np.float32)
X = RANDOM.standard_normal((2, 3), np.float32)
OPTIONS = {"cache": "disabled"}
SCRIPT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), dtype="float32"), w: R.Tensor((3, 4), dtype="float32")):
        with R.dataflow():
            lv = R.matmul(x, w)
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv
"""


def module(*, params: bool = False) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    w = relax.Var("w", relax.TensorType([3, 4], "float32"))
    with builder.function("main", [x, w] if params else [x]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, w if params else relax.const(WEIGHTS)))
            result = builder.emit_output(relax.op.nn.relu(product))
        builder.emit_func_output(result)
    return builder.get()


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def check(ex: tvm_mxplan.Executable) -> None:
    assert ex.report.offloaded == 1.0
    assert relative_l2(ex(X)[0].numpy(), np.maximum(X @ WEIGHTS, 0)) < 1e-6


@pytest.mark.parametrize("name, form", [("m.py", "script"), ("m.json", "json")])
def test_what_tvm_writes_comes_back(tmp_path: Path, name: str, form: str) -> None:
    text = module().script(show_meta=True) if form == "script" else tvm.ir.save_json(module())
    path = written(tmp_path / name, text)
    tvm.ir.assert_structural_equal(read_script(path) if form == "script" else read_json(path), module())
    check(tvm_mxplan.compile(path, options=OPTIONS))


def test_a_network_comes_back(tmp_path: Path) -> None:
    from tvm_mxplan.frontend.onnx import import_model

    mod = import_model(zoo.load(zoo.TINY))
    path = written(tmp_path / "tiny.py", mod.script(show_meta=True))
    tvm.ir.assert_structural_equal(read_script(path), mod)


@pytest.mark.parametrize("form", ["mapping", "npz", "params"])
def test_parameters_beside_the_module(tmp_path: Path, form: str) -> None:
    path = written(tmp_path / "m.py", SCRIPT)
    params: object = {"w": WEIGHTS}
    if form == "npz":
        params = tmp_path / "w.npz"
        np.savez(params, w=WEIGHTS)
    elif form == "params":
        params = tmp_path / "w.params"
        params.write_bytes(tvm.runtime.save_param_dict({"w": WEIGHTS}))
    check(tvm_mxplan.compile(path, params=params, options=OPTIONS))


def test_parameters_of_a_module_in_memory() -> None:
    check(tvm_mxplan.compile(module(params=True), params={"w": tvm.runtime.tensor(WEIGHTS)}, options=OPTIONS))


@pytest.mark.parametrize(
    "params, words",
    [
        ({"v": WEIGHTS}, "no parameter 'v' in main; expected one of x, w"),
        ({"w": WEIGHTS.T.copy()}, "parameter 'w': expected"),
        ({"w": WEIGHTS.astype("float64")}, "float64"),
        ({"w": "text"}, "'w' is a str; expected a numpy array"),
        (7, "params is a int; expected arrays by name"),
        ("missing.npz", "missing.npz: cannot be read"),
    ],
)
def test_parameters_that_do_not_fit(params: object, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tvm_mxplan.compile(module(params=True), params=params, options=OPTIONS)


def test_parameters_of_onnx_are_its_own(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="an ONNX model has its own"):
        tvm_mxplan.compile(zoo.load(zoo.TINY), params={"w": WEIGHTS})


def test_shapes_are_the_modules_own(tmp_path: Path) -> None:
    path = written(tmp_path / "m.py", SCRIPT)
    with pytest.raises(InvalidInputError, match=r"m.py: shapes are for ONNX and Relay models"):
        tvm_mxplan.compile(path, shapes={"x": (2, 3)})


@pytest.mark.parametrize("data", [b"PK\x03\x04 no archive", b"nothing", b""])
def test_files_of_no_parameters(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "w.npz"
    path.write_bytes(data)
    with pytest.raises(InvalidInputError, match=r"w.npz: (holds no parameters|cannot be read)"):
        tvm_mxplan.compile(module(params=True), params=path)


def test_constants_that_the_script_leaves_out(tmp_path: Path) -> None:
    path = written(tmp_path / "m.py", module().script())
    with pytest.raises(
        InvalidInputError, match=r"m.py: its constants stand in the metadata, .*show_meta=True"
    ):
        read_script(path)


@pytest.mark.parametrize(
    "statement",
    [
        "import os",
        "open('touched', 'w')",
        "x = 1",
        "from os import system",
        "print(1)",
        "def f(): pass",
        "class C: pass",
    ],
)
def test_statements_beside_the_module(tmp_path: Path, statement: str) -> None:
    path = written(tmp_path / "m.py", f"from tvm.script import ir as I\n{statement}\n{SCRIPT}")
    with pytest.raises((UnsupportedError, InvalidInputError), match=r"m.py.*would execute this as Python"):
        read_script(path)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('touch touched')",
        "open('touched', 'w')",
        "R.const((lambda: open('touched', 'w'))())",
        "R.matmul(x, [open('touched', 'w') for _ in (1,)][0])",
        "x.__class__",
        "R.__builtins__",
        "R.entry",
        "R.const(R.matmul.__globals__['x'])",
        "eval('1')",
        "getattr(R, 'matmul')(x, w)",
        "R.const(f'{x}')",
        "(y := 1)",
        "I.pyfunc(x)",
        "R.call_py_func('f', (x,))",
        "tvm.relax.const(1)",
        "exec",
    ],
)
def test_python_in_the_module_is_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "m.py", SCRIPT.replace("R.matmul(x, w)", expression))
    with pytest.raises((UnsupportedError, InvalidInputError)) as error:
        read_script(path)
    assert str(error.value).startswith(f"{path}") and "\n" not in str(error.value)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.py"]


def test_python_in_a_decorator_or_an_annotation_is_not_executed(tmp_path: Path) -> None:
    for old, new in (
        ("@R.function", "@open('touched', 'w')"),
        ('dtype="float32"))', 'dtype=open("touched", "w")))'),
        ("class Module", "class Module(metaclass=M)"),
    ):
        with pytest.raises(UnsupportedError, match=r"m.py:\d+:\d+: "):
            read_script(written(tmp_path / "m.py", SCRIPT.replace(old, new, 1)))


@pytest.mark.parametrize(
    "text, words",
    [
        ("def main(:", r"m.py:1: is no TVMScript \(.*invalid syntax"),
        ("", r"m.py: 0 definitions"),
        (SCRIPT.replace("R.matmul(x, w)", "R.matmul(x, v)"), r"m.py:7:\d+: Undefined variable: v"),
        (SCRIPT.replace("R.matmul(x, w)", "R.matmul(w, w)"), r"m.py:7:\d+: "),
        (SCRIPT.replace("R.nn.relu", "R.nn.relux"), r"m.py:8:\d+: "),
        ("metadata = tvm.ir.load_json('{}')\n" + SCRIPT, r"m.py: metadata: cannot be read"),
    ],
)
def test_faults_of_a_script(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as error:
        read_script(written(tmp_path / "m.py", text))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "cannot be read"),
        ('{"root_index": 0, "nodes": [{"type": "int", "data": 3}]}', "holds a int; expected a Relax module"),
        ('{"root_index": 7, "nodes": []}', "cannot be read"),
        ('{"root_index": 0, "nodes": [{"type": "no.Such", "data": {}}]}', "cannot be read"),
    ],
)
def test_faults_of_json(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"m.json: .*{words}") as error:
        read_json(written(tmp_path / "m.json", text))
    assert "\n" not in str(error.value)
