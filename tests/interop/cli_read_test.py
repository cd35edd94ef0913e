"""The verbs that read, driven as a person does: get, explain, cat.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". Needs no package. usage: cli_read_test.py [NAME...]
"""
import json
import random
import subprocess
import sys
import threading
from pathlib import Path

import peer
import runner
from peer import need, same
from verbs import TABLE, clean, create, files_of, followed, refused, rows_of, sensors, snapshots_of, write


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


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
