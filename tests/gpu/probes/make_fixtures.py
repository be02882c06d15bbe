"""Turns what run.sh recorded into fixtures of the emulator's tests.

python3 make_fixtures.py RECORDS_DIR FIXTURES_DIR

cases.txt: a line a case: the numbers of the case (the first: 0 a load, 1 a store, 2 a reduction that adds), the card's
error (0; 715: it refused; 700: the box leaves the window), and the FNV-1a sum of what was left: the window up to its
last byte that is not 0xCD for a load, the tensor for a store. Left out are maps that the driver refused and two loads
that an earlier probe, which did not wait for the mbarrier, read too early; interleave.bin has them again.
reductions.bin: for each recorded (type, operation): two bytes that name them, then the results; before all of them the
operands of each type.
"""
import struct
import sys

TOO_EARLY = [("load.bin", 251), ("load_il.bin", 58)]


def records(path):
    data, p = open(path, "rb").read(), 0
    while p + 196 <= len(data):
        v = struct.unpack_from("<6i5q4q5i5i5iII3iQQI", data, p)
        p += 196
        yield v[:32], v[32], v[33], v[34], data[p:p + v[37]]
        p += v[37]


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 & 0xffffffffffffffff
    return h


def some(data):  # of 8192 bytes: the special values, and some of the others
    return data[:1280] + data[-768:]


source, target = sys.argv[1:3]
with open(target + "/cases.txt", "w") as out:
    seen = set()
    for name in ("load.bin", "load_es.bin", "store.bin", "load_il.bin", "interleave.bin"):
        for k, (case, op, encode, error, left) in enumerate(records(source + "/" + name)):
            if encode != 0 or (name, k) in TOO_EARLY or (case, op) in seen:
                continue
            assert op <= 0
            seen.add((case, op))
            print(2 if op == 0 else case[0], *case[1:], error, "%016x" % (fnv(left) if error == 0 else 0), file=out)
vectors = open(source + "/vectors.bin", "rb").read()
with open(target + "/reductions.bin", "wb") as out:
    for dtype in range(2, 13):
        at = dtype * 16384
        out.write(some(vectors[at:at + 8192]) + some(vectors[at + 8192:at + 16384]))
    for case, op, _, error, left in records(source + "/reduce.bin"):
        if error == 0:
            out.write(bytes([case[1], op]) + some(left))
