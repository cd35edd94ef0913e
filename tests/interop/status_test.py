"""`tarn run`, looked at: its socket, `status`, `top`, `pools`, /metrics, what it tells systemd. usage: status_test.py [NAME...]"""
import fcntl
import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import peer
import runner
from child import DEADLINE, TarnRun, free_port
from peer import need, same

KEYED = '{ fields = { "k INT NOT NULL", "v STRING" }, primary_key = "k", options = { bucket = 2, ["changelog-producer"] = "lookup" }, %s }'
TABLES = '["db.t"] = %s, ["db.log"] = { fields = { "k INT" }, options = { bucket = -1 }, commit = "100ms" }' % (KEYED % 'commit = "100ms"')
SERVICE = peer.ROOT / "scripts/tarn.service"


class Daemon(TarnRun):
    """Everything is asked at its socket."""

    def __init__(self, tables=TABLES, rest="", warehouse="warehouse"):
        super().__init__("tarn-status-", warehouse)
        self.config.write_text('return { warehouse = "%s", %s tables = { %s } }' % (warehouse, rest, tables))
        self.socket = self.warehouse / ".tarn/daemon.sock"
        self.tarn = peer.Tarn(self.warehouse)

    def start(self, environment=None):
        super().start(env=dict(os.environ, **(environment or {})))
        self.wait_until_ready()

    def ask(self, page, body=None):
        """A request by hand: http.client connects to no Unix socket."""
        head = "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % ("POST" if body else "GET", page)
        head += "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body) if body else ""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE)
            s.connect(str(self.socket))
            s.sendall((head + "\r\n" + (body or "")).encode())
            answer = http.client.HTTPResponse(s, method="POST" if body else "GET")
            answer.begin()
            return answer.status, answer.read().decode()

    def put(self, table, rows):
        status, text = self.ask("/tables/%s/rows" % table, "".join(json.dumps(r) + "\n" for r in rows))
        same(status, 200, "rows for %s: %s" % (table, text))

    def status(self):
        """The page's objects, by what they are about and whose they are."""
        text = self.ask("/status")[1]
        page = json.loads(text)
        lines = [json.loads(line.rstrip(",")) for line in text.splitlines() if line.startswith('{"')]
        same(lines, [page["daemon"], page["journal"], *page["tables"], *page["memory"], *page["sources"], *page["lakes"]], "the page's lines")
        return by_kind(lines)

    def committed(self, table, rows):
        self.asked_until("%d rows of %s are committed" % (rows, table), lambda: self.is_committed(table, rows))

    def is_committed(self, table, rows):
        seen = self.status()["table", table]
        return seen["rows"] == rows and seen["uncommitted"] == 0 and seen["commits"] > 0


def by_kind(objects):
    kinds = ("daemon", "journal", "table", "source", "part", "lake", "mirror")
    return {(k, o[k] if k not in ("daemon", "journal") else None): o for o in objects for k in kinds if next(iter(o)) == k}


@contextmanager
def running(*args, environment=None, **more):
    with Daemon(*args, **more) as daemon:
        daemon.start(environment)
        yield daemon
        daemon.stop()


# ---------------------------------------------------------------- the page and the verbs

def test_status_says_what_became_of_rows():
    with running() as d:
        d.put("db.t", [{"k": i, "v": "x"} for i in range(20)])
        d.put("db.log", [{"k": 1}] * 3)
        d.committed("db.t", 20)
        d.committed("db.log", 3)
        lines = d.tarn.run("status").ok("status")
        seen = by_kind([json.loads(line) for line in lines])
        same(seen["daemon", None]["process"], d.process.pid, "process")
        same(seen["daemon", None]["status"], "ok", "status")
        journal = seen["journal", None]
        same((journal["durable"], journal["next"] - journal["first"]), (journal["next"], 2), "places of two messages")
        t = seen["table", "db.t"]
        same((t["state"], t["rows"], t["letters"], t["untold"], t["trouble"]), ("live", 20, 0, 0, None), "db.t")
        same(t["snapshots"], len(d.tarn.run("show", "db.t", "snapshots").ok("show")), "snapshots")
        need(t["runs_stop"] > t["runs_max"] > 0, "runs of db.t: %s" % t)
        same((seen["table", "db.log"]["runs_stop"], seen["table", "db.log"]["rows"]), (0, 3), "db.log")
        parts = [o for (kind, _), o in seen.items() if kind == "part"]
        need(all(p["used"] <= p["peak"] <= p["size"] for p in parts), "parts: %s" % parts)
        need({"memtable", "input", "net"} <= {p["part"] for p in parts if p["peak"] > 0}, "used parts: %s" % parts)


def test_what_waits_for_compaction_is_counted():
    """Runs add up to the trigger, and of full-compaction changes are told by each third commit."""
    options = 'bucket = 1, ["num-sorted-run.compaction-trigger"] = 9, ["num-sorted-run.stop-trigger"] = 12'
    told = 'bucket = 1, ["changelog-producer"] = "full-compaction", ["full-compaction.delta-commits"] = 3'
    fields = 'fields = { "k INT NOT NULL" }, primary_key = "k", commit = "1 rows"'
    with running('["db.t"] = { %s, options = { %s } }, ["db.told"] = { %s, options = { %s } }' % (fields, options, fields, told)) as d:
        for i in range(1, 7):
            for table in "db.t", "db.told":
                d.put(table, [{"k": i}])
                d.committed(table, i)
            t = d.status()["table", "db.t"]
            same((t["runs_max"], t["level0_max"], t["files_max"], t["runs_stop"]), (i, i, i, 12), "runs after %d commits" % i)
            files = [json.loads(line) for line in d.tarn.run("ls", "db.t").ok("ls")]
            same(t["level0_bytes"], sum(f["bytes"] for f in files), "bytes in level 0")
            d.asked_until("%d commits of 3 wait for a full compaction" % (i % 3), lambda i=i: d.status()["table", "db.told"]["untold"] == i % 3)


def test_status_for_people_is_a_table():
    with running() as d:
        d.put("db.t", [{"k": 1, "v": "x"}])
        lines = d.tarn.run("status", "--format", "table").ok("status")
        need(re.match(r"tarn \S+, process %d, since .*: ok$" % d.process.pid, lines[0]), lines[0])
        need(any(line.split()[:3] == ["db.t", "live", "1"] for line in lines), "\n".join(lines))
        same(d.tarn.run("status", "--format", "csv").rc, 2, "csv")


def test_a_table_in_trouble_is_a_reason_and_exit_code_1():
    with running() as d:
        d.put("db.t", [{"k": 1, "v": "x"}])
        d.committed("db.t", 1)
        good = d.warehouse / "db.db/t/schema/schema-0"
        bad = good.with_suffix(".away")
        good.rename(bad)  # a reader fails by now, and each opening
        snapshots = d.warehouse / "db.db/t/snapshot"
        snapshots.rename(snapshots.with_suffix(".away"))
        snapshots.write_text("no folder")
        d.put("db.t", [{"k": 2, "v": "x"}])
        d.asked_until("db.t is shut", lambda: d.status()["table", "db.t"]["state"] == "shut")
        result = d.tarn.run("status")
        same(result.rc, 1, "exit code of status")
        need(result.err.startswith("tarn: db.t: "), "reason: %s" % result.err)
        status, text = d.ask("/health")
        same((status, json.loads(text)["status"]), (200, "degraded"), "health")
        need("db.t: " in "\n".join(d.tarn.run("top").ok("top")), "top says it")
        snapshots.unlink()
        snapshots.with_suffix(".away").rename(snapshots)
        bad.rename(good)
        d.committed("db.t", 2)
        d.asked_until("all is well", lambda: d.tarn.run("status").rc == 0)


def test_nobody_there_is_exit_code_4():
    with Daemon() as d:
        d.warehouse.mkdir()
        for verb in ("status", "top"):
            result = d.tarn.run(verb)
            same((result.rc, result.lines), (4, []), verb)
            need("no tarn run is there" in result.err, result.err)
        parts = [json.loads(line)["part"] for line in d.tarn.run("pools").ok("pools")]
        need("other" in parts, "pools of the process itself: %s" % parts)
    with Daemon() as d:
        same(d.tarn.run("status").rc, 2, "no warehouse")


def test_a_killed_daemons_socket_is_in_nobodys_way():
    with Daemon() as d:
        d.start()
        d.kill()
        need(d.socket.is_socket(), "the socket's file is left")
        result = d.tarn.run("status")
        same(result.rc, 4, "exit code")
        need("no tarn run is there" in result.err, result.err)
        d.start()
        d.tarn.run("status").ok("status of the next one")
        same(d.socket.stat().st_mode & 0o777, 0o600, "mode of the socket")
        d.stop()
        need(not d.socket.exists(), "the socket goes with its daemon")


def test_somebody_who_gives_no_answer_is_not_waited_for():
    with Daemon() as d:
        (d.warehouse / ".tarn").mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(d.socket))
            s.listen()
            result = d.tarn.run("status")
            same(result.rc, 4, "exit code")
            need("no answer within" in result.err, result.err)


def answer_of_somebody_else(answer):
    """What `tarn status` makes of it."""
    with Daemon() as d:
        (d.warehouse / ".tarn").mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(d.socket))
            s.listen()
            argv = [str(peer.TARN), "status", "--warehouse", str(d.warehouse), "--format", "table"]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
                connection, _ = s.accept()
                with connection:
                    connection.recv(4096)
                    with suppress(OSError):  # it has heard enough
                        connection.sendall(answer)
                        connection.shutdown(socket.SHUT_WR)
                    out, err = asking.communicate(timeout=DEADLINE)
                return asking.returncode, out.decode(), err.decode()


def test_an_answer_of_somebody_else_does_no_harm():
    def page(body, length=None):
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body

    for answer, code, said in (
            (b"", 4, "ends too soon"),
            (b"SSH-2.0-x\r\n\r\n", 4, "none of tarn's"),
            (b"HTTP/1.1 200 OK\n\n", 4, "none of tarn's"),
            (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 5000, 4, "none of tarn's"),
            (b"HTTP/1.1 200 OK\r\n\r\n{}", 4, "none of tarn's"),
            (b"HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nno\n", 4, "answers 500: no"),
            (page(b"{}", 5), 4, "ends too soon"),
            (page(b"", 1 << 62), 4, "ends too soon"),
            (page(b"x" * (8 << 20)), 2, "longer than"),
            (page(b'{"table":"a","rows":[}\n'), 3, "at byte"),
            (page(b'{"table":7}\n'), 3, "table"),
            (page(b'{"new":1},\n{"table":null}\n'), 1, "")):
        got, out, err = answer_of_somebody_else(answer)
        need(got == code and said in err, "%r: exit code %d, %s%s" % (answer[:60], got, out, err))
    got, out, _ = answer_of_somebody_else(page(b'{"table":"\\u001b[2J","state":"a\\u0007b"}\n'))
    need(got == 1 and "?[2J" in out and "a?b" in out and "\033" not in out, "control bytes: %r" % out)


def test_a_second_daemon_is_refused():
    with running() as d:
        second = subprocess.run([str(peer.TARN), "run", str(d.config)], capture_output=True, timeout=DEADLINE, check=False)
        same(second.returncode, 5, "exit code")
        need(("tarn run, process %d, has it" % d.process.pid).encode() in second.stderr, second.stderr)
        d.tarn.run("status").ok("the first one goes on")


def test_a_warehouse_with_a_path_too_long_for_a_socket_is_refused():
    with Daemon(warehouse="w" * 100) as d:
        for verb in "check", "run":
            result = subprocess.run([str(peer.TARN), verb, str(d.config)], capture_output=True, timeout=DEADLINE, check=False)
            same(result.returncode, 2, "exit code of %s" % verb)
            need(b"has at most 107 bytes" in result.stderr, result.stderr)


def test_the_room_of_the_disk_is_a_figure():
    """As statvfs() has it, but for what others write meanwhile."""
    with running(rest='disk_reserve = "5M",') as d:
        seen, (_, values, _) = d.status()["daemon", None], parse_metrics(d.ask("/metrics")[1])
        same((seen["disk_reserve"], seen["disk_low"]), (5 << 20, False), "status")
        same((values["tarn_disk_reserve_bytes", None], values["tarn_disk_low", None]), (5 << 20, 0), "metrics")
        room = os.statvfs(d.warehouse)
        for free in seen["disk_free"], values["tarn_disk_free_bytes", None]:
            need(abs(free - room.f_bavail * room.f_frsize) < room.f_blocks * room.f_frsize / 10, "free: %d, %s" % (free, room))
        need(any(re.match(r"disk: \S+ free, of which 5.0M are kept$", line) for line in d.tarn.run("top").ok("top")), "top says it")


def test_a_disk_without_its_reserve_is_said():
    """No disk has so much."""
    with running(rest='disk_reserve = "1048576G",') as d:
        seen, (_, values, _) = d.status()["daemon", None], parse_metrics(d.ask("/metrics")[1])
        need(seen["disk_low"] and seen["disk_free"] < seen["disk_reserve"] == 1 << 50, "status: %s" % seen)
        same((values["tarn_disk_reserve_bytes", None], values["tarn_disk_low", None]), (1 << 50, 1), "metrics, to the byte")
        status, text = d.ask("/health")
        health = json.loads(text)
        same((status, health["status"]), (503, "failing"), "health")
        need(any("disk_reserve" in reason["text"] for reason in health["reasons"]), text)
        need("no row is taken any more" in d.log(), d.log())


def test_who_wants_a_table_of_the_daemon_hears_where_it_takes_rows():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % s.getsockname()[1]
    for listen, way in ("", "its sources"), ('listen = "%s",' % address, "its HTTP address, " + address):
        with running(rest=listen) as d:
            for verb, *more in (("clean",),):
                result = d.tarn.run(verb, "db.t", *more, stdin='{"k":1}\n')
                same(result.rc, 5, verb)
                need(("held by tarn run, process %d; stop it, or send rows to %s\n" % (d.process.pid, way)) in result.err,
                     "%s: %s" % (verb, result.err))


def test_pools_are_the_daemons():
    with running() as d:
        result = d.tarn.run("pools")
        need("of tarn run, process %d" % d.process.pid in result.err, result.err)
        parts = {p["part"]: p for p in map(json.loads, result.ok("pools"))}
        need(parts["net"]["used"] > 0, "the daemon's network: %s" % parts["net"])
        same(parts["block"]["size"], sum(p["size"] for n, p in parts.items() if n != "block"), "sum")


# ---------------------------------------------------------------- top

def on_a_terminal(tarn, *args, keys, frames=2):
    """What `tarn top` draws until `frames` frames are there, then after `keys`; and its exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(str(peer.TARN), [str(peer.TARN), "top", "--warehouse", tarn.warehouse, *args])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    before = termios.tcgetattr(fd)
    drawn = b""
    end = time.monotonic() + DEADLINE
    while drawn.count(b"\033[J") < frames and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            drawn += os.read(fd, 65536)
    need(drawn.count(b"\033[J") >= frames, "frames: %r" % drawn)
    keys(pid, fd)
    try:
        while True:
            more = os.read(fd, 65536)
            drawn += more
            if not more:
                break
    except OSError:  # the other end is gone
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return drawn.decode(), code, before


def test_top_draws_until_a_key_or_a_signal_ends_it():
    with running() as d:
        d.put("db.t", [{"k": 1, "v": "x"}])
        for name, keys in (("q", lambda _, fd: os.write(fd, b"xq")), ("^C", lambda _, fd: os.write(fd, b"\x03")),
                           ("SIGTERM", lambda pid, _: os.kill(pid, signal.SIGTERM))):
            drawn, code, _ = on_a_terminal(d.tarn, "--every", "100ms", keys=keys)
            same(code, 0, "exit code after %s" % name)
            need("db.t" in drawn and drawn.startswith("\033[?1049h"), "%s: %r" % (name, drawn[:300]))
            need(drawn.endswith("\033[?25h\033[?1049l"), "%s gives the terminal back: %r" % (name, drawn[-60:]))


def test_top_shows_a_daemon_that_goes():
    with running() as d:
        def kill_then_quit(_, fd):
            d.kill()
            seen = b""
            while b"no tarn run is there" not in seen:
                seen += os.read(fd, 65536)
            os.write(fd, b"q")
        same(on_a_terminal(d.tarn, "--every", "100ms", keys=kill_then_quit)[1], 0, "exit code")
        d.start()


def test_top_into_a_pipe_is_one_frame():
    with running() as d:
        lines = d.tarn.run("top").ok("top")
        need(lines[0].startswith("tarn ") and "\033" not in "".join(lines), "one plain frame: %s" % lines)
        same(d.tarn.run("top", "--every", "1ms").rc, 2, "too often")


# ---------------------------------------------------------------- metrics, help

ONE_LABEL = r'[a-z]+="(?:[^"\\\n]|\\[\\n"])*"'
SAMPLE = re.compile(r'([a-z][a-z0-9_]*)((?:\{%s(?:,%s)*\})?) (-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)$' % (ONE_LABEL, ONE_LABEL))
LABEL = re.compile(r'\{([a-z]+)="(.*)"\}$')
PARTS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
UNITS = "uploads|calls|requests|rows|messages|offers|letters|commits|compactions|flushes|stalls|reopens|syncs|bytes|seconds|count"
NOT_BASE = "ms|millis|milliseconds|ns|minutes|hours|kb|kilobytes|percent"

# Paimon 1.3.1: the constants of CommitMetrics, CompactionMetrics, WriterBufferMetric, ScanMetrics, by their group's name.
PAIMON = {
    "commit": """lastCommitDuration commitDuration lastCommitAttempts lastTableFilesAdded lastTableFilesDeleted lastTableFilesAppended
        lastTableFilesCommitCompacted lastChangelogFilesAppended lastChangelogFileCommitCompacted lastGeneratedSnapshots
        lastDeltaRecordsAppended lastChangelogRecordsAppended lastDeltaRecordsCommitCompacted lastChangelogRecordsCommitCompacted
        lastPartitionsWritten lastBucketsWritten lastCompactionInputFileSize lastCompactionOutputFileSize""".split(),
    "compaction": """maxLevel0FileCount avgLevel0FileCount compactionThreadBusy avgCompactionTime compactionCompletedCount
        compactionTotalCount compactionQueuedCount maxCompactionInputSize maxCompactionOutputSize avgCompactionInputSize
        avgCompactionOutputSize maxTotalFileSize avgTotalFileSize""".split(),
    "writerBuffer": "numWriters bufferPreemptCount usedWriteBufferSizeByte totalWriteBufferSizeByte".split(),
    "scan": "lastScanDuration scanDuration lastScannedManifests lastScanSkippedTableFiles lastScanResultedTableFiles".split(),
}
# Nobody counts these: a daemon reads a bucket's files once.
WITHOUT = {"lastPartitionsWritten", "lastBucketsWritten", "bufferPreemptCount", *PAIMON["scan"]}


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def prometheus_name(group, name, kind):
    """Paimon's name as Prometheus has it: snake case, the unit behind it, `_total` of a counter."""
    spelled = "paimon_%s_%s" % (snake(group), snake(name).removesuffix("_byte"))
    if name.endswith(("Duration", "Time")):
        spelled += "_seconds"
    elif name.endswith(("Size", "SizeByte")):
        spelled += "_bytes"
    return spelled + ("_total" if kind == "counter" else "")


def family_of(name, kinds):
    """What a sample belongs to, and what it is of it: "_sum"."""
    for suffix in ("_bucket", "_sum", "_count"):
        family = name.removesuffix(suffix)
        if family != name and suffix in PARTS.get(kinds.get(family), ()):
            return family, suffix
    return name, ""


def check_name(name, kind):
    """What `promtool check metrics` has to say of names, and that a counter's says its unit."""
    need(re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", name), "no snake case: %s" % name)
    need(name.endswith("_total") == (kind == "counter"), "a counter and no other ends in _total: %s" % name)
    need(kind != "counter" or re.search("_(%s)_total$" % UNITS, name), "a counter without a unit: %s" % name)
    need(not re.search("_(%s|counter|gauge|histogram|summary)(_|$)" % NOT_BASE, name), "no base unit, or its kind: %s" % name)
    need(name.startswith("paimon_") or not name.endswith(("_count", "_sum", "_bucket", "_info")) or name == "tarn_build_info",
         "the end of another kind: %s" % name)


def check_histogram(family, rows):
    """Buckets add up, up to +Inf, which is the count."""
    bounds = [float(dict(labels)["le"]) for suffix, labels, _ in rows if suffix == "_bucket"]
    counts = [value for suffix, _, value in rows if suffix == "_bucket"]
    need(bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), "bounds of %s: %s" % (family, bounds))
    same(counts, sorted(counts), "counts of %s" % family)
    same([value for suffix, _, value in rows if suffix == "_count"], counts[-1:], "count of %s" % family)


def parse_metrics(text):
    """Prometheus' text format, strictly: what a scraper would refuse, or promtool would blame, is a failure. Returns kinds, values by
    name and label's value, and what HELP says."""
    kinds, values, helps, rows, done, at = {}, {}, {}, {}, set(), None
    need(text.endswith("\n"), "the last line ends")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, said = line.split(" ", 3)
            need(name not in helps and said.strip(), "HELP comes once, and says something: %s" % line)
            helps[name] = said
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            need(kind in ("counter", "gauge", "histogram", "summary"), line)
            need(name in helps and name not in kinds, "TYPE comes once, behind HELP: %s" % line)
            check_name(name, kind)
            done.add(at)
            kinds[name], rows[name], at = kind, [], name
        else:
            match = SAMPLE.match(line)
            need(match, "no sample: %s" % line)
            name, labels, value = match.groups()
            family, suffix = family_of(name, kinds)
            need(family == at and family not in done, "samples of one name stand together, behind its type: %s" % line)
            need(suffix or kinds[family] not in PARTS, "a %s has no sample of its own: %s" % (kinds[family], line))
            label = LABEL.match(labels).groups() if labels else None
            need((name, label) not in [(n, l) for n, l, _ in rows[family]], "twice: %s" % line)
            rows[family].append((name, label, float(value)))
            values[name, label[1] if label else None] = float(value)
    same(set(helps), set(kinds), "each has HELP and TYPE")
    for family, kind in kinds.items():
        if kind == "histogram":
            check_histogram(family, [(name[len(family):], [label] if label else [], value) for name, label, value in rows[family]])
        need(kind != "counter" or all(value >= 0 for _, _, value in rows[family]), "a counter below 0: %s" % family)
    return kinds, values, helps


def test_the_parser_of_metrics_refuses_what_prometheus_does():
    head = "# HELP tarn_x_rows_total h\n# TYPE tarn_x_rows_total counter\n"
    parse_metrics(head + 'tarn_x_rows_total{t="a\\"b"} 1\n')
    histogram = "# HELP tarn_h_seconds h\n# TYPE tarn_h_seconds histogram\n"
    for bad in ("", head + "tarn_x_rows_total 1", head + "tarn_x_rows_total one\n", head + head, "tarn_x_rows_total 1\n",
                head + "tarn_x_rows_total 1\ntarn_x_rows_total 2\n", head + 'tarn_x_rows_total{t="a"b"} 1\n',
                head.replace("counter", "gauge"), head.replace("_rows", ""), head.replace("x_rows", "xRows"), "# HELP tarn_a_ms h\n",
                head.replace(" h\n", " \n"), head.split("\n", 1)[1], head + "tarn_x_rows_total -1\n",
                histogram + 'tarn_h_seconds_bucket{le="1"} 2\ntarn_h_seconds_bucket{le="+Inf"} 1\ntarn_h_seconds_count 1\n',
                histogram + 'tarn_h_seconds_bucket{le="1"} 1\ntarn_h_seconds_count 1\n', histogram + "tarn_h_seconds 1\n"):
        try:
            parse_metrics(bad)
        except peer.Failure:
            continue
        raise peer.Failure("it was taken: %r" % bad)


def test_metrics_are_prometheus_text_and_agree_with_status():
    with running() as d:
        d.put("db.t", [{"k": i % 7, "v": "x"} for i in range(30)])
        d.committed("db.t", 30)
        _, values, _ = parse_metrics(d.ask("/metrics")[1])
        t = d.status()["table", "db.t"]
        for metric, member in (("rows_total", "rows"), ("commits_total", "commits"), ("snapshot_id", "snapshot"),
                               ("sorted_runs", "runs_max"), ("stop_sorted_runs", "runs_stop"), ("level0_bytes", "level0_bytes"),
                               ("overdue_sorted_runs", "runs_over"), ("compaction_converges", "converges"), ("stalls_total", "stalls"),
                               ("compaction_held", "held"),
                               ("failed_compactions_total", "compactions_failed"), ("letters_total", "letters"),
                               ("kept_snapshots", "snapshots"), ("untold_commits", "untold")):
            same(values["tarn_table_" + metric, "db.t"], t[member], metric)
        for metric, member in (("max_level0_file_count", "level0_max"), ("compaction_completed_count_total", "compactions")):
            same(values["paimon_compaction_" + metric, "db.t"], t[member], metric)
        same(values["paimon_writer_buffer_num_writers", "db.t"], t["buckets"], "buckets")
        need(values["tarn_loop_away_seconds_count", None] > 0, "turns")
        need(values["tarn_memory_peak_bytes", "input"] > 0, "memory")
        need(values["tarn_io_written_bytes_total", None] > values["tarn_table_flushed_bytes_total", "db.t"] > 0, "bytes")
        need(abs(values["process_start_time_seconds", None] - time.time()) < 1000, "its start")


def test_how_far_a_file_is_read_and_committed_is_a_figure():
    source = 'listen = "127.0.0.1:%d", sources = { { name = "press", kind = "file", path = "press.log", table = "db.log" } },' % free_port()
    with Daemon(rest=source) as d:
        text = "".join('{"k":%d}\n' % i for i in range(500))
        (d.folder / "press.log").write_text(text)
        d.start()
        d.asked_until("all is committed", lambda: d.status()["source", "press"]["bytes_committed"] == len(text))
        seen, (_, values, _) = d.status(), parse_metrics(d.ask("/metrics")[1])
        same(seen["source", "press"]["bytes"], len(text), "bytes that were read")
        need("bytes" not in seen["source", "http"], "HTTP has no place")
        same((values["tarn_source_read_bytes", "press"], values["tarn_source_committed_bytes", "press"]), (len(text), len(text)), "metrics")
        need(("tarn_source_read_bytes", "http") not in values, "of files alone")


def test_what_paimon_has_a_metric_for_has_its_name():
    known = {name: group for group, names in PAIMON.items() for name in names}
    with running() as d:
        kinds, _, helps = parse_metrics(d.ask("/metrics")[1])
    ours = {name: helps[name].split(",")[0] for name in kinds if name.startswith("paimon_")}
    for name, official in ours.items():
        need(official in known, "%s: Paimon has no %s" % (name, official))
        same(name, prometheus_name(known[official], official, kinds[name]), official)
    same(set(known) - set(ours.values()), WITHOUT, "those that are left out")
    same(len(set(ours.values())), len(ours), "each once")


def test_the_figures_of_a_commit_are_those_of_its_files():
    """A file that was moved up counts as deleted and added, as in Paimon's CommitStats."""
    table = '["db.t"] = { fields = { "k INT NOT NULL" }, primary_key = "k", options = { bucket = 1, ["changelog-producer"] = "lookup" }, commit = "1 rows" }'
    with running(table) as d:
        def files():
            return {f["name"]: f for f in map(json.loads, d.tarn.run("ls", "db.t").ok("ls"))}

        def on_disk():
            return {f.name for f in (d.warehouse / "db.db/t/bucket-0").iterdir() if f.name.startswith("data-")}
        before, disk = {}, set()
        for i in range(5):
            d.put("db.t", [{"k": k + 3 * i} for k in range(5)])
            d.asked_until("round %d is done" % i, lambda done=i + 1: d.status()["table", "db.t"]["commits"] == done)
            live, new = files(), on_disk() - disk
            snapshots = [json.loads(line) for line in d.tarn.run("show", "db.t", "snapshots").ok("show")][-2:]
            same([s["commit_kind"] for s in snapshots], ["APPEND", "COMPACT"], "snapshots")
            written = [name for name in new if name in live]
            moved = live.keys() - before.keys() if len(new) == 1 else set()
            deleted = 1 + len(before.keys() - live.keys())
            _, values, _ = parse_metrics(d.ask("/metrics")[1])
            for name, want in (("generated_snapshots", 2), ("table_files_appended", 1), ("table_files_deleted", deleted),
                               ("table_files_added", 1 + len(written)), ("table_files_commit_compacted", deleted + len(written)),
                               ("delta_records_appended", snapshots[0]["delta_record_count"]), ("changelog_files_appended", 0),
                               ("changelog_records_commit_compacted", snapshots[1]["changelog_record_count"])):
                same(values["paimon_commit_last_" + name, "db.t"], want, "commit %d: %s" % (i, name))
            added = sum(live[name]["rows"] for name in written)
            gone = values["paimon_commit_last_delta_records_commit_compacted", "db.t"] - added
            same(added - gone, snapshots[1]["delta_record_count"], "rows of the compaction")
            same(values["paimon_commit_last_compaction_output_file_size_bytes", "db.t"], sum(live[name]["bytes"] for name in written), "output")
            if moved:
                same(values["paimon_commit_last_compaction_input_file_size_bytes", "db.t"], live[moved.pop()]["bytes"], "input")
            same(values["paimon_commit_commit_duration_seconds_count", "db.t"], i + 1, "commits")
            before, disk = live, on_disk()


def test_without_a_wear_budget_rows_go_on_and_the_overdraft_is_told():
    """Runs go up to the stop trigger, at which a compaction comes that rows would wait for; the next start goes on with what is left."""
    fields = 'fields = { "k INT NOT NULL", "v INT" }, primary_key = "k", commit = "1 rows"'
    stop = 'options = { bucket = 1, ["num-sorted-run.stop-trigger"] = 7 }'
    with Daemon('["db.t"] = { %s, %s }' % (fields, stop), rest="wear_budget = 0,") as d:
        d.start()
        most = 0
        for i in range(40):
            d.put("db.t", [{"k": i % 9, "v": i}])
            d.committed("db.t", i + 1)
            t = d.status()["table", "db.t"]
            most = max(most, t["runs_max"])
            need(t["runs_max"] <= 8, "runs: %s" % t)
        need(most > 6 and t["compactions"] > 0, "it was compacted at the stop trigger alone: %d runs, %s" % (most, t))
        d.asked_until("compaction waits", lambda: d.status()["table", "db.t"]["spared"] or d.put("db.t", [{"k": 1, "v": 50}]))
        seen = d.status()["daemon", None]
        same((seen["wear_budget"], seen["wear_left"]), (0, 0), "the budget")
        need(seen["written_bytes"] >= seen["wear_overdraft"] > 1000, "overdraft: %s" % seen)
        _, values, _ = parse_metrics(d.ask("/metrics")[1])
        same((values["tarn_wear_budget_bytes", None], values["tarn_wear_left_bytes", None]), (0, 0), "metrics")
        same(values["tarn_table_compaction_spared", "db.t"], 1, "spared")
        overdraft = values["tarn_wear_overdraft_bytes", None]
        need(overdraft >= seen["wear_overdraft"], "overdraft of metrics")
        need(any(re.match(r"wear: 0B of 0B a day left, \S+ overdrawn$", line) for line in d.tarn.run("top").ok("top")), "top says it")
        same(len(re.findall("wear budget is spent", d.log())), 1, "the log says it, once")
        rows = {r["k"]: r["v"] for r in map(json.loads, d.tarn.run("cat", "db.t").ok("cat"))}
        same(sorted(rows), list(range(9)), "keys")
        same([rows[k] for k in (0, 2, 3)], [36, 38, 39], "the newest rows")
        d.stop()
        d.start()
        need(d.status()["daemon", None]["wear_overdraft"] >= overdraft, "what was overdrawn is still")
        d.stop()
    with running(rest='wear_budget = "1G",') as d:
        d.put("db.t", [{"k": 1, "v": "x"}])
        d.committed("db.t", 1)
        seen = d.status()["daemon", None]
        same((seen["wear_budget"], seen["wear_overdraft"], d.status()["table", "db.t"]["spared"]), (1 << 30, 0, False), "plenty")
        need(0 < (1 << 30) - seen["wear_left"] <= seen["written_bytes"], "what was written is taken of it: %s" % seen)


def test_the_daemon_says_how_much_is_merged_at_once():
    """Of a limit that nothing fits runs go up to the stop trigger, and it is said that they wait for the table's hours, which are far;
    a table with a limit of its own goes by that."""
    fields = 'fields = { "k INT NOT NULL", "v INT" }, primary_key = "k", commit = "1 rows"'
    hours = ", ".join('["compaction.offpeak.%s.hour"] = %d' % (end, (time.localtime().tm_hour + n) % 24) for end, n in (("start", 8), ("end", 10)))
    tables = '["db.t"] = { %s, options = { bucket = 1, %s } }, ["db.u"] = { %s, options = { bucket = 1, %s } }' % (
        fields, hours, fields, '["tarn.compaction.unit-size-max"] = "1 gb"')
    with Daemon(tables, rest="compaction = { unit_size_max = 1 },") as d:
        d.start()
        most, held = {"db.t": 0, "db.u": 0}, set()
        for i in range(12):
            for name in most:
                d.put(name, [{"k": i, "v": i}])
                d.committed(name, i + 1)
                t = d.status()["table", name]
                most[name] = max(most[name], t["runs_max"])
                held |= {name} if t["held"] else set()
        same(held, {"db.t"}, "what waits for its hours")
        need(most["db.t"] in (7, 8) and most["db.u"] <= 5, "runs: %s" % most)
        need(all(d.status()["table", name]["compactions"] > 0 for name in most), "none was made")


def answer_by_hand(address, request):
    with socket.create_connection(address, timeout=DEADLINE) as s:
        s.sendall(request.encode())
        head, _, text = b"".join(iter(lambda: s.recv(65536), b"")).decode().partition("\r\n\r\n")
        return head, text


def test_pages_may_be_longer_than_an_answers_memory():
    """By HTTP/1.1 in chunks, by 1.0 up to the connection's end; a connection goes on behind one."""
    names = ["db.%s_%d" % ("t" * 150, i) for i in range(12)]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = s.getsockname()
    tables = ", ".join('["%s"] = { fields = { "k INT" }, options = { bucket = -1 } }' % name for name in names)
    with running(tables, rest='memory = "32M", listen = "127.0.0.1:%d",' % address[1]) as d:
        connection = http.client.HTTPConnection(*address, timeout=DEADLINE)
        for _ in range(2):
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            text = answer.read().decode()
            same((answer.status, answer.getheader("Transfer-Encoding")), (200, "chunked"), "the answer")
            need(len(text) > 40000, "it is long: %d bytes" % len(text))
            _, values, _ = parse_metrics(text)
            same({label for name, label in values if name == "tarn_table_rows_total"}, set(names), "tables")
        connection.close()
        head, text = answer_by_hand(address, "GET /metrics HTTP/1.0\r\n\r\n")
        need("chunked" not in head and "Connection: close" in head, head)
        same(set(parse_metrics(text)[1]), set(values), "figures by HTTP/1.0")
        head, text = answer_by_hand(address, "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        same(("200 OK" in head, text), (True, ""), "HEAD")
        same(sorted(o["table"] for (kind, _), o in d.status().items() if kind == "table"), sorted(names), "tables of /status")
        lines = d.tarn.run("status", "--format", "json").ok("status")
        same(sum(line.startswith('{"table"') for line in lines), 12, "tables of status")


def test_figures_that_help_names_are_there():
    text = "\n".join(peer.Tarn("/").run("help", "troubles").ok("help"))
    named = set(re.findall(r"\b(?:tarn|paimon)_[a-z0-9_]+", text))
    members = {m.strip() for line in re.findall(r"^ +status +(.*)$", text, re.M) for m in line.split(",") if m.strip()}
    troubles = re.findall(r"^(?:compaction falls behind|the changelog is late|snapshots pile up|the disk fills up|a lake is behind)\n((?: .*\n)+)", text, re.M)
    same([bool(re.search("^ +status ", t, re.M) and re.search("^ +metrics ", t, re.M)) for t in troubles], [True] * 5, "each has figures")
    need(len(named) > 9 and len(members) > 9, "what it names: %s, %s" % (named, members))
    with running(rest='lakes = { near = { target = "lake", notify = { url = "mqtt://127.0.0.1:1" } } },') as d:
        kinds, _, _ = parse_metrics(d.ask("/metrics")[1])
        same(named - set(kinds), set(), "metrics that are not there")
        status = d.status()
        there = set().union(*(status[key] for key in (("table", "db.t"), ("daemon", None), ("lake", "near"), ("mirror", "db.t"))))
        same(members - there, set(), "members that are not there")
        columns = set(" ".join(d.tarn.run("status", "--format", "table").ok("status")).split())
        shown = set(re.findall(r"\b(RUNS|BACKLOG|UNTOLD|WAITING|FOR|KEPT|BEHIND)\b", text))
        same((len(shown), shown - columns), (7, set()), "columns that are not there")


# ---------------------------------------------------------------- systemd

def test_what_systemd_hears():
    for abstract in False, True:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            name = "@tarn-test-%d" % os.getpid() if abstract else folder + "/notify"
            s.bind("\0" + name[1:] if abstract else name)
            s.settimeout(DEADLINE)
            with running(environment={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "100000"}) as d:
                need(s.recv(4096).startswith(b"READY=1\nSTATUS="), "first it is ready")
                begin = time.monotonic()
                same([s.recv(4096) for _ in range(5)], [b"WATCHDOG=1\n"] * 5, "then it lives")
                need(time.monotonic() - begin > 0.15, "each half of the time, and no more often")
                d.stop()
                rest = [b""]
                while rest[-1] != b"STOPPING=1\n":
                    rest.append(s.recv(4096))
                same(set(rest[1:-1]) - {b"WATCHDOG=1\n"}, set(), "and nothing else")
                d.start()


def test_the_watchdog_of_another_process_is_none_of_ours():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(folder + "/notify")
        s.settimeout(DEADLINE)
        with running(environment={"NOTIFY_SOCKET": folder + "/notify", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}) as d:
            need(s.recv(4096).startswith(b"READY=1\n"), "ready")
            d.put("db.t", [{"k": 1, "v": "x"}])
            d.committed("db.t", 1)
            d.stop()
            same(s.recv(4096), b"STOPPING=1\n", "nothing of a watchdog")
            d.start()


def test_the_unit_is_one():
    if not shutil.which("systemd-analyze"):
        return
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "tarn.service"
        unit.write_text(SERVICE.read_text().replace("/usr/bin/tarn", str(peer.TARN.resolve())))
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, timeout=DEADLINE, check=False)
        said = result.stderr.decode()
        need("tarn.service" not in said, said)


def has_terminals():
    """False in a root without /dev/pts, where nobody could draw."""
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError as error:
        print("left out, what draws on a terminal: %s" % error)
        return False
    return True


def main():
    tests = runner.tests_of(globals())
    if not has_terminals():
        tests = [test for test in tests if "on_a_terminal" not in test.__code__.co_names]
    return runner.run_tests(tests, sys.argv[1:], lambda test: test())


if __name__ == "__main__":
    sys.exit(main())
