"""Prints "bits text" of hard doubles or floats: floats.py double|float | java Floats.java double|float

The text is repr's for a double. For a float it is the shortest that reads back, the nearest of
those, a tie to the even last digit, laid out as repr does.
"""

import decimal
import random
import struct
import sys

NARROW = sys.argv[1] == "float"
WIDTH, FRACTION, PACK, WORD = (32, 23, "<f", "<I") if NARROW else (64, 52, "<d", "<Q")


def value_of(bits):
    return struct.unpack(PACK, struct.pack(WORD, bits))[0]


def bits_of(value):
    try:
        return struct.unpack(WORD, struct.pack(PACK, value))[0]
    except OverflowError:
        return 0


def reads_back(text, value):
    return value_of(bits_of(float(text))) == value


def shortest(value):
    exact = decimal.Decimal(value)
    for digits in range(1, 10):
        near = [decimal.Context(prec=digits, rounding=r).create_decimal(exact)
                for r in (decimal.ROUND_DOWN, decimal.ROUND_UP)]
        near = [d for d in near if reads_back(d, value)]
        if near:
            away = decimal.Context(prec=200)
            return min(near, key=lambda d: (abs(away.subtract(d, exact)), d.as_tuple().digits[-1] % 2))


def text_of(value):
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if not NARROW or value == 0:
        return repr(value)
    return repr(float(shortest(value)))  # at most 9 digits: repr gives them back


random.seed(1)
bits = {0, 1 << WIDTH - 1, bits_of(float("inf")), bits_of(float("-inf")), bits_of(float("nan"))}
bits |= set(range(1, 60))  # subnormal
exponents = 2 ** (WIDTH - 1 - FRACTION) - 1
for e in range(0, exponents, 1 if NARROW else 8):
    bits |= {e << FRACTION, (e << FRACTION) + 1, (e << FRACTION | (1 << FRACTION) - 1)}
for _ in range(700):
    bits.add(random.getrandbits(WIDTH))
    digits = random.randint(1, 10 ** random.randint(1, 17))
    bits.add(bits_of(float("%de%d" % (digits, random.randint(-330, 300) // (8 if NARROW else 1)))))
    bits.add(bits_of(digits / 10 ** random.randint(0, 12)))
    bits.add(bits_of(float(digits)))
for b in sorted(bits):
    print("%x %s" % (b, text_of(value_of(b))))
