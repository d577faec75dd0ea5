"""Make vectors.json: canonical forms by the `rfc8785` package, for tests/unit/core_json_test.cpp.

    python tests/data/jcs/make_vectors.py > tests/data/jcs/vectors.json
"""

import json
import random
import struct
import sys

import rfc8785

random.seed(8785)


def double(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def numbers() -> list:
    bits = [random.getrandbits(64) for _ in range(600)]
    for exponent in range(-330, 310, 3):  # both sides of every switch of notation
        value = float(f"1e{exponent}")
        middle = struct.unpack("<Q", struct.pack("<d", value))[0]
        bits += [max(middle - 1, 0), middle, middle + 1]
    for whole in (1e20, 1e21, 1e22, 123456789012345680000.0, 2.0**53, 2.0**63, 0.1, 1e-6, 1e-7, 4.35, 0.30000000000000004):
        bits.append(struct.unpack("<Q", struct.pack("<d", whole))[0])
    values = [(b, double(b)) for b in bits]
    return [[f"{b:016x}", rfc8785.dumps(v).decode()] for b, v in values if v == v and abs(v) != float("inf")]


def text(length: int) -> str:
    planes = [(0x00, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]
    return "".join(chr(random.randint(*random.choice(planes))) for _ in range(length))


def value(depth: int) -> object:
    kind = random.randrange(7 if depth else 5)
    if kind == 0:
        return random.choice([None, True, False])
    if kind == 1:
        return random.randint(-(2**53) + 1, 2**53 - 1)
    if kind == 2:
        return random.choice([0.5, -1e-9, 1e300, 12.75, 3.0]) * random.random()
    if kind in (3, 4):
        return text(random.randrange(6))
    if kind == 5:
        return [value(depth - 1) for _ in range(random.randrange(5))]
    return {text(random.randrange(4)): value(depth - 1) for _ in range(random.randrange(8))}


def documents() -> list:
    made = [value(4) for _ in range(120)]
    return [[json.dumps(v), rfc8785.dumps(v).decode()] for v in made]


json.dump({"numbers": numbers(), "documents": documents()}, sys.stdout, indent=0)
print()
