"""Readers of files in Python: each target makes one input of a seed and hands it to the reader.

A reader may refuse by the error it says it raises; whatever else it raises is a finding, and so is the end of
the process.  ``load`` makes a target's seeds once.
"""

from __future__ import annotations

import io
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tvm_mxplan.cache.choices_file import load_cache
from tvm_mxplan.cache.container import Entry, UnusableCache, write
from tvm_mxplan.cache.safe_file import open_container
from tvm_mxplan.core.decisions.choices import Choices, Question
from tvm_mxplan.core.kernel import alone
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.opcheck.replay import replay
from tvm_mxplan.tuning.records import PlanResult, Record, UnusableRecords, header_line, parse, record_line
from tvm_mxplan.tuning.tune_plans import _decided, _packed

sys.path.append(str(Path(__file__).resolve().parents[1] / "byoc"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "byoc" / "runtime"))
from mutate import changed_program, damaged
from sound_steps import SOUND

Try = Callable[[random.Random], bool]
"""Makes an input and reads it; whether it was taken."""


def _programs() -> list[ir.Program]:
    return [sound.program()[0] for sound in SOUND.values()]


def load_codec() -> Try:
    """Region programs, by bytes and by structure."""
    programs = _programs()

    def run(rng: random.Random) -> bool:
        data = codec.encode(changed_program(rng.choice(programs), rng))
        try:
            codec.decode(damaged(data, rng) if rng.random() < 0.5 else data)
            return True
        except codec.DecodeError:
            return False

    return run


def load_choices() -> Try:
    """Decided programs as a pass takes them, and the file that they come in."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp())
    path = folder / "choices"

    def container(rng: random.Random) -> bool:
        program = rng.choice(programs)
        data = codec.encode(changed_program(program, rng))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb", closefd=True):
            write(descriptor, "0" * 64, {"type": "mkldnn"}, [Entry("layouts", "0" * 64, data)])
        path.write_bytes(damaged(path.read_bytes(), rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            assert load_cache(path, "mkldnn") == 0, "a file without facts was taken"
        try:
            open_container(path).verify()
            return True
        except UnusableCache:
            return False

    def question(rng: random.Random) -> bool:
        asked = rng.choice(programs)
        kind = rng.choice(("algorithms", "layouts"))
        key_of = Choices()
        key_of.note(Question(kind, asked, None), asked)
        (key,) = key_of.made
        changed = changed_program(asked, rng)
        data = codec.encode(changed)
        if rng.random() < 0.2:
            data = damaged(data, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = Choices(known={key: data}, source="file").find(Question(kind, asked, None))
        if found is not None:
            same = replace(found, name=asked.name, values=asked.values)
            steps = [replace(step, **_free(step)) for step in found.steps]
            assert [repr(step) for step in steps] == [
                repr(replace(step, **_free(step))) for step in asked.steps
            ], f"not the steps that were asked about: {same}"
        return found is not None

    return lambda rng: container(rng) if rng.random() < 0.3 else question(rng)


def _free(step: ir.Step) -> dict[str, object]:
    """The fields of a step that a decision may change, as they are where nothing was decided."""
    attrs = step.attrs
    if isinstance(attrs, ir.Convolution):
        attrs = replace(attrs, algorithm="direct", preferred="")
    return {"attrs": attrs, "implementation": "", "scratchpad_bytes": -1}


def load_records() -> Try:
    """Lines of tuning records, and the programs in them."""
    machine = {"CPU": "a", "threads": 2}
    programs = _programs()

    def run(rng: random.Random) -> bool:
        program = codec.encode(changed_program(rng.choice(programs), rng))
        result = PlanResult((("a", 1.0), ("b", 2.0)), True, ((f"layouts/{'0' * 64}", _packed(program)),))
        records = [
            Record("step", "d1", "conv", 1.5, 3, 10.0),
            Record("plan", "d2", "plans", 1.0, 4, 11.0, result),
        ]
        text = header_line(machine) + "".join(map(record_line, records))
        if rng.random() < 0.5:
            text = damaged(text.encode(), rng).decode("utf-8", "replace")
        try:
            found, _ = parse(text, machine)
        except UnusableRecords:
            return False
        plans = [record.plan for record in found if record.plan is not None]
        return any(_decided(plan) is not None for plan in plans)

    return run


def load_replay() -> Try:
    """Replay files whose programs are changed and whose arrays are cut, run where they are taken."""
    folder = Path(tempfile.mkdtemp())
    made = []
    for program in _programs():
        single, _ = alone(program, program.steps[0])
        if all(value.layout in ("a", "ab", "abc", "abcd", "abcde") for value in single.values):
            made.append(single)

    def run(rng: random.Random) -> bool:
        single = rng.choice(made)
        sizes = [4 * int(np.prod(value.shape)) for value in single.values]  # type: ignore[arg-type]
        arrays = {f"read{at}": np.zeros(size, np.uint8) for at, size in enumerate(sizes[:-1])}
        arrays["actual0"] = np.zeros(sizes[-1], np.uint8)
        if rng.random() < 0.2:
            arrays["prior"] = np.zeros(sizes[-1], np.uint8)
        if rng.random() < 0.7:
            single = changed_program(single, rng)
        if rng.random() < 0.3:
            name = rng.choice(sorted(arrays))
            size = max(0, len(arrays[name]) + rng.choice((-64, -4, 4, 64)))
            arrays[name] = np.zeros(size, rng.choice(("u1", "f4", "i8")))
        arrays["program"] = np.frombuffer(codec.encode(single), np.uint8)
        arrays["text"] = np.frombuffer(b"text", np.uint8)
        arrays["library"] = np.frombuffer(b"onednn" if rng.random() < 0.95 else b"nobody", np.uint8)
        file = io.BytesIO()
        np.savez(file, **arrays)
        path = folder / "step.npz"
        path.write_bytes(damaged(file.getvalue(), rng) if rng.random() < 0.1 else file.getvalue())
        try:
            replay(path)
            return True
        except (InvalidInputError, UnsupportedError):
            return False

    return run


TARGETS: dict[str, Callable[[], Try]] = {
    "codec": load_codec,
    "choices": load_choices,
    "records": load_records,
    "replay": load_replay,
}
