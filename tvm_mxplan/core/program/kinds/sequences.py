"""The kinds of steps over sequences: recurrent layers, attention, rotary places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RecurrentCell = Literal["lstm", "gru", "gru_linear", "tanh", "relu"]
RECURRENT_CELLS: tuple[RecurrentCell, ...] = ("lstm", "gru", "gru_linear", "tanh", "relu")
AttentionCausal = Literal["no", "first", "last"]
ATTENTION_CAUSAL: tuple[AttentionCausal, ...] = ("no", "first", "last")
RecurrentDirection = Literal["forward", "reverse", "both"]
RECURRENT_DIRECTIONS: tuple[RecurrentDirection, ...] = ("forward", "reverse", "both")


@dataclass(frozen=True)
class Recurrent:
    """src [T, N, I] -> dst [T, N, D * H]: a recurrent layer over T steps, in D directions.

    weights [1, D, I, G, H], recurrence [1, D, H, G, H], bias? [1, D, B, H], peepholes? [1, D, 3, H] (of the
    gates in, forget, out), hidden? and cell? [1, D, N, H] (zeros where they are missing, both or none);
    further results last_hidden? and last_cell? [1, D, N, H].  The first axis counts layers.

    ``cell`` says what G and B count:

        lstm       4, 4   gates in, forget, candidate, out
        gru        3, 3   gates update, reset, candidate
        gru_linear 3, 4   the same, reset gating the recurrent product; its bias apart, as the fourth
        tanh, relu 1, 1   plain cells with that activation

    ``direction``: forward, reverse, or both (forward first, their outputs side by side).
    """

    cell: RecurrentCell
    direction: RecurrentDirection


@dataclass(frozen=True)
class RecurrentTraining:
    """src [T, N, D * G * H] -> dst [T, N, D * H]: a recurrent layer whose inputs are multiplied already.

    src has the products of all inputs with the weights, biases included.  recurrence [D, G * H, H], hidden?
    and cell? [D, N, H], zeros where they are missing; bias? [D, H] of gru_linear, behind the product that its
    reset gates.  Results that gradients are made of: kept_gates [T, N, D * 4 * H], and of an LSTM kept_cells
    [T, N, D * H] and last_cell [D, N, H].

    ``cell`` is lstm, gru or gru_linear; kept_gates has

        lstm       in, out, forget, candidate
        gru        update, reset, candidate, and the state times reset
        gru_linear update, reset, candidate, and the product that reset gates, its bias included

    Attributes
    ----------
    places : of these gates among those of src and recurrence; that of a GRU's candidate is the last.
    """

    cell: RecurrentCell
    direction: RecurrentDirection
    places: tuple[int, ...]


@dataclass(frozen=True)
class RecurrentBackward:
    """src, outputs, gradient -> dst: of what a RecurrentTraining reads as src, from that of its dst.

    src and cells? are what forward kept, outputs what it gave; recurrence, hidden? and cell? are those of
    forward, last_cell_gradient? [D, N, H] that of its result.  Further results hidden_gradient and of an LSTM
    cell_gradient [D, N, H]; of gru_linear reset_gradient [T, N, D * H], of the product that reset gates.
    Attributes are those of forward.
    """

    cell: RecurrentCell
    direction: RecurrentDirection
    places: tuple[int, ...]


@dataclass(frozen=True)
class Attention:
    """src [N, H, S, D], key [N, G, T, D], value [N, G, T, W], mask? -> dst [N, S, H, W].

    Scores are ``scale`` times the products of queries and keys, and the mask, which is broadcast to
    [N, H, S, T], is added to them; a softmax over the keys weights the values.  H / G heads of queries in a
    row share one of keys and values.

    With past_key? [N, G, P, D] and past_value? [N, G, P, W], keys and values are those behind the past ones,
    and all of them are the results joined_key [N, G, P + T, D] and joined_value [N, G, P + T, W].

    With filled? [1] of int32 beside them, past ones are caches of P rows, of which so many count.  The joined
    ones have P rows then: new ones behind those that counted, all others as they were.  A mask tells of as
    many keys as count in the end, or of more.

    Attributes
    ----------
    causal : the keys that a query sees: all (``no``); those up to its own place, counted from the first key
        (``first``), or with the last query at the last key (``last``).
    nan_is_zero : weights that are NaN, as those of queries that see nothing, count as 0.
    """

    scale: float
    causal: AttentionCausal = "no"
    nan_is_zero: bool = False


@dataclass(frozen=True)
class Rotary:
    """src [..., D], cosines [..., T], sines [..., T] -> dst of src's shape: pairs of numbers are rotated.

    A pair (a, b) becomes (a * cosine - b * sine, b * cosine + a * sine).  The first ``width`` numbers of a
    row are pairs, those behind them stay.  Tables have a number for each pair, where T is half of ``width``,
    or one for each number; all their axes but the last one are broadcast to src's.

    Attributes
    ----------
    interleaved : neighbours are pairs; else the first half of the numbers meets the second one.
    """

    width: int
    interleaved: bool
