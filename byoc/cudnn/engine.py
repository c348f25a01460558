"""cuDNN's engine: what runs, caches and exports regions on a GPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tvm_mxplan.byoc.engine import Engine

from . import library


class CudnnEngine(Engine):
    """cuDNN on a GPU; see :class:`tvm_mxplan.byoc.engine.Engine`."""

    name = "cudnn"

    def load(self) -> None:
        library.load()

    def code(self) -> dict[str, str]:
        return self.versions()

    def versions(self) -> dict[str, str]:
        version = library.version()
        return {"cuDNN": version} if version else {}

    def create_module(self, symbol: str, program: bytes, constants: Sequence[Any]) -> Any:
        return library.create_module(symbol, program, constants)

    def stats(self, module: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(str(module["mxplan.stats"]()))
        return answer

    def split_weights(self, module: Any) -> Any:
        return module["mxplan.split_weights"]()

    def export_packed(self, module: Any, packed: bool) -> None:
        module["mxplan.export_packed"](False)  # filters are stored as engines want them, packed or not

    def device_properties(self) -> str:
        return json.dumps(library.device_properties(), indent=1, sort_keys=True)

    def absent(self) -> str:
        from tvm_mxplan.errors import UnsupportedError

        try:
            library.device()
        except UnsupportedError as error:
            return str(error)
        return ""
