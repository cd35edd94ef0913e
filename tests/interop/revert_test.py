"""`tarn rollback` of a table that has a lake: a snapshot more, with the rows of an older one, in whose table and lake official Paimon finds
nothing amiss: it reads each snapshot, goes on writing, compacts, and expires the ids in between.

    revert_test.py [--seed S] [--cases N] [NAME...]
"""
import json
import random
import sys
import tempfile
from pathlib import Path

import peer
import runner
from peer import need, same
from verbs import rows_of

TABLE = peer.TABLE


class Case:
    """A random table with a lake, and what it held at each snapshot."""

    def __init__(self, folder, rng):
        self.rng, self.tarn, self.lake = rng, peer.Tarn(folder / "warehouse"), folder / "lake"
        self.keyed, self.rows = rng.random() < 0.8, {}
        options = {"bucket": rng.choice(["1", "2"]) if self.keyed else "-1"}
        if self.keyed:
            options.update({"num-sorted-run.compaction-trigger": "3", "changelog-producer": rng.choice(["none", "input", "lookup"])})
        schema = {"fields": [{"name": "p", "type": "STRING"}, {"name": "k", "type": "INT"}, {"name": "v", "type": "STRING"}],
                  "primaryKeys": ["p", "k"] if self.keyed else [], "partitionKeys": rng.choice([[], ["p"]]), "options": options}
        path = folder / "schema.json"
        path.write_text(json.dumps(schema))
        self.tarn.run("create", TABLE, "--schema", path).ok("create")

    def write(self):
        rng = self.rng
        lines = [{"kind": rng.choice(["+I", "+I", "-D"]) if self.keyed else "+I",
                  "row": {"p": rng.choice("ab"), "k": rng.randrange(30), "v": "x" * rng.randrange(20)}} for _ in range(rng.randint(1, 20))]
        self.tarn.run("write", TABLE, "-", "--input", "changes", stdin="".join(json.dumps(x) + "\n" for x in lines)).ok("write")

    def compact(self):
        if self.keyed:
            self.tarn.run("compact", TABLE, "--full").ok("compact")

    def look(self):
        for said in rows_of(self.tarn.run("show", TABLE, "snapshots"), "show snapshots"):
            at = said["snapshot_id"]
            if at not in self.rows:
                self.rows[at] = self.tarn.cat("--snapshot", at).ok("cat")

    def some(self):
        for _ in range(self.rng.randint(1, 4)):
            self.rng.choice([self.write, self.write, self.compact])()
            self.look()

    def sync(self):
        self.tarn.run("sync", TABLE, self.lake).ok("sync")

    def revert(self):
        at, newest = self.rng.choice(sorted(self.rows)), max(self.rows)
        made = rows_of(self.tarn.run("rollback", TABLE, at), "rollback")[0]["snapshot"]
        need(made in (newest, newest + 1), "snapshot %d behind %d" % (made, newest))
        need(not peer.difference(self.rows[at], self.tarn.cat().ok("cat")), "rows behind a rollback to %d" % at)
        self.look()
        return at

    def check(self, java, where):
        java.run("fsck", str(where), TABLE).ok("fsck of %s" % where)
        for at in self.rows:
            got = java.run("read", str(where), TABLE, "--snapshot", at).ok("java read of %d" % at)
            need(not peer.difference(self.rows[at], got), "snapshot %d of %s: %s" % (at, where, peer.difference(self.rows[at], got)))

    def check_streams(self, java):
        """Who follows from the first snapshot on is told nothing by the one that was made, and all that comes behind it."""
        got = [json.loads(x)["snapshot"] for x in java.run("changelog", str(self.lake), TABLE, "--from", 1).ok("changelog")]
        overs = [s["snapshot_id"] for s in rows_of(self.tarn.run("show", TABLE, "snapshots"), "show") if s["commit_kind"] == "OVERWRITE"]
        need(not set(got) & set(overs), "a stream tells of %s" % (set(got) & set(overs)))


def run_case(args, number):
    rng = random.Random("%d/%d" % (args.seed, number))
    with tempfile.TemporaryDirectory(prefix="tarn-revert-") as folder, peer.java() as java:
        case = Case(Path(folder), rng)
        case.write()
        case.look()
        case.sync()
        for _ in range(rng.randint(1, 3)):
            case.some()
            case.revert()
            if rng.random() < 0.5:
                case.some()
            case.sync()
        for where in (case.tarn.warehouse, case.lake):
            case.check(java, where)
        case.check_streams(java)
        last = case.tarn.cat().ok("cat")
        for where in (case.lake, case.tarn.warehouse):  # official expiry, behind which only the newest is left
            java.run("expire", str(where), TABLE, "--retain-max", 1, "--retain-min", 1).ok("expire")
            java.run("fsck", str(where), TABLE).ok("fsck of %s behind an expiry" % where)
            need(not peer.difference(last, java.run("read", str(where), TABLE).ok("read")), "rows of %s behind an expiry" % where)
        java.run("exercise", str(case.lake), TABLE).ok("exercise of the lake")


def test_official_paimon_takes_what_was_gone_back_to(args):
    for number in range(args.cases):
        try:
            run_case(args, number)
        except Exception:
            print("case %d of seed %d" % (number, args.seed))
            raise


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), cases=3))
