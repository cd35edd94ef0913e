"""`tarn run`, killed at any instant, with senders that repeat: what was acknowledged is in its table, once.

    run_test.py [--seed S] [--kills N] [--java] [NAME...]

With --java official Paimon reads the tables, and looks through them.
"""
import http.client
import json
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import peer
import runner
from child import DEADLINE, Broker, TarnRun, free_port
from peer import need, same

SENDERS = 4
MESSAGES = 400  # of a sender
TABLES = {
    "db.log": '{ fields = { "sender INT", "number INT", "row INT" }, options = { bucket = "-1" }, commit = "200ms or 300 rows" }',
    "db.sum": '{ fields = { "sender INT NOT NULL", "number INT NOT NULL", "row INT NOT NULL", "n BIGINT" }, commit = "300ms",'
              ' primary_key = { "sender", "number", "row" }, options = { bucket = 2, ["merge-engine"] = "aggregation",'
              ' ["fields.n.aggregate-function"] = "sum" } }',
    "db.told": '{ fields = { "at BIGINT NOT NULL", "sender INT", "number INT", "row INT" }, primary_key = "at", options = { bucket = 1 },'
               ' script = "told.lua", commit = "500ms" }',
}
TOLD = """-- Numbers all rows, over all processes.
local count = tarn.state("count")
local m = {}
function m.map(row)
    count.n = (count.n or 0) + 1
    row.at = count.n
    return row
end
return m
"""


class Daemon(TarnRun):
    """It listens on a port, and takes rows for these tables."""

    def __init__(self, tables, sources="", listens=True):
        super().__init__("tarn-run-")
        self.port = free_port() if listens else 0
        (self.config.parent / "told.lua").write_text(TOLD)
        self.config.write_text('return { warehouse = "warehouse", %s journal = { sync = "10ms or 64K" },\ntables = {\n%s },\nsources = { %s } }\n' % (
            'listen = "127.0.0.1:%d",' % self.port if listens else "",
            "\n".join('["%s"] = %s,' % table for table in tables.items()), sources))

    def listens(self):
        """How often it has begun to."""
        return self.said.count(" http listen=")

    def ask(self, method, path, body=None, headers=None, connection=None):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        c.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
        answer = c.getresponse()
        text = answer.read().decode()
        if not connection:
            c.close()
        return answer.status, text

    def post(self, table, body, headers, connection):
        """200 or 503, or None where the connection breaks; where nobody listens, once somebody does."""
        listens = self.listens()
        try:
            status, text = self.ask("POST", "/tables/%s/rows" % table, body, headers, connection)
            need(status in (200, 503), "status %d: %s" % (status, text))
            return status
        except ConnectionRefusedError:
            self.until("it listens again", lambda: self.listens() > listens, ends=False)
        except (OSError, http.client.HTTPException):
            pass
        return None

    def rows(self, table):
        return [json.loads(line) for line in peer.Tarn(self.warehouse).run("cat", table, "--format", "json").ok("cat %s" % table)]

    def check(self, args, tables):
        """Nothing is wrong with the tables, and Java reads what tarn does."""
        for table in tables:
            peer.Tarn(self.warehouse).run("fsck", table).ok("fsck %s" % table)
            if args.java:
                with peer.java() as java:
                    java.run("fsck", self.warehouse, table, "--quiet").ok("java fsck %s" % table)
                    theirs = java.run("read", self.warehouse, table).ok("java read %s" % table)
                same(Counter(json.dumps(json.loads(x), sort_keys=True) for x in theirs),
                     Counter(json.dumps(x, sort_keys=True) for x in self.rows(table)), "rows of %s as Java reads them" % table)


def rows_of(sender, number):
    return 1 + (sender + number) % 3


def table_of(sender, number):
    return sorted(TABLES)[(sender * 7 + number // 3) % len(TABLES)]


def message(sender, number):
    more = {"n": 1} if table_of(sender, number) == "db.sum" else {}
    return "".join(json.dumps({"sender": sender, "number": number, "row": row, **more}) + "\n" for row in range(rows_of(sender, number)))


class Sender(threading.Thread):
    """Sends its messages one after the other, each until it is acknowledged."""

    def __init__(self, daemon, number):
        super().__init__(daemon=True)
        self.daemon_run = daemon
        self.number = number
        self.acknowledged = 0
        self.error = None

    def run(self):
        try:
            connection = None
            end = time.monotonic() + 4 * DEADLINE
            while self.acknowledged < MESSAGES and time.monotonic() < end:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.daemon_run.port, timeout=DEADLINE)
                if not self.send(connection):
                    connection.close()
                    connection = None
        except Exception as e:  # the test's thread tells
            self.error = e

    def send(self, connection):
        number = self.acknowledged
        status = self.daemon_run.post(table_of(self.number, number), message(self.number, number),
                                      {"X-Sender": "sender-%d" % self.number, "X-Sequence": str(number + 1)}, connection)
        self.acknowledged += status == 200
        return status is not None


def test_what_was_acknowledged_is_there_once_after_kills(args):
    rng = random.Random(args.seed)
    with Daemon(TABLES) as daemon:
        daemon.get_ready()
        senders = [Sender(daemon, i) for i in range(SENDERS)]
        for sender in senders:
            sender.start()
        kills = 0
        while kills < args.kills and any(sender.is_alive() for sender in senders):
            time.sleep(rng.uniform(0.05, 1.2))  # the instant of a kill is what is drawn
            kills += 1
            daemon.kill()
            daemon.start()
        for sender in senders:
            sender.join()
            need(not sender.error, "sender %d: %s" % (sender.number, sender.error))
            same(sender.acknowledged, MESSAGES, "messages of sender %d; the daemon said %s" % (sender.number, daemon.log()))
        daemon.wait_until_ready()
        daemon.stop()
        seen = Counter()
        for table in TABLES:
            for row in daemon.rows(table):
                seen[table, row["sender"], row["number"], row["row"]] += row.get("n", 1)
        told = sorted(row["at"] for row in daemon.rows("db.told"))
        same(told, list(range(1, len(told) + 1)), "numbers that a script gave out")
        want = Counter((table_of(s, n), s, n, row) for s in range(SENDERS) for n in range(MESSAGES) for row in range(rows_of(s, n)))
        same(seen - want, Counter(), "rows that came twice or from nowhere")
        same(want - seen, Counter(), "rows that are lost")
        daemon.check(args, TABLES)
        print("%d kills, %d rows" % (kills, sum(want.values())))


def test_standard_input_is_drained_and_committed(args):
    with Daemon({"db.t": '{ fields = { "id BIGINT NOT NULL", "v STRING" }, primary_key = { "id" }, options = { bucket = 1 } }'},
                '{ kind = "stdin", table = "db.t", input = "json" }', listens=False) as daemon:
        lines = "".join('{"id":%d,"v":"x%d"}\n' % (i, i) for i in range(20000)) + 'nonsense\n{"id":1,"v":"last"}'
        daemon.once(lines.encode())
        rows = daemon.rows("db.t")
        same(len(rows), 20000, "rows")
        same({row["id"]: row["v"] for row in rows}[1], "last", "the line without an end")
        letters = [json.loads(line) for line in (daemon.warehouse / ".tarn/db.t.letters").read_text().splitlines()]
        same([letter["record"] for letter in letters], ["nonsense"], "dead letters")
        daemon.check(args, ["db.t"])


def test_a_journal_that_is_nearly_full_has_its_tables_commit(args):
    fields = '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "1h" }'
    with Daemon({"db.t": fields, "db.quiet": fields}, '{ kind = "stdin", table = "db.t" }', listens=False) as daemon:
        daemon.config.write_text(daemon.config.read_text().replace('sync = "10ms or 64K"', 'sync = "10ms or 64K", size = "4M"'))
        rng = random.Random(args.seed)
        lines = "".join('{"id":%d,"v":"%x"}\n' % (i, rng.getrandbits(1200)) for i in range(40000))
        daemon.once(lines.encode())
        same(len(daemon.rows("db.t")), 40000, "rows")
        size = sum(path.stat().st_size for path in (daemon.warehouse / ".tarn/journal").iterdir())
        need(size <= 4 << 20, "the journal has %d bytes" % size)


def test_a_csv_header_counts_for_all_lines(args):
    others = ["a_column_with_a_long_name_%d" % i for i in range(120)]
    fields = ", ".join('"%s INT"' % name for name in others)
    with Daemon({"db.t": '{ fields = { "id BIGINT", "v STRING", %s }, options = { bucket = "-1" } }' % fields},
                '{ kind = "stdin", table = "db.t", input = "csv" }', listens=False) as daemon:
        lines = "v,id,%s\n" % ",".join(others) + "".join("x,%d%s\n" % (i, "," * len(others)) for i in range(30000))
        said = daemon.once(lines.encode())
        same(len(daemon.rows("db.t")), 30000, "rows; it said %s" % said[-1000:])
        need(sorted(row["id"] for row in daemon.rows("db.t")) == list(range(30000)), "other rows")


def test_lines_of_a_socket_are_received_and_many_bad_ones_are_a_letter(args):
    fields = '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "200ms" }'
    port = free_port()
    with Daemon({"db.t": fields}, '{ kind = "socket", listen = "127.0.0.1:%d", table = "db.t" }' % port) as daemon:
        daemon.get_ready()
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as s, s.makefile("rw") as stream:
            received, lines = 0, 'tarn {"sender":"me"}\n' + "".join('{"id":%d,"v":"x"}\n' % i for i in range(500))
            for text, count in ((lines, 500), ("x\n" * 30000, 30500)):
                stream.write(text)
                stream.flush()
                while received < count:
                    received = json.loads(stream.readline())["received"]
        daemon.stop()
        same(sorted(row["id"] for row in daemon.rows("db.t")), list(range(500)), "ids")
        letters = [json.loads(line)["record"] for line in (daemon.warehouse / ".tarn/db.t.letters").read_text().splitlines()]
        same(sum(letter.count("x") for letter in letters), 30000, "lines in dead letters")


def test_many_columns_are_compacted_beside_other_tables(args):
    """Results of compactions, and what they keep from slice to slice, grow with the columns."""
    columns = ["c%d" % i for i in range(300)]
    table = ('{ fields = { "id BIGINT", %s }, primary_key = { "id" }, options = { bucket = 1, ["changelog-producer"] = "lookup" }, commit = "1 rows" }'
             % ", ".join('"%s STRING"' % c for c in columns))
    with Daemon({"db.other": table, "db.t": table}) as daemon:
        daemon.config.write_text(daemon.config.read_text().replace("return {", 'return { memory = "16M",', 1))
        daemon.get_ready()
        for i in range(60):
            same(daemon.ask("POST", "/tables/db.t/rows", json.dumps({"id": i % 7, **{c: "value %d" % i for c in columns}}))[0], 200, "status")
        status, text = daemon.ask("GET", "/metrics")
        need(status == 200 and 'tarn_table_failed_compactions_total{table="db.t"} 0' in text, text)
        need('paimon_compaction_compaction_completed_count_total{table="db.t"} 0' not in text, text)
        daemon.stop()
        same(len(daemon.rows("db.t")), 7, "rows")
        daemon.check(args, ["db.t"])


def test_a_changed_configuration_is_no_surprise(args):
    """A table stays as it was made, and that is said."""
    table = '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "1h" }'
    with Daemon({"db.t": table}) as daemon:
        daemon.get_ready()
        daemon.stop()
        need("stays as it is" not in daemon.log(), daemon.log())
        for old, new, said in (('"v STRING"', '"v STRING", "w INT"', "it has no column 'w'"),
                               ("v STRING", "v INT", "its column 'v' is STRING, not INT"),
                               ("options = {", "options = { [\"file.compression\"] = \"zstd\",", "its option 'file.compression' is not set, not 'zstd'")):
            text = daemon.config.read_text()
            daemon.config.write_text(text.replace(old, new))
            daemon.get_ready()
            need(said in daemon.log(), daemon.log())
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1}')[0], 200, "status")
            daemon.stop()
            daemon.config.write_text(text)
        same(len(daemon.rows("db.t")), 3, "rows")


class SmallDisk:
    """A file system in memory. Where nothing may be mounted there is nothing to see: `mounted` is False."""

    def __init__(self, size):
        self.folder = Path(tempfile.mkdtemp(prefix="tarn-full-"))
        mount = ["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", str(self.folder)]
        self.mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        self.ballast = self.folder / "ballast"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", str(self.folder)], check=False)
        self.folder.rmdir()

    @contextmanager
    def running(self, commit):
        """A daemon that has taken a row."""
        with Daemon({"db.t": '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "%s" }' % commit}) as daemon:
            daemon.config.write_text(daemon.config.read_text().replace(
                'warehouse = "warehouse",', 'warehouse = "%s/w", disk_reserve = "4M",' % self.folder))
            daemon.warehouse = self.folder / "w"
            daemon.get_ready()
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1}')[0], 200, "status")
            yield daemon

    def fill(self):
        with open(self.ballast, "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(b"x" * 4096)
            except OSError:
                pass


def test_it_starts_on_a_full_disk(_args):
    """What was acknowledged is there, and goes on once there is room."""
    with SmallDisk("16m") as disk:
        if not disk.mounted:
            return
        with disk.running("100ms") as daemon:
            daemon.kill()
            disk.fill()
            daemon.get_ready()
            disk.ballast.unlink()
            daemon.asked_until("rows are taken", lambda: daemon.ask("POST", "/tables/db.t/rows", '{"id":2}')[0] == 200)
            daemon.stop()
            same({row["id"] for row in daemon.rows("db.t")}, {1, 2}, "rows; it said %s" % daemon.log())


def test_a_disk_that_fills_up_is_said_and_costs_nothing(args):
    """benbjohnson/litestream#1310: it said nothing and seemed to be well, and stayed so with room again."""
    with SmallDisk("16m") as disk:
        if not disk.mounted:
            return
        with disk.running("2s") as daemon:
            daemon.until("it commits", lambda: "committed snapshot=1" in daemon.said)
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":2}')[0], 200, "status")
            disk.fill()
            daemon.until("it says so", lambda: "No space left" in daemon.said)
            need(str(disk.folder) in daemon.said, "it names no path: %s" % daemon.log())
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":3}', {"Idempotency-Key": "3"})[0], 503, "status")
            status, text = daemon.ask("GET", "/health")
            need(status == 503 and "No space left" in text and "disk_reserve" in text, "health: %d %s" % (status, text))
            same([row["id"] for row in daemon.rows("db.t")], [1], "rows of the last snapshot")
            disk.ballast.unlink()
            daemon.asked_until("rows are taken", lambda: daemon.ask("POST", "/tables/db.t/rows", '{"id":3}', {"Idempotency-Key": "3"})[0] == 200)
            daemon.asked_until("all is well", lambda: daemon.ask("GET", "/health") == (200, '{"status":"ok"}\n'))
            daemon.stop()
            same(sorted(row["id"] for row in daemon.rows("db.t")), [1, 2, 3], "rows; it said %s" % daemon.log())
            left = json.loads(peer.Tarn(daemon.warehouse).run("clean", "db.t", "--dry-run", "--older-than", "0 s", "--format", "json").ok("clean")[0])
            same(left, {"files": 0, "bytes": 0, "folders": 0}, "what nobody needs")
            daemon.check(args, ["db.t"])


def test_a_table_that_is_removed_is_told(args):
    """Under a running daemon: it says so, takes nothing for it, and makes nothing where it was; others go on."""
    tables = {name: '{ fields = { "id BIGINT" }, options = { bucket = "-1" }, commit = "100ms" }' for name in ("db.kept", "db.lost")}
    with Daemon(tables) as daemon:
        daemon.get_ready()
        for table in tables:
            same(daemon.ask("POST", "/tables/%s/rows" % table, '{"id":1}')[0], 200, "status")
        shutil.rmtree(daemon.warehouse / "db.db/lost")
        daemon.asked_until("it is missed", lambda: "db.lost is gone" in daemon.ask("GET", "/health")[1])
        status, text = daemon.ask("POST", "/tables/db.lost/rows", '{"id":2}')
        need(status == 503 and "db.lost is gone" in text, "%d: %s" % (status, text))
        same(daemon.ask("POST", "/tables/db.kept/rows", '{"id":2}')[0], 200, "status")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.join()
        same(daemon.process.returncode, 2, "exit code with a table in trouble; it said %s" % daemon.log())
        need(not (daemon.warehouse / "db.db/lost").exists(), "something was made where it was")
        same({row["id"] for row in daemon.rows("db.kept")}, {1, 2}, "rows")


def test_rows_wait_while_java_alters_their_table(args):
    """They are there afterwards, with the new columns, or as letters."""
    if not args.java:
        return
    table = '{ fields = { "id BIGINT NOT NULL", "v STRING" }, primary_key = "id", options = { bucket = 1 }, commit = "1h" }'
    changes = [{"op": "add", "name": "n", "type": "INT", "first": True}, {"op": "type", "name": "v", "type": "INT"},
               {"op": "rename", "name": "v", "to": "w"}]
    with Daemon({"db.t": table}) as daemon:
        daemon.get_ready()
        for body in ('{"id":1,"v":"11"}\n{"id":2,"v":"x"}', '{"id":3}'):
            same(daemon.ask("POST", "/tables/db.t/rows", body)[0], 200, "status")
        daemon.kill()
        (daemon.warehouse / "changes.json").write_text(json.dumps(changes))
        with peer.java() as java:
            java.run("alter", daemon.warehouse, "db.t", daemon.warehouse / "changes.json").ok("alter")
        daemon.get_ready()
        same(daemon.ask("POST", "/tables/db.t/rows", '{"id":4,"n":4,"w":44}')[0], 200, "status")
        daemon.stop()
        same(daemon.rows("db.t"), [{"n": None, "id": 1, "w": 11}, {"n": None, "id": 3, "w": None}, {"n": 4, "id": 4, "w": 44}], "rows")
        letters = (daemon.warehouse / ".tarn/db.t.letters").read_text()
        need(letters.count("\n") == 1 and "is no value of INT" in letters and '\\"id\\":2' in letters, letters)
        daemon.check(args, ["db.t"])


class Log(threading.Thread):
    """Writes numbered lines into a file and rotates it."""

    def __init__(self, path, rng, count):
        super().__init__(daemon=True)
        self.path, self.rng, self.count = path, rng, count
        self.rotations = 0
        self.error = None

    def rotate(self, file):
        for i in range(self.rotations, 0, -1):
            self.path.with_name("press.log.%d" % i).rename(self.path.with_name("press.log.%d" % (i + 1)))
        self.rotations += 1
        self.path.rename(self.path.with_name("press.log.1"))
        file.write(self.late)  # before the writer is told
        file.close()
        return open(self.path, "a", buffering=1)

    def run(self):
        try:
            file = open(self.path, "a", buffering=1)
            for i in range(self.count):
                line = '{"id":%d,"v":"%s"}\n' % (i, "x" * self.rng.randrange(60))
                if i == self.count // 2:
                    file.write("nonsense\n")
                if i % 1500 == 1000:
                    self.late = line
                    file = self.rotate(file)
                else:
                    file.write(line)
                time.sleep(self.rng.uniform(0, 0.0004))  # the pace is drawn: some seconds, so that kills fall between
            file.close()
        except Exception as e:  # the test's thread tells
            self.error = e


def test_each_line_of_a_file_is_there_once_after_rotations_and_kills(args):
    rng, count = random.Random(args.seed), 20000
    table = '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "200ms" }'
    with Daemon({"db.t": table}, '{ kind = "file", path = "press.log", table = "db.t" }') as daemon:
        daemon.get_ready()
        log = Log(daemon.folder / "press.log", rng, count)
        log.start()
        kills = 0
        while log.is_alive():
            time.sleep(rng.uniform(0.2, 1.2))  # the instant of a kill is what is drawn
            daemon.kill()
            kills += 1
            time.sleep(rng.uniform(0, 0.6))  # it rotates meanwhile
            daemon.start()
        need(not log.error, "the writer: %s" % log.error)
        daemon.wait_until_ready()
        daemon.stop()
        daemon.once()
        seen = Counter(row["id"] for row in daemon.rows("db.t"))
        same(seen - Counter(range(count)), Counter(), "rows that came twice")
        same(Counter(range(count)) - seen, Counter(), "rows that are lost; it said %s" % daemon.log())
        letters = [json.loads(line) for line in (daemon.warehouse / ".tarn/db.t.letters").read_text().splitlines()]
        same({letter["record"] for letter in letters}, {"nonsense"}, "dead letters")
        daemon.check(args, ["db.t"])
        print("%d kills, %d rotations" % (kills, log.rotations))


def test_what_is_new_in_a_file_comes_with_each_run_once(args):
    with Daemon({"db.t": '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" } }'},
                '{ kind = "file", path = "press.csv", input = "csv", table = "db.t" }', listens=False) as daemon:
        path = daemon.folder / "press.csv"
        texts = ["v,id\n" + "".join("x,%d\n" % i for i in range(20000)), "".join('"a\nb",%d\n' % i for i in range(20000, 20100)), ""]
        for text in texts:
            with open(path, "a") as file:
                file.write(text)
            daemon.once()
        path.rename(daemon.folder / "press.csv.1")
        path.write_text("id\n20100\n20101")
        said = daemon.once()
        seen = Counter(row["id"] for row in daemon.rows("db.t"))
        same(seen, Counter(range(20102)), "rows; it said %s" % said)


def test_rows_of_a_file_are_not_in_the_journal(args):
    table = '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "1h" }'
    with Daemon({"db.t": table}, '{ name = "log", kind = "file", path = "press.log", table = "db.t" }') as daemon:
        path = daemon.folder / "press.log"
        path.write_text("".join('{"id":%d,"v":"x"}\n' % i for i in range(20000)))

        def seen():
            page = json.loads(daemon.ask("GET", "/status")[1])
            return page["journal"], {source["source"]: source for source in page["sources"]}["log"]
        daemon.get_ready()
        daemon.asked_until("all is read", lambda: seen()[1]["rows"] == 20000)
        journal, source = seen()
        same((journal["next"], journal["durable"]), (journal["first"], journal["first"]), "messages in the journal: %s" % journal)
        size = sum(file.stat().st_size for file in (daemon.warehouse / ".tarn/journal").iterdir())
        need(size < 20000, "the journal has %d bytes" % size)
        same(source["bytes"], path.stat().st_size, "bytes that were read")
        daemon.kill()
        daemon.get_ready()
        daemon.asked_until("it is read again", lambda: seen()[1]["bytes"] == path.stat().st_size)
        daemon.stop()
        same(Counter(row["id"] for row in daemon.rows("db.t")), Counter(range(20000)), "rows")


def test_sigterm_commits_what_was_taken(args):
    fields = '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "1h" }'
    with Daemon({"db.t": fields}) as daemon:
        daemon.get_ready()
        for i in range(5):
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":%d,"v":"x"}' % i)[0], 200, "status")
        same(daemon.ask("POST", "/tables/db.t/rows", '{"id":"x"}')[0], 400, "status of what is refused")
        same(daemon.ask("POST", "/tables/db.x/rows", '{"id":1}')[0], 404, "status of no table")
        status, text = daemon.ask("GET", "/metrics")
        need(status == 200 and 'tarn_table_uncommitted_rows{table="db.t"} 5' in text, text)
        daemon.stop()
        same(sorted(row["id"] for row in daemon.rows("db.t")), list(range(5)), "ids")
        daemon.get_ready()
        daemon.kill()  # nothing is taken from the journal twice
        same(len(daemon.rows("db.t")), 5, "rows after another start")


def test_a_script_that_fails_bothers_no_other_table(args):
    plain = '{ fields = { "id BIGINT NOT NULL", "n BIGINT" }, primary_key = { "id" }, options = { bucket = 1 }, commit = "100ms" }'
    with Daemon({"db.plain": plain, "db.script": plain.replace("options =", 'script = "fold.lua", options =')}) as daemon:
        (daemon.folder / "fold.lua").write_text(
            "return {merge = function(now, row) if row.n == 13 then error('unlucky') end row.n = row.n + (now and now.n or 0) return row end}")
        daemon.get_ready()
        for n in range(1, 30):
            for table in ("db.plain", "db.script"):
                same(daemon.ask("POST", "/tables/%s/rows" % table, '{"id":1,"n":%d}' % n)[0], 200, "status")
        daemon.stop()
        same(daemon.rows("db.plain"), [{"id": 1, "n": 29}], "rows")
        same(daemon.rows("db.script"), [{"id": 1, "n": sum(range(1, 30)) - 13}], "rows of the script")
        letters = [json.loads(line) for line in (daemon.warehouse / ".tarn/db.script.letters").read_text().splitlines()]
        same([json.loads(letter["record"])["row"] for letter in letters], [{"id": 1, "n": 13}], "dead letters")
        daemon.check(args, ["db.plain", "db.script"])


def test_rows_of_a_table_that_is_configured_no_more_are_not_forgotten(args):
    table = '{ fields = { "id BIGINT" }, options = { bucket = "-1" }, commit = "1h" }'
    with Daemon({"db.a": table, "db.b": table}) as daemon:
        daemon.get_ready()
        for name in ("db.a", "db.b"):
            same(daemon.ask("POST", "/tables/%s/rows" % name, '{"id":1}')[0], 200, "status")
        daemon.kill()
        config = daemon.config.read_text()
        daemon.config.write_text(config.replace('["db.b"]', '["db.c"]'))
        said = daemon.once(code=2)
        need("rows of db.b" in said, said)
        daemon.config.write_text(config)
        for names in (("db.b", "db.b"), ("db.b", "db.c")):  # committed, it may go
            daemon.config.write_text(config.replace('["%s"]' % names[0], '["%s"]' % names[1]))
            daemon.once()
        same((daemon.rows("db.a"), daemon.rows("db.b")), ([{"id": 1}], [{"id": 1}]), "rows")


def test_a_table_whose_script_is_parked_comes_back_when_it_is_corrected(args):
    plain = '{ fields = { "id BIGINT NOT NULL", "n BIGINT" }, primary_key = { "id" }, options = { bucket = 1 }, commit = "100ms" }'
    with Daemon({"db.plain": plain, "db.script": plain.replace("options =", 'script = "fold.lua", options =')}) as daemon:
        script = daemon.folder / "fold.lua"
        script.write_text("return {merge = function(now, row) while row.n > 5 do end return row end}")
        daemon.get_ready()
        taken = later = 0
        end = time.monotonic() + DEADLINE
        while later < 5 and time.monotonic() < end:
            status, text = daemon.ask("POST", "/tables/db.script/rows", '{"id":%d,"n":%d}' % (taken, taken))
            need(status in (200, 503), text)
            taken += status == 200
            later += status == 503
            same(daemon.ask("POST", "/tables/db.plain/rows", '{"id":1,"n":1}')[0], 200, "status of the other table")
        need(later > 0, "the script was never parked; it said %s" % daemon.log())
        need("degraded" in daemon.ask("GET", "/health")[1], "health")
        script.write_text("return {merge = function(now, row) return row end}")
        daemon.asked_until("it comes back", lambda: daemon.ask("GET", "/health")[1] == '{"status":"ok"}\n')
        daemon.stop()
        letters = [json.loads(line) for line in (daemon.warehouse / ".tarn/db.script.letters").read_text().splitlines()]
        gone = {json.loads(letter["record"])["row"]["id"] for letter in letters}
        same({row["id"] for row in daemon.rows("db.script")} | gone, set(range(taken)), "rows and letters")
        daemon.check(args, ["db.plain", "db.script"])


def test_a_broker_s_messages_are_there_once_after_kills(args):
    """QoS 2, by mosquitto; the daemon is killed while they come."""
    rng, count = random.Random(args.seed), 300
    with Broker() as broker:
        source = ('{ kind = "mqtt", url = "mqtt://127.0.0.1:%d", client_id = "tarn-test", keep_alive = "5s", '
                  'subscribe = { { filter = "plant/+/level", table = "db.t", qos = 2 } } }' % broker.port)
        with Daemon({"db.t": '{ fields = { "id BIGINT", "n BIGINT" }, options = { bucket = "-1" }, commit = "200ms" }'}, source) as daemon:
            daemon.get_ready()
            for i in range(count):
                if i % 75 == 30:
                    time.sleep(rng.uniform(0, 0.3))  # the instant of a kill is what is drawn
                    daemon.kill()
                    daemon.get_ready()
                broker.publish("plant/a/level", ['{"id":%d,"n":1}' % i])
            broker.end()
            daemon.asked_until("all messages are there", lambda: len(daemon.rows("db.t")) >= count)
            daemon.stop()
            ids = Counter(row["id"] for row in daemon.rows("db.t"))
            same([i for i in range(count) if ids[i] != 1], [], "messages that are not there once; it said %s" % daemon.log())
            daemon.check(args, ["db.t"])


class Lines:
    """A client of a socket, which says who it is and where it goes on."""

    def __init__(self, path, sender):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")
        self.socket.sendall(b'tarn {"sender":"%s"}\n' % sender.encode())
        self.received = json.loads(self.file.readline())["received"]

    def wait_for(self, count):
        while self.received < count:
            answer = json.loads(self.file.readline() or b'{"error":"the end"}')
            need("received" in answer, "the socket says %s" % answer)
            self.received = answer["received"]


def test_a_socket_s_lines_are_there_once_after_kills(args):
    """Each is counted, also the one that is too long and the one that is none."""
    source = '{ kind = "socket", listen = "unix:in.sock", table = "db.t", line_size = 200 }'
    with Daemon({"db.t": '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1" }, commit = "200ms" }'}, source) as daemon:
        rng, count, path = random.Random(args.seed), 2000, daemon.folder / "in.sock"
        lines = [b'{"id":%d,"v":"x"}\n' % i for i in range(count)]
        lines[700], lines[1200] = b'{"id":7,"v":"%s"}\n' % (b"y" * 1000), b"nonsense\n"
        kills = sorted(rng.sample(range(1, count), 6))
        for end in [*kills, count]:
            daemon.get_ready()
            client = Lines(path, "gw-7")
            client.socket.sendall(b"".join(lines[client.received : end]))
            if end == count:
                client.wait_for(count)
                daemon.stop()
            else:
                client.wait_for(rng.randint(0, client.received))
                time.sleep(rng.uniform(0, 0.1))  # the instant of a kill is what is drawn
                daemon.kill()
        same(sorted(row["id"] for row in daemon.rows("db.t")), [i for i in range(count) if i not in (700, 1200)], "ids")
        # A kill between the letters and the commit of their cut has the file get them again, word for word.
        lines = (daemon.warehouse / ".tarn/db.t.letters").read_text().splitlines()
        letters = [json.loads(line) for line in dict.fromkeys(lines)]
        need(letters[0]["record"].startswith('{"id":7,') and letters[1]["record"] == "nonsense" and len(letters) == 2, letters)
        need("bytes is too long" in letters[0]["reason"], letters[0]["reason"])
        daemon.check(args, ["db.t"])


def test_what_another_writer_makes_void_is_done_again(args):
    """A script's rows are resolved beside what another one changes: the table is opened again, and they come from the journal."""
    if not args.java:
        return
    table = ('{ fields = { "id BIGINT NOT NULL", "n BIGINT" }, primary_key = { "id" }, options = { bucket = 1, ["file.format"] = "avro" },'
             ' commit = "150ms", script = "fold.lua" }')
    with Daemon({"db.t": table}) as daemon, peer.java() as java:
        (daemon.folder / "fold.lua").write_text("return {merge = function(now, row) row.n = row.n + (now and now.n or 0) return row end}")
        daemon.get_ready()
        for i in range(40):
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1,"n":1}\n{"id":%d,"n":1}' % (100 + i))[0], 200, "status")
            if i % 4 == 1:
                path = daemon.folder / "rows"
                path.write_text(json.dumps({"kind": "+I", "row": {"id": 2, "n": i}}) + "\n")
                java.run("write", daemon.warehouse, "db.t", path, "--compact", "none").ok("java write")
        daemon.stop()
        rows = {row["id"]: row["n"] for row in daemon.rows("db.t")}
        same(rows, {1: 40, 2: 37, **{100 + i: 1 for i in range(40)}}, "rows; it said %s" % daemon.log())
        daemon.check(args, ["db.t"])

if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), kills=8, java=False))
