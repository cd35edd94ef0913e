"""Changes, as a person follows them: tail, consumers, cat --incremental.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". Needs no package. usage: cli_changes_test.py [NAME...]
"""
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import peer
import runner
from peer import need, same
from verbs import TABLE, changes, clean, create, refused, rows_of, sensors, three_commits, write


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


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
