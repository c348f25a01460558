"""Imports one module from other text than its file's, in the process that tests it and in all that it starts.

Python imports this by itself where the folder is on PYTHONPATH. It reads three variables of the environment:
MUTATE_MODULE, the module's name; MUTATE_FILE, its own file; MUTATE_TEXT, the file with the other text.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys


class OtherText(importlib.machinery.SourceFileLoader):
    """Loads a module as from its file, with other code."""

    def __init__(self, name, path, code):
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname):
        return self._code


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module."""

    def __init__(self, name, path, code):
        self._name, self._path, self._code = name, path, code

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self._name:
            return None
        loader = OtherText(fullname, self._path, self._code)
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


def install():
    name, path = os.environ["MUTATE_MODULE"], os.environ["MUTATE_FILE"]
    with open(os.environ["MUTATE_TEXT"], encoding="utf-8") as text:
        sys.meta_path.insert(0, Finder(name, path, compile(text.read(), path, "exec")))


if "MUTATE_MODULE" in os.environ:
    install()
