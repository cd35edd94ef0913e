"""A table of a lake that many gateways write, each a part of it: `create --from`, then `sync` commits.

    share_test.py [--gateways G] [--commits C] [--java] [--store s3|folder] [--seed S] [NAME...]
"""
import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import peer
import runner
import store
from peer import TABLE, need, same

FIELDS = ("gw STRING", "dev STRING", "n INT")


class Lake:
    """A folder that holds the table, and how tarn and pypaimon reach it: as a folder, or through a store."""

    def __init__(self, folder, s=None, created=("--primary-key", "gw,dev", "--option", "bucket=1")):
        self.root = (s.root / store.BUCKET / "wh") if s else folder / "lake"
        self.where = "s3://%s/wh" % store.BUCKET if s else str(self.root)
        self.options = store.options(s.endpoint) if s else []
        self.tarn = peer.Tarn(self.root)
        maker = peer.Tarn(folder / "maker") if s else self.tarn
        flags = [x for f in FIELDS for x in ("--field", f)]
        maker.run("create", TABLE, *flags, "--partition-by", "gw", *created).ok("create")
        if s:  # objects have to come by the store: as a mirror, which has an owner
            maker.run("sync", TABLE, self.where, *self.options).ok("the schema")
            (self.root / ".tarn" / TABLE / "owner").unlink()

    def snapshots(self):
        return [json.loads(x) for x in self.tarn.run("show", TABLE, "snapshots", "--format", "json").ok("snapshots")]

    def read_by(self, reader, options):
        return reader.run("read", self.where if options else self.root, TABLE, *options).ok("read")


@contextmanager
def lake(kind, **given):
    with peer.Folder("tarn-share-") as f:
        if kind != "s3":
            yield f.folder, Lake(f.folder, **given)
            return
        with store.Store(f.folder) as s:
            yield f.folder, Lake(f.folder, s, **given)


class Gateway:
    def __init__(self, folder, at, name, *more):
        self.lake, self.name, self.rows = at, name, {}
        self.tarn = peer.Tarn(folder / name)
        self.tarn.run("create", TABLE, "--from", at.where + "/db.db/t", *at.options, *more).ok("create --from")

    def write(self, *rows):
        for dev, n in rows:
            self.rows[dev] = n
        text = "".join(json.dumps({"gw": self.name, "dev": dev, "n": n}) + "\n" for dev, n in rows)
        self.tarn.run("write", TABLE, stdin=text).ok("write")

    def sync(self, *more):
        return self.tarn.run("sync", TABLE, self.lake.where, *self.lake.options, *more)

    def lines(self):
        return ['{"gw":"%s","dev":"%s","n":%d}' % (self.name, dev, n) for dev, n in self.rows.items()]


def check_rows(args, at, gateways):
    """All readers see the rows of all gateways, and the table is whole."""
    want = peer.ordered([line for g in gateways for line in g.lines()])
    same(peer.ordered(at.tarn.cat().ok("cat")), want, "rows by tarn")
    at.tarn.run("fsck", TABLE).ok("fsck")
    with peer.pypaimon() as reader:
        same(peer.ordered(at.read_by(reader, at.options)), want, "rows by pypaimon")
    if args.java:
        with peer.java() as java:
            same(peer.ordered(at.read_by(java, [])), want, "rows by Java")
            java.run("fsck", at.root, TABLE, "--quiet").ok("official fsck")


def test_gateways_commit_at_once(args):
    """Each commit is in the table once, whoever is in whose way."""
    with lake(args.store) as (folder, at):
        with ThreadPoolExecutor(args.gateways) as pool:
            gateways = list(pool.map(lambda i: Gateway(folder, at, "g%02d" % i), range(args.gateways)))
            list(pool.map(lambda g: g.write(("first", 0)), gateways))
            started = time.monotonic()

            def work(g):
                for i in range(args.commits):
                    g.sync().ok("sync of %s" % g.name)
                    if i + 1 < args.commits:
                        g.write(("d%d" % (i % 5), i))

            list(pool.map(work, gateways))
        took = time.monotonic() - started
        commits = Counter((s["commit_user"], s["commit_identifier"]) for s in at.snapshots())
        same(len(commits), args.gateways * args.commits, "commits in the table")
        same(max(commits.values()), 1, "snapshots of one commit")
        same(len({user for user, _ in commits}), args.gateways, "gateways that committed")
        need(took < 120, "%d commits took %.0f s" % (len(commits), took))
        check_rows(args, at, gateways)


def test_what_official_paimon_does_in_between(args):
    """Full compaction and expiry there, while nobody is under way: gateways go on, and nothing is sent twice."""
    if not args.java:
        return
    with lake("folder") as (folder, at), peer.java() as java:  # what it wrote into a store's files would be no objects
        gateways = [Gateway(folder, at, name) for name in "ab"]
        for i in range(6):
            for g in gateways:
                g.write(("d%d" % (i % 3), i), ("e%d" % i, i))
                g.tarn.run("compact", TABLE, "--full").ok("compact")
                g.sync().ok("sync")
            if i % 2 == 1:
                java.run("compact", at.root, TABLE, "--full").ok("official compaction")
            if i % 3 == 2:
                java.run("expire", at.root, TABLE, "--retain-max", 1, "--retain-min", 1).ok("official expiry")
        check_rows(args, at, gateways)


def test_refusals(args):
    with lake(args.store) as (folder, at):
        g = Gateway(folder, at, "g")
        g.write(("d", 1))
        said = g.tarn.run("sync", TABLE, folder / "elsewhere")
        need(said.rc == 2 and "no mirror" in said.err, "a mirror of a shared table: %s" % said.err)
        said = g.tarn.run("rollback", TABLE, 1)
        need(said.rc == 2 and "doesn't go back" in said.err, "rollback of a shared table: %s" % said.err)
        g.sync("--dry-run").ok("dry run")
        same(at.snapshots(), [], "snapshots behind a dry run")
        said = g.tarn.run("create", TABLE, "--from", at.where + "/db.db/t", *at.options)
        need(said.rc == 2 and "exists" in said.err, "adopted twice: %s" % said.err)
        said = g.tarn.run("create", "db.u", "--from", at.where + "/db.db/t", *at.options)
        need(said.rc == 2 and "the same name" in said.err, "another name: %s" % said.err)
        schema = Path(g.tarn.warehouse) / "db.db/t/schema"
        text = (schema / "schema-0").read_text()
        (schema / "schema-1").write_text(text.replace('"id" : 0,', '"id" : 1,', 1).replace('"bucket" : "1"', '"bucket" : "2"'))
        said = g.sync()
        need(said.rc == 2 and "schema-1" in said.err and "nothing is sent" in said.err, "altered here alone: %s" % said.err)
        same(at.snapshots(), [], "snapshots behind a refusal")
        (schema / "schema-1").unlink()
        g.sync().ok("sync")
        check_rows(args, at, [g])


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), gateways=4, commits=5, java=False, store="folder"))
