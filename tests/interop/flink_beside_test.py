"""An official writer, real Flink, commits to a shared table beside gateways that don't know of it.

    flink_beside_test.py [--commits N] [--seed S] [NAME...]

Official Paimon gives a snapshot its name in an object store by a copy over whatever is there. What a gateway had under that name is
sent again, which `sync` says; what the official writer had is in the table whole, or was built over, which `fsck` says. The table is
one without a key, so that a row that was sent twice shows.
"""
import random
import re
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import child
import flink
import peer
import runner
import share_test
import store
from peer import TABLE, need, same

WARNING = "somebody wrote over what this gateway had committed"
WARNING_OF_GATHER = "which this gather had made"
HEALS = "what it had of gateways is gathered again"
GAVE_UP = "Commit failed after"
LOST = "of the snapshot before"  # what fsck says of a snapshot that doesn't go on with the one before


class Held(store.Proxy):
    """Between an official writer and the store: while it `holds`, the copy that gives a snapshot its name waits."""

    def __init__(self, at):
        super().__init__(at)
        self.came, self.go = threading.Event(), threading.Event()
        self.plan = self.hold

    def hold(self, request):
        if "x-amz-copy-source" in request.headers and "/snapshot/snapshot-" in request.key:
            self.came.set()
            need(self.go.wait(child.DEADLINE), "nobody let the writer go")


class Gateway(share_test.Gateway):
    """Each of its rows is another one."""

    def __init__(self, folder, at, name, way):
        super().__init__(folder, at, name, "--commit", way)
        self.said = ""

    def commit(self):
        self.write(*[("d%d" % (len(self.rows) + i), i) for i in range(3)])
        self.sync_well()

    def sync_well(self):
        done = self.sync()
        done.ok("sync of %s" % self.name)
        self.said += done.err


class Place:
    """A shared table in a store, two gateways with a commit each, and a writer behind a proxy."""

    def __init__(self, folder, at, proxy, way):
        self.folder, self.at, self.proxy = folder, at, proxy
        self.gateways = [Gateway(folder, at, name, way) for name in "ab"]
        for g in self.gateways:
            g.commit()
        self.flink = flink.Catalog(at.where, store.options(proxy.endpoint))
        self.inserts = []

    def insert(self, count=3):
        """Of so many rows; they are all there, or none."""
        rows = [("o%d" % len(self.inserts), i) for i in range(count)]
        self.inserts.append(rows)
        done = self.flink.run("INSERT INTO %s VALUES %s" % (self.flink.table, ",".join("('official','%s',%d)" % row for row in rows)))
        if GAVE_UP in done.err:  # others were always faster, and the writer knows
            self.inserts[-1] = []
        else:
            done.ok("INSERT")

    @contextmanager
    def held_insert(self):
        """It has found its snapshot's name free, and copies over it when the block ends."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(self.insert)
            try:
                need(self.proxy.came.wait(child.DEADLINE), "the writer commits nothing")
                yield
            finally:
                self.proxy.go.set()
            done.result()

    def settle(self):
        """What the last one has lost the next one of each finds."""
        for _ in range(2):
            for g in self.gateways:
                g.commit()

    def check(self):
        """Each row of the gateways once, each insert whole or not at all; gives whether some are lost, which fsck says."""
        got = Counter(self.flink.read())
        here = Counter(line for g in self.gateways for line in g.lines())
        there = [Counter('{"gw":"official","dev":"%s","n":%d}' % row for row in rows) for rows in self.inserts]
        whole = [rows for rows in there if rows & got or not rows]
        same(got, sum(whole, here), "rows by Flink")
        with peer.pypaimon() as python:
            same(Counter(self.at.read_by(python, self.at.options)), got, "rows by pypaimon")
        with peer.java() as java:
            same(Counter(self.at.read_by(java, self.at.options)), got, "rows by Java")
            official = java.run("fsck", self.at.root, TABLE, "--quiet")
        lost = len(whole) < len(there)
        for said in (self.at.tarn.run("fsck", TABLE), official):
            same(said.rc, int(lost), "fsck: %s" % said.lines)
            need(not lost or any(LOST in line for line in said.lines), "fsck doesn't say what is lost: %s" % said.lines)
        return lost


@contextmanager
def place(way="direct"):
    with peer.Folder("tarn-beside-") as f, store.Store(f.folder) as s, Held(s) as proxy:
        yield Place(f.folder, share_test.Lake(f.folder, s, created=("--option", "bucket=-1")), proxy, way)


def test_a_writer_copies_over_the_newest_snapshot(_args):
    """A gateway's; the next one goes on with the writer's, and what is lost is sent again, once."""
    with place() as p:
        with p.held_insert():
            p.gateways[0].commit()
        p.gateways[1].commit()
        need(WARNING not in p.gateways[0].said, "it knew before: %s" % p.gateways[0].said)
        p.gateways[0].commit()
        need(WARNING in p.gateways[0].said, "nothing is said: %s" % p.gateways[0].said)
        p.settle()
        need(not p.check(), "the writer's rows are lost")
        same([g.said.count(WARNING) for g in p.gateways], [1, 0], "warnings")


def test_a_writer_copies_over_one_that_another_goes_on_with(_args):
    """No row of the gateways is lost; the writer's are, which the history shows for ever."""
    with place() as p:
        with p.held_insert():
            for g in p.gateways:
                g.commit()
        p.settle()
        need(p.check(), "nobody says that the writer's rows are lost")
        same([g.said.count(WARNING) for g in p.gateways], [0, 0], "warnings")


def test_a_writer_copies_over_what_a_gather_has_made(_args):
    """What is lost of it is gathered again, and said; all else is there."""
    with place("gather") as p:
        gather = child.Child(p.folder / "gather.log")
        gather.start([str(peer.TARN), "gather", p.at.where + "/db.db/t", "--warehouse", str(p.folder / "gather"), *p.at.options])
        try:
            gather.until("both are in", lambda: len(re.findall("entries=1 ", gather.said)) + 2 * gather.said.count("entries=2 ") == 2)
            made = gather.said.count("committed snapshot=")
            with p.held_insert():
                p.gateways[0].commit()
                gather.until("it commits", lambda: gather.said.count("committed snapshot=") > made)
            gather.until("it says so", lambda: WARNING_OF_GATHER in gather.said)
            need(HEALS in gather.said, "it heals nothing: %s" % gather.said)
            p.gateways[1].commit()
            gather.until("it goes on", lambda: gather.said.count("committed snapshot=") > made + 2)
        finally:
            gather.stop()
        same(gather.said.count(WARNING_OF_GATHER), 1, "warnings")
        need(not p.check(), "the writer's rows are lost")


def test_a_writer_and_two_gateways_at_once(args):
    with place() as p:
        p.proxy.go.set()
        p.insert()  # a cluster that is warm
        rng, over = random.Random(args.seed), threading.Event()

        def work(gateway):
            while not over.is_set():
                gateway.commit()
                over.wait(rng.random())

        with ThreadPoolExecutor(2) as pool:
            working = [pool.submit(work, g) for g in p.gateways]
            try:
                for _ in range(args.commits):
                    p.insert()
            finally:
                over.set()
            for done in working:
                done.result()
        p.settle()
        p.check()


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), commits=6))
