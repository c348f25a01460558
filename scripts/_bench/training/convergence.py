"""Networks trained here and in PyTorch on scikit-learn's digits, 32x32 with three channels: the curves.

    scripts/bench convergence [--epochs 4] [--seeds 5] [--batch 32] [--picture FILE.svg] [NETWORK ...]

Weights, order of batches and learning rates are equal; 1437 images train, 360 are held back, whichever a seed
says.  Networks: resnet20, vgg (eight convolutions with batch norms).
"""

from __future__ import annotations

import argparse


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench convergence", description=__doc__)
    parser.add_argument("networks", nargs="*", help="resnet20, vgg; both without any")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--picture", help="an .svg file for the mean curves")
    args = parser.parse_args(arguments)
    from .digits import print_runs

    print_runs(args.networks, args.seeds, args.epochs, args.batch, args.picture)
    return 0
