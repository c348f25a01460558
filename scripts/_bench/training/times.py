"""Steps of networks beside PyTorch's, in turns: processor time on one thread, medians of rounds.

    scripts/bench training_times [--batch 2] [--rounds 5] [--opcheck] [NETWORK ...]

PyTorch runs its own layout and channels last, the better one counts.  The first losses are compared before
anything is timed.  Beside the times stand, of our step, the conversions of weights that are left by what
they are for (forward, data gradient, weight gradient), the reorders of activations, and the arena over its
bound.  With --opcheck each network makes one step in which every step of a region is worked out again in
float64, and nothing is timed.
"""

from __future__ import annotations

import argparse


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench training_times", description=__doc__)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--opcheck", action="store_true")
    args = parser.parse_args(arguments)
    from .compared_steps import chosen
    from .timed_steps import print_checks, print_times

    if args.opcheck:
        print_checks(chosen(args.networks), args.batch)
    else:
        print_times(chosen(args.networks), args.batch, args.rounds)
    return 0
