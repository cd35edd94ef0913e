"""What `write` takes: the edges of what fits, and the forms of databases.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". Needs no package. usage: cli_write_test.py [NAME...]
"""
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import peer
import runner
from peer import need, same
from verbs import TABLE, clean, create, followed, refused, rows_of, sensors, write


# ---- the edges of what fits ----

def test_a_compaction_that_no_commit_has_memory_for_says_so(tarn):
    options = ("bucket=1", "write-only=true", "manifest.merge-min-count=100000", "snapshot.num-retained.min=5000")
    tarn.run("create", "d.t", "--field", "k INT", "--field", "n INT", "--primary-key", "k",
             *[x for o in options for x in ("--option", o)]).ok("create")
    records = "".join('{"k":%d,"n":%d}\n' % (i % 7, i) for i in range(700))
    tarn.run("write", "d.t", "--commit-every", "1", stdin=records).ok("write")
    result = tarn.run("compact", "d.t", "--memory", "10M")
    need(result.rc == 1 and "manifest-list" in result.err and "are free" in result.err, result.err)
    tarn.run("compact", "d.t").ok("compact with more memory")


def test_a_table_is_as_wide_as_the_memory_for_its_schema(tarn):
    create(tarn, ["c%d INT" % i for i in range(300)], "--primary-key", "c0", "--option", "bucket=1")
    row = {"c%d" % i: i for i in range(300)}
    write(tarn, [row])
    same(rows_of(tarn.run("cat", TABLE), "cat"), [row], "rows")
    flags = [x for i in range(1200) for x in ("--field", "c%d INT" % i)]
    refused(tarn.run("create", "plant.wide", *flags, "--option", "bucket=-1"), 2, "the schema: ", "create")
    same(rows_of(tarn.run("ls"), "ls")[0]["table"], TABLE, "no other table")


def test_closed_standard_streams_never_become_a_tables_file(tarn):
    sensors(tarn)
    rows = Path(tarn.warehouse) / "rows.json"
    rows.write_text('{"dev":"a","temp":1.0}\n{"dev":"a","temp":"no number"}\n')
    for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        line = "%s write --warehouse %s %s %s --from 0 %s" % (peer.TARN, tarn.warehouse, TABLE, rows, closed)
        same(subprocess.run(line, shell=True, check=False).returncode, 1, closed)
    for path in Path(tarn.warehouse).rglob("*"):
        need(path == rows or not path.is_file() or not re.search(rb"tarn: |committed snapshot", path.read_bytes()), str(path))
    clean(tarn)


def test_a_partition_value_that_names_no_folder_costs_its_row_only(tarn):
    create(tarn, ["p STRING", "k INT"], "--partition-by", "p", "--option", "bucket=-1")
    rows = [{"p": p, "k": k} for k, p in enumerate(["a", "zero\0byte", "x" * 253, "x" * 254, "?" * 84, "?" * 85, "é" * 127, "b"])]
    text = "".join(json.dumps(r) + "\n" for r in rows)
    result = tarn.run("write", TABLE, stdin=text)
    same((result.rc, result.err.count("zero byte"), result.err.count("at most 255")), (1, 1, 3), result.err)
    same(sorted(r["k"] for r in rows_of(tarn.run("cat", TABLE), "cat")), [0, 2, 4, 7], "rows")
    clean(tarn)


def test_a_table_of_300_columns_is_written_read_and_compacted(tarn):
    types = ["INT", "STRING", "DOUBLE", "DECIMAL(38,5)", "TIMESTAMP(6)", "BOOLEAN"]
    fields = [("k", "INT")] + [("c%03d" % i, types[i % 6]) for i in range(300)]
    schema = Path(tarn.warehouse) / "schema.json"
    schema.write_text(json.dumps({"fields": [{"name": n, "type": t} for n, t in fields], "primaryKeys": ["k"],
                                  "options": {"bucket": "2", "num-sorted-run.compaction-trigger": "3"}}))
    tarn.run("create", TABLE, "--schema", schema).ok("create")
    some = [7, "text", 0.5, "-%s.50000" % ("9" * 33), "1969-12-31T23:59:59.999999000", True]
    rows = [{"k": k, **{"c%03d" % i: some[i % 6] if (i + k) % 5 else None for i in range(300)}} for k in range(200)]
    write(tarn, rows, "--commit-every", "25")
    same(sorted(rows_of(tarn.run("cat", TABLE), "cat"), key=lambda r: r["k"]), rows, "rows")
    tarn.run("compact", TABLE, "--full").ok("compact")
    same(rows_of(tarn.run("get", TABLE, 77), "get"), rows[77:78], "get")
    clean(tarn)


def test_changes_of_200_columns_are_told(tarn):
    """Each input brings 20 columns; compactions write rows, changelog and statistics of all."""
    types = ["INT", "STRING", "DOUBLE", "DECIMAL(38,5)", "TIMESTAMP(6)", "BIGINT"]
    some = [7, "text", 0.5, "-%s.50000" % ("9" * 33), "1969-12-31T23:59:59.999999000", 1 << 40]
    schema = Path(tarn.warehouse) / "schema.json"
    schema.write_text(json.dumps({"fields": [{"name": "k", "type": "INT"}] + [{"name": "c%03d" % i, "type": types[i % 6]} for i in range(200)],
                                  "primaryKeys": ["k"], "options": {"bucket": "2", "merge-engine": "partial-update", "changelog-producer": "full-compaction"}}))
    tarn.run("create", TABLE, "--schema", schema).ok("create")
    rows = {}
    for i in range(6000):
        k, group = i * 7919 % 1500, i % 10
        row = {"k": k, **{"c%03d" % c: some[c % 6] for c in range(group * 20, group * 20 + 20) if (c + i) % 3}}
        rows.setdefault(k, {"k": k, **{"c%03d" % c: None for c in range(200)}}).update(row)
        if i % 1000 == 0:
            text = []
        text.append(json.dumps(row) + "\n")
        if i % 1000 == 999:
            tarn.run("write", TABLE, "--commit-every", "500", stdin="".join(text)).ok("write %d" % i)
    same(sorted(rows_of(tarn.run("cat", TABLE), "cat"), key=lambda r: r["k"]), [rows[k] for k in sorted(rows)], "rows")
    same(followed(tarn), rows, "what changed, put together")
    clean(tarn)


def test_rows_as_long_as_are_taken_are_looked_up(tarn):
    """In four levels below, too: a compaction that has no room for them would be told of."""
    create(tarn, ["k INT", "s STRING"], "--primary-key", "k", "--option", "bucket=1", "--option", "changelog-producer=lookup")
    rng, rows = random.Random(3), {}
    for _ in range(8):
        some = [{"k": rng.randrange(8), "s": "".join(rng.choices("abcdefghij", k=rng.choice([10, 150000, 190000, 200000])))} for _ in range(7)]
        result = tarn.run("write", TABLE, stdin="".join(json.dumps(r) + "\n" for r in some))
        result.ok("write")
        need(all(line.startswith("committed ") for line in result.err.splitlines()), result.err)
        rows.update((r["k"], r) for r in some)
    same(sorted(rows_of(tarn.run("cat", TABLE), "cat"), key=lambda r: r["k"]), [rows[k] for k in sorted(rows)], "rows")
    same(followed(tarn), rows, "what changed, put together")
    clean(tarn)


def test_the_least_memory_that_is_taken_is_enough(tarn):
    sensors(tarn)
    said = tarn.run("ls", "--memory", "1M").err
    least = ["--memory", re.search(r"at least (\d+) KiB", said).group(1) + "K"]
    rows = [{"dev": "d%d" % (i % 500), "temp": float(i)} for i in range(3000)]
    write(tarn, rows, "--commit-every", "500", *least)
    same(len(tarn.run("cat", TABLE, *least).ok("cat")), 500, "rows")
    for verb in ("compact", "fsck", "ls"):
        tarn.run(verb, TABLE, *least).ok(verb)


# ---- the forms of databases ----

def changed(tarn, form, records, *args):
    """What these records make of a table that tells each row as it came: what tail prints, and the table."""
    create(tarn, ["id INT", "v STRING"], "--primary-key", "id", "--option", "bucket=1", "--option", "changelog-producer=input")
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)
    tarn.run("write", TABLE, "--input", form, *args, stdin=text).ok(form)
    told = [(x["kind"], x["row"]["id"], x["row"]["v"]) for x in rows_of(tarn.run("tail", TABLE, "--format", "json"), "tail")]
    rows = [(x["id"], x["v"]) for x in rows_of(tarn.run("cat", TABLE), "cat")]
    clean(tarn)
    return told, rows


def test_canal_records_of_many_rows_are_written(tarn):
    told, rows = changed(tarn, "canal-json", [
        {"data": [{"id": "1", "v": "a"}, {"id": "2", "v": "b"}], "old": None, "isDdl": False, "type": "INSERT"},
        {"data": None, "isDdl": True, "sql": "ALTER TABLE t ADD w INT", "type": "ALTER"},
        {"data": [{"id": "1", "v": "c"}, {"id": "3", "v": "b"}], "old": [{"v": "a"}, {"id": "2"}], "type": "UPDATE"},
        {"data": [{"id": "3", "v": "b"}], "old": None, "type": "DELETE"}])
    same(told, [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "c"), ("+I", 2, "b"), ("-U", 2, "b"), ("+U", 3, "b"), ("-D", 3, "b")], "told")
    same(rows, [(1, "c")], "rows")
    dead = tarn.run("write", TABLE, "--input", "canal-json", stdin='{"data":null,"old":null,"type":"DELETE"}\n')
    same(dead.rc, 1, "a delete of nothing")
    need("needs rows" in dead.err, dead.err)


def test_maxwell_records_are_written_and_what_is_none_is_passed_over(tarn):
    told, rows = changed(tarn, "maxwell-json", [
        {"database": "d", "table": "t", "type": "bootstrap-start", "ts": 1, "data": {}},
        {"database": "d", "table": "t", "type": "bootstrap-insert", "ts": 1, "data": {"id": 1, "v": "a"}},
        {"database": "d", "table": "t", "type": "insert", "ts": 2, "data": {"id": 2, "v": "b"}},
        {"type": "table-alter", "database": "d", "table": "t", "old": {"columns": []}, "def": {"columns": []}, "ts": 2},
        {"database": "d", "table": "t", "type": "update", "ts": 4, "data": {"id": 1, "v": "c"}, "old": {"v": "a"}},
        {"database": "d", "table": "t", "type": "delete", "ts": 5, "data": {"id": 2, "v": "b"}}])
    same(told, [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "c"), ("+I", 2, "b"), ("-D", 2, "b")], "told")
    same(rows, [(1, "c")], "rows")


def test_debezium_records_are_read_by_their_schema(tarn):
    fields = {"id": ("INT", "int32", None, None), "cost": ("DECIMAL(20, 4)", "bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "2"}),
              "day": ("DATE", "int32", "io.debezium.time.Date", None), "at": ("TIMESTAMP(6)", "int64", "io.debezium.time.MicroTimestamp", None),
              "clock": ("TIME(3)", "int32", "io.debezium.time.Time", None), "raw": ("BYTES", "bytes", None, None),
              "zoned": ("TIMESTAMP(6)", "string", "io.debezium.time.ZonedTimestamp", None), "ok": ("BOOLEAN", "int16", None, None)}
    create(tarn, ["%s %s" % (n, f[0]) for n, f in fields.items()], "--primary-key", "id", "--option", "bucket=1")
    columns = [dict({"type": f[1], "optional": True, "field": n}, **({"name": f[2], "version": 1} if f[2] else {}), **({"parameters": f[3]} if f[3] else {}))
               for n, f in fields.items()]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": columns, "optional": True, "field": x} for x in ("before", "after")]}
    after = {"id": 1, "cost": "Ifw=", "day": 19439, "at": 1679581805123456, "clock": 36803000, "raw": "AP8=", "zoned": "2023-03-23T22:00:10.5Z", "ok": 1}
    records = [{"schema": schema, "payload": {"before": None, "after": after, "op": "c"}}, {"schema": None, "payload": None}]
    write(tarn, records, "--input", "debezium-json")
    row = rows_of(tarn.run("cat", TABLE), "cat")[0]
    same((row["cost"], row["day"], row["clock"], row["raw"], row["ok"]), ("87.0000", "2023-03-23", "10:13:23.000", "00ff", True), "row")
    need(row["at"].startswith("2023-03-23T14:30:05.123456") and row["zoned"].startswith("2023-03-23T22:00:10.5"), str(row))
    clean(tarn)


def test_updates_without_before_are_told_as_they_came(tarn):
    """apache/paimon#3176, #3113: what was before is not invented; a tombstone is no row."""
    told, rows = changed(tarn, "debezium-json", [
        {"before": None, "after": {"id": 1, "v": "a"}, "op": "r"}, {"before": None, "after": {"id": 1, "v": "b"}, "op": "u"}, "",
        {"payload": {"before": {"id": 2, "v": "b"}, "after": None, "op": "d"}}, "null"])
    same(told, [("+I", 1, "a"), ("+U", 1, "b"), ("-D", 2, "b")], "told")
    same(rows, [(1, "b")], "rows")


def test_points_of_the_line_protocol_are_written(tarn):
    create(tarn, ["measurement STRING", "dev STRING", "temp DOUBLE", "n BIGINT", "note STRING", "ts TIMESTAMP(3)"], "--option", "bucket=-1")
    text = "\n".join(['# a comment', 'room,dev=gw\\ 1 temp=21,n=3i,note="say \\"hi\\",\nnow" 1000', "", "room,dev=b n=1.5 2000", "room temp=1i"])
    result = tarn.run("write", TABLE, "--input", "line-protocol", "--time", "ts=ms", stdin=text)
    same(result.rc, 1, result.err)
    need("column 'n': '1.5' is no BIGINT" in result.err, result.err)
    rows = rows_of(tarn.run("cat", TABLE), "cat")
    same([(x["measurement"], x["dev"], x["temp"], x["n"], x["note"]) for x in rows],
         [("room", "gw 1", 21.0, 3, 'say "hi",\nnow'), ("room", None, 1.0, None, None)], "rows")
    need(rows[0]["ts"].startswith("1970-01-01T00:00:01.000") and rows[1]["ts"] is None, str(rows))
    refused(tarn.run("write", TABLE, "--input", "line-protcol", stdin=""), 2, "did you mean 'line-protocol'?", "a misspelt form")
    clean(tarn)


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
