"""What the tests of single verbs share: one table, and short words for what they do with it."""
import json
import subprocess
from contextlib import contextmanager

import peer
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


@contextmanager
def writing(warehouse, table, every, rows):
    """A `tarn write` that goes on, and whose first row is committed."""
    argv = [str(peer.TARN), "write", table, "-w", str(warehouse), "--commit-every", every]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as writer:
        try:
            writer.stdin.write(rows)
            writer.stdin.flush()
            need(b" rows=1 " in writer.stderr.readline(), "no commit while nothing more comes")
            yield writer
        finally:
            writer.kill()


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


def changes(tarn, *args, rc=0):
    result = tarn.run("tail", TABLE, "--format", "json", *args)
    same(result.rc, rc, "tail %s: exit code (%s)" % (" ".join(map(str, args)), result.err.strip()))
    return [(x["kind"], x["row"]["dev"], x["row"].get("temp")) for x in map(json.loads, result.lines)]


def three_commits(tarn, *args):
    sensors(tarn, *args, buckets=1)
    write(tarn, [{"dev": "a", "temp": 1.0}, {"dev": "b", "temp": 2.0}])
    write(tarn, [{"dev": "a", "temp": 3.0}])
    write(tarn, [{"kind": "-D", "row": {"dev": "b", "temp": 2.0}}, {"kind": "+I", "row": {"dev": "c", "temp": 4.0}}], "--input", "changes")
