"""scripts/cudnn NAME [ARGUMENT ...]: one table or task; each has a --help of its own.

engines   each pattern's engine on each device, as docs/figures/cudnn.md shows it
networks  the parts of networks that become plans, as docs/figures/cudnn.md shows them
exports   writes networks that the zoo lacks; needs torch and timm
"""

from __future__ import annotations

import importlib
import sys

NAMES = ("engines", "networks", "exports")


def main(arguments: list[str]) -> int:
    """Runs what the first argument names, with the others; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in NAMES:
        print(f"cudnn: there is no {name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    importlib.import_module(f"_cudnn.{name}").main(rest)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
