"""`tarn restore`: gateways die, and others take their place from the lake, in a folder or in an object store; whatever is killed meanwhile.

    restore_test.py --store folder|s3 --seed N [--cases N] [--kills N] [--java] [names]

What a table must hold is what `tarn cat` said of the snapshot that the lake had; who reads the lake meanwhile is pypaimon.
"""
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import child
import peer
import runner
from lake_test import Bucket, Place, Reader
from peer import need, same
from verbs import rows_of

TABLE = peer.TABLE


def words_of(table, *more):
    return ["restore", TABLE, *table.lake.target, *table.lake.options, *more]


class Devices:
    """A table whose device is replaced again and again."""

    def __init__(self, place):
        self.place, self.table, self.rng = place, place.table(), place.rng
        self.count, self.killed = 0, 0

    def forgive_lists(self):
        """Who restores doesn't know what is there."""
        if isinstance(self.table.lake, Bucket):
            wrong = self.table.lake.proxy.wrong
            wrong[:] = [x for x in wrong if "list-type=" not in x]

    def start(self):
        return subprocess.Popen([str(peer.TARN), *words_of(self.table), "-w", self.table.tarn.warehouse], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def restore(self, kills):
        """On a new device; the rows that the lake hasn't are lost with the old one."""
        table = self.table
        old, synced = table.tarn, table.synced
        want = table.rows[synced]
        self.count += 1
        table.tarn = peer.Tarn(table.folder / ("device-%d" % self.count))
        Path(table.tarn.warehouse).mkdir()
        plan = rows_of(table.tarn.run(*words_of(table, "--dry-run", "--format", "json")), "dry run")[0]
        same(plan["last_snapshot"], synced, "snapshot of the plan")
        for _ in range(kills):
            with self.start() as process:
                table.lake.kill(process, 0.05)
                process.stderr.read()
            self.killed += 1
        said = table.tarn.run(*words_of(table))
        if said.rc == 5 and kills and "is there already" in said.err:  # the killed one was at its end
            said = said._replace(rc=0)
        same(said.rc, 0, "restore: %s" % said.err)
        if kills == 0:
            need("files=%d bytes=%d" % (plan["files"], plan["bytes"]) in said.err, "it said %s, its plan was %s" % (said.err.strip(), plan))
        self.forgive_lists()
        need(not peer.difference(want, table.tarn.cat("--snapshot", synced).ok("cat")), "rows of the restored table")
        table.tarn.run("fsck", TABLE).ok("fsck of the restored table")
        table.rows = {at: rows for at, rows in table.rows.items() if at <= synced}
        ids = [x["snapshot_id"] for x in rows_of(table.tarn.run("show", TABLE, "snapshots"), "show snapshots")]
        same(ids[-1], synced, "newest snapshot of the restored table")
        newest = max((table.table / "schema").iterdir(), key=lambda x: int(x.name[7:]))
        table.columns = [x["name"] for x in json.loads(newest.read_text())["fields"]]
        return old

    def wake(self, old):
        """It writes, and is stopped when it sends."""
        before = self.table.lake.files()
        old.run("write", TABLE, "-", stdin='{"p":"a","k":1000,"v":"late"}\n').ok("write on the old device")
        said = old.run(*self.table.sync_words())
        same(said.rc, 5, "exit code of the old device's sync, which said %s" % said.err)
        need("took this mirror over" in said.err, "the old device's sync said %s" % said.err)
        self.table.check_files(before)


def check_java(table):
    """Official Paimon on the device that was restored last."""
    with peer.java() as java:
        java.run("fsck", table.tarn.warehouse, TABLE, "--quiet").ok("java fsck")
        theirs = java.run("read", table.tarn.warehouse, TABLE).ok("java read")
    ours = table.tarn.cat().ok("cat")
    need(not peer.difference(ours, theirs), "rows as Java reads them: %s" % peer.difference(ours, theirs))


def test_devices_follow_one_another(args):
    """Each goes on where the lake stood, sends nothing again, and the old one is stopped. Readers of the lake see whole snapshots."""
    kills = 0
    with peer.pypaimon() as reader:
        for number in range(args.cases):
            with Place(args, number) as place:
                devices = Devices(place)
                table = devices.table
                table.write()
                table.look()
                table.sync()
                with Reader(table):
                    for _ in range(3):
                        for _ in range(place.rng.randint(0, 3)):
                            table.step()
                        if place.rng.random() < 0.7:
                            table.sync()
                        old = devices.restore(place.rng.randint(0, args.kills))
                        table.altered = False
                        table.sync()  # nothing, and without a question
                        if place.rng.random() < 0.6:
                            devices.wake(old)
                    table.write()
                    table.look()
                    table.sync()
                table.check_all(reader)
                if args.java:
                    check_java(table)
                kills += devices.killed
    print("%d restores were killed" % kills)


def test_what_it_refuses(args):
    with Place(args) as place:
        devices = Devices(place)
        table = devices.table
        for _ in range(2):
            table.write()
            table.look()
            table.sync()
        at = table.synced
        said = table.tarn.run(*words_of(table))
        same((said.rc, "is there already" in said.err), (5, True), "restore onto a table: %s" % said.err)
        other = peer.Tarn(place.folder / "other")
        said = other.run("restore", "db.none", *words_of(table)[2:])
        same((said.rc, "there is no table db.none" in said.err), (2, True), "restore of no table: %s" % said.err)
        said = other.run(*words_of(table, "--snapshot", at + 9))
        same((said.rc, "has no snapshot" in said.err), (2, True), "restore of no snapshot: %s" % said.err)
        ids = table.ids()
        said = other.run(*words_of(table, "--snapshot", ids[0]))
        same((said.rc, "a table of its own" in said.err), (0, True), "restore of an older snapshot: %s" % said.err)
        need(not peer.difference(table.rows[ids[0]], other.cat().ok("cat")), "rows of the older snapshot")
        said = other.run(*table.sync_words())
        same(said.rc, 5, "sync of an older snapshot: %s" % said.err)
        devices.forgive_lists()
        table.write()
        table.look()
        table.sync()  # the mirror is still the first one's


# ---------------------------------------------------------------- the daemon

class Gateway(child.TarnRun):
    """It follows a file, and what it commits travels to the lake."""

    def __init__(self, log, lake):
        super().__init__("tarn-restore-")
        options = ", ".join('["%s"] = "%s"' % tuple(x.split("=", 1)) for x in lake.options if x != "--option")
        self.config.write_text(
            'return { warehouse = "warehouse", tables = { ["%s"] = { fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, '
            'commit = "60ms" } }, sources = { { name = "press", kind = "file", path = "%s", table = "%s" } }, '
            'lakes = { far = { target = "%s"%s } } }\n' % (TABLE, log, TABLE, lake.target[0], ", options = { %s }" % options if options else ""))


class Press(threading.Thread):
    """Writes numbered lines at some pace."""

    def __init__(self, path, rng, count):
        super().__init__(daemon=True)
        self.path, self.rng, self.count = path, rng, count

    def run(self):
        with open(self.path, "a", buffering=1) as file:
            for i in range(self.count):
                file.write('{"id":%d,"v":"%s"}\n' % (i, "x" * self.rng.randrange(60)))
                time.sleep(self.rng.uniform(0, 0.0006))  # the pace is drawn: some seconds, so that kills fall between


def test_a_dead_gateway_s_sources_go_on_elsewhere(args):
    """Killed gateways, each restored on the next: every line of the file is in the table once."""
    with Place(args) as place:
        log = place.folder / "press.log"
        log.touch()
        press = Press(log, place.rng, 8000)
        lake, gateways = place.lake, []
        snapshots = lake.root / "db.db/t/snapshot"

        def newest():
            return max((int(x.name[9:]) for x in snapshots.glob("snapshot-*")), default=0) if snapshots.exists() else 0
        try:
            press.start()
            for number in range(4):
                gateway = Gateway(log, lake)
                gateways.append(gateway)
                if number > 0:
                    gateway.warehouse.mkdir()
                    said = peer.Tarn(gateway.warehouse).run("restore", TABLE, *lake.target, *lake.options)
                    same(said.rc, 0, "restore: %s" % said.err)
                    need("restored snapshots" in said.err, "it said %s" % said.err)
                at = newest()
                gateway.start()
                child.asked_until("the lake gets more", lambda at=at: newest() > at + 2)
                if number < 3:
                    gateway.kill()
            press.join()
            gateways[0].start()  # the first one wakes
            gateways[0].until("it is stopped", lambda: "took this mirror over" in gateways[0].says())
            gateways[0].kill()
            last = gateways[-1]
            last.stop()
            last.once()
            want = Counter(range(press.count))
            for what, warehouse in (("the gateway", last.warehouse), ("the lake", lake.root)):
                rows = Counter(json.loads(x)["id"] for x in peer.Tarn(warehouse).run("cat", TABLE, "--format", "json").ok("cat"))
                same((rows - want, want - rows), (Counter(), Counter()), "rows of %s, too often and lost; it said %s" % (what, last.log()))
                peer.Tarn(warehouse).run("fsck", TABLE).ok("fsck of %s" % what)
        finally:
            for gateway in gateways:
                gateway.__exit__(*sys.exc_info())


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), store="folder", cases=2, kills=3, java=False))
