"""One case after the other in a process of its own: a line of JSON comes in for each, another goes out.

{"mode": "f32", "seed": 1, "number": 17}            or with "folder", where shrinking has put model and inputs
{"status": "pass", "reason": "", "error": 1e-7, "regions": 2, "steps": 9, "special": 0}

``status`` is pass, wrong, error, dull (the reference shows nothing) or bare (nothing was offloaded).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import tvm_mxplan
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.report.inspection import decoded_programs

from .drawing import Case, draw
from .judging import RULES, Reference, is_telling, judge

_TEXT = 400


def main() -> int:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    for line in sys.stdin:
        asked = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):
            answer = tried(asked)
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def tried(asked: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a case, drawn or read from a folder."""
    case = (
        read(Path(asked["folder"]))
        if "folder" in asked
        else draw(asked["mode"], asked["seed"], asked["number"])
    )
    try:
        reference = Reference(case.model)
        expected = [reference.results(feed) for feed in case.feeds]
    except Exception as error:  # a model that is none
        return {"status": "dull", "reason": _line(error)}
    if not all(is_telling(one) for one in expected):
        return {"status": "dull", "reason": "a result that shows nothing"}
    try:
        return _judged(asked["mode"], case, reference, expected)
    except Exception as error:
        return {"status": "error", "reason": _line(error)}


def _judged(mode: str, case: Case, reference: Reference, expected: list[list[Any]]) -> dict[str, Any]:
    rule = RULES[mode]
    target = {} if case.target is None else {"target": case.target}
    executable = tvm_mxplan.compile(case.model, options=dict(case.options), **target)
    steps = [step for program in decoded_programs(executable.module) for step in program.steps]
    counted = {
        "regions": len(executable.report.regions),
        "steps": len(steps),
        "special": _special(mode, steps, decoded_programs(executable.module)),
        "kinds": Counter(step.kind for step in steps),
    }
    worst, apart = 0.0, 0
    for feed, wanted in zip(case.feeds, expected, strict=True):
        actual = [np.asarray(one) for one in _arrays(executable(**feed))]
        for at, (got, want) in enumerate(zip(actual, wanted, strict=True)):
            if got.dtype != want.dtype or got.shape != want.shape:
                what = f"result {at} is {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
                return {"status": "wrong", "reason": what, "error": float("inf"), **counted}
        judged = judge(reference, feed, actual, wanted, rule, "convolutions" in case.options)
        if judged.status:
            told = {"status": judged.status, "reason": judged.reason, "error": judged.error}
            return {**told, **counted}
        worst, apart = max(worst, judged.error), apart + judged.apart
    status = "pass" if counted["steps"] else "bare"
    return {"status": status, "reason": "", "error": worst, "apart": int(apart > 0), **counted}


def _special(mode: str, steps: list[ir.Step], programs: list[ir.Program]) -> int:
    """Steps that are what the mode is about."""
    if mode == "host":
        return sum(step.library == "host" for step in steps)
    if mode == "int8":
        return sum(step.is_quantized for step in steps)
    if mode == "bf16":
        return sum(
            any(program.values[operand.value].dtype == "bfloat16" for operand in step.operands)
            for program in programs
            for step in program.steps
        )
    if mode == "sym":
        return sum(len(program.steps) for program in programs if program.symbols)
    return len(steps)


def _arrays(result: Any) -> list[Any]:
    return (
        [result.numpy()] if hasattr(result, "numpy") else [array for one in result for array in _arrays(one)]
    )


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines and not isinstance(error, tvm_mxplan.MxplanError) else " ".join(lines[:1])
    return f"{type(error).__name__}: {text}"[:_TEXT]


def write(case: Case, folder: Path) -> None:
    """Puts model, inputs and options into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    for at, feed in enumerate(case.feeds):
        np.savez(folder / f"inputs{at}.npz", **feed)
    settings = {"options": dict(case.options), "target": case.target}
    (folder / "settings.json").write_text(json.dumps(settings))


def read(folder: Path) -> Case:
    """The case that ``write`` put there."""
    settings = json.loads((folder / "settings.json").read_text())
    feeds = [dict(np.load(path)) for path in sorted(folder.glob("inputs*.npz"))]
    return Case(onnx.load(folder / "model.onnx"), feeds, settings["options"], settings["target"])


if __name__ == "__main__":
    raise SystemExit(main())
