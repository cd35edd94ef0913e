#!/usr/bin/env python3
"""What a manifest, manifest list or index manifest says, one line a record; read by fastavro, so that tarn's reader is held against
another one. usage: describe.py FILE...; writes FILE.txt beside each."""
import sys

import fastavro


def value(v):
    if v is None:
        return "null"
    if isinstance(v, bytes):
        return v.hex()
    if isinstance(v, list):
        return "[" + ",".join(v) + "]"
    if hasattr(v, "timestamp"):
        return str(round(v.timestamp() * 1000))
    return str(v)


def stats(s):
    counts = [value(c) for c in s["_NULL_COUNTS"] or []]
    return "(" + ",".join([s["_MIN_VALUES"].hex(), s["_MAX_VALUES"].hex()] + counts) + ")"


ENTRY = [("kind", "_KIND"), ("partition", "_PARTITION"), ("bucket", "_BUCKET"), ("total_buckets", "_TOTAL_BUCKETS")]
FILE = [
    ("name", "_FILE_NAME"),
    ("size", "_FILE_SIZE"),
    ("rows", "_ROW_COUNT"),
    ("min_key", "_MIN_KEY"),
    ("max_key", "_MAX_KEY"),
    ("key_stats", "_KEY_STATS"),
    ("value_stats", "_VALUE_STATS"),
    ("min_sequence", "_MIN_SEQUENCE_NUMBER"),
    ("max_sequence", "_MAX_SEQUENCE_NUMBER"),
    ("schema", "_SCHEMA_ID"),
    ("level", "_LEVEL"),
    ("extra", "_EXTRA_FILES"),
    ("created", "_CREATION_TIME"),
    ("deletes", "_DELETE_ROW_COUNT"),
    ("index", "_EMBEDDED_FILE_INDEX"),
    ("source", "_FILE_SOURCE"),
    ("stats_cols", "_VALUE_STATS_COLS"),
    ("external", "_EXTERNAL_PATH"),
    ("first_row_id", "_FIRST_ROW_ID"),
    ("write_cols", "_WRITE_COLS"),
]
LIST = [
    ("name", "_FILE_NAME"),
    ("size", "_FILE_SIZE"),
    ("added", "_NUM_ADDED_FILES"),
    ("deleted", "_NUM_DELETED_FILES"),
    ("partition_stats", "_PARTITION_STATS"),
    ("schema", "_SCHEMA_ID"),
    ("min_bucket", "_MIN_BUCKET"),
    ("max_bucket", "_MAX_BUCKET"),
    ("min_level", "_MIN_LEVEL"),
    ("max_level", "_MAX_LEVEL"),
]

INDEX = ENTRY[:3] + [("type", "_INDEX_TYPE"), ("name", "_FILE_NAME"), ("size", "_FILE_SIZE"), ("external", "_EXTERNAL_PATH")]


def line(record, fields):
    return " ".join(
        n + "=" + (stats(record[f]) if f.endswith("_STATS") else value(record.get(f))) for n, f in fields
    )


def describe(path):
    with open(path, "rb") as f:
        for r in fastavro.reader(f):
            if "_INDEX_TYPE" in r:
                yield line(r, INDEX)
            else:
                yield line(r, ENTRY) + " " + line(r["_FILE"], FILE) if "_FILE" in r else line(r, LIST)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path + ".txt", "w", encoding="utf-8") as out:
            out.writelines(l + "\n" for l in describe(path))
