"""`compact`, once and as a job beside other writers.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". Needs no package. usage: cli_compact_test.py [NAME...]
"""
import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import peer
import runner
from peer import need, same
from verbs import TABLE, changes, clean, create, files_of, read, refused, rows_of, sensors, snapshots_of, write, writing


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
    with writing(tarn.warehouse, TABLE, "1", b'{"dev":"a","temp":1.0}\n{"dev":"b","temp":1.0}\n') as writer, Job(tarn) as job:
        job.says("held by tarn write")
        writer.stdin.close()
        job.says("committed snapshot=3")
        same([x["snapshot"] for x in job.end(signal.SIGTERM)], [3], "report")


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


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
