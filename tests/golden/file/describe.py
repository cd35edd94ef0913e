#!/usr/bin/env python3
"""The rows of data files as fastavro reads them: "SEQUENCE KIND ROW" a line, the row in tarn's JSON without nested columns.
usage: describe.py FILE.avro...; the schema is NAME.schema of NAME-N.avro. Writes FILE.txt beside each."""
import ctypes
import datetime
import json
import re
import sys

import fastavro
import fastavro._read_py as plain

plain.LOGICAL_READERS.clear()  # numbers and bytes as they are in the file


def float_text(v, narrow):
    if v != v:
        return '"NaN"'
    if v in (float("inf"), float("-inf")):
        return '"Infinity"' if v > 0 else '"-Infinity"'
    if narrow:
        v = next(t for p in range(1, 18) if ctypes.c_float(t := float("%.*g" % (p, v))).value == v)
    return repr(v)


def time_text(us):
    seconds, us = divmod(us, 1000000)
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return at.strftime("%04d-" % at.year + "%m-%dT%H:%M:%S") + ".%06d000" % us


def text(v, type_, avro):
    if v is None:
        return "null"
    kind = re.match("[A-Z]+", type_).group()
    if kind == "BOOLEAN":
        return "true" if v else "false"
    if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return str(v)
    if kind in ("FLOAT", "DOUBLE"):
        return float_text(v, kind == "FLOAT")
    if kind == "DECIMAL":
        scale = int(re.search(r",\s*(\d+)|$", type_).group(1) or 0)
        digits = str(abs(n := int.from_bytes(v, "big", signed=True))).rjust(scale + 1, "0")
        point = len(digits) - scale
        fraction = "." + digits[point:] if scale else ""
        return '"%s%s%s"' % ("-" if n < 0 else "", digits[:point], fraction)
    if kind in ("CHAR", "VARCHAR", "STRING"):
        return json.dumps(v, ensure_ascii=False)
    if kind in ("BINARY", "VARBINARY", "BYTES"):
        return '"%s"' % v.hex()
    if kind == "DATE":
        return '"%s"' % time_text(v * 86400000000)[:10]
    if kind == "TIME":
        return '"%s"' % time_text(v * 1000)[11:23]
    return '"%s%s"' % (time_text(v if "micros" in avro else v * 1000), "Z" if "LOCAL" in type_ else "")


def describe(path):
    with open(re.sub(r"-\d+\.avro", ".schema", path), encoding="utf-8") as f:
        fields = [(f["name"], f["type"]) for f in json.load(f)["fields"] if isinstance(f["type"], str)]
    with open(path, "rb") as f:
        reader = plain.reader(f)
        avro = {f["name"]: json.dumps(f["type"]) for f in reader.writer_schema["fields"]}
        for i, r in enumerate(reader):
            row = ",".join('"%s":%s' % (n, text(r[n], t, avro[n])) for n, t in fields)
            yield "%d %d {%s}" % (r.get("_SEQUENCE_NUMBER", i), r.get("_VALUE_KIND", 0), row)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path.replace(".avro", ".txt"), "w", encoding="utf-8") as out:
            out.writelines(l + "\n" for l in describe(path))
