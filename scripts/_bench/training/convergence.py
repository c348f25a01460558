"""Networks trained here and in PyTorch on scikit-learn's digits, 32x32 with three channels: the curves.

    scripts/bench convergence [--epochs 4] [--seeds 5] [--batch 32] [--picture FILE.svg] [--kept FILE.json]
        [NETWORK ...]

Weights, order of batches and learning rates are equal; 1437 images train, 360 are held back, whichever a seed
says.  Networks: resnet20, vgg (eight convolutions with batch norms).
With --kept finished runs are kept in a file, and a later call goes on from there.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench convergence", description=__doc__)
    parser.add_argument("networks", nargs="*", help="resnet20, vgg; both without any")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--picture", help="an .svg file for the mean curves")
    parser.add_argument("--kept", type=Path, help="a .json file of finished runs")
    args = parser.parse_args(arguments)
    from .digits import NETWORKS, Runs, print_runs

    names = args.networks or list(NETWORKS)
    print_runs(Runs(names, args.seeds, args.epochs, args.batch, args.kept), args.picture)
    return 0
