#!/usr/bin/env python3
"""Derives a plan's draws again, by docs/plan-format.md and the standard library alone.

Usage: rederive_plan.py NAME.plan

Checks that plan.json is canonical, that every listed file has its hash, that each open cell's
offsets are what the definition of the draws gives, and that each block's orders are. Prints what
was checked and the plan's hash; exits with 1 where anything differs.
"""

import hashlib
import json
import pathlib
import sys

MASK64 = (1 << 64) - 1
MASK128 = (1 << 128) - 1
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
LN2_Q64 = 12786308645202655659
NS = 10**9


class Stream:
    """PCG64 (XSL-RR 128/64), seeded by the hash of what the stream is for."""

    def __init__(self, purpose, block_seed, cell, k):
        name = f"assize/1\0{purpose}\0{block_seed}\0{cell}\0{k}".encode()
        digest = hashlib.sha256(name).digest()
        state = int.from_bytes(digest[:16], "big")
        stream = int.from_bytes(digest[16:], "big")
        self.increment = (stream * 2 + 1) & MASK128
        self.state = (state + self.increment) & MASK128
        self._step()

    def _step(self):
        self.state = (self.state * MULTIPLIER + self.increment) & MASK128

    def next(self):
        self._step()
        rotation = self.state >> 122
        word = (self.state >> 64) ^ (self.state & MASK64)
        return ((word >> rotation) | (word << (64 - rotation))) & MASK64

    def below(self, bound):
        limit = (1 << 64) - (1 << 64) % bound
        while True:
            word = self.next()
            if word < limit:
                return word % bound

    def shuffle(self, items):
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def neg_ln_q64(word):
    k = word + 1
    exponent = k.bit_length() - 1
    mantissa = k >> (exponent - 63) if exponent > 63 else k << (63 - exponent)
    fraction = 0
    for _ in range(60):
        mantissa = mantissa * mantissa >> 63
        fraction <<= 1
        if mantissa >> 64:
            fraction |= 1
            mantissa >>= 1
    log2 = (exponent << 64) | (fraction << 4)
    return ((64 << 64) - log2) * LN2_Q64 >> 64


def process_offsets(process, stream):
    """Offsets of one process from its own beginning, without end."""
    ((kind, args),) = process.items()
    if kind in ("poisson", "gamma"):
        num, den = args["rate"]
        shape = args.get("shape", 1)
        total = 0
        while True:
            for _ in range(shape):
                total += neg_ln_q64(stream.next())
            yield total * NS * den // (num * shape << 64)
    else:
        num, den = args["gap_s"]
        size = args.get("size", 1)
        place = 0
        while True:
            yield place // size * num * NS // den
            place += 1


def offsets(stages, block_seed, cell):
    found, origin = [], 0
    for k, stage in enumerate(stages):
        end = None
        if stage["lasts_s"] is not None:
            num, den = stage["lasts_s"]
            end = num * NS // den
        taken = 0
        for offset in process_offsets(stage["process"], Stream("arrivals", block_seed, cell, k)):
            if taken == stage["requests"] or (end is not None and offset >= end):
                break
            found.append(origin + offset)
            taken += 1
        origin += end or 0
    return found


def williams_rows(n):
    first = [0 if p == 0 else (p + 1) // 2 if p % 2 else n - p // 2 for p in range(n)]
    rows = [[(letter + by) % n for letter in first] for by in range(n)]
    if n % 2 and n > 1:
        rows += [row[::-1] for row in rows]
    return rows


def counterbalanced(n, turns):
    rows, orders = williams_rows(n), max(turns) + 1
    positions = {(a, b): 0 for a in range(n) for b in range(n)}
    by_turn = {(a, b, t): 0 for a in range(n) for b in range(n) for t in range(orders)}
    successions = {(a, b): 0 for a in range(n) for b in range(n) if a != b}

    def spread(counts):
        return max(counts.values(), default=0) - min(counts.values(), default=0)

    def add(row, turn, sign):
        for place, letter in enumerate(row):
            positions[letter, place] += sign
            by_turn[letter, place, turn] += sign
        for pair in zip(row, row[1:]):
            successions[pair] += sign

    chosen = []
    for turn in turns:
        keys = []
        for number, row in enumerate(rows):
            add(row, turn, 1)
            squares = sum(count * count for count in successions.values())
            keys.append((max(0, spread(positions) - 1), max(0, spread(by_turn) - 1), squares, number))
            add(row, turn, -1)
        best = rows[min(keys)[3]]
        add(best, turn, 1)
        chosen.append(best)
    return chosen


def shuffled(purpose, n, seed):
    items = list(range(n))
    Stream(purpose, seed, "", 0).shuffle(items)
    return items


def arm_orders(order, n, turns, seed):
    blocks = range(len(turns))
    if order == "fixed":
        return [list(range(n)) for _ in blocks]
    if order == "rotating":
        return [[(place + block) % n for place in range(n)] for block in blocks]
    if order == "shuffled":
        return [shuffled("arm-order", n, seed + block) for block in blocks]
    letters = shuffled("arm-order", n, seed)
    return [[letters[letter] for letter in row] for row in counterbalanced(n, turns)]


def cell_orders(order, n, blocks, seed):
    forward = list(range(n))
    if order == "alternating":
        return [forward[:: -1 if block % 2 else 1] for block in range(blocks)]
    if order == "rotating":
        return [[(place + block) % n for place in range(n)] for block in range(blocks)]
    if order == "shuffled":
        return [shuffled("cell-order", n, seed + block) for block in range(blocks)]
    return [forward for _ in range(blocks)]


def unplaced(orders, places):
    """The list that `places` puts into the given orders, or None where there is no such list."""
    listed = [None] * len(places[0])
    for name, place in zip(orders[0], places[0]):
        listed[place] = name
    same = all([listed[place] for place in row] == order for order, row in zip(orders, places))
    return listed if same else None


def check_orders(table, seed):
    turns = {"alternating": 2, "rotating": len(table["cells"][0])}.get(table["cell_order"], 1)
    if len(table["cells"][0]) < 2:
        turns = 1
    turns = [block % turns for block in range(table["blocks"])]
    arms = arm_orders(table["arm_order"], len(table["arms"][0]), turns, seed)
    cells = cell_orders(table["cell_order"], len(table["cells"][0]), table["blocks"], seed)
    return bool(unplaced(table["arms"], arms)) and bool(unplaced(table["cells"], cells))


def main(folder):
    folder = pathlib.Path(folder)
    data = (folder / "plan.json").read_bytes()
    plan = json.loads(data)
    faults = []
    if json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() != data:
        faults.append("plan.json is not canonical")
    listed = {}
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ", 1)
        listed[name] = digest
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            faults.append(f"{name} differs from SHA256SUMS")
    if plan["draw"] != "pcg64-q64/1":
        faults.append(f"unknown draw {plan['draw']}")

    arrivals = {entry["cell"]: entry["stages"] for entry in plan["arrivals"]}
    derived = {}
    traces = 0
    for unit in plan["units"]:
        warmup = [unit["warmup"]] if unit["warmup"] else []
        for cell in warmup + unit["cells"]:
            ((kind, load),) = cell["load"].items()
            trace = json.loads((folder / "objects" / load["trace"].removeprefix("sha256:")).read_bytes())
            if "classes" in trace:
                dealt = sorted(trace["classes"])
                Stream("classes", unit["block_seed"], cell["name"], 0).shuffle(dealt)
                if dealt != trace["classes"]:
                    faults.append(f"classes of {cell['name']} in unit {unit['n']} differ")
            if kind != "open":
                continue
            key = (cell["name"], unit["block_seed"])
            if key not in derived:
                derived[key] = offsets(arrivals[cell["name"]], unit["block_seed"], cell["name"])
                traces += 1
            if trace["offsets_ns"] != derived[key]:
                faults.append(f"offsets of {cell['name']} in unit {unit['n']} differ")

    seeds = {unit["set"]: int(unit["block_seed"]) for unit in plan["units"] if unit["block"] == 0}
    for table in plan["orders"]:
        if not check_orders(table, seeds[table["set"]]):
            faults.append(f"the orders of {table['set']} differ")

    for fault in faults:
        print("DIFFERS:", fault)
    offsets_count = sum(len(found) for found in derived.values())
    print(f"derived again: {traces} traces, {offsets_count} offsets, {len(plan['orders'])} order tables")
    print(hashlib.sha256(data).hexdigest())
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
