"""What was decided for regions, by what was asked: programs before and after their layouts were chosen.

A decided program is all of the decision: layouts, reorders, implementations.  The key is a digest over the
program that was asked about, its name left out, and over what else the decision depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import codec
from . import program as ir
from .dims import is_static
from .fingerprint import Fingerprint, Plain


class Choices:
    """One compilation's decisions: those it was given and those it makes.

    Parameters
    ----------
    context : what decisions depend on besides the program.
    known : decided programs as bytes, by their keys.

    Attributes
    ----------
    made : decided programs as bytes, by their keys, those that were known and used included.
    regions : the number of regions that were decided, of which
    used : were known,
    symbolic : have symbolic shapes, and are decided again each time.
    """

    def __init__(self, context: Mapping[str, Plain], known: Mapping[str, bytes]) -> None:
        self._context = context
        self._known = known
        self.made: dict[str, bytes] = {}
        self.regions = 0
        self.used = 0
        self.symbolic = 0

    def find(self, program: ir.Program) -> ir.Program | None:
        """What was decided for ``program``; None if nothing was, or it cannot be read."""
        data = self._known.get(self._key(program))
        if data is None:
            return None
        try:
            return replace(codec.decode(data), name=program.name)
        except codec.DecodeError:
            return None

    def note(self, program: ir.Program, decided: ir.Program, known: bool = False) -> None:
        """Keep a decision; ``known`` if ``find`` gave it."""
        self.regions += 1
        if all(is_static(value.shape) for value in program.values):
            self.made[self._key(program)] = codec.encode(decided)
            self.used += known
        else:
            self.symbolic += 1

    def _key(self, program: ir.Program) -> str:
        fingerprint = Fingerprint()
        fingerprint.add("context", self._context)
        fingerprint.add("program", codec.encode(replace(program, name="")))
        return fingerprint.hexdigest()
