"""Keeps the decisions made for regions, by the questions asked: programs before and after a choice.

A region has two choices, each an entry of its own: the algorithms of its convolutions, then its layouts with
reorders and implementations.  A decided program is all of the decision.  The key is a digest over the program
that was asked about, its name left out, and over what else the decision depends on.

Decided programs come from files, which anybody may have written: one that does not compute what was asked
about (``decided``) is refused with a warning, and the choice is made anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from ..fingerprint import Fingerprint, Plain

if TYPE_CHECKING:
    from ..program import program as ir

Kind = Literal["algorithms", "layouts"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DISPATCH = "dispatch"
"""Beside those of regions: which kinds of operators a model leaves to TVM, in bytes of whoever decided."""


class Question(NamedTuple):
    """A question of a pass about a program, and what the decision goes by besides."""

    kind: Kind
    program: ir.Program
    given: Plain


class Key(NamedTuple):
    """A question as it stands in a file."""

    kind: str
    digest: str


class Choices:
    """One compilation's decisions: those it was given and those it makes.

    Parameters
    ----------
    context : what decisions depend on besides the program.
    known : decided programs as bytes, by their keys.
    source : the file that they are from, for warnings.

    Attributes
    ----------
    made : decided programs as bytes, by their keys, those that were known and used included.
    regions : the number of regions whose layouts were decided, of which
    used : were known,
    symbolic : have symbolic shapes, and are decided again each time.
    """

    def __init__(
        self,
        context: Mapping[str, Plain] = MappingProxyType({}),
        known: Mapping[Key, bytes] = MappingProxyType({}),
        source: str = "",
    ) -> None:
        self._context = context
        self._known = known
        self._source = source
        self._advice: Choices | None = None
        self.made: dict[Key, bytes] = {}
        self.regions = 0
        self.used = 0
        self.symbolic = 0
        self._asked: tuple[Question, Key] | None = None

    def again(self) -> Choices:
        """The same, before anything was decided."""
        return Choices(self._context, self._known, self._source)

    def begin_turn(self) -> None:
        """The regions are decided anew: what was counted of an earlier turn does not count."""
        self.regions = self.used = self.symbolic = 0

    @property
    def has_known(self) -> bool:
        """Whether any decided programs were given."""
        return bool(self._known)

    def advise(self, decided: Mapping[Key, bytes], source: str = "") -> None:
        """Programs for questions that would be decided otherwise; their keys were made without a context."""
        self._advice = Choices(known=decided, source=source)

    def find(self, question: Question) -> ir.Program | None:
        """The decided program; None if there is none, or, after a warning, where it is no answer."""
        data = self._known.get(self._key(question)) if self._known else None
        if data is None:
            return None if self._advice is None else self._advice.find(question)
        return self._read(question, data)

    def _read(self, question: Question, data: bytes) -> ir.Program | None:
        from ..program import codec
        from ..program.decided import Unlike, check_answer

        name = question.program.name
        try:
            decided = replace(codec.decode(data), name=name)
            check_answer(question.program, decided, layouts=question.kind == "layouts")
            return decided
        except (codec.DecodeError, Unlike) as error:
            where = f"{self._source}: " if self._source else ""
            kept = f"{where}region {name}: the {question.kind} that were kept"
            warnings.warn(f"{kept} are not used, but chosen anew: {error}", RuntimeWarning, stacklevel=2)
            return None

    def find_dispatch(self, digest: str) -> bytes | None:
        """Returns the dispatch that was noted for the model that ``digest`` stands for."""
        return self._known.get(Key(DISPATCH, digest))

    def note_dispatch(self, digest: str, decided: bytes) -> None:
        self.made[Key(DISPATCH, digest)] = decided

    def note(self, question: Question, decided: ir.Program, known: bool = False) -> None:
        """Keep a decision; ``known`` if ``find`` gave it."""
        from ..program import codec
        from ..program.dims import is_static

        static = all(is_static(value.shape) for value in question.program.values)
        if static:
            self.made[self._key(question)] = codec.encode(decided)
        if question.kind == "layouts":
            self.regions += 1
            self.used += known
            self.symbolic += not static

    def _key(self, question: Question) -> Key:
        """Asked for twice of the same question, by ``find`` and ``note``."""
        from ..program import codec

        if self._asked is not None and self._asked[0] is question:
            return self._asked[1]
        fingerprint = Fingerprint()
        fingerprint.add("context", self._context)
        fingerprint.add("kind", question.kind)
        fingerprint.add("program", codec.encode(replace(question.program, name="")))
        fingerprint.add("given", question.given)
        self._asked = (question, Key(question.kind, fingerprint.hexdigest()))
        return self._asked[1]
