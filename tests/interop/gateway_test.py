"""The main job through the daemon: four tables, a broker, HTTP and a file at once, killed at any instant.

    gateway_test.py [--seed S] [--kills N] [--java] [NAME...]

Rows are those of the bench (tests/bench/gen.c): W3, with deletes, from the broker at QoS 2 into a table with a primary key; W2 by HTTP
into an append table and into a counting fold in Lua; W4, with late rows, from a file into an aggregation. Each is there once. With
--java another writer commits twenty times in the middle and keeps one snapshot, before the daemon starts again; official Paimon reads
the tables, and looks through them.
"""
import http.client
import json
import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import peer
import runner
from child import DEADLINE, Broker
from peer import need, same
from run_test import Daemon

ROWS_A_KILL = 150  # of each source
FOREIGN = 20  # commits of another writer
READING = '"v1 DOUBLE", "v2 DOUBLE", "v3 DOUBLE", "v4 DOUBLE", "status INT", "seq BIGINT", "unit VARCHAR(12)", "ok BOOLEAN"'
KEY = '"device_id STRING NOT NULL", "metric INT NOT NULL", "ts TIMESTAMP(3)"'
TABLES = {
    "plant.last": '{ fields = { %s, %s }, primary_key = { "device_id", "metric" }, options = { bucket = 3 },'
                  ' times = { ts = "ms" }, commit = "300ms" }' % (KEY, READING),
    "plant.events": '{ fields = { %s, %s }, options = { bucket = -1 }, times = { ts = "ms" }, commit = "200ms or 500 rows" }' % (KEY, READING),
    "plant.sums": '{ fields = { "metric INT NOT NULL", "n BIGINT", "seq BIGINT" }, primary_key = "metric", unknown = "drop", commit = "250ms",'
                  ' options = { bucket = 2, ["merge-engine"] = "aggregation", ["fields.n.aggregate-function"] = "sum",'
                  ' ["fields.seq.aggregate-function"] = "max" } }',
    "plant.counts": '{ fields = { "device_id STRING NOT NULL", "n BIGINT" }, primary_key = "device_id", unknown = "drop", commit = "300ms",'
                    ' options = { bucket = 3 }, script = "count.lua" }',
}
COUNT_LUA = "return { merge = function(now, row) row.n = 1 + (now and now.n or 0) return row end }\n"


def generated(workload, count):
    """The bench's rows as Debezium's envelopes, in texts."""
    program = Path(tempfile.gettempdir()) / ("tarn-gen-%d" % random.SystemRandom().getrandbits(48))
    try:
        subprocess.run(["gcc", "-std=gnu11", "-O2", "-o", str(program), str(peer.ROOT / "tests/bench/gen.c"), "-lm"], check=True)
        return subprocess.run([str(program), workload, str(count), "json", "-"], check=True, capture_output=True, text=True).stdout.splitlines()
    finally:
        program.unlink(missing_ok=True)


class Sender(threading.Thread):
    """Posts the texts that it may have by now, some at a time, each until it is acknowledged."""

    def __init__(self, daemon, table, texts, rng):
        super().__init__(daemon=True)
        self.daemon_run, self.table, self.texts, self.rng = daemon, table, texts, rng
        self.bodies, self.sent, self.allowed = 0, 0, 0
        self.changed = threading.Condition()
        self.error = None

    def allow(self, count):
        with self.changed:
            self.allowed = count
            self.changed.notify_all()

    def wait_for(self, count):
        with self.changed:
            need(self.changed.wait_for(lambda: self.sent >= count or self.error, 4 * DEADLINE),
                 "%d of %d texts are sent to %s; it said %s" % (self.sent, count, self.table, self.daemon_run.log()))
            need(not self.error, "sender to %s: %s" % (self.table, self.error))

    def run(self):
        try:
            connection = None
            while self.sent < len(self.texts):
                with self.changed:
                    self.changed.wait_for(lambda: self.allowed > self.sent)
                    texts = self.texts[self.sent : min(self.allowed, self.sent + self.rng.randint(1, 30))]
                connection = self.post(connection, "".join(text + "\n" for text in texts))
                with self.changed:
                    self.sent += len(texts)
                    self.changed.notify_all()
        except Exception as e:  # the test's thread tells
            with self.changed:
                self.error = e
                self.changed.notify_all()

    def post(self, connection, body):
        self.bodies += 1
        headers = {"X-Sender": "to-" + self.table, "X-Sequence": str(self.bodies)}
        end = time.monotonic() + 4 * DEADLINE
        while time.monotonic() < end:
            connection = connection or http.client.HTTPConnection("127.0.0.1", self.daemon_run.port, timeout=DEADLINE)
            status = self.daemon_run.post(self.table, body, headers, connection)
            if status == 200:
                return connection
            if status is None:
                connection.close()
                connection = None
        raise peer.Failure("no acknowledgement of body %d to %s" % (self.bodies, self.table))


class World:
    """The rows of each source, where they are, and what must be in the tables."""

    def __init__(self, args, daemon, broker):
        self.args, self.daemon, self.broker = args, daemon, broker
        self.rng, self.count = random.Random(args.seed), ROWS_A_KILL * (args.kills + 1)
        self.changes = generated("W3", self.count)
        self.readings = [json.dumps(json.loads(x)["after"]) for x in generated("W2", self.count)]
        self.late = [json.dumps(dict(json.loads(x)["after"], n=1)) for x in generated("W4", self.count)]
        self.file = daemon.folder / "press.log"
        self.senders = [Sender(daemon, table, self.readings, random.Random("%s %d" % (table, args.seed)))
                        for table in ("plant.events", "plant.counts")]
        self.foreign = []

    def offer(self, begin, end):
        """The next rows of all sources; where the readings are to be when the daemon is killed."""
        for sender in self.senders:
            sender.allow(end)
        with self.file.open("a") as file:
            file.write("".join(text + "\n" for text in self.late[begin:end]))
        self.broker.publish("plant/a", self.changes[begin:end])
        return self.rng.randint(begin, end)

    def another_writes(self):
        """FOREIGN commits beside us, in the tables whose rows nobody else's change; then one snapshot is left."""
        with peer.java() as java:
            for i in range(FOREIGN):
                row = {**json.loads(self.readings[0]), "device_id": "another", "metric": i, "ts": "2026-01-01T00:00:00.000"}
                path = self.daemon.folder / "foreign"
                path.write_text(json.dumps({"kind": "+I", "row": row}) + "\n")
                for table in ("plant.last", "plant.events"):
                    java.run("write", self.daemon.warehouse, table, path, "--compact", "none").ok("java write")
                self.foreign.append((row["device_id"], i))
            for table in TABLES:
                java.run("expire", self.daemon.warehouse, table, "--retain-max", 1).ok("java expire %s" % table)

    def newest(self):
        return {(r["device_id"], r["metric"]): r["seq"] for r in self.daemon.rows("plant.last")}

    def last(self):
        """(device, metric) -> seq of the row that is left."""
        rows = {}
        for text in self.changes:
            change = json.loads(text)
            row = change["after"] or change["before"]
            key = row["device_id"], row["metric"]
            if change["op"] == "d":
                rows.pop(key, None)
            else:
                rows[key] = row["seq"]
        seq = json.loads(self.readings[0])["seq"]
        return {**rows, **{key: seq for key in self.foreign}}

    def check(self):
        rows = {table: self.daemon.rows(table) for table in TABLES}
        readings = [json.loads(text) for text in self.readings]
        late = [json.loads(text) for text in self.late]
        said = "it said " + self.daemon.log()
        same({(r["device_id"], r["metric"]): r["seq"] for r in rows["plant.last"]}, self.last(), "plant.last; " + said)
        got, want = Counter((r["device_id"], r["metric"], r["seq"]) for r in rows["plant.events"]), Counter(
            (r["device_id"], r["metric"], r["seq"]) for r in readings) + Counter((*key, readings[0]["seq"]) for key in self.foreign)
        same((want - got, got - want), (Counter(), Counter()), "plant.events: lost, too many; " + said)
        same({r["metric"]: r["n"] for r in rows["plant.sums"]}, dict(Counter(r["metric"] for r in late)), "plant.sums; " + said)
        same({r["metric"]: r["seq"] for r in rows["plant.sums"]},
             {m: max(r["seq"] for r in late if r["metric"] == m) for m in {r["metric"] for r in late}}, "plant.sums, seq; " + said)
        same({r["device_id"]: r["n"] for r in rows["plant.counts"]}, dict(Counter(r["device_id"] for r in readings)), "plant.counts; " + said)
        self.daemon.check(self.args, TABLES)


def test_all_sources_at_once_and_kills(args):
    with Broker() as broker:
        sources = ('{ kind = "mqtt", url = "mqtt://127.0.0.1:%d", client_id = "tarn-test", keep_alive = "5s", subscribe = {'
                   ' { filter = "plant/+", table = "plant.last", input = "debezium-json", qos = 2 } } },'
                   '{ kind = "file", path = "press.log", table = "plant.sums" }' % broker.port)
        with Daemon(TABLES, sources) as daemon:
            (daemon.folder / "count.lua").write_text(COUNT_LUA)
            world = World(args, daemon, broker)
            daemon.get_ready()
            for sender in world.senders:
                sender.start()
            for kill in range(args.kills):
                begin = kill * ROWS_A_KILL
                until = world.offer(begin, begin + ROWS_A_KILL)
                world.rng.choice(world.senders).wait_for(until)
                time.sleep(world.rng.choice((0, world.rng.uniform(0, 0.3))))  # the instant of a kill is what is drawn
                daemon.kill()
                if args.java and kill == args.kills // 2:
                    world.another_writes()
                daemon.start()
            world.offer(args.kills * ROWS_A_KILL, world.count)
            for sender in world.senders:
                sender.wait_for(world.count)
            broker.end()
            daemon.wait_until_ready()
            # What the broker has is delivered when it is delivered: the table has it at the latest with its next commit.
            daemon.asked_until("all changes are there", lambda: world.newest() == world.last())
            daemon.stop()
            daemon.once()
            world.check()
            print("%d kills, %d rows of each source" % (args.kills, world.count))

if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), kills=8, java=False))
