"""The planner's process: loads a driver, cuDNN and the planner, then answers questions until they end.

It is run as a script and imports the standard library alone.  Arguments are paths: of the planner's library,
of cuDNN's, of the driver's stand-in ('' for none), and of libraries that cuDNN looks for by their names.  A
question is a line of JSON on standard input, an answer one on standard output:

    the first line   {"version": 91900, "driver": "system" or "stand-in" or "none"}, or {"error": text}
    a question       {"plan": request} or {"device": number};
answers are as planner.cc has them

The stand-in is loaded where the system has no driver.  What prints to standard output in here goes to
standard error.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

DRIVER = "libcuda.so.1"
_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def main(planner: str, cudnn: str, stand_in: str, *named: str) -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def tell(answer: bytes) -> None:
        answers.write(answer + b"\n")
        answers.flush()

    try:
        driver = _load_driver(stand_in)
        for path in named:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(planner)
    except OSError as error:
        return tell(json.dumps({"error": str(error)}).encode())
    failure = ctypes.create_string_buffer(4096)
    library.MxplanCudnnLoad.restype = ctypes.c_int64
    version = library.MxplanCudnnLoad(cudnn.encode(), failure, ctypes.c_int64(len(failure) - 1))
    if not version:
        return tell(json.dumps({"error": failure.value.decode(errors="replace")}).encode())
    tell(json.dumps({"version": version, "driver": driver}).encode())
    for line in sys.stdin.buffer:
        ((kind, asked),) = json.loads(line).items()
        if kind == "plan":
            text = json.dumps(asked).encode()
            tell(_answer(library.MxplanCudnnPlan, text, ctypes.c_int64(len(text))))
        else:
            tell(_answer(library.MxplanCudnnDevice, ctypes.c_int32(asked)))
    return None


def _load_driver(stand_in: str) -> str:
    """The driver, whose name cuDNN finds it by from now on; says which one it is."""
    try:
        ctypes.CDLL(DRIVER, ctypes.RTLD_GLOBAL)
    except OSError:
        if not stand_in:
            return "none"
        ctypes.CDLL(stand_in, ctypes.RTLD_GLOBAL)
        return "stand-in"
    return "system"


def _answer(function: object, *arguments: object) -> bytes:
    """The line that a function of the planner hands over."""
    answers: list[bytes] = []

    @_TAKE
    def take(data: int, size: int) -> None:
        answers.append(ctypes.string_at(data, size))

    function(*arguments, take)  # type: ignore[operator]
    return answers[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
