"""``PlanStore``: what the planner answered in this process, and in others whose file was loaded.

A plan is found by all that was asked for it: the operation graph, the device with its driver, and the rules
for engines.  Which versions of cuDNN and CUDA were asked, a file says as a whole.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

_MOST = 1024
"""Plans that are kept; one has 2 to 350 KB."""


class PlanStore:
    """Plans by the digests of questions, those that were used last; safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, request: str) -> dict[str, Any] | None:
        """The answer to a request, None if there is none; of damaged bytes there is none."""
        with self._lock:
            data = self._kept.get(_digest(request))
            if data is not None:
                self._kept.move_to_end(_digest(request))
        if data is None:
            return None
        try:
            found = json.loads(data)
            answer: dict[str, Any] = found["answer"]
            return answer if found["request"] == request and "plan" in answer else None
        except (ValueError, LookupError, TypeError):
            return None

    def keep(self, request: str, answer: Mapping[str, Any]) -> None:
        """Keeps an answer that has a plan."""
        if "plan" in answer:
            self.add({_digest(request): json.dumps({"request": request, "answer": answer}).encode()})

    def add(self, plans: Mapping[str, bytes]) -> None:
        with self._lock:
            for name, data in plans.items():
                self._kept[name] = data
                self._kept.move_to_end(name)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)

    def all(self) -> dict[str, bytes]:
        with self._lock:
            return dict(self._kept)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def title(data: bytes) -> dict[str, Any]:
    """The device and engine of a kept plan, for who reads a file of them."""
    found = json.loads(data)
    request, answer = json.loads(found["request"]), found["answer"]
    device = request["device"]
    return {
        "device": device["deviceName"],
        "sm": request["sm"],
        "multiprocessors": device["multiProcessorCount"],
        "driver": device["driverVer"],
        "nodes": [node.get("mode", node["kind"]) for node in request["nodes"]],
        "engine": answer["engines"][answer["chosen"]]["name"],
    }


def _digest(request: str) -> str:
    return hashlib.blake2b(request.encode(), digest_size=16).hexdigest()


STORE = PlanStore()
"""Of the process."""
