"""Source text that notes which of its statements are run.

Every statement inside of a function is preceded by ``__reached__[line] = 1``, an item of the module. That
costs a tenth of what tracing does, which calls a function for each line.  Code that was made once is kept: to
make it takes longer than most files of tests.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, ModuleType

NAME = "__reached__"


def instrument(source: str, path: str) -> CodeType:
    """The code of a file, which notes what is run of it."""
    tree = _Instrument().visit(ast.parse(source))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def kept_code(source: str, path: str, folder: Path) -> CodeType:
    """Instrumented code, from ``folder`` where it was made before."""
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER + f"{path}\n{source}".encode()).hexdigest()
    kept = folder / f"{digest}.code"
    if kept.exists():
        code: CodeType = marshal.loads(kept.read_bytes())
        return code
    code = instrument(source, path)
    part = kept.with_suffix(".part")
    part.write_bytes(marshal.dumps(code))
    part.replace(kept)
    return code


class _Instrument(ast.NodeTransformer):
    def __init__(self) -> None:
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._depth and not isinstance(node, ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list):
                    setattr(node, name, [new for old in statements for new in _noted(old)])
        return node


def _noted(statement: ast.stmt) -> list[ast.stmt]:
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if constant or isinstance(statement, ast.Nonlocal | ast.Global):  # a docstring stays the first statement
        return [statement]
    (note,) = ast.parse(f"{NAME}[{statement.lineno}] = 1").body
    for node in ast.walk(note):
        ast.copy_location(node, statement)
    return [note, statement]


class Recorder(importlib.abc.MetaPathFinder):
    """Imports modules so that they note what is run of them.

    Parameters
    ----------
    files : by module, their paths from ``root``.
    code : a folder that keeps instrumented code.
    """

    def __init__(self, root: Path, files: Mapping[str, str], code: Path) -> None:
        self._root, self._files, self._code = root, files, code
        self._reached: dict[str, bytearray] = {}

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        if fullname not in self._files:
            return None
        file = self._files[fullname]
        source = (self._root / file).read_text()
        self._reached[file] = bytearray(source.count("\n") + 2)
        code = kept_code(source, str(self._root / file), self._code)
        loader = _Loader(fullname, str(self._root / file), code, self._reached[file])
        return importlib.util.spec_from_file_location(fullname, self._root / file, loader=loader)

    def imported(self) -> list[str]:
        """Files of the modules that were imported."""
        return sorted(self._reached)

    def take(self) -> dict[str, list[int]]:
        """Lines run since the last time, by file."""
        taken: dict[str, list[int]] = {}
        for file, reached in self._reached.items():
            if any(reached):
                taken[file] = [line for line, run in enumerate(reached) if run]
                reached[:] = bytes(len(reached))
        return taken

    def install(self) -> None:
        sys.meta_path.insert(0, self)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType, reached: bytearray) -> None:
        super().__init__(name, path)
        self._code, self._reached = code, reached

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, NAME, self._reached)
        super().exec_module(module)
