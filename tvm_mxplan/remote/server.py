"""The answers of a process of TVM's RPC server: global functions that take and give plain data.

TVM loads this plug-in into the server's process as into any other, and so these functions are there.  They
answer in JSON, ``{"value": ...}`` or, for errors of ours, ``{"error": class, "message": ...}``.  Programs
arrive in the bytes of ``core/program/codec.py``; nothing that arrives is unpickled.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tvm_ffi

from ..errors import MxplanError

PREFIX = "tvm_mxplan.remote."


def register() -> None:
    """Make the functions known to TVM under ``tvm_mxplan.remote.*``; a second call changes nothing."""
    for function in (machine, rates, engine, check, check_kernel, time_step, run):
        tvm_ffi.register_global_func(PREFIX + function.__name__, _answering(function), override=True)
    tvm_ffi.register_global_func(PREFIX + plan.__name__, plan, override=True)


def machine() -> dict[str, Any]:
    """Returns the facts that records depend on, those that plans depend on, and the CPU's name for LLVM."""
    from tvm.target import codegen

    from ..byoc import registry
    from ..tuning.place import Here

    here = Here()
    return {
        "code": registry.code(),
        "facts": here.facts,
        "versions": here.versions,
        "threads": here.threads,
        "cpu": str(codegen.llvm_get_system_cpu()),
    }


def rates(kept: int) -> dict[str, Any]:
    """Returns the rates of this machine; ``kept``: measurements are kept here, and used again."""
    from ..tuning.place import Here

    return Here().rates(bool(kept)).to_json()


def engine(library: str, question: str, *arguments: Any) -> Any:
    """The answer of a library's engine here to one of the questions that planners ask elsewhere."""
    from ..byoc import registry

    answers = registry.engine(library)
    questions: dict[str, Callable[..., Any]] = {
        "describe": answers.description_text,
        "refuse": answers.refuse,
    }
    return questions[question](*arguments)


def check(strategy: str) -> None:
    """UnsupportedError where plans cannot be valued here under ``strategy``."""
    from ..tuning.place import Here

    Here().check(strategy)


def check_kernel(library: str, program: bytes) -> tuple[str, str]:
    """Whether a kernel agrees here with an independent implementation, and how it does not."""
    from ..core.kernel import Kernel
    from ..core.program import codec
    from ..tuning.place import Here

    here = Here()
    checked = here.check_kernel(here.backend(library), Kernel(codec.decode(program)))
    return checked.outcome, checked.reason


def time_step(library: str, program: bytes, threads: int) -> tuple[float, int]:
    """Microseconds of a program alone, and the number of runs; 0 threads are the machine's number."""
    from ..core.program import codec
    from ..tuning.place import Here

    here = Here()
    return here.time(here.backend(library), codec.decode(program), threads or None)


def plan(name: str, strategy: str, ports: str) -> Callable[[], str]:
    """A function that takes a sample of an uploaded library; the library stays until that is forgotten.

    Parameters
    ----------
    name : of the file in the session's folder.
    ports : shapes and element types of what it takes, in JSON.
    """
    from ..tuning.place import Here

    path = _unpacked(name)
    module = tvm_ffi.load_module(path)
    path.unlink()  # it stays mapped
    taken = [(tuple(dims), dtype) for dims, dtype in json.loads(ports)]
    return _answering(Here().sampler(strategy, taken)(module))


def run(library: str, inputs: str, outputs: str, repeat: int, number: int, end_to_end: int) -> list[float]:
    """Milliseconds of an uploaded library's calls on uploaded inputs; its outputs are there to download."""
    from ..execution import runner
    from ..execution.executable import load

    ex = load(_unpacked(library))
    given = runner.read_inputs(_unpacked(inputs))
    found, timing = runner.measure(ex, given, repeat, number, bool(end_to_end))
    names = runner.output_names(ex.signature, len(found))
    runner.save_outputs(_path(outputs), dict(zip(names, found, strict=True)))
    return list(timing.milliseconds)


def _path(name: str) -> Path:
    """Of a file in the session's folder."""
    return Path(str(tvm_ffi.get_global_func("tvm.rpc.server.workpath")(name)))


def _unpacked(name: str) -> Path:
    """An uploaded file, as it was before it was compressed for the way."""
    path = _path(name)
    path.write_bytes(zlib.decompress(path.read_bytes()))
    return path


def _answering(function: Callable[..., Any]) -> Callable[..., str]:
    """``function`` with its result, or what it raised, in JSON."""

    def answer(*arguments: Any) -> str:
        try:
            return json.dumps({"value": function(*arguments)})
        except MxplanError as error:
            return json.dumps({"error": type(error).__name__, "message": str(error)})

    return answer
