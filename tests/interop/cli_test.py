"""The verbs that look and tidy up, driven as a person does: get, explain, compact, expire, tag, rollback, ls, show, pools, help, --version.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". Needs no package. usage: cli_test.py [NAME...]
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import peer
import runner
from peer import need, same

TABLE = "plant.readings"


def rows_of(result, what):
    return [json.loads(line) for line in result.ok(what)]


def refused(result, rc, text, what):
    """It ends with this code, one line on stderr, nothing on stdout."""
    same(result.rc, rc, "%s: exit code (%s)" % (what, result.err.strip()))
    same(result.lines, [], what)
    same(len(result.err.strip().splitlines()), 1, "%s: lines on stderr: %s" % (what, result.err))
    need(result.err.startswith("tarn: ") and text in result.err, "%s: said %s" % (what, result.err))


def create(tarn, fields, *args, table=TABLE):
    flags = [x for f in fields for x in ("--field", f)]
    tarn.run("create", table, *flags, *args).ok("create")


def write(tarn, rows, *args, table=TABLE):
    text = "".join(json.dumps(r) + "\n" for r in rows)
    return tarn.run("write", table, *args, stdin=text).ok("write")


def sensors(tarn, *args, buckets=2):
    create(tarn, ["dev STRING", "temp DOUBLE"], "--primary-key", "dev", "--option", "bucket=%d" % buckets, *args)


def read(tarn):
    return sorted(tarn.run("cat", TABLE).ok("cat"))


def files_of(tarn, table=TABLE):
    return rows_of(tarn.run("ls", table), "ls")


def snapshots_of(tarn, table=TABLE):
    return rows_of(tarn.run("show", table, "snapshots"), "show snapshots")


def clean(tarn, table=TABLE):
    tarn.run("fsck", table).ok("fsck")


def followed(tarn):
    """The rows by their key `k` that the changes lead to."""
    state = {}
    for change in rows_of(tarn.run("tail", TABLE, "--format", "json"), "tail"):
        if change["kind"] in ("-U", "-D"):
            state.pop(change["row"]["k"], None)
        else:
            state[change["row"]["k"]] = change["row"]
    return state


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


# ---- tail ----

def changes(tarn, *args, rc=0):
    result = tarn.run("tail", TABLE, "--format", "json", *args)
    same(result.rc, rc, "tail %s: exit code (%s)" % (" ".join(map(str, args)), result.err.strip()))
    return [(x["kind"], x["row"]["dev"], x["row"].get("temp")) for x in map(json.loads, result.lines)]


def three_commits(tarn, *args):
    sensors(tarn, *args, buckets=1)
    write(tarn, [{"dev": "a", "temp": 1.0}, {"dev": "b", "temp": 2.0}])
    write(tarn, [{"dev": "a", "temp": 3.0}])
    write(tarn, [{"kind": "-D", "row": {"dev": "b", "temp": 2.0}}, {"kind": "+I", "row": {"dev": "c", "temp": 4.0}}], "--input", "changes")


def test_tail_prints_what_changed_from_any_snapshot_to_any(tarn):
    three_commits(tarn)
    each = [[("+I", "a", 1.0), ("+I", "b", 2.0)], [("+I", "a", 3.0)], [("-D", "b", 2.0), ("+I", "c", 4.0)]]
    for a in range(1, 5):
        same(changes(tarn, "--from", a), sum(each[a - 1:], []), "tail from %d" % a)
        for b in range(a, 4):
            same(changes(tarn, "--from", a, "--to", b), sum(each[a - 1:b], []), "tail from %d to %d" % (a, b))
    same(changes(tarn), sum(each, []), "tail")
    same(changes(tarn, "--from", "latest"), [], "tail from latest")
    same(changes(tarn, "--from", "full"), [("+I", "a", 3.0), ("+I", "c", 4.0)], "tail from full")
    same(changes(tarn, "--from", "full:1"), sum(each, []), "tail from full:1")
    same(changes(tarn, "--limit", 2), each[0], "tail --limit")
    same(changes(tarn, "--where", "temp > 2", "--columns", "dev"), [("+I", "a", None), ("+I", "c", None)], "tail --where --columns")
    for args, text in ((["--from", 5], "beyond the latest, 3"), (["--from", "soon"], "earliest, latest, full"), (["--to", 9], "the latest snapshot is 3"),
                       (["--consumer", "a/b"], "no name"), (["--consumer", "tarn-x"], "tarn's own"), (["--forget"], "needs --consumer"),
                       (["--consumer", "nobody", "--forget"], "no consumer 'nobody'")):
        result = tarn.run("tail", TABLE, *args)
        same((result.rc, len(result.err.splitlines())), (2, 1), "tail %s: %s" % (args, result.err))
        need(text in result.err, "tail %s: %s" % (args, result.err))
    csv = tarn.run("tail", TABLE, "--format", "csv", "--from", 3).ok("tail csv")
    same(csv, ["_kind,dev,temp", "-D,b,2.0", "+I,c,4.0"], "tail csv")
    table = tarn.run("tail", TABLE, "--format", "table", "--from", 3).ok("tail table")
    same([x.split() for x in table], [["_kind", "dev", "temp"], ["-D", "b", "2.0"], ["+I", "c", "4.0"]], "tail table")


def test_what_tail_prints_makes_the_same_table_elsewhere(tarn):
    three_commits(tarn)
    create(tarn, ["dev STRING", "temp DOUBLE"], "--primary-key", "dev", "--option", "bucket=2", table="plant.copy")
    text = "".join(x + "\n" for x in tarn.run("tail", TABLE, "--format", "json").ok("tail"))
    tarn.run("write", "plant.copy", "--input", "changes", stdin=text).ok("write")
    same(sorted(tarn.run("cat", "plant.copy").ok("cat")), sorted(tarn.run("cat", TABLE).ok("cat")), "the copy")


def test_a_consumer_goes_on_where_it_stopped_and_holds_the_rest(tarn):
    three_commits(tarn)
    path = Path(tarn.warehouse) / "plant.db/readings/consumer/consumer-c"
    first = changes(tarn, "--consumer", "c", "--to", 1)
    same(json.loads(path.read_text()), {"nextSnapshot": 2}, "the consumer's file")
    same(rows_of(tarn.run("show", TABLE, "consumers"), "show"), [{"consumer_id": "c", "next_snapshot_id": 2}], "show consumers")
    tarn.run("expire", TABLE, "--retain-max", 1, "--retain-min", 1).ok("expire")
    same(changes(tarn, "--consumer", "c", "--from", "latest", "--limit", 1), [("+I", "a", 3.0)], "all of a snapshot")
    same(changes(tarn, "--consumer", "c", "--limit", 1), [("-D", "b", 2.0)], "part of a snapshot comes again")
    same(changes(tarn, "--consumer", "c", "--from", 1), [("-D", "b", 2.0), ("+I", "c", 4.0)], "the rest")
    same(changes(tarn, "--consumer", "c"), [], "nothing more")
    same(len(first), 2, "rows before")
    tarn.run("expire", TABLE, "--retain-max", 1, "--retain-min", 1).ok("expire")
    result = tarn.run("tail", TABLE, "--from", 2)
    need(result.rc == 2 and "snapshot 2 has expired; the earliest is 3" in result.err, result.err)
    for start in (9, "full:9"):
        refused(tarn.run("tail", TABLE, "--consumer", "e", "--from", start), 2, "snapshot 9", "a start that is not there")
        same([p.name for p in path.parent.iterdir()], ["consumer-c"], "consumers after a start that was refused")
    tarn.run("tail", TABLE, "--consumer", "c", "--forget").ok("forget")
    need(not path.exists(), "a forgotten consumer's file is there")
    same(changes(tarn, "--consumer", "d", "--from", "full"), [("+I", "a", 3.0), ("+I", "c", 4.0)], "full")
    same([p.name for p in path.parent.iterdir()], ["consumer-d"], "consumers")
    same(json.loads((path.parent / "consumer-d").read_text()), {"nextSnapshot": 4}, "after full")
    clean(tarn)


def test_tail_follows_until_a_signal(tarn):
    three_commits(tarn, "--option", "num-sorted-run.compaction-trigger=100")  # a COMPACT snapshot may be followed or not yet
    for number in (signal.SIGTERM, signal.SIGINT):
        argv = [str(peer.TARN), "tail", TABLE, "--warehouse", tarn.warehouse, "--follow", "--from", "3", "--consumer", "f%d" % number]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            watchdog = threading.Timer(peer.SECONDS_MAX, process.kill)
            watchdog.start()
            rows = [json.loads(process.stdout.readline())["row"]["dev"] for _ in range(2)]
            write(tarn, [{"dev": "new%d" % number, "temp": 0.0}])
            while not rows[-1].endswith(str(number)):
                rows.append(json.loads(process.stdout.readline())["row"]["dev"])
            process.send_signal(number)
            rest, err = process.communicate()
            watchdog.cancel()
        same((process.returncode, rest, err), (0, b"", b""), "the end of tail --follow")
        same(rows[:2], ["b", "c"], "rows that were there")
    held = [r["next_snapshot_id"] for r in rows_of(tarn.run("show", TABLE, "consumers"), "show")]
    same(held, [5, 6], "consumers of SIGTERM, then SIGINT")


def test_tail_waits_for_the_first_snapshot_and_ends_at_the_last_wanted(tarn):
    sensors(tarn)
    same(changes(tarn), [], "a table without snapshots")
    argv = [str(peer.TARN), "tail", TABLE, "--warehouse", tarn.warehouse, "--follow", "--to", "2"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        for temp in (1.0, 2.0, 3.0):
            write(tarn, [{"dev": "a", "temp": temp}])
        rows = [json.loads(line)["row"]["temp"] for line in process.communicate()[0].splitlines()]
    same((process.returncode, rows), (0, [1.0, 2.0]), "rows up to snapshot 2")


def test_cat_incremental_knows_deltas_changelogs_and_differences(tarn):
    three_commits(tarn)
    for args, want in ((["0,3"], "+Ia +Ib +Ia -Db +Ic"), (["1,3", "--incremental-mode", "delta"], "+Ia -Db +Ic"), (["1,3", "--incremental-mode", "changelog"], ""),
                       (["1,3", "--incremental-mode", "diff"], "+Ia -Db +Ic"), (["2,2"], "")):
        rows = rows_of(tarn.run("cat", TABLE, "--kind", "--incremental", *args), "cat --incremental %s" % args)
        same(" ".join(r["kind"] + r["row"]["dev"] for r in rows), want, "cat --incremental %s" % args)
    rows = rows_of(tarn.run("cat", TABLE, "--incremental", "1,3", "--incremental-mode", "diff"), "diff")
    same(sorted(r["dev"] for r in rows), ["a", "c"], "a diff without kinds")
    for args, text in ((["3,1"], "A <= B"), (["1"], "want A,B"), (["1,9"], "snapshots 1 to 3 are there"), (["1,9", "--incremental-mode", "diff"], "no snapshot 9"),
                       (["1,2", "--incremental-mode", "all"], "auto, delta, changelog or diff"),
                       (["9223372036854775807,9223372036854775807"], "snapshots 1 to 3 are there")):
        refused(tarn.run("cat", TABLE, "--incremental", *args), 2, text, "cat --incremental %s" % args)


# ---- tag, rollback ----

def test_a_tag_keeps_its_snapshot_and_a_rollback_goes_back_to_it(tarn):
    three_commits(tarn)
    first = tarn.run("cat", TABLE, "--snapshot", 1).ok("cat")
    same(rows_of(tarn.run("tag", TABLE, "a", "--snapshot", 1, "--dry-run"), "tag"), [{"tag": "a", "snapshot": 1}], "dry run")
    refused(tarn.run("cat", TABLE, "--tag", "a"), 2, "there is no tag 'a'", "a tag of a dry run")
    tarn.run("tag", TABLE, "a", "--snapshot", 1).ok("tag")
    tarn.run("tag", TABLE, "newest", "--time-retained", "30 d").ok("tag")
    same([(r["tag_name"], r["snapshot_id"], r["time_retained"]) for r in rows_of(tarn.run("show", TABLE, "tags"), "show tags")],
         [("a", 1, None), ("newest", 3, "2592000 s")], "show tags")
    for args, text in [(["a"], "there is a tag 'a' already"), (["x/y"], "no tag's name"), (["7"], "taken for a snapshot"),
                       (["b", "--snapshot", 9], "no snapshot 9"), (["b", "--time-retained", "soon"], "no duration"),
                       (["b", "--delete"], "no tag 'b'"), (["a", "--delete", "--snapshot", 1], "--delete goes with neither")]:
        refused(tarn.run("tag", TABLE, *args), 2, text, "tag %s" % args)
    tarn.run("expire", TABLE, "--retain-max", 1, "--retain-min", 1, "--older-than", "0 s").ok("expire")
    for verb in (["cat"], ["ls"], ["show", "files"], ["show", "manifests"]):
        tarn.run(verb[0], TABLE, *verb[1:], "--tag", "a").ok(verb)
    same(tarn.run("cat", TABLE, "--tag", "a").ok("cat"), first, "the tag's rows")
    for args, text in [(["b"], "no tag 'b'"), (["2"], "no snapshot 2, nor a tag of it"), (["9"], "no snapshot 9")]:
        refused(tarn.run("rollback", TABLE, *args), 2, text, "rollback %s" % args)
    want = [{"snapshot": 1, "snapshots": 1, "tags": 1, "changelogs": 0}]
    same(rows_of(tarn.run("rollback", TABLE, "a", "--dry-run"), "rollback"), want, "dry run")
    same([r["snapshot_id"] for r in snapshots_of(tarn)], [3], "snapshots behind a dry run")
    same(rows_of(tarn.run("rollback", TABLE, "a"), "rollback"), want, "rollback")
    same(tarn.run("cat", TABLE).ok("cat"), first, "rows")
    clean(tarn)
    tarn.run("clean", TABLE, "--older-than", "0 s").ok("clean")
    tarn.run("fsck", TABLE, "--orphans").ok("fsck")
    tarn.run("tag", TABLE, "a", "--delete").ok("tag --delete")
    same(tarn.run("cat", TABLE).ok("cat"), first, "rows without the tag")


def test_a_rollback_takes_inputs_back_and_tells_of_consumers(tarn):
    create(tarn, ["k INT", "v INT"], "--primary-key", "k", "--option", "bucket=1")
    path = os.path.join(tarn.warehouse, "rows.json")
    for i in range(3):
        with open(path, "a", encoding="utf-8") as f:
            f.write('{"k":%d,"v":%d}\n' % (i, i))
        tarn.run("write", TABLE, path).ok("write")
    tarn.run("tail", TABLE, "--consumer", "c").ok("tail")
    result = tarn.run("rollback", TABLE, 1)
    result.ok("rollback")
    need("positions of inputs go back with snapshot 1" in result.err, result.err)
    need("consumer 'c' goes on at snapshot 4" in result.err and "tarn-" not in result.err, result.err)
    same(rows_of(tarn.run("cat", TABLE), "cat"), [{"k": 0, "v": 0}], "rows")
    tarn.run("tail", TABLE, "--consumer", "c", "--forget").ok("forget")
    clean(tarn)
    tarn.run("write", TABLE, path).ok("write")
    same([r["k"] for r in rows_of(tarn.run("cat", TABLE), "cat")], [0, 1, 2], "what came behind it is read again")
    clean(tarn)


# ---- get ----

def test_get_finds_the_newest_row_of_a_key(tarn):
    sensors(tarn)
    rng = random.Random(1)
    newest = {}
    for commit in range(7):
        batch = [{"dev": "d%d" % rng.randrange(60), "temp": float(commit * 100 + i)} for i in range(40)]
        newest.update({r["dev"]: r for r in batch})
        write(tarn, batch)
    for i in range(60):
        result = tarn.run("get", TABLE, "d%d" % i)
        want = newest.get("d%d" % i)
        same(result.rc, 0 if want else 1, "get d%d" % i)
        same([json.loads(x) for x in result.lines], [want] if want else [], "get d%d" % i)
        same(result.err, "", "get d%d on stderr" % i)


def test_get_takes_keys_of_every_type_in_the_order_of_the_key(tarn):
    fields = ["v INT", "b BOOLEAN", "i TINYINT", "n BIGINT", "c DECIMAL(9,2)", "s STRING", "x BYTES", "d DATE",
              "t TIMESTAMP(3)", "p INT"]
    create(tarn, fields, "--primary-key", "p,b,i,n,c,s,x,d,t", "--partition-by", "p", "--option", "bucket=3")
    row = {"v": 7, "b": True, "i": -8, "n": -9223372036854775808, "c": "-12.50", "s": "it's \"ü\"", "x": "00ff",
           "d": "1969-12-31", "t": "2026-01-31T12:00:00.125000000", "p": -3}
    write(tarn, [row, dict(row, p=4, v=8), dict(row, b=False, v=9)])
    key = ["-3", "true", "-8", "-9223372036854775808", "-12.50", "it's \"ü\"", "00ff", "1969-12-31",
           "2026-01-31 12:00:00.125"]
    same(rows_of(tarn.run("get", TABLE, *key), "get"), [row], "get")
    same(rows_of(tarn.run("get", TABLE, "4", *key[1:], "--columns", "v"), "get"), [{"v": 8}], "get --columns")
    same(tarn.run("get", TABLE, "5", *key[1:]).rc, 1, "get in another partition")
    refused(tarn.run("get", TABLE, *key[:-1], "yesterday"), 2, "key column 't'", "get with a bad value")
    refused(tarn.run("get", TABLE, *key[:-1]), 2, "its key is (p, b, i, n, c, s, x, d, t): 9 values, 8", "get with too few")


def test_get_travels_in_time_and_knows_deletes(tarn):
    sensors(tarn)
    write(tarn, [{"dev": "a", "temp": 1.0}])
    write(tarn, [{"dev": "a", "temp": 2.0}])
    write(tarn, [{"kind": "-D", "row": {"dev": "a", "temp": 2.0}}], "--input", "changes")
    same(tarn.run("get", TABLE, "a").rc, 1, "get of a deleted row")
    for snapshot, temp in ((1, 1.0), (2, 2.0)):
        same(rows_of(tarn.run("get", TABLE, "a", "--snapshot", snapshot), "get")[0]["temp"], temp, "get at %d" % snapshot)
    refused(tarn.run("get", TABLE, "a", "--snapshot", "9"), 2, "no snapshot 9", "get at 9")


def test_get_with_a_sequence_field_obeys_it(tarn):
    create(tarn, ["k INT", "s INT", "v STRING"], "--primary-key", "k", "--option", "bucket=1", "--option", "sequence.field=s")
    for s in (5, 9, 2, 7):
        write(tarn, [{"k": 1, "s": s, "v": "v%d" % s}])
    same(rows_of(tarn.run("get", TABLE, "1"), "get"), [{"k": 1, "s": 9, "v": "v9"}], "get")


def explained(tarn, *key):
    lines = rows_of(tarn.run("explain", TABLE, *key), "explain")
    same([x["step"] for x in lines], list(range(1, len(lines))) + [None], "steps")
    return lines


def test_explain_tells_the_life_of_a_key(tarn):
    create(tarn, ["k INT", "v INT", "s STRING"], "--primary-key", "k", "--option", "bucket=2", "--option", "write-only=true",
           "--option", "merge-engine=aggregation", "--option", "fields.v.aggregate-function=sum")
    for change in ('{"kind":"+I","row":{"k":1,"v":5,"s":"a"}}', '{"kind":"+I","row":{"k":1,"v":7,"s":null}}',
                   '{"kind":"-U","row":{"k":1,"v":2,"s":null}}', '{"kind":"+I","row":{"k":2,"v":0,"s":""}}'):
        tarn.run("write", TABLE, "--input", "changes", stdin=change + "\n").ok("write")
    lines = explained(tarn, 1)
    files = {(f["name"], f["level"]) for f in files_of(tarn)}
    for line in lines[:-1]:
        need((line["file"].split("/")[-1], line["level"]) in files, line["file"])
    same([(x["kind"], x["sequence"], x["row"]["v"], x["changed"]) for x in lines],
         [("+I", 0, 5, None), ("+I", 1, 7, {"v": 12}), ("-U", 2, 2, {"v": 10}), ("+I", 2, 10, None)], "steps")
    same([lines[-1]["row"]], rows_of(tarn.run("get", TABLE, 1), "get"), "the row")
    same(lines[-1]["did"], "a reader sees this row", "the last line")
    same([x["did"] for x in explained(tarn, 1, "--snapshot", 1)], ["the only version: it is not merged", "a reader sees this row"], "did")
    same(explained(tarn, 1, "--columns", "v")[1]["row"], {"v": 7}, "some columns")
    result = tarn.run("explain", TABLE, 3)
    same((result.rc, result.lines, result.err), (1, [], ""), "no such key")
    table = tarn.run("explain", TABLE, 1, "--format", "table").ok("explain")
    same((table[0].split(), len(table)), (["step", "file", "level", "sequence", "kind", "row", "changed", "did"], 5), "a table")
    refused(tarn.run("explain", TABLE, "x"), 2, "key column 'k'", "a bad key")


def test_explain_names_groups_that_a_version_is_too_old_for(tarn):
    create(tarn, ["k INT", "a INT", "g INT", "b INT", "h INT"], "--primary-key", "k", "--option", "bucket=1", "--option", "write-only=true",
           "--option", "merge-engine=partial-update", "--option", "fields.g.sequence-group=a", "--option", "fields.h.sequence-group=b")
    for a, g, b, h in ((1, 5, 1, 5), (2, 4, 2, 6), (3, 6, 3, None)):
        write(tarn, [{"k": 1, "a": a, "g": g, "b": b, "h": h}])
    lines = explained(tarn, 1)
    number = "later by its sequence number: changes columns; "
    same([x["did"] for x in lines[1:3]], [number + "g: older, so its group stays", number + "h: NULL, so its group stays"], "did")
    same([x["changed"] for x in lines[1:3]], [{"b": 2, "h": 6}, {"a": 3, "g": 6}], "changed")
    same(lines[3]["row"], {"k": 1, "a": 3, "g": 6, "b": 2, "h": 6}, "row")


def test_explain_says_which_version_is_in_the_way(tarn):
    create(tarn, ["k INT", "v INT"], "--primary-key", "k", "--option", "bucket=1", "--option", "merge-engine=partial-update",
           "--option", "partial-update.remove-record-on-delete=true")
    for kind in ("+I", "-D", "+I"):
        tarn.run("write", TABLE, "--input", "changes", stdin='{"kind":"%s","row":{"k":1,"v":3}}\n' % kind).ok("write")
    schema = Path(tarn.warehouse) / "plant.db/readings/schema/schema-0"
    schema.write_text(schema.read_text().replace("partial-update.remove-record-on-delete", "partial-update.other"))
    result = tarn.run("explain", TABLE, 1)
    lines = [json.loads(x) for x in result.lines]
    same((result.rc, [x["kind"] for x in lines]), (2, ["+I", "-D", "+I"]), "versions")
    need("can't be merged: partial-update can't take a -D" in lines[1]["did"] and "not reached" in lines[2]["did"], "did")
    need("partial-update can't take a -D" in result.err, result.err)


def test_explain_names_versions_that_no_reader_counts(tarn):
    create(tarn, ["k INT", "v INT"], "--primary-key", "k", "--option", "bucket=1", "--option", "merge-engine=first-row",
           "--option", "write-only=true")
    write(tarn, [{"k": 1, "v": 1}])
    tarn.run("compact", TABLE).ok("compact")
    write(tarn, [{"k": 1, "v": 2}])
    lines = explained(tarn, 1)
    need("level 0 of first-row" in lines[1]["did"], lines[1]["did"])
    same((lines[0]["did"], lines[-1]["row"]), ("the only version: it is not merged", {"k": 1, "v": 1}), "first row")


def test_get_of_a_table_without_a_key_is_refused(tarn):
    create(tarn, ["a INT"])
    write(tarn, [{"a": 1}])
    refused(tarn.run("get", TABLE, "1"), 2, "has no primary key", "get")
    same(tarn.run("get", TABLE).rc, 2, "get without a key")


# ---- compact ----

def test_compact_does_what_explain_says_and_commits_one_snapshot(tarn):
    sensors(tarn, "--option", "write-only=true")
    for commit in range(6):
        write(tarn, [{"dev": "d%d" % i, "temp": float(commit)} for i in range(20)])
    before = read(tarn)
    plan = rows_of(tarn.run("compact", TABLE, "--explain"), "explain")
    same([r["bucket"] for r in plan], [0, 1], "buckets explained")
    same({(r["files"], r["takes"], r["to"]) for r in plan}, {(6, 6, 5)}, "explained")
    need(all(r["why"] for r in plan), "a reason each")
    same(len(snapshots_of(tarn)), 6, "snapshots after explain")
    done = rows_of(tarn.run("compact", TABLE), "compact")[0]
    same((done["buckets"], done["compactions"], done["snapshot"]), (2, 2, 7), "compact says")
    same([s["commit_kind"] for s in snapshots_of(tarn)], ["APPEND"] * 6 + ["COMPACT"], "kinds")
    same({(f["level"], f["bucket"]) for f in files_of(tarn)}, {(5, 0), (5, 1)}, "files")
    same(read(tarn), before, "rows")
    again = rows_of(tarn.run("compact", TABLE), "compact")[0]
    same((again["compactions"], again["snapshot"]), (0, None), "compact again says")
    same(len(snapshots_of(tarn)), 7, "snapshots after nothing was due")
    clean(tarn)


def test_compact_leaves_what_is_not_due_but_full_takes_everything(tarn):
    sensors(tarn, buckets=1)
    for commit in range(3):
        write(tarn, [{"dev": "d%d" % i, "temp": float(commit)} for i in range(20)])
    same(rows_of(tarn.run("compact", TABLE), "compact")[0]["compactions"], 0, "compactions that were due")
    same(rows_of(tarn.run("compact", TABLE, "--full"), "compact")[0]["compactions"], 1, "full compactions")
    same([f["level"] for f in files_of(tarn)], [5], "levels")
    same(rows_of(tarn.run("compact", TABLE, "--full"), "compact")[0]["compactions"], 0, "full compactions of one file")
    clean(tarn)


class Job:
    """`tarn compact --every`, and what it says on stderr, line by line."""

    def __init__(self, tarn, *args):
        argv = [str(peer.TARN), "compact", TABLE, "--warehouse", tarn.warehouse, "--every", "20ms", *args]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.watchdog = threading.Timer(peer.SECONDS_MAX, self.process.kill)
        self.watchdog.start()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.kill()
        self.process.communicate()
        self.watchdog.cancel()

    def says(self, text):
        line = self.process.stderr.readline()
        while line and text not in line:
            line = self.process.stderr.readline()
        need(text in line, "the job never said: %s" % text)

    def end(self, number):
        """Its report."""
        self.process.send_signal(number)
        out, err = self.process.communicate()
        same((self.process.returncode, err), (0, ""), "the end of the job")
        return [json.loads(x) for x in out.splitlines()]


def write_beside_a_job(tarn, *rows):
    """The job may have the table for the moment."""
    text = "".join(json.dumps(r) + "\n" for r in rows)
    result = tarn.run("write", TABLE, "-q", stdin=text)
    while result.rc == 5:
        need("held by " in result.err, result.err)
        result = tarn.run("write", TABLE, "-q", stdin=text)
    result.ok("write")


def test_a_job_compacts_what_others_commit_until_a_signal(tarn):
    sensors(tarn, "--option", "write-only=true", "--option", "num-sorted-run.compaction-trigger=2", buckets=1)
    for number in (signal.SIGTERM, signal.SIGINT):
        with Job(tarn) as job:
            for i in range(2):
                for k in range(2):
                    write_beside_a_job(tarn, {"dev": "d%d" % k, "temp": float(i)})
                job.says("committed snapshot=")
            report = job.end(number)
        need(len(report) >= 2, report)
        last = snapshots_of(tarn)[-1]
        same((report[-1]["snapshot"], last["commit_kind"]), (last["snapshot_id"], "COMPACT"), "the last round")
    same([x["temp"] for x in rows_of(tarn.run("cat", TABLE), "cat")], [1.0, 1.0], "rows")
    clean(tarn)


def test_a_job_waits_for_who_holds_the_table(tarn):
    sensors(tarn, "--option", "write-only=true", "--option", "num-sorted-run.compaction-trigger=2", buckets=1)
    writer = subprocess.Popen([str(peer.TARN), "write", "--warehouse", tarn.warehouse, TABLE, "--commit-every", "1"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        writer.stdin.write(b'{"dev":"a","temp":1.0}\n{"dev":"b","temp":1.0}\n')
        writer.stdin.flush()
        writer.stderr.readline()
        with Job(tarn) as job:
            job.says("held by tarn write")
            writer.stdin.close()
            job.says("committed snapshot=3")
            same([x["snapshot"] for x in job.end(signal.SIGTERM)], [3], "report")
    finally:
        writer.stdin.close()
        writer.wait()
        writer.stderr.close()


def test_a_job_tells_the_changes_of_a_write_only_table(tarn):
    want = {
        "lookup": [("+I", "a", 1.0), ("-U", "a", 1.0), ("+U", "a", 2.0), ("-U", "a", 2.0), ("+U", "a", 3.0), ("-U", "a", 3.0), ("+U", "a", 4.0)],
        "full-compaction": [("+I", "a", 1.0), ("-U", "a", 1.0), ("+U", "a", 2.0), ("-U", "a", 2.0), ("+U", "a", 3.0), ("-U", "a", 3.0), ("+U", "a", 4.0)],
    }
    for producer, told in want.items():
        sensors(tarn, "--option", "write-only=true", "--option", "changelog-producer=%s" % producer, buckets=1)
        with Job(tarn) as job:
            for i in range(1, 5):
                write_beside_a_job(tarn, {"dev": "a", "temp": float(i)})
                job.says("committed snapshot=")
            same(len(job.end(signal.SIGTERM)), 4, "rounds")
        same(changes(tarn), told, producer)
        shutil.rmtree(Path(tarn.warehouse) / "plant.db")


def test_a_job_counts_rounds_to_the_next_full_compaction(tarn):
    sensors(tarn, "--option", "write-only=true", "--option", "changelog-producer=full-compaction",
            "--option", "full-compaction.delta-commits=3", buckets=1)
    with Job(tarn) as job:
        write_beside_a_job(tarn, {"dev": "a", "temp": 1.0})
        job.says("committed snapshot=2")  # though nothing comes behind
        job.end(signal.SIGTERM)
    same(changes(tarn), [("+I", "a", 1.0)], "changes")


def test_one_round_tells_the_changes_of_a_write_only_table(tarn):
    for producer in ("lookup", "full-compaction"):
        sensors(tarn, "--option", "write-only=true", "--option", "changelog-producer=%s" % producer, buckets=1)
        for i in range(2):
            write(tarn, [{"dev": "a", "temp": float(i)}])
            tarn.run("compact", TABLE).ok("compact")
        same(changes(tarn), [("+I", "a", 0.0), ("-U", "a", 0.0), ("+U", "a", 1.0)], producer)
        shutil.rmtree(Path(tarn.warehouse) / "plant.db")


def test_a_job_ends_where_no_try_can_help(tarn):
    sensors(tarn)
    refused(tarn.run("compact", TABLE, "--every", "soon"), 2, "--every soon", "no time")
    refused(tarn.run("compact", TABLE, "--every", "1s", "--explain"), 2, "--explain", "explain")
    refused(tarn.run("compact", "plant.reading", "--every", "1s"), 2, "plant.readings", "no such table")


def test_more_overlapping_files_than_memory_can_merge_at_once_still_read(tarn):
    """A write-only table whose compactor never came: 90 files, each of them over all keys."""
    create(tarn, ["k INT", "v INT"], "--primary-key", "k", "--option", "bucket=1", "--option", "write-only=true")
    model = {}
    lines = []
    for commit in range(90):
        for step in range(10):
            k = (commit * 7 + step * 11) % 100
            kind = "-D" if (commit + step) % 9 == 0 else "+I"
            model[k] = None if kind == "-D" else commit
            lines.append(json.dumps({"kind": kind, "row": {"k": k, "v": commit}}))
    result = tarn.run("write", TABLE, "--input", "changes", "--commit-every", "10", stdin="\n".join(lines) + "\n")
    need(result.rc == 0, result.err)
    need(len(files_of(tarn)) == 90, "every commit leaves a file")
    want = [{"k": k, "v": v} for k, v in sorted(model.items()) if v is not None]
    same(rows_of(tarn.run("cat", TABLE), "cat"), want, "rows")
    left = list((Path(tarn.warehouse) / ".tarn" / "scratch").iterdir())
    same(left, [], "scratch files are gone")


def test_full_compaction_drops_deletes(tarn):
    sensors(tarn, buckets=1)
    write(tarn, [{"dev": "a", "temp": 1.0}, {"dev": "b", "temp": 1.0}])
    write(tarn, [{"kind": "-D", "row": {"dev": d}} for d in "ab"], "--input", "changes")
    tarn.run("compact", TABLE, "--full").ok("compact")
    same(files_of(tarn), [], "files")
    same(read(tarn), [], "rows")
    clean(tarn)


def test_a_table_of_more_buckets_than_can_be_open_is_compacted(tarn):
    create(tarn, ["p INT", "k INT", "v INT"], "--primary-key", "p,k", "--partition-by", "p", "--option", "bucket=2",
           "--option", "write-only=true")
    for commit in range(2):
        write(tarn, [{"p": p, "k": k, "v": commit} for p in range(100) for k in range(6)])
    before = read(tarn)
    same(len(rows_of(tarn.run("show", TABLE, "buckets"), "buckets")), 200, "buckets")
    done = rows_of(tarn.run("compact", TABLE, "--full"), "compact")[0]
    same((done["buckets"], done["compactions"]), (200, 200), "compact says")
    same({f["level"] for f in files_of(tarn)}, {5}, "levels")
    same(len(files_of(tarn)), 200, "files")
    same(read(tarn), before, "rows")
    compacted = [s for s in snapshots_of(tarn) if s["commit_kind"] == "COMPACT"]
    need(len(compacted) <= 4, "a snapshot a group of buckets, not %d" % len(compacted))
    clean(tarn)


def test_small_files_of_append_tables_are_put_together(tarn):
    """In order with buckets; by the writer when there are five, by compact --full from three on."""
    for table, options in (("plant.plain", ["--option", "bucket=-1"]),
                           ("plant.buckets", ["--option", "bucket=1", "--option", "bucket-key=a"])):
        create(tarn, ["a INT"], *options, table=table)
        for commit in range(4):
            write(tarn, [{"a": commit}], table=table)
        same(len(files_of(tarn, table)), 4, table + ": files of four commits")
        write(tarn, [{"a": 4}], table=table)
        same([f["rows"] for f in files_of(tarn, table)], [5], table + ": files of five")
        write(tarn, [{"a": 5}], table=table)
        write(tarn, [{"a": 6}], table=table)
        tarn.run("compact", table).ok("compact")
        same(len(files_of(tarn, table)), 3, table + ": three are too few")
        tarn.run("compact", table, "--full").ok("compact --full")
        same([f["rows"] for f in files_of(tarn, table)], [7], table + ": all of them")
        same(rows_of(tarn.run("cat", table), "cat"), [{"a": a} for a in range(7)], table)
        clean(tarn, table)
        refused(tarn.run("compact", table, "--explain"), 2, "append table", "explain")


# ---- cat ----

def test_cat_shows_the_first_rows_or_the_last(tarn):
    create(tarn, ["k INT"], "--primary-key", "k", "--option", "bucket=1")
    write(tarn, [{"k": k} for k in range(30)])
    for args, want in ((["--limit", "2"], [0, 1]), (["--last", "--limit", "2"], [28, 29]), (["--last"], range(20, 30)),
                       (["--last", "--limit", "99"], range(30)), (["--last", "--limit", "0"], []),
                       (["--last", "--limit", "1", "--where", "k < 7"], [6])):
        same([r["k"] for r in rows_of(tarn.run("cat", TABLE, *args), "cat")], list(want), " ".join(args))
    refused(tarn.run("cat", TABLE, "--last", "--incremental", "0,1"), 2, "--incremental", "cat --last --incremental")


def test_a_writer_tells_what_one_that_was_killed_did_not(tarn):
    """Without its COMPACT snapshot a table is what is left when the power goes behind the commit of the rows."""
    rows = [{"dev": "d%d" % i, "temp": float(i)} for i in range(40)]
    for number, options in enumerate((["changelog-producer=lookup"], ["merge-engine=first-row"], ["changelog-producer=full-compaction"],
                                      ["changelog-producer=lookup", "merge-engine=aggregation", "fields.temp.aggregate-function=sum"])):
        table = "plant.t%d" % number
        create(tarn, ["dev STRING", "temp DOUBLE"], "--primary-key", "dev", "--option", "bucket=3", *[x for o in options for x in ("--option", o)], table=table)
        folder = Path(tarn.warehouse) / table.replace(".", ".db/") / "snapshot"
        for part in (rows[:20], rows[20:]):
            text = "".join(json.dumps(r) + "\n" for r in part)
            tarn.run("write", table, stdin=text).ok("write")
            last = snapshots_of(tarn, table)[-1]
            same(last["commit_kind"], "COMPACT", str(options))
            (folder / ("snapshot-%d" % last["snapshot_id"])).unlink()
            (folder / "LATEST").write_text(str(last["snapshot_id"] - 1))
            tarn.run("write", table, stdin="").ok("write nothing")
            same(snapshots_of(tarn, table)[-1]["commit_kind"], "COMPACT", "the snapshot that tells, %s" % options)
        same(sorted(rows_of(tarn.run("cat", table), "cat"), key=lambda r: r["temp"]), rows, "rows, %s" % options)
        if "first-row" not in options[0]:
            told = [json.loads(x) for x in tarn.run("tail", table, "--format", "json").ok("tail")]
            same(sorted((x["kind"], x["row"]["temp"]) for x in told), [("+I", r["temp"]) for r in rows], "changes, %s" % options)
        before = snapshots_of(tarn, table)
        tarn.run("write", table, stdin="").ok("write nothing, again")
        same(snapshots_of(tarn, table), before, "snapshots where nothing was left")
        clean(tarn, table)


def test_full_compactions_tell_of_more_partitions_than_fit_a_commit(tarn):
    rng = random.Random(1)
    rows = [{"p": rng.randrange(130 if k % 3 else 400), "k": k, "s": "x" * rng.randrange(400)} for k in range(6000)]
    create(tarn, ["p INT", "k INT", "s STRING"], "--primary-key", "p,k", "--partition-by", "p", "--option", "bucket=1",
           "--option", "changelog-producer=full-compaction")
    for _ in range(2):
        write(tarn, rows)
        same({f["level"] for f in files_of(tarn)}, {5}, "levels of files")
    same(len(followed(tarn)), len(rows), "rows that the changes lead to")
    clean(tarn)


def test_a_full_standard_output_is_said_to_be_full(tarn):
    sensors(tarn)
    write(tarn, [{"dev": "a", "temp": 1.0}])
    (Path(tarn.warehouse) / "plant.db/readings/manifest").rename(Path(tarn.warehouse) / "plant.db/readings/elsewhere")
    for verb in ("show %s snapshots", "ls", "fsck %s", "cat %s --limit 0 --format csv"):
        line = "%s %s --warehouse %s >/dev/full" % (peer.TARN, verb.replace("%s", TABLE), tarn.warehouse)
        if verb.startswith("cat"):
            (Path(tarn.warehouse) / "plant.db/readings/elsewhere").rename(Path(tarn.warehouse) / "plant.db/readings/manifest")
        done = subprocess.run(line, shell=True, check=False, capture_output=True)
        same((done.returncode, b"standard output: No space left" in done.stderr), (4, True), "%s: %s" % (line, done.stderr))


def test_a_time_before_the_first_snapshot_is_told_when_that_was(tarn):
    sensors(tarn)
    write(tarn, [{"dev": "a", "temp": 1.0}])
    first = snapshots_of(tarn)[0]["commit_time"]
    refused(tarn.run("cat", TABLE, "--as-of", "2001-01-01"), 2, "the earliest is of %s" % first, "cat")
    refused(tarn.run("cat", TABLE, "--snapshot", "9"), 2, "%s: there is no snapshot 9; there are 1 to" % TABLE, "cat")
    refused(tarn.run("cat", TABLE, "--tag", "x"), 2, "%s: there is no tag 'x'" % TABLE, "cat")
    create(tarn, ["dev STRING"], "--primary-key", "dev", "--option", "bucket=1", table="plant.new")
    for flag, value, why in (("--as-of", "2001-01-01", "there is no snapshot yet"),
                             ("--snapshot", "1", "there is no snapshot 1; there is none yet")):
        refused(tarn.run("cat", "plant.new", flag, value), 2, "plant.new: " + why, "cat")


def test_cat_of_a_snapshot_that_expires_meanwhile_says_so(tarn):
    create(tarn, ["k INT", "s STRING"], "--primary-key", "k", "--option", "bucket=8", "--option", "snapshot.time-retained=1 ms",
           "--option", "snapshot.num-retained.min=1", "--option", "snapshot.num-retained.max=1")
    rows = [{"k": k, "s": "%01000d" % k} for k in range(4000)]
    write(tarn, rows)
    reader = subprocess.Popen([str(peer.TARN), "cat", "--warehouse", tarn.warehouse, TABLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = reader.stdout.read(1)  # and now it waits: a pipe holds less than one bucket's rows
    write(tarn, rows)
    tarn.run("compact", TABLE, "--full").ok("compact")
    out, err = reader.communicate()
    same((first, reader.returncode), (b"{", 4), err.decode())
    need(b"expired while it was read" in err and len(out.splitlines()) < len(rows), err.decode())
    same(len(tarn.run("cat", TABLE).ok("cat")), len(rows), "the newest snapshot")


def test_verbs_beside_a_writer_that_expires_never_call_it_damage(tarn):
    create(tarn, ["k INT"], "--primary-key", "k", "--option", "bucket=2", "--option", "num-sorted-run.compaction-trigger=2", "--option",
           "snapshot.time-retained=1 ms", "--option", "snapshot.num-retained.min=1", "--option", "snapshot.num-retained.max=1")
    write(tarn, [{"k": k} for k in range(100)])
    text = "".join('{"k":%d}\n' % (n % 100) for n in range(2000))
    writer = subprocess.Popen([str(peer.TARN), "write", "--warehouse", tarn.warehouse, TABLE, "--commit-every", "20", "--quiet"],
                              stdin=subprocess.PIPE)
    threading.Thread(target=lambda: (writer.stdin.write(text.encode()), writer.stdin.close())).start()
    while writer.poll() is None:
        for verb, lines in ((("cat", TABLE), 100), (("get", TABLE, 7), 1), (("fsck", TABLE), 0), (("ls", TABLE), None), (("ls",), 1),
                            (("show", TABLE, "files"), None), (("show", TABLE, "snapshots"), None)):
            read = tarn.run(*verb)
            tired = read.rc == 4 and "please try again" in read.err
            need(tired or (read.rc == 0 and lines in (None, len(read.lines))), "%s: %d: %s%s" % (verb, read.rc, read.err, read.lines[:9]))
    same(writer.returncode, 0, "the writer")


# ---- expire ----

def commits(tarn, count, *args):
    sensors(tarn, *args)
    for commit in range(count):
        write(tarn, [{"dev": "d%d" % i, "temp": float(commit)} for i in range(5)])


def test_expire_keeps_what_it_is_told_to(tarn):
    commits(tarn, 8, "--option", "write-only=true")
    same(rows_of(tarn.run("expire", TABLE), "expire")[0]["snapshots"], 0, "by the table's options")
    said = rows_of(tarn.run("expire", TABLE, "--retain-max", 3, "--dry-run"), "expire")[0]
    same((said["snapshots"], len(snapshots_of(tarn))), (5, 8), "dry run")
    same(rows_of(tarn.run("expire", TABLE, "--retain-max", 3), "expire")[0], said, "the same, done")
    same([s["snapshot_id"] for s in snapshots_of(tarn)], [6, 7, 8], "snapshots")
    clean(tarn)


def older_by_two_hours(tarn):
    """All snapshots, as they would be found then."""
    for path in (Path(tarn.warehouse) / "plant.db/readings/snapshot").glob("snapshot-*"):
        snapshot = json.loads(path.read_text())
        snapshot["timeMillis"] -= 2 * 3600 * 1000
        path.write_text(json.dumps(snapshot))


def test_expire_by_age_keeps_the_minimum(tarn):
    commits(tarn, 6, "--option", "write-only=true")
    same(rows_of(tarn.run("expire", TABLE, "--older-than", "1 h", "--retain-min", 1), "expire")[0]["snapshots"], 0, "an hour")
    same(rows_of(tarn.run("expire", TABLE, "--older-than", "2001-01-01"), "expire")[0]["snapshots"], 0, "long ago")
    older_by_two_hours(tarn)
    tarn.run("expire", TABLE, "--older-than", "1 h", "--retain-min", 2).ok("expire")
    same([s["snapshot_id"] for s in snapshots_of(tarn)], [5, 6], "snapshots")
    clean(tarn)


def test_expire_respects_consumers(tarn):
    commits(tarn, 5, "--option", "write-only=true")
    folder = Path(tarn.warehouse) / "plant.db/readings/consumer"
    folder.mkdir(exist_ok=True)
    (folder / "consumer-lake").write_text('{"nextSnapshot":3}')
    tarn.run("expire", TABLE, "--retain-max", 1).ok("expire")
    same([s["snapshot_id"] for s in snapshots_of(tarn)], [3, 4, 5], "snapshots")
    same(rows_of(tarn.run("show", TABLE, "consumers"), "consumers")[-1], {"consumer_id": "lake", "next_snapshot_id": 3},
         "consumers")


def test_write_says_that_a_damaged_tag_keeps_old_snapshots(tarn):
    commits(tarn, 2, "--option", "snapshot.num-retained.min=1", "--option", "snapshot.num-retained.max=1")
    tag = Path(tarn.warehouse) / "plant.db/readings/tag/tag-bad"
    tag.parent.mkdir()
    tag.write_text("x")
    for quiet in ([], ["--quiet"]):
        result = tarn.run("write", TABLE, "--commit-every", "1", *quiet, stdin='{"dev":"a"}\n' * 3)
        same((result.rc, result.err.count("old snapshots stay: "), result.err.count("tag-bad")), (0, 1, 1), result.err)
    tag.unlink()
    result = tarn.run("write", TABLE, stdin='{"dev":"a"}\n')
    need("stay" not in result.err and len(snapshots_of(tarn)) == 1, result.err)


def test_write_refuses_to_commit_every_nonsense(tarn):
    commits(tarn, 1)
    for every in ("0", "-5", "+5", "5 parsecs", "-5s", "0s", "soon", "99999999999999999999"):
        refused(tarn.run("write", TABLE, "--commit-every", every, stdin=""), 2, "--commit-every", every)


def test_expire_refuses_nonsense(tarn):
    commits(tarn, 1)
    refused(tarn.run("expire", TABLE, "--retain-max", 0), 2, "--retain-max", "none at all")
    refused(tarn.run("expire", TABLE, "--retain-max", 1, "--retain-min", 2), 2, "above", "min above max")
    refused(tarn.run("expire", TABLE, "--older-than", "soon"), 2, "--older-than", "soon")


# ---- clean ----

def test_clean_removes_old_files_that_nothing_reaches(tarn):
    commits(tarn, 3)
    root = Path(tarn.warehouse) / "plant.db/readings"
    reached = sorted(p for p in root.rglob("*") if p.is_file())
    left = [root / p for p in ("bucket-0/data-left.avro", "manifest/manifest-left", "snapshot/.snapshot-9.left.tmp", "bucket-5/data-x.avro")]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("left")
    same(rows_of(tarn.run("clean", TABLE), "young files"), [{"files": 0, "bytes": 0, "folders": 0}], "young files")
    for path in reached + left:
        os.utime(path, (0, 86400))
    said = tarn.run("clean", TABLE, "--dry-run", "-v")
    same(rows_of(said, "dry run"), [{"files": 4, "bytes": 16, "folders": 0}], "dry run")
    need(all(p.name in said.err for p in left) and all(p.exists() for p in left), "a dry run names them: %s" % said.err)
    same(rows_of(tarn.run("clean", TABLE, "--older-than", "1970-01-02"), "clean")[0]["files"], 0, "not older than that")
    same(rows_of(tarn.run("clean", TABLE), "clean"), [{"files": 4, "bytes": 16, "folders": 1}], "clean")
    same(sorted(p for p in root.rglob("*") if p.is_file()), reached, "what is left")
    tarn.run("fsck", TABLE, "--orphans").ok("fsck")
    refused(tarn.run("clean", TABLE, "--older-than", "soon"), 2, "--older-than", "soon")
    refused(tarn.run("clean", TABLE, "--older-than", "2100-01-01"), 2, "--older-than", "later")
    refused(tarn.run("clean", "plant.readigs"), 2, "readings", "another table")


# ---- ls and show ----

def test_ls_lists_tables_and_files(tarn):
    create(tarn, ["a INT"], table="zoo.empty")
    sensors(tarn)
    write(tarn, [{"dev": "a", "temp": 1.0}, {"dev": "b", "temp": 2.0}])
    tables = rows_of(tarn.run("ls"), "ls")
    same([(t["table"], t["snapshot"], t["rows"]) for t in tables], [(TABLE, 1, 2), ("zoo.empty", None, 0)], "tables")
    same([t["table"] for t in rows_of(tarn.run("ls", "zoo"), "ls zoo")], ["zoo.empty"], "tables of zoo")
    files = files_of(tarn)
    same(sum(f["rows"] for f in files), 2, "rows in files")
    for f in files:
        path = Path(tarn.warehouse) / ("plant.db/readings/bucket-%d" % f["bucket"]) / f["name"]
        same(f["bytes"], path.stat().st_size, "bytes of %s" % path)
    same(files_of(tarn, "zoo.empty"), [], "files of an empty table")
    same(tarn.run("ls", "--format", "csv").ok("csv")[0], "table,primary_key,snapshot,rows,last_commit", "csv")
    need(tarn.run("ls", "--format", "table").ok("table")[0].startswith("table "), "a table for people")


def test_a_broken_table_does_not_hide_the_others(tarn):
    create(tarn, ["a INT"], table="zoo.bad")
    create(tarn, ["a INT"], table="zoo.good")
    (Path(tarn.warehouse) / "zoo.db/bad/schema/schema-0").write_text("{")
    (Path(tarn.warehouse) / "zoo.db/no-table").mkdir()
    result = tarn.run("ls")
    same(result.rc, 3, "exit code")
    same([json.loads(x)["table"] for x in result.lines], ["zoo.good"], "tables")
    need("zoo.bad" in result.err, "said: %s" % result.err)


def test_show_prints_the_columns_of_system_tables(tarn):
    create(tarn, ["k INT", "p STRING", "v DOUBLE"], "--primary-key", "p,k", "--partition-by", "p", "--option", "bucket=2",
           "--comment", "of a test")
    for commit in range(3):
        write(tarn, [{"k": k, "p": "x%d" % (k % 2), "v": None if k == 3 else k + 0.5} for k in range(10)])
    columns = {
        "schema": "id name type key partition default description",
        "options": "key value",
        "schemas": "schema_id fields partition_keys primary_keys options comment update_time",
        "snapshots": "snapshot_id schema_id commit_user commit_identifier commit_kind commit_time base_manifest_list "
                     "delta_manifest_list changelog_manifest_list total_record_count delta_record_count "
                     "changelog_record_count watermark",
        "manifests": "file_name file_size num_added_files num_deleted_files schema_id min_partition_stats "
                     "max_partition_stats",
        "files": "partition bucket file_path file_format schema_id level record_count file_size_in_bytes min_key max_key "
                 "null_value_counts min_value_stats max_value_stats min_sequence_number max_sequence_number "
                 "creation_time deleteRowCount file_source",
        "partitions": "partition record_count file_size_in_bytes file_count last_update_time",
        "buckets": "partition bucket record_count file_size_in_bytes file_count last_update_time",
    }
    found = {}
    for what, names in columns.items():
        found[what] = rows_of(tarn.run("show", TABLE, what), what)
        same(" ".join(found[what][0]), names, "columns of %s" % what)
    same([r["partition"] for r in found["partitions"]], ["{x0}", "{x1}"], "partitions")
    same(sum(r["record_count"] for r in found["buckets"]), 30, "records")
    same(json.loads(found["schemas"][0]["fields"])[1], {"id": 1, "name": "p", "type": "STRING NOT NULL"}, "a field")
    same(found["schemas"][0]["comment"], "of a test", "comment")
    first = found["files"][0]
    need((Path(tarn.warehouse) / first["file_path"]).exists(), "the file is there")
    need(re.fullmatch(r"\{k=\d, p=x\d, v=\d\.5\}", first["min_value_stats"]), "stats: %s" % first["min_value_stats"])
    need(re.fullmatch(r"\[\d\]", first["min_key"]), "a key: %s" % first["min_key"])
    for what in ("tags", "branches"):
        same(tarn.run("show", TABLE, what).ok(what), [], what)
    branch = Path(tarn.warehouse) / "plant.db/readings/branch/branch-b"
    branch.mkdir(parents=True)
    os.utime(branch, (0, 86400))
    same(rows_of(tarn.run("show", TABLE, "branches"), "branches"), [{"branch_name": "b", "create_time": "1970-01-02T00:00:00.000000000Z"}],
         "branches")
    branch.rmdir()
    one = rows_of(tarn.run("show", TABLE, "files", "--snapshot", 1), "files at 1")
    need(len(one) < len(found["files"]), "files at snapshot 1")


def test_show_streams_thousands_of_snapshots_in_small_memory(tarn):
    sensors(tarn, buckets=1)
    write(tarn, [{"dev": "a", "temp": 1.0}])
    folder = Path(tarn.warehouse) / "plant.db/readings/snapshot"
    text = json.loads((folder / "snapshot-1").read_text())
    for i in range(2, 5001):
        (folder / ("snapshot-%d" % i)).write_text(json.dumps(dict(text, id=i)))
    (folder / "LATEST").write_text("5000")
    same([s["snapshot_id"] for s in rows_of(tarn.run("show", TABLE, "snapshots", "--memory", "6M"), "snapshots")],
         list(range(1, 5001)), "ids")


# ---- words that are nearly right, locks, help ----

def test_a_misspelt_name_is_answered_with_the_nearest(tarn):
    sensors(tarn)
    create(tarn, ["a INT"], table="zoo.animals")
    for verb, words in (("get", ["a"]), ("cat", []), ("ls", []), ("compact", []), ("expire", []), ("show", ["files"])):
        refused(tarn.run(verb, "plant.reading", *words), 2, "did you mean 'plant.readings'?", verb)
        refused(tarn.run(verb, "plan.readings", *words), 2, "there is no such database; did you mean 'plant'?", verb)
        refused(tarn.run(verb, "plant.xyzxyz", *words), 2, "there is no such table", verb)
    refused(tarn.run("write", "plant.reading", stdin=""), 2, "did you mean 'plant.readings'?", "write")
    refused(tarn.run("ls", "zooo"), 2, "did you mean 'zoo'?", "ls")
    refused(tarn.run("show", TABLE, "snapshot"), 2, "did you mean 'snapshots'?", "show")
    refused(tarn.run("get", TABLE, "a", "--columns", "tmp"), 2, "did you mean 'temp'?", "get --columns")


def test_one_process_at_a_time_writes_compacts_and_expires(tarn):
    sensors(tarn)
    writer = subprocess.Popen([str(peer.TARN), "write", "--warehouse", tarn.warehouse, TABLE, "--commit-every", "1"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        writer.stdin.write(b'{"dev":"a","temp":1.0}\n{"dev":"b","temp":1.0}\n')
        writer.stdin.flush()
        writer.stderr.readline()
        for verb in ("compact", "expire", "clean"):
            refused(tarn.run(verb, TABLE), 5, "tarn write", verb)
        same(tarn.run("get", TABLE, "a").rc, 0, "a reader needs no lock")
    finally:
        writer.stdin.close()
        writer.wait()
        writer.stderr.close()


def test_help_works_without_a_warehouse(tarn):
    bare = peer.Tarn(Path(tarn.warehouse) / "nowhere")
    overview = "\n".join(bare.run("help").ok("help"))
    topics = ("start", "tables", "compaction", "changelog", "upload", "troubles", "options")
    for word in (*topics, "get", "tail", "compact", "expire", "clean", "ls", "show", "pools"):
        need(re.search(r"^  %s\b" % word, overview, re.MULTILINE), "help names %s" % word)
    for topic in topics:
        lines = bare.run("help", topic).ok("help %s" % topic)
        need(len(lines) > 5 and all(len(x) <= 100 or topic == "options" for x in lines), "lines of %s" % topic)
    need(any("num-sorted-run.compaction-trigger" in x for x in bare.run("help", "options").lines), "options")
    need(any("--full" in x for x in bare.run("help", "compact").lines), "help of a verb")
    refused(bare.run("help", "startt"), 2, "did you mean 'start'?", "help startt")
    version = bare.run("cat", "--version").ok("version")
    same(version[0], "tarn 0.1.0", "version")
    need(any(x.startswith("zstd 1.") for x in version), "the libraries' versions")


def test_pools_add_up_to_the_memory_that_was_given(tarn):
    bare = peer.Tarn(Path(tarn.warehouse) / "nowhere")
    for args, most in (((), 16 << 20), (("--memory", "8M"), 8 << 20)):
        parts = {r["part"]: r for r in rows_of(bare.run("pools", *args), "pools")}
        need(parts["block"]["size"] + parts["other"]["size"] <= most, "they fit %d" % most)
        need(parts["block"]["size"] > most * 3 // 4, "and use it")
        for name in ("memtable", "long", "short", "levels", "table", "input", "long codec"):
            need(parts[name]["used"] <= parts[name]["peak"] <= parts[name]["size"], name)
    refused(bare.run("pools", "--memory", "1M"), 2, "", "pools of too little memory")


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
