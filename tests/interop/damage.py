"""Damages a copy of an avro table in one way: the kinds of the oracle's `corrupt`, and more.

DAMAGES is name -> Damage(base, expect, how): the kind of table it needs, what a finding of fsck must say, and what does it.
"""
import io
import json
import re
import struct
from pathlib import Path
from typing import Callable, NamedTuple

import fastavro

KEY_AT = 12    # in a BinaryRow of one INT: 4 bytes of arity, 8 of null bits
MIN, MAX, NULLS = "_MIN_VALUES", "_MAX_VALUES", "_NULL_COUNTS"


class Damage(NamedTuple):
    base: str
    expect: str
    how: Callable
    orphans: bool = False


DAMAGES = {}


def damage(base, expect, orphans=False):
    def register(how):
        DAMAGES[how.__name__.replace("_", "-")] = Damage(base, expect, how, orphans)
        return how
    return register


# ---- files ----

def read_avro(path):
    with open(path, "rb") as f:
        reader = fastavro.reader(f)
        return list(reader), reader.writer_schema, reader.codec


def write_avro(path, records, schema, codec):
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), records, codec=codec)
    Path(path).write_bytes(buffer.getvalue())
    return len(buffer.getvalue())


def numbered(table, folder, prefix):
    found = [int(p.name[len(prefix):]) for p in (table / folder).glob(prefix + "*") if p.name[len(prefix):].isdigit()]
    return sorted(found)


def snapshot_path(table, number=None):
    return table / "snapshot" / ("snapshot-%d" % (number or numbered(table, "snapshot", "snapshot-")[-1]))


def edit(path, how):
    value = json.loads(path.read_text())
    how(value)
    path.write_text(json.dumps(value))


def data_files(table, prefix="data-"):
    return sorted(table.glob("**/bucket-*/" + prefix + "*.avro"))


def manifests(table):
    return sorted(p for p in (table / "manifest").iterdir() if re.match(r"manifest-[0-9a-f]{8}-", p.name))


def delta(table, number=None):
    """The records of the list of a snapshot's delta: (path, records, schema, codec)."""
    path = table / "manifest" / json.loads(snapshot_path(table, number).read_text())["deltaManifestList"]
    return (path, *read_avro(path))


def edit_list(table, how, number=None):
    """Changes the records of the delta's list; the snapshot says its new size."""
    path, records, schema, codec = delta(table, number)
    size = write_avro(path, how(records), schema, codec)
    edit(snapshot_path(table, number), lambda s: s.update(deltaManifestListSize=size))


def edit_entries(table, how, number=None, counts=True):
    """Changes the entries of the delta's manifests, and the numbers in list and snapshot that follow."""
    rows = [0]

    def each(record):
        path = table / "manifest" / record["_FILE_NAME"]
        entries, schema, codec = read_avro(path)
        entries = [e for e in (how(e) for e in entries) if e]
        adds = [e for e in entries if e["_KIND"] == 0]
        record.update(_FILE_SIZE=write_avro(path, entries, schema, codec), _NUM_ADDED_FILES=len(adds),
                      _NUM_DELETED_FILES=len(entries) - len(adds))
        for name, part in (("BUCKET", lambda e: e["_BUCKET"]), ("LEVEL", lambda e: e["_FILE"]["_LEVEL"])):
            if "_MIN_" + name in record:
                record["_MIN_" + name] = min(map(part, entries))
                record["_MAX_" + name] = max(map(part, entries))
        rows[0] += sum((1 if e["_KIND"] == 0 else -1) * e["_FILE"]["_ROW_COUNT"] for e in entries)
        return record

    edit_list(table, lambda records: [each(r) for r in records], number)
    path = snapshot_path(table, number)
    if counts:
        edit(path, lambda s: s.update(totalRecordCount=s["totalRecordCount"] - s["deltaRecordCount"] + rows[0],
                                      deltaRecordCount=rows[0]))


def edit_meta(table, how, number=None, counts=True):
    def each(entry):
        how(entry["_FILE"])
        return entry
    edit_entries(table, each, number, counts)


def folder_of(table, entry, partition=""):
    return table / partition / ("bucket-%d" % entry["_BUCKET"])


def edit_rows(table, how):
    """Writes each data file of the delta anew with its rows changed; manifests say the new sizes."""
    def each(entry):
        path = next(table.glob("**/" + entry["_FILE"]["_FILE_NAME"]))
        records, schema, codec = read_avro(path)
        how(records)
        entry["_FILE"]["_FILE_SIZE"] = write_avro(path, records, schema, codec)
        return entry
    edit_entries(table, each)


def patched(row, at, form, change):
    value = struct.unpack_from(form, row, at)[0]
    return row[:at] + struct.pack(form, change(value)) + row[at + struct.calcsize(form):]


# ---- data files ----

@damage("one", "the manifest says")
def truncated_data_file(table):
    path = data_files(table)[0]
    path.write_bytes(path.read_bytes()[:-40])


@damage("one", "byte ")
def damaged_data_file(table):
    path = data_files(table)[0]
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 60):
        data[at] ^= 0x5a
    path.write_bytes(bytes(data))


@damage("one", "byte ")
def damaged_head(table):
    path = data_files(table)[0]
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(bytes(data))


@damage("one", "file is missing")
def missing_data_file(table):
    data_files(table)[0].unlink()


@damage("one", "in the wrong bucket")
def wrong_bucket(table):
    def each(entry):
        if entry["_BUCKET"] == 0:
            name = entry["_FILE"]["_FILE_NAME"]
            (table / "bucket-0" / name).rename(table / "bucket-1" / name)
            entry["_BUCKET"] = 1
        return entry
    edit_entries(table, each)


@damage("one", "rows, the manifest says")
def wrong_row_count(table):
    edit_meta(table, lambda m: m.update(_ROW_COUNT=m["_ROW_COUNT"] + 1))


@damage("one", "keys are not sorted")
def unsorted_keys(table):
    def how(rows):
        rows[3], rows[7] = rows[7], rows[3]
    edit_rows(table, how)


@damage("one", "a key twice in one file")
def repeated_key(table):
    def how(rows):
        rows[3] = rows[4]
    edit_rows(table, how)


@damage("one", "differs from the value column")
def key_column_differs(table):
    edit_rows(table, lambda rows: rows[2].update(_KEY_k=rows[2]["_KEY_k"] + 1000))


@damage("one", "NOT NULL")
def null_in_not_null(table):
    def how(entry):
        path = next(table.glob("**/" + entry["_FILE"]["_FILE_NAME"]))
        records, schema, codec = read_avro(path)
        for field in schema["fields"]:
            if field["name"] == "n":
                field["type"] = ["null", field["type"]]
        records[5]["n"] = None
        entry["_FILE"]["_FILE_SIZE"] = write_avro(path, records, schema, codec)
        return entry
    edit_entries(table, how)


@damage("one", "row ")
def wrong_value_kind(table):
    edit_rows(table, lambda rows: rows[2].update(_VALUE_KIND=7))


@damage("one", "statistics of b: max")
def wrong_statistics(table):
    at = KEY_AT + 16
    edit_meta(table, lambda m: m["_VALUE_STATS"].update(
        {MAX: patched(m["_VALUE_STATS"][MAX], at, "<q", lambda v: v - 1)}))


@damage("one", "statistics of b: min")
def unmet_statistics(table):
    at = KEY_AT + 16
    edit_meta(table, lambda m: m["_VALUE_STATS"].update(
        {MIN: patched(m["_VALUE_STATS"][MIN], at, "<q", lambda v: v - 1)}))


@damage("one", "key statistics of k: max")
def wrong_key_statistics(table):
    edit_meta(table, lambda m: m["_KEY_STATS"].update(
        {MAX: patched(m["_KEY_STATS"][MAX], KEY_AT, "<i", lambda v: v + 1)}))


@damage("one", "value statistics")
def short_statistics(table):
    edit_meta(table, lambda m: m["_VALUE_STATS"].update({NULLS: m["_VALUE_STATS"][NULLS][:-1]}))


@damage("one", "min key")
def wrong_min_key(table):
    edit_meta(table, lambda m: m.update(_MIN_KEY=patched(m["_MIN_KEY"], KEY_AT, "<i", lambda v: -5)))


@damage("one", "max key")
def wrong_max_key(table):
    edit_meta(table, lambda m: m.update(_MAX_KEY=patched(m["_MAX_KEY"], KEY_AT, "<i", lambda v: v + 1)))


@damage("one", "sequence numbers")
def wrong_sequence_range(table):
    edit_meta(table, lambda m: m.update(_MAX_SEQUENCE_NUMBER=m["_MAX_SEQUENCE_NUMBER"] + 1))


@damage("one", "retract rows")
def wrong_retract_count(table):
    edit_meta(table, lambda m: m.update(_DELETE_ROW_COUNT=3))


@damage("one", "extra file is missing")
def missing_extra_file(table):
    edit_meta(table, lambda m: m.update(_EXTRA_FILES=[m["_FILE_NAME"] + ".index"]))


@damage("append", "null count")
def wrong_null_count(table):
    edit_rows(table, lambda rows: rows[0].update(k=None))


@damage("append", "rows of another partition")
def wrong_partition(table):
    def how(rows):
        other = "a" if rows[0]["p"] != "a" else "b"
        for row in rows:
            row["p"] = other
    edit_rows(table, how)


@damage("append", "totalBuckets 5")
def wrong_total_buckets(table):
    def how(entry):
        entry["_TOTAL_BUCKETS"] = 5
        return entry
    edit_entries(table, how)


@damage("append", "append file on level 3")
def append_level(table):
    edit_meta(table, lambda m: m.update(_LEVEL=3))


@damage("append", "without buckets")
def append_bucket(table):
    def how(entry):
        path = next(table.glob("**/" + entry["_FILE"]["_FILE_NAME"]))
        folder = path.parent.parent / "bucket-1"
        folder.mkdir(exist_ok=True)
        path.rename(folder / path.name)
        entry["_BUCKET"] = 1
        return entry
    edit_entries(table, how)


# ---- manifests and lists ----

@damage("many", "manifest")
def two_manifests_swapped(table):
    a = manifests(table)[0]
    b = next(m for m in manifests(table) if m.read_bytes() != a.read_bytes())
    one, two = a.read_bytes(), b.read_bytes()
    a.write_bytes(two)
    b.write_bytes(one)


@damage("many", "file is missing")
def missing_manifest(table):
    (table / "manifest" / delta(table)[1][0]["_FILE_NAME"]).unlink()


@damage("many", "file is missing")
def missing_manifest_list(table):
    delta(table)[0].unlink()


@damage("one", "byte ")
def damaged_manifest(table):
    path = table / "manifest" / delta(table)[1][0]["_FILE_NAME"]
    data = path.read_bytes()
    path.write_bytes(data[:-30] + bytes(30))


@damage("one", "deletes a file that is not there")
def deleted_but_absent(table):
    def how(entry):
        entry["_KIND"] = 1 if entry["_BUCKET"] == 0 else 0
        return entry
    edit_entries(table, how)


@damage("one", "adds a file twice")
def added_twice(table):
    def how(records):
        records.append(dict(records[0], _FILE_NAME=records[0]["_FILE_NAME"][:-1] + "7"))
        for r in records[1:]:
            (table / "manifest" / r["_FILE_NAME"]).write_bytes((table / "manifest" / records[0]["_FILE_NAME"]).read_bytes())
        return records
    edit_list(table, how)


@damage("one", "listed twice")
def manifest_listed_twice(table):
    edit_list(table, lambda records: records + records)


@damage("one", "listed as")
def wrong_added_count(table):
    edit_list(table, lambda records: [dict(r, _NUM_ADDED_FILES=r["_NUM_ADDED_FILES"] + 1) for r in records])


@damage("one", "buckets 0..1, listed as")
def wrong_bucket_range(table):
    edit_list(table, lambda records: [dict(r, _MAX_BUCKET=0) for r in records])


@damage("one", "levels 0..0, listed as")
def wrong_level_range(table):
    edit_list(table, lambda records: [dict(r, _MIN_LEVEL=1, _MAX_LEVEL=1) for r in records])


@damage("one", "has ")
def wrong_manifest_size(table):
    edit_list(table, lambda records: [dict(r, _FILE_SIZE=r["_FILE_SIZE"] + 1) for r in records])


@damage("append", "partition statistics of p")
def wrong_partition_statistics(table):
    def how(record):
        stats = record["_PARTITION_STATS"]
        stats[MAX] = stats[MIN]
        return record
    edit_list(table, lambda records: [how(r) for r in records])


@damage("many", "files overlap")
def overlapping_level(table):
    """The newest files lie on level 0; the manifest claims the level of the large ones."""
    edit_meta(table, lambda m: m.update(_LEVEL=5))


@damage("many", "total buckets 2 and 3")
def mixed_total_buckets(table):
    def how(entry):
        entry["_TOTAL_BUCKETS"] = 3
        return entry
    edit_entries(table, how)


# ---- snapshots, schemas and the rest ----

@damage("many", "totalRecordCount")
def wrong_snapshot_count(table):
    edit(snapshot_path(table, 3), lambda s: s.update(totalRecordCount=s["totalRecordCount"] + 1))


@damage("many", "deltaRecordCount")
def wrong_delta_count(table):
    edit(snapshot_path(table), lambda s: s.update(deltaRecordCount=s["deltaRecordCount"] + 1))


@damage("many", "snapshots jump")
def missing_snapshot(table):
    snapshot_path(table, 3).unlink()


@damage("many", "snapshot-3")
def unreadable_snapshot(table):
    path = snapshot_path(table, 3)
    path.write_text(path.read_text()[:100])


@damage("many", "it says")
def snapshot_of_another_id(table):
    snapshot_path(table, 3).write_bytes(snapshot_path(table, 2).read_bytes())


@damage("many", "not the ")
def stale_base(table):
    old = json.loads(snapshot_path(table, 2).read_text())
    edit(snapshot_path(table, 3), lambda s: s.update(
        baseManifestList=old["baseManifestList"], baseManifestListSize=old["baseManifestListSize"]))


@damage("one", "has ")
def wrong_list_size(table):
    edit(snapshot_path(table), lambda s: s.update(deltaManifestListSize=s["deltaManifestListSize"] + 1))


@damage("one", "hint LATEST")
def hint_beyond_the_end(table):
    (table / "snapshot/LATEST").write_text("9")


@damage("one", "is not a number")
def hint_without_a_number(table):
    (table / "snapshot/LATEST").write_text("one")


@damage("one", "no schema")
def missing_schema(table):
    edit(snapshot_path(table, 1), lambda s: s.update(schemaId=4))


@damage("one", "nullable primary key")
def nullable_key(table):
    def how(schema):
        for field in schema["fields"]:
            if field["name"] == "k":
                field["type"] = field["type"].replace(" NOT NULL", "")
    edit(table / "schema/schema-0", how)


@damage("one", "waits for 9 beyond 1")
def consumer_beyond_the_end(table):
    (table / "consumer").mkdir(exist_ok=True)
    (table / "consumer/consumer-c").write_text('{"nextSnapshot":9}')


@damage("one", "file is missing")
def missing_statistics_file(table):
    edit(snapshot_path(table), lambda s: s.update(statistics="stat-0"))


@damage("many", "file is missing")
def tag_without_its_files(table):
    """A tag of a snapshot that was expired without looking at tags."""
    (table / "tag").mkdir(exist_ok=True)
    snapshot_path(table, 1).rename(table / "tag/tag-old")
    (table / "snapshot/EARLIEST").write_text("2")
    (table / "manifest" / json.loads((table / "tag/tag-old").read_text())["deltaManifestList"]).unlink()


@damage("one", "not referenced", orphans=True)
def orphan_file(table):
    (table / "bucket-0/data-orphan-0.avro").write_bytes(bytes(10))


# ---- changelogs (tables with changelog-producer = input) ----

@damage("changelog", "file is missing")
def missing_changelog_file(table):
    data_files(table, "changelog-")[0].unlink()


@damage("changelog", "changelogRecordCount")
def wrong_changelog_count(table):
    edit(snapshot_path(table, 2), lambda s: s.update(changelogRecordCount=s["changelogRecordCount"] + 1))
