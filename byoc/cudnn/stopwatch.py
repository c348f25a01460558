"""The process that times plans; see ``asked.py``.

    a question   {"time": {"record": hexadecimal digits, "sizes": [[uid, bytes], ...], "rules": [3, 10, 7]}}
    an answer    {"times": [[[microseconds, ...], failure], ...]} or {"error": text}

It ends when it was not asked for some time, so that its memory on the GPU is given back.  What prints to
standard output in here goes to standard error.
"""

from __future__ import annotations

import json
import os
import select
import sys

from tvm_mxplan.errors import MxplanError

from . import library

IDLE_SECONDS = 15.0


def main() -> None:
    """Answer until the questions end."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def tell(answer: object) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    tell({"version": library.version()})
    while select.select([sys.stdin], [], [], IDLE_SECONDS)[0]:
        line = sys.stdin.buffer.readline()  # one question is on its way, never two
        if not line:
            return
        asked = json.loads(line)["time"]
        try:
            times = library.time_plans_here(bytes.fromhex(asked["record"]), asked["sizes"], *asked["rules"])
        except MxplanError as error:
            tell({"error": str(error)})
        else:
            tell({"times": times})
