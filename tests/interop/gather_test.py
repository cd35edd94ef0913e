"""A table in an object store that many gateways share: they hand in, `tarn gather` commits; pypaimon and Java read each one's rows.

    gather_test.py [--gateways N] [--commits N] [--seed S] [NAME...]

The store is a real one (store.py). --gateways 64 --commits 20 is the size that is promised.
"""
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import child
import peer
import runner
import store
from peer import TABLE, need, same

PREFIX = "plant"
WHERE = "s3://%s/%s" % (store.BUCKET, PREFIX)
FIELDS = [x for field in ("gw STRING", "k INT", "v STRING") for x in ("--field", field)]
ROOT = "db.db/t"
SAID = re.compile(r"entries=(\d+) files=(\d+) bytes=\d+ requests=(\d+)")


def become_objects(folder):
    """Files that somebody else than the store has written have no ETag, and no store is without."""
    for path in folder.rglob("*"):
        if path.is_file() and "user.etag" not in os.listxattr(path):
            os.setxattr(path, "user.etag", hashlib.md5(path.read_bytes()).hexdigest().encode())


class Gateway:
    def __init__(self, folder, name, words, rng):
        self.tarn, self.name, self.words, self.rng = peer.Tarn(folder / name), name, words, rng
        self.rows, self.entries = {}, 0
        (folder / name).mkdir()
        self.tarn.run("create", TABLE, "--from", "%s/%s" % (WHERE, ROOT), "--commit", "gather", *words).ok("create --from")

    def commit(self):
        batch = {}
        for _ in range(self.rng.randint(1, 5)):
            batch[self.rng.randrange(20)] = "%s-%d" % (self.name, self.rng.randrange(1 << 30))
        self.rows.update(batch)
        text = "".join(json.dumps({"gw": self.name, "k": k, "v": v}) + "\n" for k, v in batch.items())
        self.tarn.run("write", TABLE, stdin=text).ok("write")
        done = self.tarn.run("sync", TABLE, WHERE, *self.words)
        done.ok("sync")
        entries, files, requests = map(int, SAID.search(done.err).groups())
        need(requests <= files + 3, "%d requests for %d files: %s" % (requests, files, done.err))
        self.entries += entries

    def work(self, commits):
        for _ in range(commits):
            self.commit()


class Lake:
    def __init__(self, folder, options=()):
        self.folder = folder
        self.store = store.Store(folder)
        self.options = options

    def __enter__(self):
        self.store.__enter__()
        self.root = self.store.root / store.BUCKET / PREFIX
        self.root.mkdir()
        self.tarn = peer.Tarn(self.root)
        self.words = store.options(self.store.endpoint)
        self.tarn.run("create", TABLE, *FIELDS, "--primary-key", "gw,k", "--partition-by", "gw", "--option", "bucket=1", *self.options).ok("create")
        become_objects(self.root)
        return self

    def __exit__(self, *given):
        self.store.__exit__(*given)

    @property
    def beside(self):
        return self.root / ".tarn" / TABLE

    def waiting(self):
        return [key for key in self.store.files() if key.startswith("%s/.tarn/%s/inbox/" % (PREFIX, TABLE))]

    def gather_words(self, name, *words):
        return [str(peer.TARN), "gather", "%s/%s" % (WHERE, ROOT), "--warehouse", str(self.folder / name), *self.words, *words]

    def gather_once(self, code=0):
        words = self.gather_words("once", "--once", "--sure-after", "0s")
        done = subprocess.run(words, capture_output=True, text=True, timeout=peer.SECONDS_MAX, check=False)
        same(done.returncode, code, "exit code of gather --once: %s" % done.stderr)
        return done.stderr

    def snapshots(self):
        return [json.loads(line) for line in self.tarn.run("show", TABLE, "snapshots", "--format", "json").ok("show snapshots")]

    def check(self, gateways, readers):
        """The rows of each gateway, and nothing waits or was put aside."""
        want = sorted((g.name, k, v) for g in gateways for k, v in g.rows.items())
        self.tarn.run("fsck", TABLE).ok("fsck")
        for reader in readers:
            got = sorted((row["gw"], row["k"], row["v"]) for row in map(json.loads, reader()))
            same(got, want, "rows")
        need(not (self.beside / "refused").exists(), "an entry was put aside")
        same(self.waiting(), [], "entries that wait")


@contextmanager
def lake(*options):
    with tempfile.TemporaryDirectory(prefix="tarn-gather-") as name, Lake(Path(name), options) as made:
        yield made


class Gather(child.Child):
    def __init__(self, at, name):
        super().__init__(at.folder / (name + ".log"))
        self.start(at.gather_words(name, "--sure-after", "1s"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.finished("SIGTERM")


def rows_of(peer_read):
    return [line for line in peer_read.ok("read") if line.startswith("{")]


def test_gateways_hand_in_and_two_gathers_commit(args):
    """The lease is taken away again and again, so that both gathers work at once."""
    with lake() as at, ThreadPoolExecutor(4) as pool:
        rng = random.Random(args.seed)
        gateways = [Gateway(at.folder, "gw-%02d" % i, at.words, random.Random(rng.random())) for i in range(args.gateways)]
        one, two = Gather(at, "one"), Gather(at, "two")
        try:
            work = [pool.submit(g.work, args.commits) for g in gateways]
            for future in work:
                future.result()
                (at.beside / "lease").unlink(missing_ok=True)
            child.asked_until("all is taken", lambda: not at.waiting())
        finally:
            one.stop()
            two.stop()
        at.gather_once()
        entries = sum(int(count) for g in (one, two) for count in re.findall(r"^committed .* entries=(\d+)", g.said, re.M))
        same(entries, sum(g.entries for g in gateways), "entries that were committed")
        same(entries, args.gateways * args.commits, "entries")
        ids = [s["snapshot_id"] for s in at.snapshots()]
        same(ids, list(range(ids[0], ids[-1] + 1)), "ids")
        readers = [lambda: at.tarn.cat().ok("cat")]
        with peer.pypaimon() as python:
            at.check(gateways, [*readers, lambda: rows_of(python.run("read", at.root, TABLE))])
        if args.java:
            with peer.java() as java:
                java.run("fsck", at.root, TABLE, "--quiet").ok("oracle fsck")
                at.check(gateways, [lambda: rows_of(java.run("read", at.root, TABLE))])


def test_compaction_and_expiry_are_the_gather_s(args):
    with lake("--option", "num-sorted-run.compaction-trigger=3", "--option", "snapshot.num-retained.min=1",
              "--option", "snapshot.num-retained.max=2", "--option", "snapshot.time-retained=1 s") as at:
        g = Gateway(at.folder, "gw-0", at.words, random.Random(args.seed))
        for _ in range(6):
            g.commit()
            at.gather_once()
        need(any(s["commit_kind"] == "COMPACT" for s in at.snapshots()), "nothing was compacted")
        need(len(at.snapshots()) <= 4, "nothing has expired")
        need(list((at.folder / "once/.tarn/gather" / TABLE).glob("probed-*")), "nobody asked whether the store keeps its word")
        at.check([g], [lambda: at.tarn.cat().ok("cat")])
        if args.java:
            with peer.java() as java:
                java.run("fsck", at.root, TABLE, "--quiet").ok("oracle fsck")
                at.check([g], [lambda: rows_of(java.run("read", at.root, TABLE))])


def test_what_is_wrong_is_put_aside(args):
    with lake() as at:
        g = Gateway(at.folder, "gw-0", at.words, random.Random(args.seed))
        g.commit()
        entry, = (at.store.root / store.BUCKET / key for key in at.waiting())
        (at.beside / "inbox/other").mkdir()
        (at.beside / "inbox/other/7").write_bytes(entry.read_bytes()[:-1])
        become_objects(at.root)
        said = at.gather_once(code=1)
        need("entry other/7 is put aside" in said and "entries=1" in said, said)
        need("torn" in (at.beside / "refused/other/7.reason").read_text(), "no reason")
        got = [json.loads(line)["k"] for line in at.tarn.cat().ok("cat")]
        same(sorted(got), sorted(g.rows), "keys")


def test_paths_that_no_gather_takes_stay_at_home(_args):
    """Values of a partition are folders' names: of many long ones nothing is sent."""
    with lake() as at:
        fields = [x for field in ("a STRING", "b STRING", "k INT") for x in ("--field", field)]
        at.tarn.run("create", "db.long", *fields, "--primary-key", "a,b,k", "--partition-by", "a,b", "--option", "bucket=1").ok("create")
        become_objects(at.root)
        (at.folder / "gw").mkdir()
        g = peer.Tarn(at.folder / "gw")
        g.run("create", "db.long", "--from", "%s/db.db/long" % WHERE, "--commit", "gather", *at.words).ok("create --from")
        g.run("write", "db.long", stdin=json.dumps({"a": "a" * 210, "b": "b" * 210, "k": 1}) + "\n").ok("write")
        before = at.store.files()
        done = g.run("sync", "db.long", WHERE, *at.words)
        need(done.rc != 0 and "which no gather takes" in done.err, done.err)
        same(at.store.files(), before, "files in the store")


def test_a_pause_holds_everybody(args):
    """Meanwhile official Paimon compacts, which asks nobody for a snapshot's name."""
    with lake() as at:
        g = Gateway(at.folder, "gw-0", at.words, random.Random(args.seed))
        for _ in range(3):
            g.commit()
            at.gather_once()
        g.commit()
        newest = at.snapshots()[-1]["snapshot_id"]
        pause, other = child.Child(at.folder / "pause.log"), child.Child(at.folder / "other.log")
        pause.start(at.gather_words("pause", "--pause", "--quiet-after", "1s"))
        other.start(at.gather_words("other", "--pause"))
        try:
            other.asked_until("both pause", lambda: "are paused" in other.log())
            pause.asked_until("it is quiet", lambda: "quiet: %s is at snapshot %d" % (TABLE, newest) in pause.log())
            done = subprocess.run(at.gather_words("once", "--once"), capture_output=True, text=True, timeout=60, check=False)
            need(done.returncode == 5 and "commits are paused by tarn gather" in done.stderr, done.stderr)
            if args.java:
                with peer.java() as java:
                    java.run("compact", at.root, TABLE, "--full").ok("oracle compact")
                become_objects(at.root)
                newest += 1
            same(at.snapshots()[-1]["snapshot_id"], newest, "newest snapshot")
            for one, marks in ((other, 1), (pause, 0)):
                one.process.send_signal(signal.SIGINT)
                one.finished("SIGINT")
                same((at.beside / "pause").read_text().count('"id"'), marks, "pauses")
        finally:
            pause.kill()
            other.kill()
        at.gather_once()
        at.check([g], [lambda: at.tarn.cat().ok("cat")])


def test_wrong_words_are_said(_args):
    for words, what in ((["s3://b/p"], "which table?"), (["db.t", "s3://b/p", "--sure-after", "soon"], "a time"), (["db.t", "s3://b/p", "--once", "--pause"], "usage"), (["db.t", "s3://b/p", "--pause", "--sure-after", "5s"], "usage"), ([], "usage")):
        done = subprocess.run([str(peer.TARN), "gather", *words], capture_output=True, text=True, timeout=60, check=False, cwd=tempfile.gettempdir())
        need(done.returncode == 2 and what in done.stderr, "%s: %s" % (words, done.stderr))


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), gateways=8, commits=4, java=False))
