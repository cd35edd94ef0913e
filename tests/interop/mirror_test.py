"""`lakes` of `tarn run`: what is committed comes to a folder, whole at each instant, also over kills; pypaimon reads it there.

    mirror_test.py [--seed S] [--kills N] [NAME...]
"""
import http.server
import json
import random
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import peer
import runner
from child import DEADLINE, Child, Mosquitto, TarnRun, free_port
from peer import need, same

ROWS = 400
TABLE = "db.t"
FIELDS = 'fields = { "id BIGINT NOT NULL", "n BIGINT" }, primary_key = "id", options = { bucket = 2 }'


def line_of(number):
    return '{"id":%d,"n":%d}\n' % (number, 7 * number)


class Daemon(TarnRun):
    """It takes rows from its standard input, and brings them to a lake."""

    def __init__(self, lakes='near = { target = "lake" }', commit="60ms"):
        super().__init__("tarn-mirror-")
        self.lake = self.folder / "lake"
        self.config.write_text('return { warehouse = "warehouse", journal = { sync = "5ms or 64K" },\n'
                               'tables = { ["%s"] = { %s, commit = "%s" } },\n'
                               'sources = { { kind = "stdin", table = "%s" } }, lakes = { %s } }\n' % (TABLE, FIELDS, commit, TABLE, lakes))

    def start(self, stdin=subprocess.PIPE, env=None):
        super().start(stdin, env)

    def send(self, ids):
        self.process.stdin.write("".join(line_of(i) for i in ids).encode())
        self.process.stdin.flush()

    def status(self, kind):
        lines = peer.Tarn(self.warehouse).run("status", "--format", "json").lines
        return [row for row in map(json.loads, lines) if kind in row]

    def ids_at_lake(self):
        return sorted(json.loads(line)["id"] for line in peer.Tarn(self.lake).run("cat", TABLE, "--format", "json").ok("cat of the lake"))

    def newest_of(self, place):
        ids = [int(name.name[len("snapshot-"):]) for name in (place / "db.db/t/snapshot").glob("snapshot-*")]
        return max(ids, default=0)


@contextmanager
def reading(lake):
    """Somebody who reads it all the time: each snapshot is whole, and ids only grow."""
    seen, end = [], threading.Event()

    def read():
        while not end.is_set():
            result = peer.Tarn(lake).run("cat", TABLE, "--format", "json")
            if result.rc == 0:
                seen.append(len(result.lines))
            elif "no such" not in result.err:
                seen.append(result.err)
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join(timeout=DEADLINE)
    wrong = [x for x in seen if isinstance(x, str)]
    need(not wrong, "a reader of the lake saw %s" % wrong[:3])
    need(seen == sorted(seen), "rows at the lake became fewer: %s" % seen)


def test_what_was_committed_is_at_the_lake_after_kills(args):
    rng = random.Random(args.seed)
    with Daemon() as daemon, reading(daemon.lake) as seen:
        sent = kills = 0
        while sent < ROWS:
            more = range(sent, sent + ROWS // 10)
            if kills < args.kills and sent:
                newest = daemon.newest_of(daemon.warehouse)
                daemon.get_ready()
                daemon.send(more)
                daemon.asked_until("some rows are in", lambda: daemon.newest_of(daemon.warehouse) > newest)
                time.sleep(rng.uniform(0, 0.1))  # the instant of a kill is what is drawn
                daemon.kill()  # the others may be lost with the pipe: all are sent again
                kills += 1
            else:
                daemon.once("".join(line_of(i) for i in more).encode())
                sent = more.stop
                same(daemon.ids_at_lake(), list(range(sent)), "rows at the lake")
        same(daemon.newest_of(daemon.lake), daemon.newest_of(daemon.warehouse), "newest snapshot")
        peer.Tarn(daemon.lake).run("fsck", TABLE).ok("fsck of the lake")
        with peer.pypaimon() as python:
            got = python.run("read", str(daemon.lake), TABLE).ok("pypaimon read")
        same(peer.ordered(got), peer.ordered(peer.Tarn(daemon.warehouse).cat().ok("cat")), "rows as pypaimon reads them there")
        need(seen and kills == args.kills, "%d looks, %d kills" % (len(seen), kills))


def test_once_waits_for_the_lakes_and_says_what_failed(_args):
    with Daemon('far = { target = "no/such/folder" }, near = { target = "lake", every = "7d" }') as daemon:
        said = daemon.once(b'{"id":1,"n":1}\n', 5)
        need("lake far lacks snapshots of db.t: " in said and "no/such" in said, said)
        same(daemon.ids_at_lake(), [1], "rows at the lake that could be reached")
        (daemon.folder / "no/such").mkdir(parents=True)
        daemon.once(b'{"id":2,"n":2}\n')
        same([daemon.newest_of(place) for place in (daemon.lake, daemon.folder / "no/such/folder")], [daemon.newest_of(daemon.warehouse)] * 2, "newest")


def test_a_lake_with_another_history_is_said_and_left_alone(_args):
    with Daemon() as daemon:
        daemon.once(b'{"id":1,"n":1}\n')
        other = daemon.lake / "db.db/t/snapshot/snapshot-1"
        text = other.read_text()
        other.write_text(text.replace('"totalRecordCount" : 1', '"totalRecordCount" : 2'))
        need(other.read_text() != text, "the snapshot is as it was: %s" % text)
        for ledger in (daemon.warehouse / ".tarn").glob("*.ledger"):
            ledger.unlink()  # else the lake isn't asked what it has
        daemon.get_ready()
        daemon.send([2])
        daemon.asked_until("it is told", lambda: daemon.status("mirror")[0]["state"] == "stopped" and daemon.status("mirror")[0]["behind"] > 0)
        mirror = daemon.status("mirror")[0]
        need("snapshot-1 has other content" in mirror["trouble"], mirror)
        result = peer.Tarn(daemon.warehouse).run("status", "--format", "json")
        need(result.rc == 1 and "lake near: db.t: " in result.err, "%d %s" % (result.rc, result.err))
        same(daemon.newest_of(daemon.lake), 1, "newest snapshot of the lake")
        daemon.asked_until("rows go on", lambda: daemon.status("table")[0]["rows"] == 1)
        daemon.process.stdin.close()
        daemon.stop()


def test_a_lake_that_lies_elsewhere_is_another(_args):
    with Daemon() as daemon:
        daemon.once(line_of(1).encode())
        daemon.config.write_text(daemon.config.read_text().replace('"lake"', '"elsewhere"'))
        daemon.once()
        same(daemon.newest_of(daemon.folder / "elsewhere"), daemon.newest_of(daemon.lake), "newest snapshot")


def test_a_lake_has_one_name_whoever_sends(_args):
    """Also while it isn't there yet, and however it is written."""
    with Daemon() as daemon:
        daemon.once(line_of(1).encode())
        linked = daemon.folder / "linked"
        linked.symlink_to("lake")
        for where in (daemon.lake, "%s/./lake//" % daemon.folder, linked):
            peer.Tarn(daemon.warehouse).run("sync", TABLE, str(where)).ok("sync")
        same(len(list((daemon.warehouse / "db.db/t/consumer").glob("consumer-tarn-lake-*"))), 1, "consumers")
        same(len(list((daemon.warehouse / ".tarn").glob("*.ledger"))), 1, "ledgers")


def test_what_it_sent_is_counted_over_a_restart(_args):
    with Daemon() as daemon:
        daemon.once(b'{"id":1,"n":1}\n')
        daemon.get_ready()
        daemon.send([2])
        daemon.asked_until("the lake has it", lambda: daemon.status("mirror")[0]["snapshot"] >= 2 and daemon.status("mirror")[0]["behind"] == 0)
        lake = daemon.status("lake")[0]
        need(0 < lake["sent_bytes"] < lake["day_bytes"] == lake["month_bytes"] and lake["failures"] == 0, lake)
        same([row["state"] for row in daemon.status("mirror")], ["has all"], "state")
        daemon.process.stdin.close()
        daemon.stop()


def test_a_reload_and_the_end_do_not_wait_for_it(_args):
    """What was under way goes on afterwards."""
    with Daemon() as daemon:
        daemon.config.write_text(daemon.config.read_text().replace('sources = { { kind = "stdin", table = "%s" } }, ' % TABLE, ""))
        tarn = peer.Tarn(daemon.warehouse)
        daemon.get_ready()
        for i in range(3):
            tarn.run("write", TABLE, stdin="".join(line_of(100 * i + k) for k in range(100))).ok("write")
            tarn.run("reload").ok("reload")
        daemon.asked_until("the lake has all", lambda: [row["state"] for row in daemon.status("mirror")] == ["has all"])
        same(daemon.ids_at_lake(), list(range(300)), "rows at the lake")
        daemon.process.stdin.close()
        daemon.stop()


LATER = """local upload = require("tarn.upload")
return { upload = %s }
"""


def test_a_policy_says_when(_args):
    """A lake waits as long as its script says so; the other one doesn't; a reload takes the script as it is then."""
    with Daemon('late = { target = "lake", policy = "policy.lua" }, near = { target = "near" }') as daemon:
        daemon.config.write_text(daemon.config.read_text().replace('sources = { { kind = "stdin", table = "%s" } }, ' % TABLE, ""))
        script = daemon.folder / "policy.lua"
        script.write_text(LATER % "upload.every(600)")
        tarn = peer.Tarn(daemon.warehouse)

        def state(lake):
            return [row for row in daemon.status("mirror") if row["lake"] == lake][0]
        daemon.get_ready()
        tarn.run("write", TABLE, stdin="".join(map(line_of, range(50)))).ok("write")
        daemon.asked_until("one lake has it", lambda: state("near")["state"] == "has all")
        need(state("late")["behind"] > 0 and state("late")["behind_bytes"] > 0 and state("late")["trouble"] is None, state("late"))
        same((state("late")["state"], daemon.newest_of(daemon.lake)), ("waits", 0), "the lake that waits")
        script.write_text("return { upload = function(state) return state.pendign end }")
        tarn.run("reload").ok("reload")
        daemon.asked_until("it is said", lambda: state("late")["kind"] == "policy")
        need("its policy failed, so it waits: policy.lua:1: there is no state.pendign; did you mean 'pending'?" in state("late")["trouble"], state("late"))
        same(tarn.run("status").rc, 1, "exit code")
        script.write_text("return {")
        need("policy" in tarn.run("reload").err, "a script that can't be loaded is refused")
        script.write_text(LATER % 'upload.all(upload.budget({ bytes = 1e9 }), upload.tables("%s"))' % TABLE)
        tarn.run("reload").ok("reload")
        daemon.asked_until("the lake has all", lambda: state("late")["state"] == "has all" and state("late")["behind"] == 0)
        same(daemon.ids_at_lake(), list(range(50)), "rows at the lake")
        daemon.process.stdin.close()
        daemon.stop()


def test_a_table_decides_for_itself(_args):
    """Its own script's `upload`; --once is over when the script says wait."""
    with Daemon() as daemon:
        (daemon.folder / "own.lua").write_text("return { upload = function(state) return state.pending.rows < 20 and 'wait' or 'now' end }")
        daemon.config.write_text(daemon.config.read_text().replace("fields = {", 'script = "own.lua", fields = {'))
        daemon.once("".join(map(line_of, range(10))).encode())
        same(daemon.newest_of(daemon.lake), 0, "newest snapshot of the lake")
        daemon.once("".join(map(line_of, range(10, 20))).encode())
        same(daemon.ids_at_lake(), list(range(20)), "rows at the lake")


def test_nothing_that_a_lake_lacks_expires(_args):
    with Daemon('far = { target = "no/such/folder" }') as daemon:
        for i in range(3):
            daemon.once(b'{"id":%d,"n":1}\n' % i, 5)
        same(peer.Tarn(daemon.warehouse).run("expire", TABLE, "--retain-max", "1", "--retain-min", "1", "--older-than", "0 s", "--quiet").rc, 0, "exit code")
        need((daemon.warehouse / "db.db/t/snapshot/snapshot-1").exists(), "the first snapshot is gone")


class Hook:
    """Who takes a POST, by TLS: `plan` says how the next ones are answered, then they are taken."""

    def __init__(self, folder, plan=()):
        self.bodies, self.heads, self.plan = [], [], list(plan)
        self.certificate, key = folder / "hook.pem", folder / "hook.key"
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                               "-subj", "/CN=hook", "-keyout", str(key), "-out", str(self.certificate)],
                              capture_output=True, text=True, timeout=DEADLINE)
        need(done.returncode == 0, "openssl: " + done.stderr)
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hook.plan.pop(0) if hook.plan else 204
                hook.heads.append((self.path, dict(self.headers)))
                if status == 204:
                    hook.bodies.append(json.loads(body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = "https://127.0.0.1:%d/hook?of=lake" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def cover(ranges, newest, what):
    """Nothing is left out, whatever is told twice."""
    through = 0
    for first, snapshot in ranges:
        need(first <= through + 1 and first <= snapshot, "%s: %d to %d was told behind %d" % (what, first, snapshot, through))
        through = max(through, snapshot)
    same(through, newest, what)


def test_who_is_to_know_is_told(args):
    """A broker that isn't there at first, and a hook that is busy at first, hear of each snapshot, also over kills; no upload waits for them."""
    rng, port = random.Random(args.seed), free_port()
    with Daemon() as daemon:
        hook = Hook(daemon.folder, [503, 401])
        (daemon.folder / "policy.lua").write_text(
            'return { upload = function() return "now" end, uploaded = function(e)\n'
            'return { payload = ("%d-%d"):format(e.first, e.snapshot), topic = "news/" .. e.table } end }')
        daemon.config.write_text(daemon.config.read_text().replace(
            'near = { target = "lake" }',
            'mq = { target = "lake", policy = "policy.lua", notify = { url = "mqtt://127.0.0.1:%d" } },\n'
            'post = { target = "other", notify = { url = "%s", token = "a-long-secret", tls = { pinned = file("hook.pem") } } }' % (port, hook.url)))
        (daemon.folder / "other").mkdir()
        said = daemon.once("".join(map(line_of, range(10))).encode())
        same(daemon.ids_at_lake(), list(range(10)), "rows at the lake, of which nobody could be told")
        need("tell lake=mq table=db.t" in said and "a-long-secret" not in said and "of=lake" not in said, said)
        broker = Mosquitto(daemon.folder)
        config = daemon.folder / "mosquitto.conf"
        config.write_text("listener %d 127.0.0.1\nallow_anonymous true\n" % port)
        broker.start(config)
        ear = Child(daemon.folder / "ear.log")
        ear.start(["mosquitto_sub", "-p", str(port), "-q", "1", "-t", "news/#", "-v"])
        broker.until("somebody listens", lambda: "Sending SUBACK" in broker.said)

        def heard():
            return [tuple(map(int, line.split()[1].split("-"))) for line in ear.said.splitlines()]
        for i in range(args.kills):
            newest = daemon.newest_of(daemon.lake)
            daemon.get_ready()
            daemon.send(range(10 + i, 11 + i))
            daemon.asked_until("it is at the lake", lambda newest=newest: daemon.newest_of(daemon.lake) > newest)
            time.sleep(rng.uniform(0, 0.05))  # the instant of a kill is what is drawn
            daemon.kill()
        newest = daemon.newest_of(daemon.warehouse)
        daemon.get_ready()
        daemon.send([99])
        daemon.asked_until("the lakes have it", lambda: all(row["snapshot"] > newest for row in daemon.status("mirror")))
        daemon.asked_until("all is told", lambda: all(row["untold_tables"] == 0 and row["told"] > 0 for row in daemon.status("untold_tables")))
        of = {row["lake"]: row for row in daemon.status("untold_tables")}
        same([(of[x]["notify"], of[x]["tell_trouble"]) for x in ("mq", "post")],
             [("127.0.0.1:%d" % port, None), (hook.url[8:].split("/")[0], None)], "status")
        daemon.process.stdin.close()
        daemon.stop()
        ear.until("the last one is heard", lambda: heard()[-1][1] == daemon.newest_of(daemon.lake))
        cover(heard(), daemon.newest_of(daemon.lake), "what the broker was told")
        cover([(body["first"], body["snapshot"]) for body in hook.bodies], daemon.newest_of(daemon.folder / "other"), "what the hook was told")
        same({(path, head["Authorization"], head["Content-Type"]) for path, head in hook.heads},
             {("/hook?of=lake", "Bearer a-long-secret", "application/json")}, "how it was told")
        same(hook.plan, [], "answers that failed")
        ear.kill()
        broker.kill()
        hook.close()


def test_check_connect_tries_folders_brokers_and_hooks(_args):
    """What works, what doesn't and why; nothing is sent, and a broker's clients stay as they are."""
    port = free_port()
    with Daemon() as daemon:
        hook, broker = Hook(daemon.folder), Mosquitto(daemon.folder)
        passwords, config = daemon.folder / "passwords", daemon.folder / "mosquitto.conf"
        done = subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "me", "right-word"], capture_output=True, text=True, check=False)
        need(done.returncode == 0, "mosquitto_passwd: " + done.stderr)
        passwords.chmod(0o644)
        daemon.folder.chmod(0o755)
        config.write_text("listener %d 127.0.0.1\nallow_anonymous false\npassword_file %s\n" % (port, passwords))
        broker.start(config)
        source = '{ kind = "mqtt", url = "mqtt://127.0.0.1:%d", user = "me", password = "%s", name = "%s", subscribe = { { filter = "a", table = "%s" } } }'
        daemon.config.write_text(daemon.config.read_text().replace(
            '{ kind = "stdin", table = "%s" }' % TABLE,
            ", ".join([source % (port, "right-word", "good", TABLE), source % (port, "wrong-word", "bad", TABLE), source % (1, "x", "closed", TABLE)])).replace(
            'near = { target = "lake" }',
            'near = { target = "lake", notify = { url = "%s", tls = { pinned = file("hook.pem") } } }, none = { target = "no/such/folder" },'
            'late = { target = "late", notify = { url = "https://127.0.0.1:1/x", tls = { pinned = file("hook.pem") } } }' % hook.url))
        (daemon.folder / "late").mkdir()
        result = peer.Tarn(daemon.warehouse).run("check", str(daemon.config), "--connect", "--format", "json")
        rows = [row for row in map(json.loads, result.lines) if "connect" in row]
        same({(row["connect"], row["name"], row["kind"]) for row in rows},
             {("lake", "near", None), ("lake", "late", None), ("lake", "none", "folder"), ("notify", "near", None), ("notify", "late", "network"),
              ("broker", "good", None), ("broker", "bad", "refused"), ("broker", "closed", "network")}, "what it found: %s" % rows)
        need(all(row["works"] == (row["kind"] is None) and row["text"] for row in rows), rows)
        same(result.rc, 4, "exit code")
        need("4 of 8 can't be reached as they are configured" in result.err, result.err)
        need("right-word" not in str(rows) + result.err and "of=lake" not in str(rows), "a secret is told")
        same((hook.heads, list((daemon.folder / "late").iterdir()), daemon.lake.exists()), ([], [], False), "what was sent or written")
        broker.kill()
        hook.close()


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), kills=4))
