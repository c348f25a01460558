"""Problems for the allocation tests, and the slow, obvious way to solve small ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tvm_mxplan.core.allocation import Item, Problem, Rectangle


def single(name: str, birth: int, death: int, nbytes: int, alignment: int = 1) -> Item:
    return Item(name, (Rectangle(birth, death, 0, nbytes),), alignment)


def random_singles(
    seed: int, *, items: int = 10, steps: int = 8, size: int = 7, alignment: int = 1
) -> Problem:
    dice = random.Random(seed)
    found = []
    for number in range(items):
        birth = dice.randrange(steps - 1)
        death = dice.randint(birth + 1, min(steps, birth + 4))
        found.append(single(f"b{number}", birth, death, dice.randint(1, size), alignment))
    return Problem(tuple(found))


def random_groups(seed: int, *, items: int = 5, steps: int = 6, size: int = 3) -> Problem:
    """Groups of up to three rectangles; gaps and holes within a group are common, and so are aliases."""
    dice = random.Random(seed)
    found = []
    for number in range(items):
        rectangles: list[Rectangle] = []
        for _ in range(dice.randint(1, 3)):
            birth = dice.randrange(steps - 1)
            death = dice.randint(birth + 1, min(steps, birth + 3))
            new = Rectangle(birth, death, dice.randint(0, 4), dice.randint(1, size))
            if not any(_half_inside(new, other) for other in rectangles):
                rectangles.append(new)
        found.append(Item(f"g{number}", tuple(rectangles), dice.choice((1, 1, 2))))
    return Problem(tuple(found))


def _half_inside(r: Rectangle, q: Rectangle) -> bool:
    shared = range(max(r.offset, q.offset), min(r.end, q.end))
    return 0 < len(shared) < min(r.nbytes, q.nbytes) and r.birth < q.death and q.birth < r.death


def clash(a: Item, base_a: int, b: Item, base_b: int) -> bool:
    """True if two items hold one byte at one step."""
    return any(
        r.birth < q.death
        and q.birth < r.death
        and base_a + r.offset < base_b + q.offset + q.nbytes
        and base_b + q.offset < base_a + r.offset + r.nbytes
        for r in a.rectangles
        for q in b.rectangles
        if r.nbytes and q.nbytes
    )


def live_bytes(problem: Problem) -> int:
    """Most bytes alive at one step, each byte of an item counted once."""
    rectangles = [r for item in problem.items for r in item.rectangles]
    best = 0
    for step in {r.birth for r in rectangles}:
        alive = 0
        for item in problem.items:
            alive += len(
                {
                    byte
                    for r in item.rectangles
                    if r.birth <= step < r.death
                    for byte in range(r.offset, r.offset + r.nbytes)
                }
            )
        best = max(best, alive)
    return best


def brute_force(problem: Problem) -> int:
    """Least height, by trying every base of every item for one height after the other."""
    items = sorted(
        problem.items, key=lambda item: -sum(r.nbytes * (r.death - r.birth) for r in item.rectangles)
    )
    height = live_bytes(problem)
    while not _fits(items, height, []):
        height += 1
    return height


def _fits(items: Sequence[Item], height: int, bases: list[int]) -> bool:
    if len(bases) == len(items):
        return True
    item = items[len(bases)]
    extent = max(r.offset + r.nbytes for r in item.rectangles)
    for base in range(0, height - extent + 1, item.alignment):
        if not any(clash(item, base, items[i], placed) for i, placed in enumerate(bases)):
            bases.append(base)
            if _fits(items, height, bases):
                return True
            bases.pop()
    return False


def many_buffers(count: int, *, seed: int = 1, long_lived: float = 0.02) -> Problem:
    """A big problem: mostly short lives, some that last for up to half of the time."""
    dice = random.Random(seed)
    items = []
    for number in range(count):
        birth = dice.randrange(count)
        short = min(dice.randrange(1, 60), dice.randrange(1, 200))
        life = dice.randrange(1, count // 2) if dice.random() < long_lived else short
        items.append(single(f"b{number}", birth, birth + life, dice.randrange(1, 1 << 20), 64))
    return Problem(tuple(items))


def residual_network(blocks: int, *, seed: int = 0) -> Problem:
    """A chain of convolutions with a skip around every two, halved in size every few blocks."""
    dice = random.Random(seed)
    items, step, nbytes = [], 0, 3_211_264
    for block in range(blocks):
        if block % 8 == 7:
            nbytes //= 2
        step = 3 * block
        items.append(single(f"skip{block}", step, step + 4, nbytes, 64))
        items.append(single(f"a{block}", step + 1, step + 3, nbytes // 4, 64))
        items.append(single(f"b{block}", step + 2, step + 4, nbytes // 4, 64))
        items.append(single(f"scratch{block}", step + 1, step + 2, dice.randrange(1, 200_000), 64))
    for number in range(blocks // 10):
        birth = dice.randrange(3 * blocks - 60)
        items.append(single(f"long{number}", birth, birth + dice.randrange(20, 60), nbytes, 64))
    return Problem(tuple(items))


def dense_network(blocks: int, layers: int) -> Problem:
    """Dense blocks: every layer writes its part of the concatenation, which all later layers read."""
    items, step = [], 0
    for block in range(blocks):
        part = 802_816 >> block
        begin = step
        rectangles = []
        for layer in range(layers):
            rectangles.append(Rectangle(begin + 2 * layer, begin + 2 * layers + 2, layer * part, part))
            items.append(single(f"neck{block}.{layer}", step + 1, step + 3, 4 * part, 64))
            step += 2
        items.append(Item(f"concat{block}", tuple(rectangles)))
        items.append(single(f"transition{block}", step + 1, step + 3, layers * part // 2, 64))
        step += 2
    return Problem(tuple(items))


def renamed(problem: Problem, seed: int) -> Problem:
    """The same items with other names, in another order."""
    dice = random.Random(seed)
    items = [replace(item, name=f"x{dice.random()}") for item in problem.items]
    dice.shuffle(items)
    return replace(problem, items=tuple(items))


def retimed(problem: Problem, when: Sequence[int]) -> Problem:
    """The same items with step ``s`` at ``when[s]``; a falling ``when`` runs time backwards."""

    def moved(r: Rectangle) -> Rectangle:
        birth, death = sorted((when[r.birth], when[r.death]))
        return replace(r, birth=birth, death=death)

    items = (replace(i, rectangles=tuple(moved(r) for r in i.rectangles)) for i in problem.items)
    return replace(problem, items=tuple(items))


def tight(seed: int, *, height: int = 8, items: int = 10) -> Problem:
    """As many bytes alive at every step: what dies makes room for as much, cut up in another way."""
    dice = random.Random(seed)

    def parts(total: int) -> list[int]:
        sizes = []
        while total:
            sizes.append(dice.randint(1, total))
            total -= sizes[-1]
        return sizes

    alive = [(0, nbytes) for nbytes in parts(height)]
    done: list[tuple[int, int, int]] = []
    step = 0
    while len(done) + len(alive) < items:
        step += 1
        dice.shuffle(alive)
        dying = [alive.pop() for _ in range(min(len(alive), dice.randint(1, 2)))]
        done += [(birth, step, nbytes) for birth, nbytes in dying]
        alive += [(step, nbytes) for nbytes in parts(sum(nbytes for _, nbytes in dying))]
    rows = done + [(birth, step + 1, nbytes) for birth, nbytes in alive]
    rows = dice.sample(rows, items)
    return Problem(tuple(single(f"t{number}", *row) for number, row in enumerate(rows)))
