"""`tarn demo` and `tarn sync`: a killed demo ends where one that lived does, and a lake is what the table was.

usage: demo_test.py [--seed N]    (the last line is "N passed, M failed")
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peer

TABLE, RECORDS = "demo.readings", 120000
ROWS = 28858  # of the first RECORDS records: the largest `seq` of each key, less those that are deletes


def demo_command(folder, *more):
    return [str(peer.TARN), "demo", "--dir", str(folder), "--records", str(RECORDS), "--format", "json", *more]


def demo(folder, *more):
    done = subprocess.run(demo_command(folder, *more), capture_output=True, timeout=peer.SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise peer.Failure("tarn demo: exit code %d: %s" % (done.returncode, done.stderr.decode()))
    return json.loads(done.stdout)


def killed_demo(folder, seconds):
    """Whether it was still alive to be killed after so long."""
    process = subprocess.Popen(demo_command(folder, "--quiet", "--fast"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait() == -9


def rows(warehouse, *args):
    return peer.ordered(peer.Tarn(warehouse).run("cat", TABLE, "--format", "json", *args).ok("cat %s" % warehouse))


def same(want, got, what):
    bad = peer.difference(want, got)
    if bad:
        raise peer.Failure("%s: %s" % (what, bad))


def expect(result, code, text, what):
    if result.rc != code or text not in result.err:
        raise peer.Failure("%s: exit code %d, said: %s" % (what, result.rc, result.err))


def a_killed_demo_ends_where_one_that_lived_does(folder, rng):
    start = time.monotonic()
    demo(folder / "lived", "--fast")
    whole = time.monotonic() - start
    # Each run goes on where the last one was, so early kills leave something to do for the next.
    kills = sum(killed_demo(folder / "killed", whole * rng.uniform(0.02, 0.3)) for _ in range(8))
    demo(folder / "killed", "--fast")
    if kills < 1:
        raise peer.Failure("no kill of 8 came in time")
    want = rows(folder / "lived/warehouse")
    if len(want) != ROWS:
        raise peer.Failure("%d rows, not %d" % (len(want), ROWS))
    same(want, rows(folder / "killed/warehouse"), "the killed demo's table after %d kills" % kills)
    same(want, rows(folder / "killed/lake"), "its lake")


def pypaimon_reads_each_snapshot_of_the_lake_as_tarn_reads_the_table(folder, rng):
    del rng
    demo(folder, "--fast")
    shown = [json.loads(x)["snapshot_id"] for x in peer.Tarn(folder / "warehouse").run("show", TABLE, "snapshots", "--format", "json").ok("show")]
    with peer.pypaimon() as python:
        for snapshot in shown:
            got = python.run("read", str(folder / "lake"), TABLE, "--snapshot", str(snapshot)).ok("pypaimon read")
            same(rows(folder / "warehouse", "--snapshot", str(snapshot)), peer.ordered(got), "snapshot %d of the lake" % snapshot)
    if len(shown) < 4:
        raise peer.Failure("only %d snapshots" % len(shown))


def sync_sends_once_and_says_what(folder, rng):
    del rng
    demo(folder, "--fast")
    tarn, lake = peer.Tarn(folder / "warehouse"), folder / "other"
    plan = json.loads(tarn.run("sync", TABLE, lake, "--dry-run", "--format", "json").ok("dry run")[0])
    if lake.exists():
        raise peer.Failure("a dry run made %s" % lake)
    said = "synced snapshots %(first_snapshot)d..%(last_snapshot)d files=%(files)d bytes=%(bytes)d" % plan
    expect(tarn.run("sync", TABLE, lake), 0, said, "sync")
    expect(tarn.run("sync", TABLE, lake), 0, "synced nothing", "second sync")
    same(rows(folder / "warehouse"), rows(lake), "the other lake")


def a_target_that_is_not_ours_is_refused(folder, rng):
    del rng
    demo(folder, "--fast")
    tarn, other = peer.Tarn(folder / "warehouse"), peer.Tarn(folder / "foreign")
    expect(tarn.run("sync", TABLE, folder / "warehouse"), 2, "the warehouse itself", "sync onto itself")
    expect(tarn.run("sync", TABLE, "gs://bucket/lake"), 2, "gs://", "sync to another store")
    expect(tarn.run("sync", "demo.none", folder / "unmade"), 2, "there is no such table", "sync of no table")
    if (folder / "unmade").exists():
        raise peer.Failure("it made a folder for nothing")
    other.run("create", TABLE, "--field", "k INT", "--primary-key", "k", "--option", "bucket=1").ok("create")
    expect(tarn.run("sync", TABLE, folder / "foreign"), 5, "nothing is sent", "sync onto another table")
    snapshots = list(Path(folder / "foreign/demo.db/readings").glob("snapshot/*"))
    if snapshots:
        raise peer.Failure("it sent %s" % snapshots)


CASES = [a_killed_demo_ends_where_one_that_lived_does, pypaimon_reads_each_snapshot_of_the_lake_as_tarn_reads_the_table,
         sync_sends_once_and_says_what, a_target_that_is_not_ours_is_refused]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    failed = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Path(folder), random.Random(args.seed))
                print("ok    %s" % case.__name__, flush=True)
            except peer.Failure as e:
                failed += 1
                print("FAIL  %s: %s" % (case.__name__, e), flush=True)
    if failed:
        print("repeat: build/venv/bin/python3 tests/interop/demo_test.py --seed %d" % args.seed)
    print("%d passed, %d failed" % (len(CASES) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
