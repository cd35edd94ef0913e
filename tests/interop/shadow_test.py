"""`tarn reload --shadow`: rows go through the script that runs and through the one that was written since; what it says is what a model
says, and nothing changes before it is activated.

    shadow_test.py [--seed S] [--cases N] [NAME...]
"""
import json
import os
import pty
import random
import re
import signal
import subprocess

import peer
import runner
from child import DEADLINE, Child
from peer import need, same
from reload_test import Reloaded

TABLE = '{ fields = { "id BIGINT NOT NULL", "n BIGINT" }, primary_key = { "id" }, options = { bucket = %d }, script = "fold.lua", commit = "%s" }'
SUM = "return {merge = function(now, row) row.n = row.n + %d * (now and now.n or 0) return row end}"
KEYS = 12
ANY = 1 << 30  # examples


class Shadowed(Reloaded):
    """A daemon with one table and its script, and those who shadow it."""

    def __init__(self, script, commit="20ms", buckets=1):
        super().__init__({})
        self.script = self.folder / "fold.lua"
        self.script.write_text(script)
        self.tables = {"db.t": TABLE % (buckets, commit)}
        self.configure(self.tables)
        self.shadows = []

    def __enter__(self):
        super().__enter__()
        self.get_ready()
        return self

    def __exit__(self, *how):
        for shadow in self.shadows:
            shadow.kill()
        super().__exit__(*how)

    def shadow(self, *args):
        child = Child(self.folder / "shadow.log")
        child.start([str(peer.TARN), "reload", "-w", str(self.warehouse), *args])
        self.shadows.append(child)
        return child

    def begun(self, *args, time="10m"):
        """One that sees what comes from here on, until it is ended."""
        child = self.shadow("--shadow", time, *args)
        child.until("it begins", lambda: "goes through both" in child.said)
        return child

    def send(self, records, kinds=None):
        """Records in one message; acknowledged."""
        path = "/tables/db.t/rows" + ("?input=changes" if kinds else "")
        lines = [{"kind": kind, "row": record} for kind, record in zip(kinds, records)] if kinds else records
        status, text = self.ask("POST", path, "".join(json.dumps(line) + "\n" for line in lines))
        same(status, 200, "status: %s" % text)

    def state(self, table):
        tables = json.loads(self.ask("GET", "/status")[1])["tables"]
        return next(t["state"] for t in tables if t["table"] == table)

    def table(self):
        return {row["id"]: row["n"] for row in self.rows("db.t")}

    def commits(self, rows):
        """Whoever reads the table has these."""
        self.asked_until("committed are %s" % rows, lambda: self.table() == rows)


def ended(child, code):
    child.join()
    same(child.process.returncode, code, "exit code; it said %s" % child.log())
    return child.said


def interrupted(child):
    """What it says after Ctrl-C: all that was acknowledged before went through."""
    child.process.send_signal(signal.SIGINT)
    return ended(child, 1)


class Told:
    """A report, as figures."""

    def __init__(self, text):
        number = lambda pattern: tuple(map(int, re.search(pattern, text).groups()))
        self.text = text
        self.records, self.differ = number(r"  (\d+) records, of (\d+) comes something else")
        self.old, self.new = (number(r"  %s: [0-9a-f]{8}: (\d+) changes of the table, (\d+) told, (\d+) dead letters" % side) for side in ("old", "new"))
        self.others, self.keys = number(r"  (\d+) of (\d+) keys would have another row")
        self.left_out, self.left_out_rows = number(r"; (\d+) messages with (\d+) rows were left out")
        self.examples = dict(re.findall(r'^    \{"id":(\d+)\}: (.*)$', text, re.MULTILINE))
        self.dead = re.findall(r"^    (\d+) dead: (.*)$", text, re.MULTILINE)


# ---- a model of scripts that are made of a few numbers ----

class Script:
    def __init__(self, rng):
        self.drop, self.bad_map, self.bad, self.keep = rng.choice((5, 99)), rng.choice((7, 99)), rng.choice((3, 11, 99)), rng.randrange(0, 40)
        self.times, self.weight, self.step, self.stays = rng.randrange(1, 3), rng.randrange(0, 4), rng.choice((1, 1, 10, 1000)), rng.random() < 0.3

    def text(self):
        return """return {
map = function(row, meta)
  if meta.source ~= "http" then error("of " .. meta.source) end
  if row.id %% %(drop)d == 0 then return nil end
  if row.n %% %(bad_map)d == 6 then error("map") end
  row.n = row.n * %(times)d
  return row
end,
merge = function(now, row)
  if row.n %% %(bad)d == 2 then error("merge") end
  if row.n < %(keep)d then return tarn.KEEP end
  row.n = (row.n + %(weight)d * (now and now.n or 0)) %% 100003
  return row
end,
retract = function(now, row) return %(retract)s end,
announce = function(row) return { id = row.id, n = row.n // %(step)d } end,
}""" % {**vars(self), "retract": "tarn.KEEP" if self.stays else "tarn.DELETE"}

    def map(self, record):
        """The row, or None where it is dropped; a ValueError is a letter."""
        if record["id"] % self.drop == 0:
            return None
        if record["n"] % self.bad_map == 6:
            raise ValueError
        return {**record, "n": record["n"] * self.times}

    def merge(self, was, n):
        if n % self.bad == 2:
            raise ValueError
        return was if n < self.keep else (n + self.weight * (was or 0)) % 100003

    def refuses(self, record):
        try:
            self.map(record)
            return False
        except ValueError:
            return True


class Model:
    """What comes of records."""

    def __init__(self, script, base):
        self.script, self.rows, self.touched = script, dict(base), set()
        self.changed = self.told = self.dead = 0

    def image(self, n):
        return None if n is None else n // self.script.step

    def take(self, kind, record):
        """What came of it, to be held against another one."""
        try:
            row = self.script.map(record)
            if not row:
                return None
            was = self.rows.get(row["id"])
            self.touched.add(row["id"])
            now = (was if self.script.stays else None) if kind == "-D" else self.script.merge(was, row["n"])
        except ValueError:
            self.dead += 1
            return "dead"
        if now == was:
            return None
        self.changed += 1
        images = self.image(was), self.image(now)
        self.told += images[0] != images[1]
        self.rows[record["id"]] = now
        return now, (images if images[0] != images[1] else None)


def example(was, now, key):
    row = lambda n: '{"id":%d,"n":%d}' % (key, n)
    if was is None or now is None:
        return "%s -> %s" % tuple("no row" if n is None else row(n) for n in (was, now))
    return "n %d -> %d" % (was, now)


def messages(rng, old, count):
    """Such as are taken: HTTP refuses all of a message when one record can't be read."""
    for _ in range(count):
        records = [{"id": rng.randrange(KEYS), "n": rng.randrange(60)} for _ in range(rng.randrange(1, 6))]
        records = [record for record in records if not old.refuses(record)] or [{"id": 1, "n": 1}]
        yield records, [rng.choice(("+I", "+U", "-D")) for _ in records] if rng.random() < 0.5 else None


def run_case(rng):
    old, new = Script(rng), Script(rng)
    with Shadowed(old.text(), rng.choice(("10ms", "1h")), rng.randrange(1, 3)) as daemon:
        base = Model(old, {})
        for records, kinds in messages(rng, old, rng.randrange(0, 10)):
            daemon.send(records, kinds)
            for kind, record in zip(kinds or ["+I"] * len(records), records):
                base.take(kind, record)
        daemon.reload()  # that commits
        daemon.script.write_text(new.text())
        shadow = daemon.begun("--examples", str(ANY))
        models = Model(old, base.rows), Model(new, base.rows)
        seen = differ = 0
        for records, kinds in messages(rng, old, rng.randrange(1, 60)):
            daemon.send(records, kinds)
            for kind, record in zip(kinds or ["+I"] * len(records), records):
                results = [model.take(kind, record) for model in models]
                seen, differ = seen + 1, differ + (results[0] != results[1])
        told = Told(interrupted(shadow))
        daemon.stop()  # that commits
        want = {key: n for key, n in models[0].rows.items() if n is not None}
        same(daemon.table(), want, "rows of the table, of which nothing but the old script may know; %s" % told.text)
        same(daemon.starts(), 2, "starts")
    if old.text() == new.text():
        return
    same((told.records, told.differ), (seen, differ), "records, and of how many something else comes: %s" % told.text)
    same((told.old, told.new), tuple((model.changed, model.told, model.dead) for model in models), "changes, told, letters: %s" % told.text)
    others = {key for model in models for key in model.rows if models[0].rows.get(key) != models[1].rows.get(key)}
    examples = {str(key): example(models[0].rows.get(key), models[1].rows.get(key), key) for key in others}
    same((told.others, told.examples), (len(others), examples), "keys with another row: %s" % told.text)
    same(told.left_out, 0, "messages that were left out")


def test_what_it_says_is_what_a_model_says(args):
    for number in range(args.cases):
        seed = args.seed * 1009 + number
        try:
            run_case(random.Random(seed))
        except peer.Failure as e:
            raise peer.Failure("case %d: %s" % (number, e)) from e


# ---- what becomes of it ----

def test_it_is_activated_where_that_is_wanted(_args):
    with Shadowed(SUM % 1) as daemon:
        daemon.send([{"id": 1, "n": 1}])
        daemon.commits({1: 1})
        daemon.script.write_text(SUM % 10)
        said = ended(daemon.shadow("--shadow", "100ms"), 0)
        need("1 of 1" not in said and daemon.starts() == 1, "it was activated by nobody: %s" % said)
        said = ended(daemon.shadow("--shadow", "100ms", "--yes"), 0)
        same(daemon.starts(), 2, "starts; it said %s" % said)
        daemon.send([{"id": 1, "n": 1}])
        daemon.commits({1: 11})
        same(ended(daemon.shadow("--shadow", "1h", "--yes"), 0).split("\n")[0], "no script is another one than tarn run has", "of the same script")
        daemon.stop()


def test_with_more_dead_letters_it_is_not(_args):
    with Shadowed("return {merge = function(now, row) if row.n == 1 then error('one') end return row end}", commit="1h") as daemon:
        daemon.script.write_text("return {\nmerge = function(now, row) if row.n < 3 then error('small') end return row end}")
        shadow = daemon.begun("--yes")
        daemon.send([{"id": 1, "n": n} for n in range(5)])
        told = Told(interrupted(shadow))
        same(told.records, 5, "records")
        same([(count, text) for count, text in told.dead], [("1", "fold.lua:1: one"), ("3", "fold.lua:2: small")], "dead letters: %s" % told.text)
        need("a new script made more dead letters than the old one: nothing is activated" in told.text, told.text)
        same(daemon.starts(), 1, "starts")
        daemon.stop()


def answered(daemon, answer, before=lambda: None):
    """On a terminal it asks; its exit code."""
    ours, theirs = pty.openpty()
    shadow = subprocess.Popen([str(peer.TARN), "reload", "-w", str(daemon.warehouse), "--shadow", "100ms"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 4096)
    before()
    os.write(ours, answer)
    code = shadow.wait(timeout=DEADLINE)
    os.close(ours)
    return code


def test_on_a_terminal_it_asks(_args):
    with Shadowed(SUM % 1) as daemon:
        daemon.script.write_text(SUM % 10)
        for answer in (b"n\n", b"\n", b"\x04"):
            same((answered(daemon, answer), daemon.starts()), (0, 1), "exit code and starts after %r" % answer)
        same(answered(daemon, b"y\n"), 0, "exit code")
        daemon.until("a reload", lambda: daemon.starts() == 2)
        daemon.stop()


def test_files_that_are_written_meanwhile_are_not_activated(_args):
    with Shadowed(SUM % 1) as daemon:
        daemon.script.write_text(SUM % 10)
        same(answered(daemon, b"y\n", lambda: daemon.script.write_text(SUM % 100)), 2, "exit code")
        same(daemon.starts(), 1, "starts")
        daemon.stop()


def test_what_a_script_requires_counts(_args):
    """Whatever the files have by now, the old script is the one that runs, with all of its parts."""
    fold = "local part = require('part') return {merge = function(now, row) row.n = part(row.n, now and now.n or 0) return row end}"
    part = "return function(a, b) return a + %d * b end"
    with Shadowed("return {}") as daemon:
        path = daemon.folder / "part.lua"
        path.write_text(part % 1 + " -- " + 5000 * "x")
        daemon.script.write_text(fold)
        daemon.reload()
        daemon.send([{"id": 1, "n": 1}])
        daemon.commits({1: 1})
        path.write_text(part % 7)
        shadow = daemon.begun()
        daemon.send([{"id": 1, "n": 2}])
        same(Told(interrupted(shadow)).examples, {"1": "n 3 -> 9"}, "examples")
        path.unlink()
        said = ended(daemon.shadow("--shadow", "1h"), 2)
        need("part.lua" in said, said)
        daemon.stop()


# ---- what may be wrong ----

def test_what_is_wrong_is_said_before_anything_begins(_args):
    with Shadowed(SUM % 1) as daemon:
        for script, why in (("return {merge = 5}", "merge"), ("return {\n\nmerge = function(}", "fold.lua:3"),
                            ("return {merge = function(now, row) return row end, test = {{ merge = { nil, { n = 3 } }, gives = { n = 4 } }}}", "want 4")):
            daemon.script.write_text(script)
            said = ended(daemon.shadow("--shadow", "1h"), 2)
            need(why in said, said)
        daemon.script.write_text(SUM % 2)
        daemon.configure({"db.t": '{ colour = "red" }'})
        said = ended(daemon.shadow("--shadow", "1h"), 2)
        need("refused" in said and "colour" in said, said)
        for words in (["--shadow", "soon"], ["--shadow", "0s"], ["--yes"], ["--shadow", "1s", "--examples", "-1"]):
            ended(daemon.shadow(*words), 2)
        daemon.configure(daemon.tables)
        schemas = daemon.warehouse / "db.db/t/schema"
        (schemas / "schema-1").write_text((schemas / "schema-0").read_text().replace('"id" : 0', '"id" : 1', 1))
        said = ended(daemon.shadow("--shadow", "1h"), 2)
        need("db.t" in said and "its schema is 1, and tarn run has it with 0" in said, said)
        same(daemon.starts(), 1, "starts")
        daemon.stop()


def test_tables_that_come_and_go_are_named(_args):
    with Shadowed(SUM % 1) as daemon:
        daemon.configure({**daemon.tables, "db.s": daemon.tables["db.t"]})
        daemon.reload()
        daemon.configure({"db.t": daemon.tables["db.t"], "db.u": daemon.tables["db.t"]})
        daemon.script.write_text(SUM % 2)
        said = ended(daemon.shadow("--shadow", "100ms"), 0)
        need("db.s: it isn't in the new configuration" in said and "nothing to compare them with: 1" in said, said)
        daemon.stop()


def test_a_table_that_is_shut_is_named(_args):
    with Shadowed(SUM % 1) as daemon:
        tables = {**daemon.tables, "db.s": daemon.tables["db.t"]}
        daemon.configure(tables)
        daemon.reload()
        (daemon.warehouse / "db.db/s").rename(daemon.folder / "away")
        daemon.ask("POST", "/tables/db.s/rows", '{"id":1,"n":1}\n')
        daemon.asked_until("db.s is shut", lambda: daemon.state("db.s") == "shut")
        daemon.script.write_text(SUM % 2)
        said = ended(daemon.shadow("--shadow", "100ms"), 0)
        need("db.s: it is shut in tarn run: nothing to compare" in said and "db.t: " in said, said)
        (daemon.folder / "away").rename(daemon.warehouse / "db.db/s")
        daemon.asked_until("db.s is open", lambda: daemon.state("db.s") == "live")
        daemon.stop()


def test_nobody_is_there(_args):
    with Shadowed(SUM % 1) as daemon:
        daemon.stop()
        said = ended(daemon.shadow("--shadow", "1h"), 4)
        need("no tarn run" in said, said)


def test_standard_input_is_refused_at_once(_args):
    with Reloaded({}) as daemon:
        daemon.configure({"db.t": TABLE.replace('script = "fold.lua", ', "") % (1, "1h")}, '{ kind = "stdin", table = "db.t" }')
        daemon.start(stdin=subprocess.PIPE)
        daemon.wait_until_ready()
        result = peer.Tarn(daemon.warehouse).run("reload", "--shadow", "1h")
        need(result.rc == 2 and "standard input" in result.err, result.err)
        daemon.process.stdin.close()
        daemon.stop()


def test_the_daemon_ends_or_begins_anew_meanwhile(_args):
    with Shadowed(SUM % 1) as daemon:
        for end in (daemon.kill, daemon.stop, daemon.reload):
            daemon.script.write_text(SUM % (daemon.starts() + 1))
            shadow = daemon.begun("--yes")
            daemon.send([{"id": 1, "n": 1}])
            end()
            told = Told(ended(shadow, 1))
            same(told.records, 1, "records")
            need("tarn run ended, or began anew, meanwhile: nothing is activated" in told.text, told.text)
            if not daemon.runs():
                daemon.get_ready()
        daemon.stop()


def test_of_two_the_second_is_refused_and_one_that_was_killed_is_not_in_the_way(_args):
    with Shadowed(SUM % 1) as daemon:
        daemon.script.write_text(SUM % 2)
        first = daemon.begun()
        said = ended(daemon.shadow("--shadow", "1h"), 5)
        need("process %d" % first.process.pid in said, said)
        first.kill()
        second = daemon.begun()
        daemon.send([{"id": 1, "n": 1}])
        same(Told(interrupted(second)).records, 1, "records")
        need(not list(daemon.warehouse.glob(".tarn/shadow.sock")), "the socket is there")
        daemon.stop()


def test_who_is_too_slow_is_not_waited_for(args):
    """It is stopped, so that nothing is read; rows come, and are acknowledged, all the same."""
    rng = random.Random(args.seed)
    with Shadowed(SUM % 1, commit="1h") as daemon:
        daemon.script.write_text(SUM % 2)
        shadow = daemon.begun()
        shadow.process.send_signal(signal.SIGSTOP)
        sent = messages = 0
        connection = daemon.connection()
        while messages < 320:  # 7 MB: what is between them has 2
            size = rng.randrange(80, 100)
            text = "".join('{"id":%d,"n":1}%s\n' % (rng.randrange(100), 230 * " ") for _ in range(size))
            status, answer = daemon.ask("POST", "/tables/db.t/rows", text, connection=connection)
            if status != 503:  # no room in the table, for a moment
                same(status, 200, "status: %s" % answer)
                sent, messages = sent + size, messages + 1
            need(daemon.runs(), daemon.log())
        connection.close()
        shadow.process.send_signal(signal.SIGCONT)
        told = Told(interrupted(shadow))
        need(told.records > 0 and told.left_out > 0, told.text)
        same(told.records + told.left_out_rows, sent, "records that were seen, and rows that were left out: %s" % told.text)
        daemon.stop()


if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), cases=12))
