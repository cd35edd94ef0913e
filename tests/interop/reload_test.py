"""`tarn run` that takes its configuration anew, while rows come: acknowledged ones are in their tables, once.

    reload_test.py [--seed S] [--kills N] [--java] [NAME...]
"""
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

import peer
import run_test
import runner
from child import DEADLINE
from peer import need, same
from run_test import MESSAGES, SENDERS, TABLES, Daemon, Sender

PLAIN = '{ fields = { "id BIGINT NOT NULL", "n BIGINT" }, primary_key = { "id" }, options = { bucket = 1 }, commit = "%s" }'


class Reloaded(Daemon):
    """A daemon whose configuration is written again."""

    def configure(self, tables, sources=""):
        """As a whole: somebody may read it at any time."""
        new = self.folder / "config.new"
        new.write_text(self.text(tables, sources))
        os.replace(new, self.config)

    def text(self, tables, sources):
        return 'return { warehouse = "warehouse", listen = "127.0.0.1:%d", journal = { sync = "10ms or 64K" }, tables = { %s }, sources = { %s } }' % (
            self.port, " ".join('["%s"] = %s,' % table for table in tables.items()), sources)

    def starts(self):
        return self.said.count('text="ready"')

    def refusals(self):
        return self.said.count("refused: ")

    def waits(self):
        return self.said.count("no rows are taken until")

    def begun(self):
        return self.said.count("begins: ")

    def reload(self, code=0):
        starts = self.starts()
        done = subprocess.run([str(peer.TARN), "reload", "-w", str(self.warehouse)], capture_output=True, timeout=DEADLINE, check=False)
        same(done.returncode, code, "exit code of reload: %s; the daemon said %s" % (done.stderr.decode(), self.log()))
        if code == 0:
            self.until("it says that it started again", lambda: self.starts() > starts)
        return done.stderr.decode()

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)

    def knows(self, table):
        """It takes rows for that table; False, too, while it starts again."""
        try:
            return self.ask("POST", "/tables/%s/rows" % table, '{"id":1,"n":1}')[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def descriptors(self):
        """What is open, by kind: nothing is left behind by a reload."""
        folder = "/proc/%d/fd" % self.process.pid
        names = []
        for number in os.listdir(folder):
            try:
                names.append(os.readlink("%s/%s" % (folder, number)).partition(":[")[0])
            except OSError:
                pass  # it is closed by now
        return sorted(names)


def counted(daemon, tables):
    seen = Counter()
    for table in tables:
        for row in daemon.rows(table):
            seen[table, row["sender"], row["number"], row["row"]] += row.get("n", 1)
    return seen


def check_all_is_there_once(daemon, senders):
    for sender in senders:
        sender.join()
        need(not sender.error, "sender %d: %s; the daemon said %s" % (sender.number, sender.error, daemon.log()))
        same(sender.acknowledged, MESSAGES, "messages of sender %d; the daemon said %s" % (sender.number, daemon.log()))
    daemon.wait_until_ready()
    daemon.stop()
    seen = counted(daemon, TABLES)
    want = Counter((run_test.table_of(s, n), s, n, row) for s in range(SENDERS) for n in range(MESSAGES) for row in range(run_test.rows_of(s, n)))
    same(seen - want, Counter(), "rows that came twice or from nowhere")
    same(want - seen, Counter(), "rows that are lost")


def start_senders(daemon):
    senders = [Sender(daemon, i) for i in range(SENDERS)]
    for sender in senders:
        sender.start()
    return senders


def test_senders_go_on_while_it_is_reloaded(args):
    with Reloaded(TABLES) as daemon:
        daemon.get_ready()
        senders = start_senders(daemon)
        pid = daemon.process.pid
        for i in range(5):
            rule = {name: table.replace('ms', '%dms' % i) for name, table in TABLES.items()}
            more = {"db.more%d" % i: PLAIN % "1s"} if i % 2 else {}
            daemon.configure({**rule, **more})
            daemon.reload()
            same(daemon.ask("POST", "/tables/db.more%d/rows" % i, '{"id":1,"n":1}')[0], 200 if more else 404, "status of a table that is new, or none")
        same(daemon.starts(), 6, "starts")
        same(daemon.process.pid, pid, "process")
        need(daemon.runs(), "another process")
        check_all_is_there_once(daemon, senders)
        for i in (1, 3):
            same(daemon.rows("db.more%d" % i), [{"id": 1, "n": 1}], "rows of a table that was configured for a while")
        daemon.check(args, TABLES)


def test_reloads_and_kills_at_any_instant(args):
    rng = random.Random(args.seed)
    with Reloaded(TABLES) as daemon:
        daemon.get_ready()
        senders = start_senders(daemon)
        reloads = kills = 0
        while any(sender.is_alive() for sender in senders):
            time.sleep(rng.uniform(0.05, 0.5))  # the instant is what is drawn
            if daemon.runs():
                daemon.hang_up()
                reloads += 1
            if kills < args.kills and rng.random() < 0.5:
                time.sleep(rng.uniform(0, 0.15))  # of a reload: check, stop, commit, exec, start
                kills += 1
                daemon.kill()
                daemon.start()
        if not daemon.runs():
            daemon.start()
        check_all_is_there_once(daemon, senders)
        daemon.check(args, TABLES)
        print("%d reloads, %d kills" % (reloads, kills))


def test_a_bad_configuration_changes_nothing(args):
    with Reloaded({"db.t": PLAIN % "1h", "db.s": PLAIN % "1h"}) as daemon:
        daemon.get_ready()
        same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1,"n":1}')[0], 200, "status")
        for tables, sources, why in (
                ({"db.t": '{ colour = "red" }'}, "", "colour"),
                ({"db.t": PLAIN % "soon"}, "", "commit"),
                ({"db.t": (PLAIN % "1h").replace("options", 'script = "none.lua", options')}, "", "none.lua"),
                ({"db.t": PLAIN % "1h"}, '{ kind = "mqtt" }', "url")):
            daemon.configure(tables, sources)
            said = daemon.reload(2)
            need("refused" in said and why in said, said)
            status, text = daemon.ask("GET", "/health")
            need(status == 200 and "degraded" in text and why in text, text)
            status = peer.Tarn(daemon.warehouse).run("status")
            same(status.rc, 1, "exit code of status")
            need(why in status.err, "status says %s" % status.err)
        (daemon.folder / "config.new").write_text(daemon.text({"db.t": PLAIN % "1h"}, "").replace('"warehouse"', '"elsewhere"'))
        os.replace(daemon.folder / "config.new", daemon.config)
        need("elsewhere" in daemon.reload(2), "another warehouse")
        same(daemon.starts(), 1, "starts")
        status, text = daemon.ask("GET", "/metrics")
        need('tarn_table_uncommitted_rows{table="db.t"} 1' in text, "it was committed: %s" % text)
        daemon.configure({"db.t": PLAIN % "1h"})
        daemon.reload()
        same(daemon.ask("GET", "/health"), (200, '{"status":"ok"}\n'), "health")
        same(daemon.starts(), 2, "starts")
        same(daemon.rows("db.t"), [{"id": 1, "n": 1}], "rows")
        same(daemon.ask("POST", "/tables/db.s/rows", '{"id":1,"n":1}')[0], 404, "status of a table that is gone")
        daemon.stop()


def test_nobody_is_there_to_be_asked(_args):
    with Reloaded({"db.t": PLAIN % "1h"}) as daemon:
        daemon.warehouse.mkdir()
        status = peer.Tarn(daemon.warehouse).run("reload")
        same(status.rc, 4, "exit code")
        need("no tarn run" in status.err, status.err)


def test_a_script_is_another_one_after_it(_args):
    table = (PLAIN % "100ms").replace("options", 'script = "fold.lua", options')
    script = "return {merge = function(now, row) row.n = row.n + (now and now.n or 0) * %d return row end}"
    with Reloaded({}) as daemon:
        (daemon.folder / "fold.lua").write_text(script % 1)
        daemon.configure({"db.t": table})
        daemon.get_ready()
        for _ in range(3):
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1,"n":1}')[0], 200, "status")
        (daemon.folder / "fold.lua").write_text("return {merge = 5}")
        said = daemon.reload(2)
        need("merge" in said, "of a script that is none it says %s" % said)
        (daemon.folder / "fold.lua").write_text(script % 10)
        daemon.reload()
        same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1,"n":1}')[0], 200, "status")
        daemon.stop()
        same(daemon.rows("db.t"), [{"id": 1, "n": 31}], "rows")


class Counting:
    """Somebody who posts the numbers from 1 on, a row each, until they are acknowledged."""

    def __init__(self, daemon):
        self.daemon, self.number, self.connection = daemon, 0, None

    def post(self, count):
        for number in range(self.number + 1, self.number + count + 1):
            status = None
            while status != 200:
                self.connection = self.connection or self.daemon.connection()
                status = self.daemon.post("db.t", '{"number":%d}' % number, {"X-Sender": "one", "X-Sequence": str(number)}, self.connection)
                if status is None:
                    self.connection.close()
                    self.connection = None
        self.number += count

    def post_while(self, process):
        while process.poll() is None:
            self.post(1)


def test_a_script_that_is_broken_changes_nothing(_args):
    """fluent/fluent-bit#8185: the old one was gone before the new one was proven, or the answer was not what ran."""
    script = ("return { map = function(r) r.v = '%s' return r end, merge = function(now, row) "
              "row.n = 1 + (now and now.n or 0) row.v = now and now.v or row.v return row end }")
    table = '{ fields = { "number INT", "v STRING", "n INT" }, primary_key = "number", options = { bucket = 1 }, script = "map.lua", commit = "1h" }'
    with Reloaded({}) as daemon:
        path, sender = daemon.folder / "map.lua", Counting(daemon)
        path.write_text(script % "one")
        daemon.configure({"db.t": table})
        daemon.get_ready()
        sender.post(3)
        path.write_text("return {\n  map = function(r) r.v = 'two' return r\n}")
        said = daemon.reload(2)
        need("map.lua:3: " in said and "refused" in said, said)
        status, text = daemon.ask("GET", "/health")
        need(status == 200 and "map.lua:3: " in text, "health: %d, %s" % (status, text))
        same(daemon.starts(), 1, "starts")
        sender.post(100)
        path.write_text(script % "two")
        ones = sender.number
        reload = subprocess.Popen([str(peer.TARN), "reload", "-w", str(daemon.warehouse)], stderr=subprocess.DEVNULL)
        sender.post_while(reload)
        same(reload.returncode, 0, "exit code of reload; it said %s" % daemon.log())
        same(daemon.ask("GET", "/health"), (200, '{"status":"ok"}\n'), "health")
        same(daemon.starts(), 2, "starts")
        twos = sender.number
        sender.post(100)
        path.write_text("while true do end")
        said = daemon.reload(2)
        need("map.lua:1: its budget" in said, said)
        sender.post(1)
        same(daemon.starts(), 2, "starts")
        daemon.stop()
        rows = sorted(daemon.rows("db.t"), key=lambda row: row["number"])
        same([(row["number"], row["n"]) for row in rows], [(i + 1, 1) for i in range(sender.number)], "numbers, and how often each came")
        values = [row["v"] for row in rows]
        changed = values.index("two")
        need(ones <= changed <= twos, "row %d is the first with the new script, which was there from %d to %d" % (changed, ones, twos))
        same(set(values[changed:]), {"two"}, "values behind it")


def test_a_source_is_there_no_more(_args):
    with Reloaded({}) as daemon:
        path = daemon.folder / "in.sock"
        daemon.configure({"db.t": PLAIN % "1h"}, '{ kind = "socket", listen = "unix:in.sock", table = "db.t" }')
        daemon.get_ready()
        client = run_test.Lines(path, "gw-7")
        client.socket.sendall(b"".join(b'{"id":%d,"n":1}\n' % i for i in range(100)))
        client.wait_for(100)
        daemon.configure({"db.t": PLAIN % "1h"})
        daemon.reload()
        same(len(daemon.rows("db.t")), 100, "rows that were committed by it")
        try:
            run_test.Lines(path, "gw-7")
            raise peer.Failure("the socket is still there")
        except OSError:
            pass
        daemon.configure({"db.t": PLAIN % "1h"}, '{ kind = "socket", listen = "unix:in.sock", table = "db.t" }')
        daemon.reload()
        same(run_test.Lines(path, "gw-7").received, 100, "lines of the sender that are known")
        daemon.stop()


def test_many_signals_are_one_reload_or_two(_args):
    with Reloaded({"db.t": PLAIN % "1h"}) as daemon:
        daemon.get_ready()
        for _ in range(20):
            daemon.hang_up()
        daemon.until("a reload", lambda: daemon.starts() > 1)
        daemon.wait_until_ready()
        daemon.configure({"db.t": '{ colour = "red" }'})  # while nothing is under way, what is said last counts
        daemon.hang_up()
        daemon.hang_up()
        daemon.until("a refusal", lambda: daemon.refusals() > 0)
        need(daemon.starts() <= 4, "%d starts: %s" % (daemon.starts(), daemon.log()))
        daemon.stop()


def test_of_reloads_that_follow_quickly_the_last_one_wins(args):
    """fluent/fluent-bit#8457: what was asked for while a reload was under way was forgotten."""
    rng = random.Random(args.seed)
    with Reloaded({"db.t": PLAIN % "1h"}) as daemon:
        daemon.get_ready()
        for i in range(8):
            names = ["db.%s%d" % (letter, i) for letter in "abc"]
            starts, refused, begun = daemon.starts(), daemon.refusals(), daemon.begun()
            for name in names:
                daemon.configure({"db.t": PLAIN % "1h", name: PLAIN % "1h"})
                daemon.hang_up()
                if name == names[1] and i % 2:
                    # One of the round before may have begun by then, and read what was just written.
                    daemon.until("it begins", lambda: daemon.begun() > begun or daemon.starts() > starts)
                time.sleep(rng.uniform(0, 0.01))  # the instant is what is drawn
            daemon.until("the last one is checked", lambda: daemon.starts() > starts and daemon.is_ready())
            daemon.asked_until("the last one is active", lambda: daemon.knows(names[2]))
            same([daemon.knows(name) for name in names[:2]], [False, False], "tables of the configurations before")
            need(daemon.starts() <= starts + 4, "%d starts" % (daemon.starts() - starts))  # one may be of the round before
            same(daemon.refusals(), refused, "refusals")
        daemon.stop()


def test_sigterm_during_a_reload_ends_it(args):
    rng = random.Random(args.seed)
    for _ in range(8):
        with Reloaded({"db.t": PLAIN % "1h"}) as daemon:
            daemon.get_ready()
            same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1,"n":1}')[0], 200, "status")
            daemon.hang_up()
            time.sleep(rng.uniform(0, 0.12))  # the instant is what is drawn
            daemon.stop()
            same(daemon.rows("db.t"), [{"id": 1, "n": 1}], "rows")


def test_standard_input_is_not_dropped(_args):
    with Reloaded({}) as daemon:
        daemon.configure({"db.t": PLAIN % "1h"}, '{ kind = "stdin", table = "db.t", input = "json" }')
        daemon.start(stdin=subprocess.PIPE)
        daemon.wait_until_ready()
        daemon.process.stdin.write(b'{"id":1,"n":1}\n{"id":2,')
        daemon.process.stdin.flush()
        need("standard input" in daemon.reload(2), "what it says")
        daemon.process.stdin.write(b'"n":2}\n')
        daemon.process.stdin.close()
        daemon.asked_until("the end of standard input", lambda: 'uncommitted_rows{table="db.t"} 2' in daemon.ask("GET", "/metrics")[1])
        daemon.reload()
        same(daemon.rows("db.t"), [{"id": 1, "n": 1}, {"id": 2, "n": 2}], "rows")
        daemon.stop()


def children_of(pid):
    """Processes whose parent it is."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if stat.read_text().rpartition(")")[2].split()[1] == str(pid):
                found.append(stat.parent.name)
        except OSError:  # it has ended
            pass
    return found


def test_no_descriptor_and_no_child_is_left(_args):
    with Reloaded({"db.t": PLAIN % "1h"}) as daemon:
        daemon.get_ready()
        daemon.reload()
        counts = []
        for _ in range(3):
            daemon.reload()
            counts.append([name for name in daemon.descriptors() if name != "socket"])  # who asked may not have gone yet
        same(counts, 3 * counts[:1], "descriptors after each reload")
        same(children_of(daemon.process.pid), [], "children")
        daemon.stop()


def test_one_that_is_bad_by_the_time_it_counts_is_waited_for(args):
    """Written and asked for again at any instant of a reload, it ends nothing: the good one that follows is taken."""
    rng = random.Random(args.seed)
    with Reloaded({"db.t": PLAIN % "1h"}) as daemon:
        daemon.get_ready()
        late = 0
        for i in range(12):
            rows = "".join('{"id":%d,"n":%d}\n' % (n, i) for n in range(1000))
            same(daemon.ask("POST", "/tables/db.t/rows", rows)[0], 200, "status; it said %s" % daemon.log())
            refused, waits, begun = daemon.refusals(), daemon.waits(), daemon.begun()
            daemon.configure({"db.t": PLAIN % ("%dh" % (i + 2))})
            daemon.hang_up()
            daemon.until("a reload", lambda: daemon.begun() > begun)
            time.sleep(rng.uniform(0, 0.02))  # the instant is what is drawn
            daemon.configure({"db.t": '{ colour = "red" }'})
            daemon.hang_up()
            daemon.until("a word of it", lambda: daemon.refusals() > refused or daemon.waits() > waits)
            late += daemon.waits() > waits
            daemon.configure({"db.t": PLAIN % ("%dh" % (i + 2))})
            daemon.wait_until_ready()
        need(late > 0, "it was never bad at the start")
        daemon.stop()
        same({row["n"] for row in daemon.rows("db.t")}, {11}, "rows")


def test_systemd_is_told(_args):
    with Reloaded({}) as daemon, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(daemon.folder / "notify"))
        told.settimeout(DEADLINE)
        daemon.configure({"db.t": PLAIN % "1h"})
        daemon.start(env={**os.environ, "NOTIFY_SOCKET": str(daemon.folder / "notify"), "WATCHDOG_USEC": "60000000"})
        heard = []

        def hear(last):
            while not heard or heard[-1] != last:
                text = told.recv(1000).decode()
                heard.append(text.split("\n")[0])
                need(heard[-1] != "RELOADING=1" or int(text.split("MONOTONIC_USEC=")[1]) > 0, text)
        hear("READY=1")
        daemon.hang_up()
        hear("RELOADING=1")
        hear("READY=1")
        daemon.stop()
        hear("STOPPING=1")
        same([text for text in heard if text != "WATCHDOG=1"], ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"], "what systemd was told")


def test_a_table_that_cannot_commit_does_not_go(_args):
    script = (PLAIN % "100ms").replace("options", 'script = "fold.lua", options')
    with Reloaded({}) as daemon:
        path = daemon.folder / "fold.lua"
        path.write_text("return {merge = function(now, row) while row.n > 5 do end return row end}")
        daemon.configure({"db.t": PLAIN % "1h", "db.s": script})
        daemon.get_ready()
        taken = 0
        same(daemon.ask("POST", "/tables/db.t/rows", '{"id":1,"n":1}')[0], 200, "status")
        while daemon.ask("POST", "/tables/db.s/rows", '{"id":%d,"n":%d}' % (taken, taken))[0] == 200:
            taken += 1
            need(taken < 5000, "the script was never parked; it said %s" % daemon.log())
        daemon.configure({"db.t": PLAIN % "1h"})
        said = daemon.reload(2)
        need("db.s isn't in it, and can't commit what it has" in said, said)
        daemon.configure({"db.t": PLAIN % "2h", "db.s": script})
        daemon.reload()  # with what is in the journal
        path.write_text("return {merge = function(now, row) return row end}")
        daemon.reload()
        daemon.configure({"db.t": PLAIN % "1h"})
        daemon.reload()
        daemon.stop()
        letters = [json.loads(line) for line in (daemon.warehouse / ".tarn/db.s.letters").read_text().splitlines()]
        gone = {json.loads(letter["record"])["row"]["id"] for letter in letters}
        same({row["id"] for row in daemon.rows("db.s")} | gone, set(range(taken)), "rows and letters")
        same(daemon.rows("db.t"), [{"id": 1, "n": 1}], "rows of the other table")

if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), kills=8, java=False))
