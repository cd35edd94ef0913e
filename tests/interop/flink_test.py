"""A table of a lake that gateways share, and real Flink beside them: it reads each one's rows, compacts in a pause, and commits.

    flink_test.py [--store s3|folder] [--gateways N] [--commits N] [--seed S] [NAME...]

Half of the gateways commit by themselves, half hand in.
"""
import json
import random
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import child
import flink
import peer
import runner
import share_test
from peer import TABLE, need, same

KEY = ["gw", "dev"]
CREATED = ("--primary-key", "gw,dev", "--option", "bucket=1", "--option", "changelog-producer=input")
MARK = '{"kind":"+I","row":{"gw":"z","dev":"mark","n":0}}'


class Gateway(share_test.Gateway):
    def __init__(self, folder, at, name, rng, way):
        super().__init__(folder, at, name, "--commit", way)
        self.rng, self.way = rng, way

    def work(self):
        """One commit of a few changes."""
        lines = []
        for _ in range(self.rng.randint(1, 8)):
            row = {"gw": self.name, "dev": "d%d" % self.rng.randrange(12), "n": self.rng.randrange(1000)}
            kind = self.rng.choice(["+I", "+I", "+U", "-D"])
            self.rows.pop(row["dev"], None)
            if kind != "-D":
                self.rows[row["dev"]] = row["n"]
            lines.append(json.dumps({"kind": kind, "row": row}) + "\n")
        self.tarn.run("write", TABLE, "--input", "changes", stdin="".join(lines)).ok("write")
        return self.sync()


class Fleet:
    """Gateways of both ways at a table, and Flink."""

    def __init__(self, args, folder, at):
        rng = random.Random(args.seed)
        self.folder, self.at, self.commits = folder, at, args.commits
        self.flink = flink.Catalog(at.where, at.options)
        self.gateways = [Gateway(folder, at, "g%02d" % i, random.Random(rng.random()), ["direct", "gather"][i % 2]) for i in range(args.gateways)]

    def gather_words(self, *words):
        return [str(peer.TARN), "gather", self.at.where + "/db.db/t", "--warehouse", str(self.folder / "gather"), *self.at.options, *words]

    def gather(self):
        done = peer.Tarn(self.folder / "gather").run("gather", self.at.where + "/db.db/t", "--once", "--sure-after", "0s", *self.at.options)
        same(done.rc, 0, "gather --once: %s" % done.err)

    def work(self):
        """All of them at once, and somebody who gathers."""
        def one(gateway):
            for _ in range(self.commits):
                gateway.work().ok("sync of %s" % gateway.name)

        with ThreadPoolExecutor(4) as pool:
            done = [pool.submit(one, gateway) for gateway in self.gateways]
            self.gather()
            for future in done:
                future.result()
        self.gather()

    def lines(self):
        return peer.ordered([line for g in self.gateways for line in g.lines()])

    def check(self):
        """Flink, pypaimon, Java and tarn read the same rows, each gateway's, and official Paimon finds the table whole."""
        want = self.lines()
        same(self.flink.read(), want, "rows by Flink")
        sums = self.flink.rows("SELECT gw, COUNT(*) AS rows_, COUNT(DISTINCT dev) AS devs, SUM(n) AS n FROM %s GROUP BY gw" % self.flink.table)
        same(peer.ordered(sums), ['{"gw":"%s","rows_":%d,"devs":%d,"n":%d}' % (g.name, len(g.rows), len(g.rows), sum(g.rows.values()))
                                  for g in self.gateways if g.rows], "sums by Flink")
        with peer.pypaimon() as python:
            same(peer.ordered(self.at.read_by(python, self.at.options)), want, "rows by pypaimon")
        with peer.java() as java:
            same(peer.ordered(self.at.read_by(java, self.at.options)), want, "rows by Java")
            java.run("fsck", self.at.root, TABLE, "--quiet").ok("official fsck")
        same(peer.ordered(self.at.tarn.cat().ok("cat")), want, "rows by tarn")
        self.at.tarn.run("fsck", TABLE).ok("fsck")

    @contextmanager
    def pause(self):
        """Until the end of the block nobody of tarn commits."""
        holder = child.Child(self.folder / "pause.log")
        holder.start(self.gather_words("--pause", "--quiet-after", "1s"))
        try:
            holder.asked_until("it is quiet", lambda: "quiet: " in holder.log())
            yield
            holder.process.send_signal(signal.SIGINT)
            holder.finished("SIGINT")
        finally:
            holder.kill()


@contextmanager
def fleet(args, **given):
    with share_test.lake(args.store, created=CREATED, **given) as (folder, at):
        yield Fleet(args, folder, at)


def test_flink_reads_each_gateway_and_compacts_in_a_pause(args):
    """A stream that began with the first snapshot sees all of it, and nothing of the compaction."""
    with fleet(args) as f:
        f.work()
        following = f.flink.follow()
        f.check()
        newest = f.at.snapshots()[-1]["snapshot_id"]
        with f.pause():
            for g in f.gateways:
                said = g.work()
                need("paused" in said.err if g.way == "direct" else said.rc == 0, "%s in a pause: %s" % (g.name, said.err))
            for strategy in ("minor", "full"):
                f.flink.rows("CALL %s.sys.compact(`table` => '%s', compact_strategy => '%s')" % (f.flink.name, TABLE, strategy))
            made = f.at.snapshots()[newest:]
            need(made and all(s["commit_kind"] == "COMPACT" for s in made), "snapshots that were made in the pause: %s" % made)
        for g in f.gateways:
            g.sync().ok("sync behind the pause")
        f.gather()
        f.check()
        f.work()
        f.check()
        last = share_test.Gateway(f.folder, f.at, "z")
        last.write(("mark", 0))
        last.sync().ok("sync of the mark")
        got = flink.followed(following, MARK)
        flink.check_changes(got, flink.changes_by_tarn(f.at.tarn, "--from", 1), KEY)
        same(flink.folded(got[:-1], KEY), f.lines(), "what the changes lead to")


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), store="folder", gateways=4, commits=3))
