"""A table of a lake that many gateways write, each a part of it: `create --from`, then `sync` commits.

    share_test.py [--gateways G] [--commits C] [--java] [--store s3|folder] [--seed S] [NAME...]
"""
import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import peer
import runner
import store
from child import TarnRun
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


class Box(TarnRun):
    """A gateway whose daemon has the lake, and takes rows from its standard input."""

    def __init__(self, at, name, *more):
        super().__init__("tarn-box-")
        self.name, self.rows, self.tarn = name, {}, peer.Tarn(self.warehouse)
        self.tarn.run("create", TABLE, "--from", at.where + "/db.db/t", *at.options, *more).ok("create --from")
        options = ", ".join('["%s"] = "%s"' % tuple(o.split("=", 1)) for o in at.options if o != "--option")
        self.config.write_text('return { warehouse = "warehouse", tables = { ["%s"] = { commit = "100ms" } }, journal = { sync = "5ms or 64K" },\n'
                               'sources = { { kind = "stdin", table = "%s" } }, lakes = { far = { target = "%s"%s } } }\n'
                               % (TABLE, TABLE, at.where, ", options = { %s }" % options if options else ""))

    def text(self, first, count):
        new = {"d%d" % (i % 7): i for i in range(first, first + count)}
        self.rows.update(new)
        return "".join(json.dumps({"gw": self.name, "dev": dev, "n": n}) + "\n" for dev, n in new.items()).encode()

    def start(self, stdin=subprocess.PIPE, env=None):
        super().start(stdin, env)

    def send(self, first, count):
        self.process.stdin.write(self.text(first, count))
        self.process.stdin.flush()

    def status(self, kind):
        lines = self.tarn.run("status", "--format", "json").lines
        return [row for row in map(json.loads, lines) if kind in row][0]

    def newest(self):
        ids = [int(p.name[len("snapshot-"):]) for p in (Path(self.warehouse) / "db.db/t/snapshot").glob("snapshot-*")]
        return max(ids, default=0)

    lines = Gateway.lines


def test_daemons_bring_their_part(args):
    """Two at once, one of them killed now and then; each commit is there once, and what was written over is sent again."""
    with lake(args.store) as (_folder, at), Box(at, "a") as a, Box(at, "b", "--commit", "direct") as b:
        a.get_ready()
        for i in range(2):
            b.get_ready()
            newest = a.newest(), b.newest()
            for box in a, b:
                box.send(10 * i, 5)
            for box, before in zip((a, b), newest):
                box.asked_until("some rows are in", lambda: box.newest() > before)
            b.kill()  # in the middle of an upload, or behind it
            b.once(b.text(10 * i, 5) + b.text(10 * i + 5, 5))
        a.asked_until("all is there", lambda: a.status("mirror")["behind"] == 0 and a.status("mirror")["state"] == "has all")
        said = a.status("mirror")
        same([said["shared"], said["trouble"], said["replaced_commits"]], ["direct", None, 0], "status")
        need(said["commits"] > 1 and said["lake_snapshot"] > 0 and a.status("lake")["failures"] == 0, "status: %s" % said)
        page = "\n".join(a.tarn.run("status", "--format", "table").ok("status"))
        need("%s, shared: %d commits" % (TABLE, said["commits"]) in page, page)
        part = [p for p in map(json.loads, a.tarn.run("pools", "--format", "json").ok("pools")) if p["part"] == "upload"][0]
        need(part["size"] > 1024 * 1024 > 0 and part["peak"] <= part["size"], "the part: %s" % part)
        a.stop()
        commits = Counter((s["commit_user"], s["commit_identifier"]) for s in at.snapshots())
        same(max(commits.values()), 1, "snapshots of one commit")
        same(len({user for user, _ in commits}), 2, "gateways that committed")
        check_rows(args, at, [a, b])


def test_a_plan_and_the_progress(args):
    """What --dry-run says is what goes; --progress counts files, and says what the lake makes of them."""
    for way in ("direct", "gather"):
        with lake(args.store) as (folder, at):
            g = Gateway(folder, at, "g", "--commit", way)
            for i in range(3):
                g.write(("d%d" % i, i))
            plan = json.loads(g.sync("--dry-run").ok("dry run")[0])
            same([plan["first_snapshot"], plan["last_snapshot"], plan["files"]], [1, 3, 3], "the plan")
            same(plan.get("requests"), (13 if way == "direct" else 5) if args.store == "s3" else None, "requests of the plan")
            said = g.sync("--progress")
            said.ok("sync")
            need("files=3 bytes=%d" % plan["bytes"] in said.err, "what went: %s" % said.err)
            same(json.loads(g.sync("--dry-run").ok("dry run")[0])["files"], 0, "files behind the sync")


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


def test_a_table_that_gateways_share_becomes_nobodys_mirror(args):
    """Whoever restores from it has a table of its own; and a mirror is nobody's to share."""
    with lake(args.store) as (folder, at):
        one = Gateway(folder, at, "one")
        one.write(("d", 1))
        one.sync().ok("sync")
        before = at.snapshots()
        other = peer.Tarn(folder / "other")
        result = other.run("restore", TABLE, at.where, *at.options)
        result.ok("restore")
        need("gateways share" in result.err, result.err)
        other.run("write", TABLE, stdin='{"gw":"two","dev":"d","n":1}\n').ok("write")
        result = other.run("sync", TABLE, at.where, *at.options)
        need(result.rc == 5 and "no mirror of it can be made" in result.err, (result.rc, result.err))
        same(at.snapshots(), before, "snapshots of the lake")
        one.write(("d", 2))
        one.sync().ok("sync")
        same(len(at.snapshots()), len(before) + 1, "snapshots of the lake")


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), gateways=4, commits=5, java=False, store="folder"))
