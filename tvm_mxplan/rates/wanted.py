"""The rates that one compilation goes by: those of a file, those of its machine, or the stated ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.machine import MachineRates, UnusableRates, default_rates
from ..errors import InvalidInputError
from ..options import Options

if TYPE_CHECKING:
    from ..tuning.place import Place

MEASURED, STATED = "measured", "default"


def wanted_rates(options: Options, place: Place, weighs: bool = True) -> MachineRates:
    """The rates for a compilation.

    Parameters
    ----------
    place : the machine that is compiled for.
    weighs : whether anything is weighed; if not, nothing is measured for it.

    Raises
    ------
    InvalidInputError : the option names a file that does not say what a machine can do.
    """
    if options.machine not in (MEASURED, STATED):
        try:
            return MachineRates.read(Path(options.machine))
        except UnusableRates as error:
            raise InvalidInputError(f"option machine: {error}") from None
    if options.machine == STATED or not weighs:
        return default_rates(place.threads)
    return place.rates(kept=options.cache != "disabled")
