"""The report that a library or a cache file carries, read when it is asked for: running a model does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInputError

if TYPE_CHECKING:
    from ..execution.determinism import Determinism
    from .report import Report


class StoredReport:
    """A report as ``Report.to_json`` wrote it, and what to say otherwise.

    Parameters
    ----------
    source : names where it stands, for errors.
    """

    def __init__(self, data: Mapping[str, Any], source: str) -> None:
        self._data = data
        self._source = source

    def determinism(self) -> Determinism | None:
        """Reads the report's part about determinism, without the rest of it."""
        data = self._data.get("determinism")
        if data is None:
            return None
        from ..execution.determinism import Determinism

        return Determinism.from_json(data)

    def read(self, changes: Mapping[str, Any]) -> Report:
        """The report with ``changes``.

        Raises
        ------
        InvalidInputError : it is damaged, or of another version.
        """
        from .report import Report

        try:
            return replace(Report.from_json(dict(self._data)), **changes)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{self._source}: a report that is damaged, or of another version; compile the model again "
                f"({type(error).__name__}: {error})"
            ) from error
