"""Importing runs one way, and imports do nothing: the rules of docs/architecture.md."""

from __future__ import annotations

import ast
import configparser
import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tvm_mxplan.byoc import registry

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "byoc" / "runtime"
"""Rooms of the runtime that know a library: each its own."""
FOLDERS = {"tvm_mxplan.passes": ROOT / "passes", "tvm_mxplan.byoc": ROOT / "byoc"}


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imports_of(path: Path, package: str) -> frozenset[str]:
    """Absolute names of the modules that a file imports, relative imports resolved against ``package``."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def files(folder: Path, package: str) -> list[tuple[Path, str]]:
    return [
        (path, ".".join([package, *path.relative_to(folder).parent.parts]))
        for path in sorted(folder.rglob("*.py"))
    ]


@pytest.mark.parametrize("path, package", files(ROOT / "tvm_mxplan" / "core", "tvm_mxplan.core"))
def test_core_imports_no_tvm_and_nothing_of_ours(path: Path, package: str) -> None:
    for name in imports_of(path, package):
        assert name.split(".")[0] not in ("tvm", "tvm_ffi"), f"{path} imports {name}"
        if name.startswith("tvm_mxplan"):
            assert name.startswith("tvm_mxplan.core"), f"{path} imports {name}"


@pytest.mark.parametrize("path, package", files(ROOT / "passes", "tvm_mxplan.passes"))
def test_passes_know_the_protocol_but_no_backend(path: Path, package: str) -> None:
    allowed = (
        "tvm_mxplan.core",
        "tvm_mxplan.passes",
        "tvm_mxplan.byoc.backend",
        "tvm_mxplan.byoc.region_module",
        "tvm_mxplan.errors",
        "tvm_mxplan.operators",
    )
    for name in imports_of(path, package) - {"tvm_mxplan.byoc"}:
        if name.startswith("tvm_mxplan"):
            assert name.startswith(allowed), f"{path} imports {name}"


@pytest.mark.parametrize("path, package", files(ROOT / "byoc", "tvm_mxplan.byoc"))
def test_backends_know_core_and_types_only(path: Path, package: str) -> None:
    allowed = (
        "tvm_mxplan.core",
        "tvm_mxplan.byoc",
        "tvm_mxplan.environment",
        "tvm_mxplan.errors",
        "tvm_mxplan.operators",
        "tvm_mxplan.passes.relax_types",
    )
    for name in imports_of(path, package) - {"tvm_mxplan"}:
        if name.startswith("tvm_mxplan"):
            assert name.startswith(allowed), f"{path} imports {name}"


EVERYBODY = [
    *files(ROOT / "tvm_mxplan", "tvm_mxplan"),
    *files(ROOT / "passes", "tvm_mxplan.passes"),
    *files(ROOT / "byoc", "tvm_mxplan.byoc"),
]
REGISTRY = ROOT / "byoc" / "registry.py"
LIBRARIES = sorted({row.name for row in (ROOT / "byoc").iterdir() if (row / "engine.py").is_file()})


def library_of(path: Path) -> str:
    """The library in whose folder a file is, '' for all others."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "byoc" and parts[1] in LIBRARIES else ""


def test_only_the_registry_imports_a_library() -> None:
    assert "onednn" in LIBRARIES
    knowing = set()
    for path, package in EVERYBODY:
        for library in LIBRARIES:
            prefix = f"tvm_mxplan.byoc.{library}"
            if library != library_of(path) and any(
                name == prefix or name.startswith(f"{prefix}.") for name in imports_of(path, package)
            ):
                knowing.add(path)
    assert knowing == {REGISTRY}


@functools.cache
def strings_of(path: Path) -> list[str]:
    """Strings that code goes by, without prose."""
    prose = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def is_one_named(names: Iterable[str], text: str) -> bool:
    """Whether a text has one of the names in it, and not as a part of a longer word."""
    return re.search(rf"(?<![a-zA-Z])({'|'.join(names)})(?![a-zA-Z])", text) is not None


def test_only_the_registry_names_a_library() -> None:
    """In strings that code goes by; prose, and what users write in targets, is another matter."""
    naming = set()
    for path, _ in EVERYBODY:
        others = [library for library in LIBRARIES if library != library_of(path)]
        if any(is_one_named(others, text) for text in strings_of(path)):
            naming.add(path)
    testing = ROOT / "tvm_mxplan" / "testing"  # the environment of benchmarks, which compare libraries
    targets = ROOT / "tvm_mxplan" / "targets.py"  # TVM's targets have a field of the name "host"
    assert {path for path in naming - {targets} if testing not in path.parents} == {REGISTRY}


def sources(folder: Path) -> list[Path]:
    """C++ files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".cc", ".h"))


def includes(path: Path) -> set[str]:
    """Names that a C++ file includes: of the runtime relative to it, of others as they are written."""
    return set(re.findall(r'^#include ["<](.+?)[">]', path.read_text(), re.MULTILINE))


def test_only_rooms_named_so_know_the_ffi() -> None:
    knowing = {
        path for path in sources(RUNTIME) if any(name.startswith("tvm/ffi") for name in includes(path))
    }
    assert len(knowing) > 4
    assert {path.parent.name for path in knowing} == {"ffi"}


def test_rooms_of_the_runtime_know_no_library() -> None:
    """A file knows no library if it includes nothing of one, and of ours only files that do not either."""
    neutral = [path for path in sources(RUNTIME) if path.relative_to(RUNTIME).parts[0] not in LIBRARIES]
    names = {path.relative_to(RUNTIME).as_posix() for path in neutral}
    assert len(names) > 40
    for path in neutral:
        for name in includes(path):
            assert not name.startswith("oneapi/"), f"{path} includes {name}"
            if (RUNTIME / name).is_file():
                assert name in names, f"{path} includes {name}"


def test_modules_of_the_tests_have_one_name_each() -> None:
    # The folders of the tests are no packages: a second module of one name shadows the first.
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert not [name for name, count in names.items() if count > 1]


def test_every_package_is_in_the_wheel() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    folders = {"tvm_mxplan": ROOT / "tvm_mxplan", **FOLDERS}
    present = {
        package
        for top, folder in folders.items()
        for path, package in files(folder, top)
        if path.name == "__init__.py"
    }
    assert present == listed


def test_one_file_reads_the_environment() -> None:
    readers = [
        path.name
        for folder in ("tvm_mxplan", "passes", "byoc")
        for path in (ROOT / folder).rglob("*.py")
        if "testing" not in path.parts and "os.environ" in path.read_text()
    ]
    assert readers == ["environment.py"]


def test_importing_the_package_is_cheap() -> None:
    """``import tvm_mxplan`` loads neither TVM nor the runtime; its names load on first use."""
    code = "import sys, tvm_mxplan; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- what is a library's own: names of its kernels, and what a machine reaches ------------------------------

KERNELS = re.compile(
    r"\b(jit|jit_\w+|brg\w+|brdgmm\w*|x64|simple:any|ref:any|row_product|packed_product|joined_rows|avx512_core\w*)\b|gemm:"
)
"""Words of which names of oneDNN's implementations are made, and this project's own kernels beside it."""
NEUTRAL = [(path, package) for path, package in EVERYBODY if not library_of(path)]


def test_only_libraries_know_names_of_kernels() -> None:
    known = [text for path, _ in EVERYBODY if library_of(path) for text in strings_of(path)]
    assert len([text for text in known if KERNELS.search(text)]) > 4, "the words are those that libraries use"
    for path, _ in NEUTRAL:
        for text in strings_of(path):
            assert not KERNELS.search(text), f"{path.relative_to(ROOT)} goes by {text!r}"


def test_rooms_of_the_runtime_know_no_names_of_kernels() -> None:
    for path in sources(RUNTIME):
        if path.relative_to(RUNTIME).parts[0] not in LIBRARIES:
            code = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
            for text in re.findall(r'"([^"\n]*)"', code):
                assert not KERNELS.search(text), f"{path.relative_to(ROOT)} goes by {text!r}"


def test_rooms_of_the_runtime_name_no_library() -> None:
    """In strings; "host" is also the memory that is not a GPU's."""
    names = [name for name in (*registry.spellings(), "oneDNN", "cuDNN") if name != "host"]
    for path in sources(RUNTIME):
        if path.relative_to(RUNTIME).parts[0] not in LIBRARIES:
            code = re.sub(r"//[^\n]*", "", path.read_text())
            for text in re.findall(r'"([^"\n]*)"', code):
                if not text.endswith(".h"):
                    assert not is_one_named(names, text), f"{path} goes by {text!r}"


def test_kinds_of_propagation_stand_in_one_file() -> None:
    kinds = re.compile(r"prop_kind|forward_inference|forward_training")
    assert [path.name for path in sources(RUNTIME) if kinds.search(path.read_text())] == ["propagation.h"]


RATES = re.compile(r"gflops|gbytes|bandwidth", re.IGNORECASE)


def rates_in(path: Path) -> list[str]:
    """Names of rates that a file gives a number: defaults, constants, arguments by name."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.arguments):
            arguments = [*node.posonlyargs, *node.args]
            given = list(zip(arguments[len(arguments) - len(node.defaults) :], node.defaults, strict=True))
            pairs = [*given, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]
        elif isinstance(node, ast.Call):
            pairs = [(keyword, keyword.value) for keyword in node.keywords]
        else:
            continue
        for target, value in pairs:
            name = getattr(target, "id", None) or getattr(target, "arg", None) or getattr(target, "attr", "")
            if (
                isinstance(value, ast.Constant)
                and isinstance(value.value, int | float)
                and RATES.search(name or "")
            ):
                found.append(name)
    return found


def test_rates_of_machines_stand_nowhere_in_code(tmp_path: Path) -> None:
    """But for the stated ones in ``core/machine/rates.py``, where nothing can be measured."""
    example = tmp_path / "example.py"
    example.write_text("GFLOPS = 480.0\ndef f(gbytes_per_s: float = 40.0): g(peak_gflops=3)\n")
    assert rates_in(example) == ["GFLOPS", "gbytes_per_s", "peak_gflops"]
    for path, _ in EVERYBODY:
        assert not rates_in(path), f"{path.relative_to(ROOT)} states {rates_in(path)}"


def test_passes_ask_libraries_what_steps_cost() -> None:
    """They hand rates on, and know no more of them than their type."""
    for path, package in files(ROOT / "passes", "tvm_mxplan.passes"):
        names = imports_of(path, package)
        assert not any(
            name.startswith("tvm_mxplan.core.machine.") and "default" not in name
            for name in names
            - {f"tvm_mxplan.core.machine.{rates}" for rates in ("MachineRates", "DeviceRates")}
        ), path


# --- one name for each idea -------------------------------------------------------------------------------

OTHERS_WORDS = ("tvm_mxplan/frontend", "tvm_mxplan/testing", "passes/sizes/row_calls.py")
"""Places of other languages' words (a call in Relay, a node of ONNX), and of no part of the compiler."""
SOLVERS = tuple(f"tvm_mxplan/core/{name}" for name in ("allocation", "ordering", "recomputation"))
"""Each a problem in plain data of its own, imported as a package."""
SHARED_NAMES = {
    "Row": "of the table of patterns that each library has",
    "Graph": "of a program, and with its constants",
    "Settings": "of two packages, which users write in front: training, quantization",
}


def test_a_name_is_of_one_class() -> None:
    places: dict[str, list[str]] = {}
    for path, _ in EVERYBODY:
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith((*OTHERS_WORDS, *SOLVERS)):
            (module,) = (node for node in nodes_of(path) if isinstance(node, ast.Module))
            for node in module.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(place)
    assert len(places) > 300, "the classes are found"
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert shared.keys() == SHARED_NAMES.keys(), shared
