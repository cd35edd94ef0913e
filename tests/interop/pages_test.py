"""A program of another machine: a kernel of any page size maps it (fluent/fluent-bit#9730: 16 KB on a Raspberry Pi 5).

Its segments must lie as pages of 64 KB want it, the largest that ARM has. usage: pages_test.py PROGRAM...
"""
import struct
import sys
from pathlib import Path

from peer import Failure, need

PAGE_MAX = 64 * 1024
PT_LOAD = 1


def loads(program):
    """Offset in the file, address and alignment of each segment that is mapped; of ELF with 32 or 64 bits, little-endian."""
    data = Path(program).read_bytes()
    need(data[:4] == b"\x7fELF" and data[5] == 1, "%s is no little-endian ELF" % program)
    wide = data[4] == 2
    table, = struct.unpack_from("<Q" if wide else "<I", data, 32 if wide else 28)
    size, count = struct.unpack_from("<HH", data, 54 if wide else 42)
    for at in range(table, table + size * count, size):
        if wide:
            kind, _, offset, address, _, _, _, align = struct.unpack_from("<IIQQQQQQ", data, at)
        else:
            kind, offset, address, _, _, _, _, align = struct.unpack_from("<IIIIIIII", data, at)
        if kind == PT_LOAD:
            yield offset, address, align


def check(program):
    segments = list(loads(program))
    need(segments, "%s has nothing to map" % program)
    for offset, address, align in segments:
        need(align >= PAGE_MAX, "%s: the segment at %#x is aligned to %#x" % (program, offset, align))
        need(offset % PAGE_MAX == address % PAGE_MAX, "%s: the segment at %#x is mapped to %#x" % (program, offset, address))


def main():
    programs, failed = sys.argv[1:], 0
    for program in programs:
        try:
            check(program)
        except (Failure, OSError) as e:
            failed += 1
            print(e)
    print("%d passed, %d failed" % (len(programs) - failed, failed))
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
