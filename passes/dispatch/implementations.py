"""The registry of implementations: who could run an operator, in the order in which they are asked.

    name     what targets and options call it: onednn, cudnn, llvm
    backend  the library behind it, which generates code for regions; None for TVM's own code
    absent   why it cannot be had here; it drops out, and the report tells

Which layouts a library has, its backend says; which operators it takes, its patterns and their checks, with a
reason for what they refuse.  What it would do for one of them (its code, scratchpad, error) depends on shapes
and layouts: ``Backend.describe`` says it once there is a program; costs come with a ``CostSource``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.dispatch import Trial
from tvm_mxplan.errors import InvalidInputError

from ..annotations import TVM
from ..relax_types import operator_name

NO_PATTERN = "no implementation in the library"
"""The reason of a library that has nothing for an operator."""


@dataclass(frozen=True)
class ImplementationRecord:
    """One record of the registry; see the module's text."""

    name: str
    backend: Backend | None = None
    absent: str = ""


@dataclass(frozen=True)
class Preference:
    """The registry by preference, and what a user or measurements want otherwise for some operators.

    Attributes
    ----------
    implementations : the most preferred first; TVM is one of them.
    first : names of implementations to be asked first, by the kind or the name of operators.
    off : names of operators that TVM keeps.
    trials : of whole plans, by the kinds of operators; a user's own wish comes before what they found.
    """

    implementations: tuple[ImplementationRecord, ...]
    first: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    off: Collection[str] = frozenset()
    trials: Mapping[str, Trial] = field(default_factory=lambda: MappingProxyType({}))

    def with_trials(self, trials: Mapping[str, Trial]) -> Preference:
        """The same, knowing what was tried."""
        return replace(self, trials=trials)

    @property
    def present(self) -> tuple[ImplementationRecord, ...]:
        return tuple(one for one in self.implementations if not one.absent)

    @property
    def libraries(self) -> tuple[ImplementationRecord, ...]:
        """Those that are here and generate code for regions."""
        return tuple(one for one in self.present if one.backend)

    def wish(self, call: relax.Call) -> tuple[str, str]:
        """Returns the implementation that the user, or a trial, wants for ``call``, and its name or kind."""
        name, kind = operator_name(call) or "", kind_of(call)
        trial = self.trials.get(kind)
        tried = (trial.implementation, kind) if trial and trial.taken else ("", "")
        return next(((self.first[key], key) for key in (name, kind) if key in self.first), tried)

    def order(self, call: relax.Call) -> list[ImplementationRecord]:
        """Lists the implementations that are asked for ``call``, in this order."""
        if operator_name(call) in self.off:
            return [one for one in self.present if one.name == TVM]
        wanted, _ = self.wish(call)
        return sorted(self.present, key=lambda one: one.name != wanted)

    def why(self, call: relax.Call, chosen: str) -> str:
        """Returns the reason why ``chosen`` comes before the others."""
        if operator_name(call) in self.off:
            return f"switched off by option: {operator_name(call)}"
        wanted, key = self.wish(call)
        if key in self.first and wanted == chosen:
            return f"option prefer: {key}={chosen}"
        trial = self.trials.get(kind_of(call))
        if trial and key not in self.first:
            return str(trial)
        return f"after {chosen} in the order of preference"


def preference_of(
    backends: Sequence[Backend],
    order: Sequence[str] = (),
    absent: Mapping[str, str] = MappingProxyType({}),
    first: Mapping[str, str] = MappingProxyType({}),
    off: Collection[str] = frozenset(),
    trials: Mapping[str, Trial] = MappingProxyType({}),
) -> Preference:
    """The registry of some libraries, of those that are absent, and of TVM.

    Parameters
    ----------
    order : names by preference; those that are left out come behind in the order of ``backends``, TVM last.

    Raises
    ------
    InvalidInputError : ``first`` wants an implementation that is none of these.
    """
    known = {backend.library: ImplementationRecord(backend.library, backend) for backend in backends}
    known |= {name: ImplementationRecord(name, absent=reason) for name, reason in absent.items()}
    known[TVM] = ImplementationRecord(TVM)
    names = dict.fromkeys([*order, *known])
    for key, wanted in first.items():
        if wanted not in names:
            raise InvalidInputError(
                f"option prefer: {key}={wanted}: the target does not name it; it has {', '.join(names)}"
            )
    return Preference(tuple(known[name] for name in names), first, off, trials)


def kind_of(call: relax.Call) -> str:
    """``conv2d`` for a call to ``relax.nn.conv2d``."""
    return str(call.op.name).rpartition(".")[2]


def tvm_refusal(call: relax.Call) -> str:
    """Returns the reason why TVM cannot be asked before a library; '' if it can lower the operator."""
    lowered = call.op.get_attr("FLegalize") is not None
    return "" if lowered else f"TVM has no lowering of {call.op.name}"


def is_operator(expr: object) -> bool:
    """True for calls to Relax's operators, which are what is dispatched."""
    return isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op)
