"""Networks trained here and in PyTorch from the same weights on the same batches: what they differ by.

    scripts/bench training_agreement [--steps 10] [--batch 3] [--size N]
        [--machine FILE | default] [--convolutions cost | direct] [NETWORK | nine ...]
    scripts/bench training_agreement --each [...]
    scripts/bench training_agreement --errors 3e-7 [--trials 10] [--batch 3] [--size N] [NETWORK | nine ...]

The loss of each step, the gradients of the first one, and weights and running statistics behind the first
and the last are compared, each tensor in the L2 norm relative to PyTorch's.  A tensor whose norm is less
than 1e-5 of the largest one's is held against that one: a shift before a batch norm has no gradient but
rounding.  PyTorch in float64 tells what rounding alone does to a network.  "Winograd" counts the convolutions
and data gradients that run so.

With ``--each`` every gradient of the first step is held against float64's, in the order of the layers: where
one maximum of a pool differs, those of all layers in front are off, and none behind it.

With ``--errors`` nothing is compared: PyTorch in float64 makes the first step again and again, with errors of
that size in the results of its layers, and says which gates and maxima they decide otherwise.
"""

from __future__ import annotations

import argparse


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench training_agreement", description=__doc__)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--batch", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--size", type=int, help="of the images, where the network's own is too dear")
    parser.add_argument("--machine", help="the option machine: rates that are not measured now")
    parser.add_argument("--convolutions", help="the option convolutions: by cost without it")
    parser.add_argument(
        "--errors", type=float, help="relative to the results of convolutions and dense layers"
    )
    parser.add_argument("--each", action="store_true", help="every gradient of the first step")
    parser.add_argument("--trials", type=int, default=10, help="steps with errors (10)")
    args = parser.parse_args(arguments)
    from .compared_steps import chosen, print_gradients, printed

    networks = chosen(args.networks, args.size)
    if args.errors is not None:
        from .gates import printed as printed_gates

        for network in networks:
            printed_gates(network, args.batch, args.errors, args.trials)
        return 0

    asked = {"machine": args.machine, "convolutions": args.convolutions}
    options = {name: value for name, value in asked.items() if value}
    if args.each:
        for network in networks:
            print_gradients(network, args.batch, options)
        return 0
    printed(networks, args.batch, args.steps, options)
    return 0
