"""``PhaseDump``: what phases of the pipeline hand on, as text, printed or written as soon as it is there.

    # mxplan: what phase "layouts" hands on
    @I.ir_module ...          Relax, without constants
    program mxplan_onednn_0   the program of each region that has one

A phase that is run in several turns is shown each time; a file holds the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tvm

from ..core.program.program_text import program_text
from ..export.files import whole_file
from ..passes.region.attached import carries_program, program_of

ALL = "all"


class PhaseDump:
    """Shows the module behind some phases.

    Parameters
    ----------
    wanted : names of phases; ``all`` stands for each of them.
    folder : where a file is written for each, ``PHASE.txt``; without, they are printed.
    """

    def __init__(self, wanted: Sequence[str], folder: Path | None = None) -> None:
        self._wanted = frozenset(wanted)
        self._folder = folder

    def show(self, phase: str, mod: tvm.IRModule) -> None:
        """Prints or writes ``mod`` if ``phase`` is wanted."""
        if not self._wanted & {phase, ALL}:
            return
        text = f'# mxplan: what phase "{phase}" hands on\n{text_of(mod)}'
        if self._folder is None:
            print(text, flush=True)
            return
        with whole_file(self._folder / f"{phase}.txt") as partial:
            partial.write_text(text + "\n")


def text_of(mod: tvm.IRModule) -> str:
    """Relax functions without constants, then the region programs that they carry."""
    functions = [function for function in mod.functions.values() if carries_program(function)]
    return "\n\n".join([mod.script(show_meta=False), *(program_text(program_of(one)) for one in functions)])
