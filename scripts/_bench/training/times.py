"""Steps of networks beside PyTorch's, in turns: medians of rounds.

    scripts/bench training_times [--batch 2] [--rounds 5] [--threads 1] [--opcheck] [--layouts] [--size N]
        [--engines nchw channels_last torch_compile --] [--memory] [NETWORK | nine ...]

On one thread times are the processor's, on several the clock's, for which the machine has to be quiet.
PyTorch runs its own layout and channels last, the better one counts.  --engines names others, of which
torch_compile may fail: a dash stands for it, and the reason below the table.  The first losses are compared
before anything is timed.  Beside the times stand, of our step, the conversions of weights that are left by
what they are for (forward, data gradient, weight gradient), the reorders of activations, and the arena over
its bound.  With --opcheck each network makes one step in which every step of a region is worked out again in
float64, and nothing is timed.  With --layouts the step, compiled again for each fixed policy of layouts,
takes turns with the default and PyTorch.  With --budget SHARE our step is timed beside itself within that
share of its arena, and PyTorch is left out; with --recreated beside itself with primitives of the backward
part made again in each step (`recreated.py`).  With --memory nothing is timed: what a step adds to a process
of each engine's own (`peak_memory.py`), and with --reorders what reorders take of our step
(`reordering.py`).  --kept keeps compilations on disk, so that a second run times at once.
"""

from __future__ import annotations

import argparse


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench training_times", description=__doc__)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of both, on the table of times")
    parser.add_argument("--opcheck", action="store_true")
    parser.add_argument("--layouts", action="store_true")
    parser.add_argument("--budget", type=float, help="a share of the arena, above 0 and below 1")
    parser.add_argument("--recreated", action="store_true")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--size", type=int, help="of the images, where the network's own is too dear")
    parser.add_argument(
        "--engines", nargs="+", help="nchw, channels_last, torch_compile; the first two without it"
    )
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--reorders", action="store_true")
    parser.add_argument("--machine", help="the option machine: rates that are not measured now")
    args = parser.parse_args(arguments)
    from .compared_steps import chosen
    from .engines import LAYOUTS, known
    from .timed_steps import print_budgets, print_checks, print_layouts, print_times

    engines = known(args.engines or LAYOUTS)
    networks, kept = chosen(args.networks, args.size), {"cache": "on_compile"} if args.kept else {}
    kept |= {"machine": args.machine} if args.machine else {}
    if args.budget:
        print_budgets(networks, args.batch, args.rounds, {**kept, "memory_budget": args.budget})
    elif args.memory:
        from .peak_memory import print_peaks

        print_peaks(networks, args.size, args.batch, kept, engines)
    elif args.reorders:
        from .reordering import print_reorders

        print_reorders(networks, args.size, args.batch, args.rounds, args.threads, kept)
    elif args.recreated:
        from .recreated import print_recreated

        print_recreated(networks, args.batch, args.rounds, kept)
    elif args.layouts:
        print_layouts(networks, args.batch, args.rounds, kept)
    elif args.opcheck:
        print_checks(networks, args.batch)
    else:
        print_times(networks, args.batch, args.rounds, kept, args.threads, engines)
    return 0
