"""Costs of oneDNN's steps, in microseconds: one sum, with the efficiency of each family of kernels in it.

    starting     a kernel, and waking the threads
    computing    operations at the share of the peak that a family reaches (``kernels``, ``winograd``)
    exchanging   images of which threads read what others wrote: a share of them shows behind the arithmetic
    moving       in place of both, where the level of memory that holds the operands is slower
    weights      read once from memory, which no step before has brought into caches, and what kernels wait
                 beyond that; their waiting has nothing to do with how fast memory is
    other types  what the step takes in float32, times a share (``types``); Winograd's multiplies in float32.
                 Where there are tiles, products by them have a computing of their own (``tiles``)

The shares were read off every step of networks, timed where it stands; see ``scripts/bench costs``.
"""

from __future__ import annotations

from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .groups import scattered_us
from .kernels import computing_us, hides, shown_share, weights_passes, weights_share
from .tiles import by_tiles, pairs_by_vectors, tiles_us
from .types import in_float, is_float, time_share, vectors_share
from .winograd import winograd_us

_FULL, _HIDDEN = 1.6, 0.6
"""Of exchanging images where nothing hides it, and of the arithmetic that something is hidden behind."""
_FITTED_READ = 33.0
"""GB/s of the machine on which passes over weights were fitted."""
_UNHIDDEN = 0.25
"""Of the shorter one of computing and moving beside tiles, which alternate too quickly to hide each other."""
_REFERENCE_PENALTY = 50.0
_TURNED = 3.0
"""Of converting numbers by oneDNN's reorders, where that changes the layout as well."""
_OF_SEVERAL_TYPES = (ir.Reorder, ir.Quantization, ir.FewBitsProduct, ir.GroupedProduct)
"""Kinds whose operands are of other types than the one that they compute in."""
_CONVERSION = "conversion"
"""The family of our own kernels, which take no longer for that."""


def cost(facts: StepFacts, machine: MachineRates) -> float:
    """Microseconds of one step on a machine."""
    attrs = facts.step.attrs
    start = machine.start_us + machine.fork_us
    if isinstance(attrs, ir.Concat | ir.Slice):
        moved = 2 * facts.pieces_bytes
        return start + max(shown_share(facts) * machine.exchanging_us(moved), machine.moving_us(moved))
    images = facts.image_bytes
    exchanging = machine.exchanging_us(images)
    if isinstance(attrs, ir.Convolution | ir.Deconvolution) and attrs.algorithm != "direct":
        return start + winograd_us(facts, attrs, machine, exchanging)
    like = facts  # whose kernel's efficiency is known
    unhidden = 0.0
    if not isinstance(attrs, _OF_SEVERAL_TYPES) and not is_float(facts):
        like = in_float(facts)
        if by_tiles(facts, machine):
            computing = tiles_us(facts, machine)
        elif pairs_by_vectors(facts, machine):
            computing = vectors_share(facts) * computing_us(like, machine) + scattered_us(like, machine)
        else:
            return time_share(facts, machine) * cost(like, machine)
        unhidden = _UNHIDDEN * min(computing, machine.moving_us(images))
    else:
        computing = computing_us(facts, machine) + scattered_us(facts, machine)
    waiting = (weights_passes(like) - 1.0) / _FITTED_READ
    weights = weights_share(facts) * facts.constant_bytes * (1.0 / machine.memory.read + waiting) / 1e3
    shown = shown_share(like) * exchanging
    if hides(like):  # as far as there is arithmetic to hide it behind
        shown = max(shown, _FULL * exchanging - _HIDDEN * computing)
    spent = start + max(computing + shown, machine.moving_us(images)) + unhidden + weights
    # A recurrent layer's reference code is made of matrix products, fast ones.
    slow = facts.info.is_reference and not isinstance(attrs, ir.Recurrent)
    own = facts.info.family == _CONVERSION
    if isinstance(attrs, ir.Quantization) and not own and facts.layout("src") != facts.layout("dst"):
        spent *= _TURNED
    return spent * _REFERENCE_PENALTY if slow else spent
