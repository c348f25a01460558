"""A process that runs cases on one engine: names come in, a line of JSON for each goes out."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .cases import Case, all_cases
from .engines import ENGINES

_TEXT = 300


def verdict(case: Case, engine: str) -> tuple[str, str]:
    """Returns the ending of a case, ``pass``, ``wrong`` or ``error``, and why it is no pass."""
    try:
        run = ENGINES[engine](case.model())
        for inputs, expected in case.sets():
            reason = difference(run(inputs), expected, case)
            if reason:
                return "wrong", reason
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = lines[-1] if lines and type(error).__module__.startswith("tvm") else " ".join(lines[:1])
        return "error", f"{type(error).__name__}: {text}"[:_TEXT]
    return "pass", ""


def difference(answers: Sequence[Any], expected: Sequence[Any], case: Case) -> str:
    """Returns the first difference from what a case expects, '' for none: shapes, types, then numbers."""
    wanted = [array for one in expected for array in (one if isinstance(one, list) else [one])]
    answers = [array for one in answers for array in (one if isinstance(one, list) else [one])]
    if len(answers) != len(wanted):
        return f"{len(answers)} outputs, expected {len(wanted)}"
    for number, (got, want) in enumerate(zip(answers, wanted, strict=True)):
        got, want = np.asarray(got), np.asarray(want)
        if got.shape != want.shape:
            return f"output {number} has shape {got.shape}, expected {want.shape}"
        if got.dtype != want.dtype and want.dtype.kind != "O":
            return f"output {number} is {got.dtype}, expected {want.dtype}"
        if want.dtype.kind in "OSU":
            if not np.array_equal(got, want):
                return f"output {number} differs"
            continue
        left, right = (np.asarray(one, _comparable(want.dtype)) for one in (got, want))
        if not np.allclose(left, right, rtol=case.rtol, atol=case.atol, equal_nan=True):
            with np.errstate(all="ignore"):
                return f"output {number} differs by {np.nanmax(np.abs(left - right)):.3g}"
    return ""


def _comparable(dtype: np.dtype[Any]) -> type:
    return np.complex128 if dtype.kind == "c" else np.float64


def main() -> int:
    engine, kinds = sys.argv[1], sys.argv[2].split(",")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    cases = all_cases(kinds)
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            status, reason = verdict(cases[line.strip()], engine)
        print(
            json.dumps({"name": line.strip(), "status": status, "reason": reason}), file=answers, flush=True
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
