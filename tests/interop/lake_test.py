"""`tarn sync`: a lake, in a folder or in an object store, is the table at each of its snapshots, whatever is killed or cut.

    lake_test.py --store folder|s3 --seed N [--cases N] [--kills N] [--large] [names]

The store is a real one (store.py); a proxy before it counts what tarn asks and fails as a seed has it. Who reads the lake is pypaimon, over
S3 when the lake is there; what it must read is what `tarn cat` said of each snapshot of the table. Beside syncs that are killed or
cut a reader of its own process looks again and again: it sees whole snapshots only, and never an older one.
"""
import base64
import contextlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import child
import peer
import runner
import store
from peer import need, same
from verbs import rows_of

TABLE = peer.TABLE
PARTITIONS = ["a", "a b", "x=y", "a/b=c d", "é 中文", "", "100%", "a+b&c?#"]
PREFIX = "lakes/é"  # without a blank: with one, Java Paimon finds no table in S3
PRODUCERS = ["none", "input", "lookup", "full-compaction"]


def sizes(files):
    return sum(size for _, size, _ in files.values())


class Lake:
    """What its files say, below `root`."""

    def ids(self):
        folder = self.root / "db.db/t/snapshot"
        return sorted(int(x.name[9:]) for x in folder.glob("snapshot-*")) if folder.exists() else []

    def files(self):
        return store.files_below(self.root)


class Folder(Lake):
    """A lake in a folder."""

    def __init__(self, folder, rng):
        self.root = folder / "lake"
        self.target, self.options, self.read_from, self.rng = [str(self.root)], [], (str(self.root), []), rng

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def mark(self):
        return 0

    def check(self, mark, before, has_news):
        pass

    def since(self, mark):
        return []

    def counts(self, mark):
        return Counter()

    def bytes_sent(self, mark, before):
        return sizes({x: y for x, y in self.files().items() if x not in before})

    def kill(self, process, seconds):
        """At some time of a sync that takes so long."""
        try:
            process.wait(self.rng.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()


class Bucket(Lake):
    """A lake in an object store, which tarn reaches through the proxy, and pypaimon directly."""

    def __init__(self, folder, rng):
        self.store, self.rng = store.Store(folder), rng
        self.proxy = store.Proxy(self.store)
        self.root = self.store.root / store.BUCKET / PREFIX
        url = "s3://%s/%s" % (store.BUCKET, PREFIX)
        self.target, self.options = [url], store.options(self.proxy.endpoint)
        self.read_from = (url, store.options(self.store.endpoint))

    def __enter__(self):
        self.store.__enter__()
        self.proxy.__enter__()
        return self

    def __exit__(self, *_):
        self.proxy.__exit__()
        self.store.__exit__()

    def mark(self):
        return len(self.proxy.requests)

    def since(self, mark):
        return self.proxy.since(mark)

    def counts(self, mark):
        return self.proxy.counts(mark)

    def bytes_sent(self, mark, before):
        return store.put_bytes(self.since(mark))

    def check(self, mark, before, has_news):
        """Only what was missing is sent, and a sync with nothing new costs one request."""
        same(self.proxy.wrong, [], "what tarn asked")
        asked = self.proxy.since(mark)
        if not has_news:
            need(len(asked) <= 1, "a sync with nothing new asked %s" % asked)
        again = [x for x in asked if x.verb == "PUT" and not x.is_small and x.key[len(PREFIX) + 1:] in before]
        need(not again, "sent though it was there: %s" % again)

    def kill(self, process, seconds):
        """When a byte of some request or of its answer is through."""
        at, seen = self.rng.randrange(25), self.mark()

        def plan(request):
            if len(self.proxy.requests) - seen <= at:
                return None
            size = len(request.head) + request.size
            cut = {"request": self.rng.randrange(size)} if self.rng.random() < 0.5 else {"answer": self.rng.randrange(300)}
            return store.Fault(then=process.kill, **cut)
        self.proxy.plan = plan
        process.wait(child.DEADLINE)
        self.proxy.plan = lambda request: None


STORES = {"folder": Folder, "s3": Bucket}


class Table:
    """A random table that changes, what it holds at each of its snapshots, and its lake."""

    def __init__(self, folder, lake, rng, options=()):
        self.folder, self.lake, self.rng, self.options = folder, lake, rng, dict(options)
        self.tarn = peer.Tarn(folder / "warehouse")
        self.keyed, self.partitioned = rng.random() < 0.7, rng.random() < 0.7
        self.columns = ["p", "k", "v"]
        self.rows, self.first, self.synced = {}, 0, 0  # by snapshot; of the lake
        self.was_cut, self.altered = False, False  # the last sync; since then
        self.create()

    def create(self):
        rng = self.rng
        options = {"bucket": rng.choice(["1", "2", "3"]) if self.keyed else "-1"}
        if self.keyed:
            options["changelog-producer"] = rng.choice(PRODUCERS)
            options["num-sorted-run.compaction-trigger"] = rng.choice(["2", "5"])
        if rng.random() < 0.5:
            options["manifest.target-file-size"] = "1 kb"
        options.update(self.options)
        schema = {"fields": [{"name": "p", "type": "STRING"}, {"name": "k", "type": "INT"}, {"name": "v", "type": "STRING"}],
                  "primaryKeys": ["p", "k"] if self.keyed else [], "partitionKeys": ["p"] if self.partitioned else [], "options": options}
        path = self.folder / "schema.json"
        path.write_text(json.dumps(schema))
        self.tarn.run("create", TABLE, "--schema", path).ok("create")

    @property
    def table(self):
        return Path(self.tarn.warehouse) / "db.db/t"

    def newest(self):
        return max(self.rows, default=0)

    # ---- what happens to it

    def write(self):
        rng, lines = self.rng, []
        for _ in range(rng.randint(1, 30)):
            row = {"p": rng.choice(PARTITIONS), "k": rng.randrange(40), **{c: rng.choice(["a", "é", "x" * 50, None]) for c in self.columns[2:]}}
            lines.append({"kind": rng.choice(["+I", "+I", "+I", "-D"]) if self.keyed else "+I", "row": row})
        text = "".join(json.dumps(x) + "\n" for x in lines)
        self.tarn.run("write", TABLE, "-", "--input", "changes", stdin=text).ok("write")

    def compact(self):
        if self.keyed:
            self.tarn.run("compact", TABLE, *self.rng.choice([[], ["--full"]])).ok("compact")

    def expire(self):
        keep = self.rng.randint(1, 3)
        self.tarn.run("expire", TABLE, "--older-than", "0 s", "--retain-max", keep, "--retain-min", 1).ok("expire")

    def add_column(self):
        """As `ALTER TABLE ... ADD COLUMN` leaves it; tarn has no such verb."""
        at = max(int(x.name[7:]) for x in (self.table / "schema").iterdir())
        schema = json.loads((self.table / "schema" / ("schema-%d" % at)).read_text())
        name = "c%d" % len(self.columns)
        schema["id"] = at + 1
        schema["highestFieldId"] += 1
        schema["fields"].append({"id": schema["highestFieldId"], "name": name, "type": "STRING"})
        (self.table / "schema" / ("schema-%d" % (at + 1))).write_text(json.dumps(schema))
        self.columns.append(name)
        self.altered = True

    def step(self, alters=True):
        chance = 0.5 if alters and len(self.columns) < 6 else 0
        what, = self.rng.choices([self.write, self.compact, self.expire, self.add_column], [6, 2, 2, chance])
        what()
        self.look()

    def look(self):
        """What each new snapshot holds."""
        for said in rows_of(self.tarn.run("show", TABLE, "snapshots"), "show snapshots"):
            at = said["snapshot_id"]
            if at not in self.rows:
                self.rows[at] = self.tarn.cat("--snapshot", at).ok("cat")

    # ---- its lake

    def sync_words(self):
        return ["sync", TABLE, *self.lake.target, *self.lake.options]

    def sync(self):
        """To its end; then it is checked what was sent, and how."""
        before, mark, has_news = self.lake.files(), self.lake.mark(), self.newest() > self.synced
        said = self.tarn.run(*self.sync_words())
        same(said.rc, 0, "sync: %s" % said.err)
        need(("synced nothing" in said.err) == (not has_news), "sync said %s, the lake was at %d of %d" % (
            said.err.strip(), self.synced, self.newest()))
        self.lake.check(mark, before, has_news or self.was_cut or self.altered)
        self.was_cut = self.altered = False
        self.check_files(before)
        self.synced = self.newest()
        self.check_ids(self.synced)
        return said

    def start(self):
        return subprocess.Popen([str(peer.TARN), *self.sync_words(), "-w", self.tarn.warehouse], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def cut(self, seconds):
        """A sync that is killed on its way."""
        before, self.was_cut = self.lake.files(), True
        with self.start() as process:
            self.lake.kill(process, seconds)
            process.stderr.read()
        self.check_files(before)
        self.synced = self.check_ids(self.newest())
        if self.synced:
            self.sound()

    def check_files(self, before):
        """None of what was there has gone or is another, but for hints and locks."""
        after = self.lake.files()
        changed = [x for x, known in before.items() if after.get(x) != known and Path(x).name not in store.HINTS and not x.startswith(".tarn/")
                   and not Path(x).name.startswith(".")]
        need(not changed, "replaced or removed: %s" % changed)

    def ids(self):
        return self.lake.ids()

    def check_ids(self, last):
        """A row without a gap that begins where the lake once began; gives its end."""
        ids = self.ids()
        if ids:
            self.first = self.first or ids[0]
            same(ids, list(range(self.first, ids[-1] + 1)), "snapshots in the lake")
            need(self.synced <= ids[-1] <= last, "the lake is at %d, was at %d, the table is at %d" % (ids[-1], self.synced, last))
        return ids[-1] if ids else 0

    def sound(self):
        peer.Tarn(self.lake.root).run("fsck", TABLE).ok("fsck of the lake")

    def check_rows(self, reader, ids):
        where, options = self.lake.read_from
        for at in ids:
            got = reader.run("read", where, TABLE, "--snapshot", at, *options).ok("pypaimon at %d" % at)
            need(not peer.difference(self.rows[at], got), "snapshot %d in the lake: %s" % (at, peer.difference(self.rows[at], got)))

    def check_all(self, reader, few=None):
        """Each snapshot, or a few of them and the newest, as pypaimon reads it, and what changed between them, as tarn does."""
        ids = self.ids()
        self.check_rows(reader, ids if few is None else {*self.rng.sample(ids, min(few, len(ids))), ids[-1]})
        self.sound()
        ids = [x["snapshot_id"] for x in rows_of(self.tarn.run("show", TABLE, "snapshots"), "show snapshots")]
        of_both = ["tail", TABLE, "--from", max(ids[0], self.first), "--to", ids[-1]]
        want = self.tarn.run(*of_both).ok("tail")
        same(peer.Tarn(self.lake.root).run(*of_both).ok("tail of the lake"), want, "changes in the lake")


class Reader(threading.Thread):
    """Reads the newest snapshot of a lake, again and again, from a process of its own."""

    def __init__(self, table):
        super().__init__(daemon=True)
        self.table, self.seen, self.reads, self.failure = table, 0, 0, None
        self.over = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        self.join(child.DEADLINE)
        if kind is None and self.failure:
            raise self.failure

    def run(self):
        with peer.pypaimon() as reader:
            try:
                while not self.over.is_set():
                    self.look(reader)
            except Exception as e:
                self.failure = e

    def look(self, reader):
        where, options = self.table.lake.read_from
        said = reader.run("newest", where, TABLE, *options)
        if said.rc != 0 and not self.seen:  # there is no table yet
            return
        newest = int(said.ok("the reader")[0])
        need(newest >= self.seen, "the reader saw snapshot %d, then %d" % (self.seen, newest))
        self.seen = newest
        if newest:
            self.table.check_rows(reader, [newest])
            self.reads += 1


class Follower(threading.Thread):
    """Official Java Paimon follows a lake in one stream, from its first snapshot on, beside who sends it."""

    def __init__(self, table):
        super().__init__(daemon=True)
        self.table, self.until, self.said = table, table.folder / "until", None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end(0)

    def run(self):
        with peer.java() as java:
            where, options = self.table.lake.read_from
            self.said = java.run("follow", where, TABLE, "--until", self.until, *options)

    def end(self, last):
        draft = self.until.with_suffix(".draft")
        draft.write_text("%d" % last)
        draft.rename(self.until)
        self.join(child.DEADLINE)

    def check(self, first, last):
        """It has seen each snapshot, with what it changed, once."""
        self.end(last)
        need(self.said, "the stream hasn't come to its end")
        got = {n: [] for n in range(first, last + 1)}
        for line in self.said.ok("the stream"):
            value = dict(peer.members(line))
            got[int(value["snapshot"])].append('{"kind":%s,"row":%s}' % (value["kind"], value["row"]))
        lake = peer.Tarn(self.table.lake.root)
        for n, lines in got.items():
            want = lake.run("tail", TABLE, "--format", "json", "--from", n, "--to", n).ok("tail of the lake")
            need(not peer.difference(want, lines), "snapshot %d in the stream: %s" % (n, peer.difference(want, lines)))
        need(any(got.values()), "the stream saw no row")


class Place:
    """A folder for a test, on a file system with extended attributes; it stays when the test fails."""

    def __init__(self, args, number=0):
        self.rng = random.Random("%d/%d" % (args.seed, number))
        self.folder = Path(tempfile.mkdtemp(prefix="tarn-lake-"))
        self.lake = STORES[args.store](self.folder, self.rng)

    def __enter__(self):
        self.lake.__enter__()
        return self

    def __exit__(self, kind, *_):
        self.lake.__exit__()
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print("kept: %s" % self.folder)

    def table(self, **options):
        return Table(self.folder, self.lake, self.rng, **options)


# ---------------------------------------------------------------- tests

def test_a_lake_is_the_table_at_each_snapshot(args):
    """Random tables that are written, compacted, expired and altered between syncs."""
    with peer.pypaimon() as reader:
        for number in range(args.cases):
            with Place(args, number) as place:
                table = place.table()
                for _ in range(4):
                    for _ in range(place.rng.randint(0, 4)):
                        table.step()
                    if table.rows:
                        table.sync()
                        table.check_rows(reader, table.ids()[-1:])
                table.write()
                table.look()
                table.sync()
                table.sync()
                table.check_all(reader)


def test_who_reads_while_syncs_are_killed_sees_whole_snapshots(args):
    """The next sync goes on where the killed one was."""
    with Place(args) as place, peer.pypaimon() as reader:
        table = place.table()
        table.write()
        table.look()
        with Reader(table) as beside:
            for _ in range(args.kills):
                for _ in range(place.rng.randint(1, 3)):
                    table.step()
                table.cut(0.05)
                if place.rng.random() < 0.4:
                    table.sync()
            table.sync()
        need(beside.reads, "the reader read nothing")
        table.check_all(reader, 5)


def test_a_lake_needs_no_memory_of_the_sender(args):
    """What the table's folder keeps beside the table is lost: names are not used again, and nothing is sent twice."""
    with Place(args) as place, peer.pypaimon() as reader:
        table = place.table()
        for _ in range(3):
            for _ in range(3):
                table.write()
                table.look()
            table.sync()
            shutil.rmtree(Path(table.tarn.warehouse) / ".tarn")
        table.check_all(reader, 5)


def kept_is_whole(table, most, reader, java):
    """Of the newest so many; nothing else is left."""
    ids, first = table.ids(), max(1, table.newest() - most + 1)
    same(ids, list(range(first, table.newest() + 1)), "snapshots in the lake")
    same((table.lake.root / "db.db/t/snapshot/EARLIEST").read_text(), str(first), "EARLIEST")
    table.check_rows(reader, ids)
    table.sound()
    lake = peer.Tarn(table.lake.root)
    left = rows_of(lake.run("clean", TABLE, "--older-than", "0 s", "--dry-run"), "clean")
    need(left[0]["files"] == 0, "files that nothing reaches: %s" % left)
    if java:
        java.run("fsck", table.lake.root, TABLE, "--quiet", "--orphans").ok("official fsck of the lake")


def test_a_lake_keeps_as_many_as_the_table_says(args):
    """More than the table does, and no more; with tags, a rollback, and syncs that are killed."""
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(peer.pypaimon())
        java = stack.enter_context(peer.java()) if args.store == "s3" else None
        for number in range(min(args.cases, 2)):
            place = stack.enter_context(Place(args, number))
            if java:
                place.lake.proxy.may_remove = True
            rng, most = place.rng, place.rng.randint(3, 7)
            table = place.table(options={"lake.snapshot.num-retained.max": str(most), "lake.snapshot.num-retained.min": "1",
                                         "lake.snapshot.time-retained": "1 d"})
            table.write()
            table.look()
            table.sync()
            for turn in range(6):
                for _ in range(rng.randint(1, 4)):
                    table.step(alters=False)
                if turn == 2:
                    table.tarn.run("tag", TABLE, "old").ok("tag")
                if turn == 3 and table.keyed:
                    table.tarn.run("rollback", TABLE, "old").ok("rollback")
                    table.look()
                if turn == 4:
                    with table.start() as process:
                        table.lake.kill(process, 0.05)
                        process.stderr.read()
                table.expire()
                said = table.tarn.run(*table.sync_words())
                same(said.rc, 0, "sync: %s" % said.err)
                kept_is_whole(table, most, reader, java)
            table.tarn.run("tag", TABLE, "old", "--delete").ok("tag")
            while table.newest() < 20:
                table.write()
                table.look()
            same(table.tarn.run(*table.sync_words()).rc, 0, "sync")
            kept_is_whole(table, most, reader, java)


def test_s3_who_may_not_remove_is_told_so(args):
    """And all else goes on: nothing is half gone."""
    with Place(args) as place, peer.pypaimon() as reader:
        table = place.table(options={"lake.snapshot.num-retained.max": "2", "lake.snapshot.num-retained.min": "1"})
        place.lake.store.make_user("device", "device-secret")
        place.lake.options = store.options(place.lake.proxy.endpoint, "device", "device-secret")
        place.lake.store.allow("device", "s3:GetObject", "s3:PutObject")
        for _ in range(5):
            table.write()
            table.look()
        said = table.tarn.run(*table.sync_words())
        same(said.rc, 0, "sync: %s" % said.err)
        need("permission to list or to remove was denied" in said.err, "sync said %s" % said.err)
        same(table.ids(), sorted(table.rows), "snapshots in the lake")
        table.check_rows(reader, table.ids())
        table.sound()


def sizes_of_level_0(lake, ids):
    """Of the data files that these snapshots brought as they were written."""
    seen, size = set(), 0
    for at in ids:
        files = rows_of(lake.run("show", TABLE, "files", "--snapshot", at), "show files")
        new = [x for x in files if x["level"] == 0 and x["file_path"] not in seen]
        seen.update(x["file_path"] for x in new)
        size += sum(x["file_size_in_bytes"] for x in new)
    return size


def test_a_mirror_sends_what_is_new(args):
    """Commits that each change a hundredth of the keys: the bytes that travel are those of new files, and with units of two thirds of the
    table, which is what a board's are of 100 MB, at most five times those of level 0. A sync that goes on where one ended asks for the owner and the newest snapshot, once each,
    and sends."""
    keys, commits, width = (100000, 100, 1000) if args.large else (10000, 100, 400)
    sends_what_is_new(args, keys, commits, width, 64 << 20 if args.large else keys * width * 2 // 3)


def sends_what_is_new(args, keys, commits, width, unit):
    """`width` bytes a row, of which compression saves nothing to speak of; `unit`: the largest that is compacted at once."""
    with Place(args) as place:
        tarn, rng, lake = peer.Tarn(place.folder / "warehouse"), place.rng, place.lake
        asked, syncs = Counter(), 0

        def write(some):
            text = "".join('{"k":%d,"v":"%s"}\n' % (k, base64.b64encode(rng.randbytes(width)).decode()) for k in some)
            tarn.run("write", TABLE, stdin=text).ok("write")

        def sync():
            tarn.run("sync", TABLE, *lake.target, *lake.options).ok("sync")

        def sync_news():
            mark = lake.mark()
            sync()
            counts = lake.counts(mark)
            heads = 1 + counts["POST"] // 2  # a large file is looked for, begun and completed
            need(counts["GET"] <= 1 and counts["HEAD"] <= heads and not counts["LIST"] and not counts["DELETE"], "a sync asked %s" % counts)
            asked.update(counts)

        tarn.run("create", TABLE, "--field", "k INT", "--field", "v STRING", "--primary-key", "k", "--option", "bucket=1",
                 "--option", "tarn.compaction.unit-size-max=%d" % unit).ok("create")
        write(range(keys))
        sync()
        before, in_lake, at = store.files_below(Path(tarn.warehouse) / "db.db"), lake.files(), lake.mark()
        ids = lake.ids()
        for _ in range(commits):
            write(rng.sample(range(keys), keys // 100))
            if rng.random() < 0.5:
                sync_news()
                syncs += 1
        sync_news()
        mark = lake.mark()
        sync()
        need(len(lake.since(mark)) <= 1, "a sync with nothing new asked %s" % lake.since(mark))
        new = sizes({x: y for x, y in store.files_below(Path(tarn.warehouse) / "db.db").items() if x not in before})
        sent = lake.bytes_sent(at, in_lake)
        level_0 = sizes_of_level_0(peer.Tarn(lake.root), [x for x in lake.ids() if x not in ids])
        print("%d commits, %d syncs: %d bytes sent, %.2f of the new files', %.1f of level 0's; requests: %s" % (
            commits, syncs + 1, sent, sent / new, sent / level_0, dict(asked) or "none are counted"))
        need(sent <= 1.2 * new, "%d bytes were sent, new files have %d" % (sent, new))
        need(sent <= 5 * level_0, "%d bytes were sent, level 0 has %d" % (sent, level_0))


# ---------------------------------------------------------------- tests of a store

def any_fault(rng, request, process):
    """One that a sync comes through, or one that ends it: it is forbidden, or killed at some byte, or while no answer comes."""
    kind = rng.randrange(8)
    if kind == 0:
        return store.Fault(status=403, code="AccessDenied")
    if kind == 1:
        threading.Timer(0.2, process.kill).start()
        return store.Fault(silent=True)
    if kind < 4:
        size = len(request.head) + request.size
        cut = {"request": rng.randrange(size)} if kind == 2 else {"answer": rng.randrange(300)}
        return store.Fault(then=process.kill, **cut)
    return store.random_fault(rng, request)


def sync_with_faults(table, faults, left):
    """At some of its requests; how it ends is the fault's."""
    rng, proxy, before = table.rng, table.lake.proxy, table.lake.files()

    def plan(request):
        if len(faults) == left or rng.random() > 0.3:
            return None
        faults.append(any_fault(rng, request, process))
        return faults[-1]
    with table.start() as process:
        proxy.plan = plan
        said = process.stderr.read().decode()
    proxy.plan = lambda request: None
    need(process.returncode in (0, 4, -9), "a sync with %s ended with %d: %s" % (faults[-5:], process.returncode, said))
    table.check_files(before)
    same(proxy.wrong, [], "what tarn asked")
    table.synced = table.check_ids(table.newest())


def test_s3_who_reads_while_anything_fails_sees_whole_snapshots(args):
    """Syncs are killed, the link is cut at any byte, the store refuses, forbids, answers twice, slowly or never; pypaimon reads in a loop,
    and a Java stream follows from the first snapshot to the last."""
    with Place(args) as place, peer.pypaimon() as reader:
        table, faults = place.table(), []
        table.write()
        table.look()
        table.sync()
        with Reader(table) as beside, Follower(table) as stream:
            while len(faults) < args.faults:
                for _ in range(place.rng.randint(1, 2)):
                    table.step(alters=False)
                sync_with_faults(table, faults, args.faults)
            said = table.tarn.run(*table.sync_words())
            same(said.rc, 0, "the last sync: %s" % said.err)
            same(table.check_ids(table.newest()), table.newest(), "the lake's newest snapshot")
            stream.check(table.first, table.newest())
        need(beside.reads, "the reader read nothing")
        table.check_all(reader, 5)


def refused(table, rc, *texts):
    """A sync that ends so, with these words, and leaves what was there."""
    before = table.lake.files()
    said = table.tarn.run(*table.sync_words())
    same(said.rc, rc, "exit code of sync, which said %s" % said.err)
    for text in texts:
        need(text in said.err, "sync said %s, not '%s'" % (said.err, text))
    table.check_files(before)
    return said


def unsent(table):
    """Snapshots that a lake lacks, and that expiry would like to have."""
    for _ in range(4):
        table.write()
        table.look()
    table.tarn.run("expire", TABLE, "--older-than", "0 s", "--retain-max", 1, "--retain-min", 1).ok("expire")
    table.look()


def test_s3_what_a_person_must_change_loses_nothing(args):
    """Permissions, expired credentials, a full store: nothing expires meanwhile, and then the lake has it all."""
    kinds = [(403, "AccessDenied", "permission"), (403, "ExpiredToken", "expired"), (403, "InvalidAccessKeyId", "key"),
             (403, "SignatureDoesNotMatch", "key"), (403, "QuotaExceeded", "")]
    with Place(args) as place, peer.pypaimon() as reader:
        table = place.table()
        table.write()
        table.look()
        table.sync()
        for status, code, text in kinds:
            unsent(table)
            place.lake.proxy.plan = lambda request: store.Fault(status=status, code=code) if request.verb == "PUT" else None
            refused(table, 4, text)
            place.lake.proxy.plan = lambda request: None
            table.sync()
        table.check_all(reader, 5)


def test_s3_who_may_put_and_get_needs_no_more(args):
    """Somebody whose policy has no more than that, and who is told "forbidden" of what isn't there, as AWS does it (apache/paimon#8261)."""
    with Place(args) as place, peer.pypaimon() as reader:
        table, proxy = place.table(), place.lake.proxy
        place.lake.store.make_user("device", "device-secret")
        place.lake.options = store.options(proxy.endpoint, "device", "device-secret")
        proxy.hides = True
        place.lake.store.allow("device", "s3:GetObject")
        table.write()
        table.look()
        refused(table, 4, "put s3://", "permission denied")
        place.lake.store.allow("device", "s3:GetObject", "s3:PutObject")
        for number in range(4):
            before = len(proxy.requests)
            table.sync()
            denied = [x for x in proxy.requests[before:] if x.status == 403]
            need(number > 0 or [x.verb for x in denied] == ["GET"], "the first sync was refused: %s" % denied)
            table.step()
            table.look()
        table.sync()
        table.check_all(reader, 5)
        verbs = Counter(x.kind for x in proxy.requests)
        need(not verbs.keys() - {"GET", "HEAD", "PUT"}, "verbs: %s" % verbs)
        need(any(x.verb == "GET" and x.status == 403 for x in proxy.requests), "nothing was hidden")
        # Its notes are lost: LATEST says where it was.
        for ledger in (place.folder / "warehouse/.tarn").glob("*.ledger"):
            ledger.unlink()
        table.write()
        table.look()
        table.sync()
        table.check_all(reader, 5)
        need(not any(x.kind == "LIST" for x in proxy.requests), "it was listed")


def test_s3_credentials_are_read_from_their_file(args):
    """A set of keys of one profile, as they are when tarn needs them."""
    with Place(args) as place:
        table, file = place.table(), place.folder / "credentials"
        table.write()
        table.look()
        place.lake.options = ["--option", "s3.endpoint=%s" % place.lake.proxy.endpoint, "--option", "s3.credentials-file=%s" % file]
        refused(table, 2, "credentials")
        file.write_text("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n" % (store.ACCESS, "other"))
        refused(table, 4)
        file.write_text("[other]\naws_access_key_id = no\naws_secret_access_key = no\n[default]\naws_access_key_id = %s\n"
                        "aws_secret_access_key = %s\n" % (store.ACCESS, store.SECRET))
        table.sync()


def test_s3_the_clock_of_the_store_is_signed_with(args):
    """The device's is an hour wrong: the store's counts, and only for what is signed."""
    for skew in (3600, -3600 * 24 * 365 * 20):
        with Place(args) as place, peer.pypaimon() as reader:
            table = place.table()
            place.lake.proxy.skew = skew
            table.write()
            table.look()
            table.sync()
            table.check_all(reader, 5)
            too_skewed = [x for x in place.lake.proxy.requests if x.status == 403]
            need(len(too_skewed) <= 4, "the clock was not learned: %s" % too_skewed)


def test_s3_two_at_once_are_one(args):
    """The second one says who syncs, and leaves it alone."""
    with Place(args) as place:
        table = place.table()
        table.write()
        table.look()
        waits = threading.Event()

        def plan(request):
            if request.verb != "PUT":
                return None
            waits.set()
            return store.Fault(silent=True)
        place.lake.proxy.plan = plan
        with table.start() as first:
            try:
                need(waits.wait(child.DEADLINE), "the first one sends nothing")
                refused(table, 5, "process %d" % first.pid)
            finally:
                first.kill()
                first.stderr.read()
        place.lake.proxy.plan = lambda request: None
        table.sync()


def test_s3_what_cannot_be_is_said(args):
    """Before anything is sent or made."""
    with Place(args) as place:
        table = place.table()
        table.write()
        table.look()
        keys = ["--option", "s3.access-key=a", "--option", "s3.secret-key=b"]
        for target, options, rc, text in (
                ("s3://lake/x", keys + ["--option", "s3.endpoint=http://example.org"], 2, "https"),
                ("s3://lake/x", keys + ["--option", "s3.endpiont=x"], 2, "s3.endpiont"),
                ("s3://lake/x", keys + ["--option", "s3.ca-file=%s" % (place.folder / "none"), "--option", "s3.endpoint=https://127.0.0.1"], 2, "none"),
                ("s3://", keys, 2, "s3://"), ("gs://lake/x", [], 2, "gs://"), ("hdfs://lake/x", [], 2, "hdfs://"),
                (str(place.folder / "x"), keys, 2, "folder"),
                ("s3://none/x", store.options(place.lake.proxy.endpoint), 4, "bucket")):
            said = table.tarn.run("sync", TABLE, target, *options)
            same(said.rc, rc, "sync to %s said %s" % (target, said.err))
            need(text in said.err, "sync to %s said %s, not '%s'" % (target, said.err, text))
        need(not (place.folder / "x").exists(), "a folder was made")
        same([x for x in place.lake.proxy.requests if x.verb == "PUT" and x.status == 200], [], "what was sent")


def test_s3_a_dry_run_says_what_it_would_take(args):
    with Place(args) as place:
        table = place.table()
        for _ in range(3):
            table.write()
            table.look()
        plan, = rows_of(table.tarn.run(*table.sync_words(), "--dry-run", "--format", "json"), "dry run")
        need(not place.lake.proxy.counts()["PUT"], "a dry run sent something")
        mark = place.lake.mark()
        said = table.sync()
        need("files=%(files)d bytes=%(bytes)d" % plan in said.err, "the plan was %s, the sync said %s" % (plan, said.err))
        asked = len(place.lake.proxy.since(mark))
        need(asked <= plan["requests"] + 2, "%d requests, %d were planned" % (asked, plan["requests"]))


def test_s3_a_rate_is_kept(args):
    """Never faster than it is told; the first second is free."""
    rate = 200000
    with Place(args) as place:
        tarn = peer.Tarn(place.folder / "warehouse")
        tarn.run("create", TABLE, "--field", "k INT", "--field", "v STRING", "--option", "bucket=-1").ok("create")
        text = "".join('{"k":%d,"v":"%s"}\n' % (k, place.rng.randbytes(200).hex()) for k in range(3000))
        tarn.run("write", TABLE, stdin=text).ok("write")
        begin = time.monotonic()
        said = tarn.run("sync", TABLE, *place.lake.target, *place.lake.options, "--rate", "200K", "--progress")
        seconds = time.monotonic() - begin
        same(said.rc, 0, "sync said %s" % said.err)
        need("snapshot 1 of 1" in said.err, "no progress: %s" % said.err)
        sent = store.put_bytes(place.lake.proxy.requests)
        need(seconds > sent / (rate * 1.024) - 1, "%d bytes in %.1f s" % (sent, seconds))


def test_s3_a_large_file_goes_on_at_the_part_where_it_was_cut(args):
    """In parts of 8 MiB; what a killed sync brought of it isn't sent again."""
    with Place(args) as place:
        tarn, rng, proxy = peer.Tarn(place.folder / "warehouse"), place.rng, place.lake.proxy
        words = ["sync", TABLE, *place.lake.target, *place.lake.options]
        tarn.run("create", TABLE, "--field", "k INT", "--field", "v STRING", "--option", "bucket=-1").ok("create")
        text = "".join('{"k":%d,"v":"%s"}\n' % (k, base64.b64encode(rng.randbytes(1500)).decode()) for k in range(20000))
        tarn.run("write", TABLE, stdin=text).ok("write")
        with subprocess.Popen([str(peer.TARN), *words, "-w", tarn.warehouse], stderr=subprocess.DEVNULL) as process:
            parts = []

            def plan(request):
                if "partNumber=" in request.query:
                    parts.append(request)
                return store.Fault(answer=0, then=process.kill) if len(parts) == 3 else None
            proxy.plan = plan
            process.wait(child.DEADLINE)
        proxy.plan = lambda request: None
        whole, mark = {x.target for x in parts if x.status == 200}, place.lake.mark()
        need(len(parts) >= 3 and whole, "parts of a large file: %s" % parts)
        tarn.run(*words).ok("sync")
        asked = proxy.since(mark)
        need(not [x for x in asked if x.target in whole], "parts were sent again: %s" % asked)
        upload = parts[0].query.partition("uploadId=")[2]
        need([x for x in asked if x.verb == "POST" and x.query.endswith(upload)], "another upload of the file: %s" % asked)
        same(proxy.wrong, [], "what tarn asked")
        peer.Tarn(place.lake.root).run("fsck", TABLE).ok("fsck of the lake")


def make_certificate(folder, name):
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                           "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", folder / (name + ".key"),
                           "-out", folder / (name + ".pem")], text=True, capture_output=True, check=False)
    need(done.returncode == 0, "openssl: " + done.stderr)
    return folder / (name + ".pem"), folder / (name + ".key")


def test_s3_a_store_is_known_by_its_certificate(args):
    """Over TLS the payload isn't hashed; who isn't known gets nothing."""
    with Place(args) as place:
        cert, key = make_certificate(place.folder, "store")
        other, _ = make_certificate(place.folder, "other")
        (place.folder / "tls").mkdir()
        table = place.table()
        table.write()
        table.look()
        with store.Store(place.folder / "tls", cert, key) as secure:
            place.lake.root = secure.root / store.BUCKET / PREFIX
            for ca, rc, text in ((other, 4, "certificate"), (cert, 0, "synced")):
                place.lake.options = [*store.options(secure.endpoint), "--option", "s3.ca-file=%s" % ca]
                refused(table, rc, text)
        same(table.ids(), sorted(table.rows), "snapshots in the lake")
        table.sound()


def tests(words):
    """Those of a store need one."""
    return [x for x in runner.tests_of(globals()) if "s3" in words or not x.__name__.startswith("test_s3_")]


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), tests(sys.argv), store="folder", cases=4, kills=20, faults=50, large=False))
