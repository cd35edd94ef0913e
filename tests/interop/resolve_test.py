"""Tables with a script: every reader sees what the script's fold makes of the rows, each row once, at every snapshot.

    resolve_test.py --seconds N --seed S [--java] [--pypaimon] [--case N] [NAME...]

A case makes a random table and a random script (folds.py) and takes some steps: processes write changes one after the other and
commit at random, some are killed and called again; tables are compacted, by Java, too; the script changes; another engine appends.
Then at each snapshot tarn, Java and pypaimon read the rows of the model, which folds them in Python; the changelog folds to what
the script announces, and each -U in it shows what was announced before; the dead letters are those rows that the model says. A
failure keeps the warehouse and prints the command that repeats it. With a NAME only that of the fixed cases is run.
"""
import argparse
import hashlib
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import folds
import peer
import property_test
import runner
import values
from fixtures_test import by_key, key_of
from folds import Dead, Fold, RecordMap, RowMap
from peer import need, same

TABLE = peer.TABLE
LETTERS = "db.letters"
PARKED = 2
PLACE = re.compile(r"(the row that is there: )?fold\.lua:\d+: ")


# ---------------------------------------------------------------- rows

class Record:
    """One line of input: its text, and the changes in it, each (kind, row); `dead`: why it is none, in part."""

    def __init__(self, text, changes=(), dead=None):
        self.text, self.changes, self.dead = text, list(changes), dead


class Rows:
    """Makes records for a table."""

    def __init__(self, rng, table, mapping):
        self.rng, self.table, self.mapping = rng, table, mapping
        self.few = rng.choice([2, 5, 5, 30, 400])
        self.long = 0
        self.old = []

    def value(self, name, t):
        rng = self.rng
        if name == "p0":
            return rng.choice(["1", "2"] if t.name == "INT" else ['"x"', '"y z"'])
        if name in self.table.primary:
            return values.random_value(rng, t, self.few)
        if name == folds.CONTROL:
            return str(rng.randrange(folds.CONTROLS))
        if name in ("s", "x", "d"):
            return folds.canonical(t, rng.randrange(50) if not t.floating else round(rng.uniform(-9, 9), 1))
        if t.name in ("STRING", "VARCHAR") and rng.random() < 0.8:
            return '"%s"' % "".join(rng.choice("abc") for _ in range(self.long if self.long and not t.a else rng.randrange(1, min(t.a or 9, 9) + 1)))
        if t.floating and self.mapping and self.mapping.input == "json":  # infinity is a text in JSON, and no number in a script
            return folds.canonical(t, round(rng.uniform(-9, 9), 1))
        if (t.name in values.INTEGER_BITS or t.name == "DECIMAL") and rng.random() < 0.9:
            return folds.canonical(t, rng.randint(-9, 9))
        return values.random_value(rng, t)

    def row(self):
        rng, table = self.rng, self.table
        if self.old and rng.random() < 0.15:
            return rng.choice(self.old)
        line = [values.NULL if not table.not_null[i] and rng.random() < 0.15 else self.value(n, t)
                for i, (n, t) in enumerate(zip(table.names, table.types))]
        self.old = [*self.old[-9:], line]
        return line

    def object(self, line):
        return "{%s}" % ",".join("%s:%s" % (json.dumps(n), v) for n, v in zip(self.table.names, line)
                                 if v != values.NULL or self.rng.random() < 0.5)

    def record(self, bad):
        rng = self.rng
        if rng.random() < bad:
            return Record(rng.choice(['{"kind":"+I","row":{}}', '{"rows":7}', "nonsense"]), dead="")
        if self.mapping and self.mapping.input == "json":
            return self.of_rows()
        kind, line = rng.choice(["+I"] * 4 + ["+U"] * 2 + ["-U", "-D"]), self.row()
        text, row = '{"kind":"%s","row":%s}' % (kind, self.object(line)), folds.row_of(self.table, line)
        try:
            return Record(text, [(kind, r) for r in (self.mapping.rows(row) if self.mapping and kind != "-U" else [row])])
        except Dead as e:
            return Record(text, dead=str(e))

    def of_rows(self):
        how = self.rng.choice(["drop", "bad"] + ["one"] * 4 + ["list"] * 4)
        lines = [self.row() for _ in range(1 if how == "one" else self.rng.randrange(4))]
        text = '{"how":"%s","rows":[%s]}' % (how, ",".join(map(self.object, lines)))
        try:
            return Record(text, [("+I", row) for row in self.mapping.rows(how, [folds.row_of(self.table, line) for line in lines])])
        except Dead as e:
            return Record(text, dead=str(e))


def line_at(records):
    """{byte where it begins: number of the line}"""
    out, at = {}, 0
    for number, record in enumerate(records, 1):
        out[at] = number
        at += len(record.text.encode()) + 1
    return out


# ---------------------------------------------------------------- the model

class Model:
    """What a table is after some records, and which of them are dead letters."""

    def __init__(self, table, followed):
        self.table, self.followed = table, followed
        self.rows, self.letters, self.known = {}, {}, {}

    def apply(self, fold, record, place, first=0, end=None):
        """Takes a record, or rows `first` to `end` of it, at a place that letters name: (*place, part) -> (a part of the reason, the row)."""
        if record.dead is not None:
            self.letters[(*place, 0)] = record.dead, None
            return
        for part, (kind, row) in list(enumerate(record.changes))[first:end]:
            try:
                self.put(row, self.step(fold, kind, row))
            except Dead as e:
                self.letters[(*place, part)] = str(e), '{"kind":"%s","row":%s}' % (kind, folds.line_of(self.table, row))

    def step(self, fold, kind, row):
        """What is true then. A change that can't be told is none."""
        now = self.rows.get(folds.key_of(self.table, row))
        new = fold.step(now, kind, row, fold.is_late(now, row))
        if self.followed and new is not now and not (now and new and folds.line_of(self.table, now) == folds.line_of(self.table, new)):
            fold.announce(now)
            fold.announce(new)
        return new

    def image(self, fold, row):
        """The text of what followers may see of a row, or None."""
        try:
            image = fold.announce(row) if self.followed else row
        except Dead:  # another script made it
            return None
        return image and folds.line_of(self.table, image)

    def trial(self, fold, record):
        """Takes the record; what `tarn test --rows` says of each of its rows."""
        if record.dead is not None:
            return ["dead:"]
        out = []
        for kind, row in record.changes:
            if kind == "-U":
                continue
            was = self.rows.get(folds.key_of(self.table, row))
            try:
                new = self.step(fold, kind, row)
            except Dead:
                out.append("dead:")
                continue
            self.put(row, new)
            before, after = (r and folds.line_of(self.table, r) for r in (was, new))
            if before == after:
                out.append("table: as it was")
                continue
            out.append("table: %s" % ("-D" if after is None else "%s %s" % ("+U" if before else "+I", after)))
            before, after = (r and folds.line_of(self.table, r) for r in (fold.announce(was), fold.announce(new)))
            if before == after:
                out.append("told:  nothing")
            else:
                out += ["told:  %s %s" % ("-U" if after else "-D", before)] * bool(before) + ["told:  %s %s" % ("+U" if before else "+I", after)] * bool(after)
        return out

    def put(self, row, new):
        key = folds.key_of(self.table, row)
        if new is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = new

    def texts(self, fold):
        """{key: (row, its text, text of what followers may see or None)}; most rows are what they were."""
        for key, row in self.rows.items():
            known = self.known.get(key)
            if not known or known[0] is not row or known[3] is not fold:
                self.known[key] = row, folds.line_of(self.table, row), self.image(fold, row), fold
        return {key: self.known[key][:3] for key in self.rows}

    def lines(self, fold):
        return [text for _, text, _ in self.texts(fold).values()]

    def announced(self, fold):
        return {key: image for key, (_, _, image) in self.texts(fold).items() if image is not None}


class Follower:
    """Somebody who applies changes by their kinds; `strict`: and knows what each must say, but for those in doubt."""

    def __init__(self, table, strict, rows=()):
        self.table, self.strict, self.unsure = table, strict, set()
        self.rows = {self.key(text): text for text in rows}

    def key(self, text):
        return tuple(v for n, v in peer.members(text) if n in self.table.primary)

    def doubt(self, keys):
        """What is announced of them is no more what was announced before."""
        self.unsure.update(keys if self.strict else ())

    def apply(self, lines):
        before = None
        for line in lines:
            change = dict(peer.members(line))
            kind, text = json.loads(change["kind"]), change["row"]
            key = self.key(text)
            known = self.rows.pop(key, None)
            if kind in ("-U", "-D"):
                good = known == text
            else:
                good = known is None and before == (key if kind == "+U" else None)
                self.rows[key] = text
            need(good or not self.strict or key in self.unsure, "%s, but followers know %s" % (line, known))
            if kind != "-U":
                self.unsure.discard(key)
            before = key if kind == "-U" else None

    def check(self, announced):
        for key in {*self.rows, *announced} - self.unsure:
            if self.rows.get(key) != announced.get(key):
                raise peer.Failure("followed: %s, announced is %s" % (self.rows.get(key), announced.get(key)))


# ---------------------------------------------------------------- a case

class Case(property_test.Notes):
    def __init__(self, args, number):
        self.args, self.number = args, number
        self.rng = rng = random.Random("%d/%d" % (args.seed, number))
        self.folder = peer.ROOT / ("build/resolve/%d-%d" % (args.seed, number))
        shutil.rmtree(self.folder, ignore_errors=True)
        self.warehouse = self.folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        self.tarn = peer.Tarn(self.warehouse)
        mapping = rng.choice([RecordMap, RowMap] + [None] * 4)
        self.table = folds.random_columns(rng, mapping is RecordMap)
        self.mapping = mapping and mapping(rng, self.table)
        self.input = mapping.input if mapping else "changes"
        self.options()
        self.fold = Fold(rng, self.table, self.table.options.get("tarn.sequence.field"))
        self.rows = Rows(rng, self.table, self.mapping)
        self.model = Model(self.table, self.producer == "input")
        self.follower = Follower(self.table, self.producer == "input")
        self.heavy = rng.random() < 0.15
        if self.heavy:
            self.rows.long, self.rows.few = 1500, 400
            for option in ("write-only", "manifest.target-file-size"):
                self.table.options.pop(option, None)
        self.letters = rng.choice([None, LETTERS, self.folder / "letters"])
        self.repeated = False  # some rows came again
        self.offsets, self.seconds = {}, 0.08  # {file: {byte: line}}, what a process took
        self.last = self.snapshot_count = self.broken = self.killed = 0
        self.expected, self.announced, self.changes, self.done = {}, {}, {}, {}
        self.changed, self.foreign = {}, {}  # snapshot -> keys that the script announces otherwise there, that others wrote
        self.java = self.python = None

    def options(self):
        rng, options = self.rng, self.table.options
        property_test.file_options(rng, self.table)
        options["bucket"] = str(rng.choice([1, 1, 2, 3]))
        self.producer = options["changelog-producer"] = rng.choice(["none", "input", "input"])
        if "s" in self.table.names and rng.random() < 0.6:
            options["tarn.sequence.field"] = "s"
        self.script = self.folder / "fold.lua"
        options["tarn.script"] = str(self.script)

    def do(self, verb, *words):
        self.log("tarn %s %s" % (verb, " ".join(map(str, words))))
        return self.tarn.run(verb, TABLE, *words).ok("tarn %s %s" % (verb, " ".join(map(str, words))))

    def ask(self, verb, *words):
        self.log("oracle %s %s" % (verb, " ".join(map(str, words))))
        return self.java.run(verb, self.warehouse, TABLE, *words).ok("oracle %s %s" % (verb, " ".join(map(str, words))))

    def run(self, python):
        self.python = python
        self.write_script()
        self.schema = self.file(self.table.json(), "json")
        self.do("create", "--schema", self.schema)
        if self.args.java:
            self.java = peer.java()
        try:
            self.write()
            for _ in range(self.rng.randint(1, 6)):
                self.step()
                self.check()
            self.finish()
        finally:
            if self.java:
                self.java.close()

    def step(self):
        steps = [self.write] * 5 + [self.compact] * 2 + [self.change_script] * 2
        if self.python:
            steps += [self.python_append]
        if self.java:
            steps += [self.java_append, self.java_compact]
        self.rng.choice(steps)()

    # -- the script

    def write_script(self):
        self.script.write_text(self.fold.lua(self.mapping))
        self.log("script: %s" % hashlib.sha256(self.script.read_bytes()).hexdigest())
        shutil.copy(self.script, self.folder / ("fold-%d.lua" % self.files))

    def change_script(self, seed=None):
        """Rows that were resolved stay as they were; followers know what the old one announced."""
        rng = random.Random(seed or self.rng.random())
        fold = Fold(rng, self.table, self.fold.sequence)
        if rng.random() < 0.6:
            fold.announce_as(self.fold)
        before = self.model.announced(self.fold)
        self.fold = fold
        after = self.model.announced(fold)
        self.changed.setdefault(self.last + 1, set()).update(key for key in {*before, *after} if before.get(key) != after.get(key))
        self.write_script()

    # -- tarn writes

    def write(self):
        rng = self.rng
        bad = rng.choice([0, 0, 0.05])
        records = [self.rows.record(bad) for _ in range(3000 if self.heavy else rng.choice([1, 10, 60, 60, 200, 600]))]
        path = self.file("".join(r.text + "\n" for r in records), self.input)
        args = ["write", TABLE, path, "--input", self.input]
        if rng.random() < 0.7:
            args += ["--commit-every", len(records) // rng.choice([2, 5, 12]) + 1]
        if self.table.flag("write-only") and self.last:  # each run is looked up: somebody has to make them fewer
            self.compact()
        if self.heavy:
            args += ["--memory", "10M"]
        if self.letters:
            args += ["--dead-letters", self.letters]
        if not self.heavy and rng.random() < 0.3:  # (long rows are shown in part)
            self.check_trial(path, records)
        kills = [(rng.random(), rng.random() < 0.2 and rng.random()) for _ in range(rng.choice([0, 0, 0, 1, 2]))]
        committed, rc = (0, 0), None
        while rc not in (0, 1):
            part, new = kills.pop() if kills else (None, False)
            rc, err = self.process(args, part and part * self.seconds)
            begin, committed = committed, self.learn(path, records)
            if rc not in (0, 1):
                self.after_a_break(rng.random() if rc == PARKED else new)
        self.finish_file(path, records, committed)
        dead = any(name == path.name and (line - 1, part) >= begin for name, line, part in self.model.letters)
        same(rc, 1 if dead else 0, "exit code of write %s: %s" % (path.name, err))
        self.offsets[path.name] = line_at(records)
        self.check_letters()

    def after_a_break(self, new):
        self.broken, self.repeated = self.broken + 1, True
        need(self.broken < 100, "a hundred scripts, and none of them goes on")
        self.do("fsck")
        self.do("expire")  # which may have been cut in the middle
        if new:
            self.change_script(new)

    def check_letters(self):
        """One for each row that the model says, and for no other one. In a file those of a killed process may stand twice."""
        if not self.letters:
            return
        want, got = self.model.letters, self.read_letters()
        places, exact = [place for place, _ in got], not (self.repeated and self.letters != LETTERS)
        bad = peer.difference([str(x) for x in want], [str(x) for x in (places if exact else set(places) & set(want))], "letter")
        need(not bad, "dead letters (file, line, part): %s" % bad)
        for place, letter in got if exact else ():
            reason, row = want[place]
            need(reason in letter["reason"], "letter of %s says %r, not %r" % (place, letter["reason"], reason))
            if row is not None:
                need(PLACE.match(letter["reason"]), "letter of %s: %s names no line" % (place, letter["reason"]))
                same((letter["input"], letter["record"]), ("row", row), "letter of %s" % (place,))

    def read_letters(self):
        """[((file, line, part), letter)]"""
        if self.letters == LETTERS:
            folder = self.warehouse / "db.db/letters"
            lines = self.tarn.run("cat", LETTERS, "--format", "json").ok("cat of letters") if folder.exists() else []
            letters = list(map(json.loads, lines))
        else:
            letters = self.whole(Path(self.letters).read_bytes() if Path(self.letters).exists() else b"")
        out = []
        for letter in letters:
            name = letter["source"].split(":")[0].removeprefix("file.")
            need(letter["table"] == TABLE, "letter of another table: %s" % letter)
            out.append(((name, self.offsets[name].get(letter["position"]), letter["part"]), letter))
        return out

    def whole(self, data):
        """A process that is killed may leave half a letter, whose line the next one ends; its row comes again."""
        letters, halves = [], []
        for line in filter(None, data.split(b"\n")):
            try:
                letters.append(json.loads(line.decode()))
            except ValueError:
                halves.append(line)
        need(len(halves) <= self.killed, "%d processes were killed, %d letters are halves: %s" % (self.killed, len(halves), halves))
        return letters

    def process(self, args, seconds):
        """(exit code, what it said); killed after some seconds, which no seed repeats.

        PARKED: rows of a key that has got stuck at the end of a column's range have failed one behind the other; it takes another
        script to go on."""
        argv = [str(peer.TARN), args[0], "--warehouse", str(self.warehouse), *map(str, args[1:])]
        self.log("tarn %s%s" % (" ".join(map(str, args)), " until %.3f s" % seconds if seconds is not None else ""))
        begin = time.monotonic()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            err = process.communicate(timeout=seconds)[1].decode()
            self.seconds = time.monotonic() - begin
        except subprocess.TimeoutExpired:
            process.kill()
            self.killed += 1
            err = process.communicate()[1].decode()
        parked = process.returncode == PARKED and "is parked after 100 failures in a row" in err
        need(process.returncode in (0, 1, -signal.SIGKILL) or parked, "%s: exit code %d: %s" % (" ".join(argv), process.returncode, err[-3000:]))
        return process.returncode, err

    def learn(self, path, records):
        """Moves the model to what the new snapshots say is in them; returns the place: (records, rows of the next one)."""
        done = self.done.get(path.name, (0, 0))
        for s in range(self.last + 1, self.latest() + 1):
            said = self.properties(s)
            position = said.get("tarn.position.file." + path.name)
            if position:
                lines, part = (position.split(":") + ["0"])[2:4]
                place = int(lines), int(part)
                need(place >= done, "snapshot %d: position %s after %s" % (s, position, done))
                self.apply(path, records, done, place)
                done = place
                self.check_digests(s, said)
            self.hold(s)
        self.done[path.name] = done
        return done

    def apply(self, path, records, begin, end):
        for at in range(begin[0], min(end[0] + (end[1] > 0), len(records))):
            first = begin[1] if at == begin[0] else 0
            self.model.apply(self.fold, records[at], (path.name, at + 1), first, end[1] if at == end[0] else None)

    def finish_file(self, path, records, begin):
        """What no snapshot has is done with only when it changes nothing."""
        before = self.model.lines(self.fold)
        self.apply(path, records, begin, (len(records), 0))
        bad = peer.difference(self.model.lines(self.fold), before)
        need(not bad, "%s has %d records, %s are committed: %s" % (path.name, len(records), begin, bad))
        self.done[path.name] = len(records), 0

    def properties(self, snapshot):
        path = self.warehouse / ("db.db/t/snapshot/snapshot-%d" % snapshot)
        return json.loads(path.read_text()).get("properties") or {} if path.exists() else {}

    def check_digests(self, snapshot, said):
        want = hashlib.sha256(self.script.read_bytes()).hexdigest()
        got = {n: v for n, v in said.items() if n.startswith("tarn.script")}
        need(got and set(got.values()) == {want}, "snapshot %d: scripts %s, not %s" % (snapshot, got, want))

    def hold(self, snapshot):
        self.last = snapshot
        self.expected[snapshot] = self.model.lines(self.fold)
        self.announced[snapshot] = self.model.announced(self.fold)

    # -- others write

    def compact(self):
        self.do("compact", *(["--full"] if self.rng.random() < 0.5 or self.table.flag("write-only") else []))
        self.hold_new()

    def java_compact(self):
        self.ask("compact", "--full")
        self.hold_new()

    def hold_new(self):
        for s in range(self.last + 1, self.latest() + 1):
            self.hold(s)

    def append(self, who, kinds):
        """Another engine's rows: no script resolves them, and nobody announces them."""
        lines = {}
        for _ in range(self.rng.choice([1, 5, 30])):
            line = self.rows.row()
            lines[folds.key_of(self.table, folds.row_of(self.table, line))] = line
        changes = [(self.rng.choice(kinds), line) for line in lines.values()]
        path = self.file("".join('{"kind":"%s","row":%s}\n' % (k, self.table.line(x)) for k, x in changes), "changes")
        for kind, line in changes:
            row = folds.row_of(self.table, line)
            self.model.put(row, None if kind in ("-D", "-U") else row)
        self.foreign.setdefault(self.last + 1, set()).update(lines)
        who(path)
        self.hold_new()

    def java_append(self):
        self.append(lambda path: self.ask("write", path, "--compact", self.rng.choice(["none", "auto"])), ["+I", "+I", "+U", "-D"])

    def python_append(self):
        def write(path):
            self.log("pypaimon write %s" % path)
            self.python.run("write", self.warehouse, TABLE, path).ok("pypaimon write")
        self.append(write, ["+I"])

    # -- checks

    def snapshots(self):
        """Their numbers; those before EARLIEST are half gone."""
        folder = self.warehouse / "db.db/t/snapshot"
        ids = sorted(int(p.name[9:]) for p in folder.glob("snapshot-*"))
        hint = folder / "EARLIEST"
        return [s for s in ids if not hint.exists() or s >= int(hint.read_text())]

    def latest(self):
        return max(self.snapshots(), default=0)

    def check_trial(self, path, records):
        """`tarn test --rows` does with the same rows what the model does, from nothing on."""
        words = ["--schema", self.schema, "--rows", path, "--input", self.input]
        self.log("tarn test %s %s" % (self.script, " ".join(map(str, words))))
        said = self.tarn.run("test", self.script, *words)
        need(said.rc in (0, 1), "tarn test: %s" % said.err)
        got = [line.strip() for line in said.lines if line.startswith("    ")]
        model = Model(self.table, True)
        want = [line for record in records for line in model.trial(self.fold, record)]
        for g, w in zip([g if not g.startswith("dead:") else "dead:" for g in got], want):
            same(g, w, "tarn test of %s: %s" % (path, [line for line in said.lines if "dead:" in line][-3:]))
        same(len(got), len(want), "lines of tarn test")

    def check(self):
        self.do("fsck")
        if self.java:
            self.ask("fsck", "--quiet")
        new = [s for s in self.snapshots() if s not in self.changes]
        for s in new:
            self.follow(s)
        for s in new if len(new) < 6 else [*self.rng.sample(new[:-1], 5), new[-1]]:
            self.read(s)
            self.snapshot_count += 1

    def read(self, snapshot):
        want = self.expected[snapshot]
        self.agree("tarn", snapshot, want, self.tarn.cat("--snapshot", snapshot).ok("tarn cat"))
        if self.java:
            self.agree("Java", snapshot, want, self.java.run("read", self.warehouse, TABLE, "--snapshot", snapshot).ok("oracle read"))
        if self.python:
            self.agree("pypaimon", snapshot, want, self.python.run("read", self.warehouse, TABLE, "--snapshot", snapshot).ok("pypaimon read"))

    def agree(self, who, snapshot, want, got):
        bad = peer.difference(want, got)
        need(not bad, "snapshot %d as %s reads it: %s" % (snapshot, who, bad))

    def follow(self, snapshot):
        lines = self.tail("--from", snapshot, "--to", snapshot)
        self.changes[snapshot] = lines
        got = self.tarn.cat("--kind", "--incremental", "%d,%d" % (snapshot - 1, snapshot), "--incremental-mode", "changelog")
        if got.rc == 0 and self.producer == "input":
            bad = peer.difference(lines, got.lines)
            need(not bad, "cat --incremental up to %d: %s" % (snapshot, bad))
        if snapshot > 1 and snapshot - 1 not in self.changes:  # expired before it was seen: another follower begins
            self.follower.rows, self.follower.unsure = dict(self.announced[snapshot]), set()
            return
        try:
            self.go_on(self.follower, snapshot, lines)
        except peer.Failure as e:
            raise peer.Failure("changes of snapshot %d: %s" % (snapshot, e)) from e

    def go_on(self, follower, snapshot, lines):
        """One snapshot further."""
        follower.doubt(self.changed.get(snapshot, ()))
        follower.doubt(self.foreign.get(snapshot, ()))
        follower.apply(lines)
        follower.doubt(self.foreign.get(snapshot, ()))
        follower.check(self.announced[snapshot])

    def tail(self, *words):
        return self.tarn.run("tail", TABLE, "--format", "json", *words).ok("tarn tail " + " ".join(map(str, words)))

    def finish(self):
        self.check()
        ids = self.snapshots()
        if self.java and ids:
            self.java_follows(ids)
            self.ask("exercise")

    def java_follows(self, ids):
        """Java's streaming reader: each snapshot's changes are tarn's, and from each state on it has what it can have."""
        key = key_of(self.warehouse / "db.db/t")
        told = {s: [] for s in ids}
        for line in self.ask("changelog", "--from", ids[0]):
            change = dict(peer.members(line))
            told[int(change["snapshot"])].append('{"kind":%s,"row":%s}' % (change["kind"], change["row"]))
        for s, lines in told.items():
            if by_key(lines, key) != by_key(self.changes[s], key):
                raise peer.Failure("changes of %d as Java tells them: %s" % (s, peer.difference(self.changes[s], lines) or "another order"))
        for s in ids if len(ids) < 8 else self.rng.sample(ids, 8):
            self.java_begins(s, ids, told)

    def java_begins(self, snapshot, ids, told):
        """It begins with the rows of the table, which it keeps until something is announced of their key. (Where images are the
        rows, that is the table at each snapshot; else it has seen the columns that are not announced, as any reader may.)"""
        state = [dict(peer.members(x))["row"] for x in self.ask("changelog", "--state", snapshot)]
        self.agree("Java when it begins there", snapshot, self.expected[snapshot], state)
        reader, seen = Follower(self.table, self.producer == "input", state), self.announced[snapshot]
        untold = {key for key in {*reader.rows, *seen} if reader.rows.get(key) != seen.get(key)}
        for s in ids[ids.index(snapshot) + 1:]:
            reader.doubt(untold)
            self.go_on(reader, s, told[s])
            untold &= reader.unsure
            changed = {*self.changed.get(s, ()), *self.foreign.get(s, ())}
            untold -= changed
            silent = [key for key in untold if seen.get(key) != self.announced[s].get(key)]
            need(not silent, "Java begins at %d, and nothing is told of %s" % (snapshot, silent[:3]))


# ---------------------------------------------------------------- fixed cases

RAMP = ["--field", "dev STRING", "--field", "ts TIMESTAMP(3)", "--field", "temp DOUBLE", "--field", "temp_told DOUBLE", "--field", "hot BOOLEAN",
        "--primary-key", "dev", "--option", "bucket=1", "--option", "changelog-producer=input"]


def test_a_slow_ramp_under_a_dead_band_is_told_in_time(tarn):
    """Steps of 0.3 under a band of 0.5, over commits of each length: followers are never half a degree behind."""
    script = peer.ROOT / "scripts/deadband.lua"
    rows = [{"dev": "a", "ts": "2026-01-01 00:00:%02d" % i, "temp": round(20 + 0.3 * i, 1)} for i in range(40)]
    for every in (1, 2, 7, 40):
        table = "db.every%d" % every
        tarn.run("create", table, *RAMP, "--option", "tarn.script=%s" % script).ok("create")
        said = tarn.run("write", table, "-", "--commit-every", every, stdin="".join(json.dumps(r) + "\n" for r in rows))
        said.ok("write")
        known, count, begin = None, 0, 1
        for snapshot, taken in ((int(s), int(n)) for s, n in property_test.COMMITTED.findall(said.err)):
            for line in tarn.run("tail", table, "--format", "json", "--from", begin, "--to", snapshot).ok("tail"):
                change = json.loads(line)
                need(change["kind"] != "-U" or change["row"]["temp"] == known, "%s, but %s was told" % (line, known))
                known, count = change["row"]["temp"], count + (change["kind"] != "-U")
            begin, true = snapshot + 1, rows[taken - 1]["temp"]
            need(known is not None and abs(true - known) < 0.5, "snapshot %d: %s is told, %s is true" % (snapshot, known, true))
        same(taken, len(rows), "rows that were committed")
        if every == 1:
            same(count, 20, "readings that were told")


def test_what_would_be_wrong_with_a_script_is_refused_with_the_reason(tarn):
    """Other readers would merge, or tell, the finished rows once more."""
    script = Path(tarn.warehouse) / "fold.lua"
    script.write_text("return { merge = function(now, row) return row end }")
    for options, words in (({"changelog-producer": "lookup"}, ["changelog-producer", "lookup"]),
                           ({"changelog-producer": "full-compaction"}, ["changelog-producer", "full-compaction"]),
                           ({"deletion-vectors.enabled": "true"}, ["deletion-vectors.enabled"]),  # in any table
                           ({"merge-engine": "first-row"}, ["first-row"]),
                           ({"merge-engine": "partial-update"}, ["partial-update"]),
                           ({"merge-engine": "aggregation"}, ["aggregation"]),
                           ({"sequence.field": "n"}, ["sequence.field", "tarn.sequence.field"]),
                           ({"ignore-delete": "true"}, ["ignore-delete"])):
        words += [] if "deletion-vectors.enabled" in options else ["script"]
        args = [x for o in {"bucket": "1", "tarn.script": str(script), **options}.items() for x in ("--option", "%s=%s" % o)]
        result = tarn.run("create", "db.refused", "--field", "k INT", "--field", "n INT", "--primary-key", "k", *args)
        need(result.rc == 2 and all(w in result.err for w in words), "%s: exit code %d: %s" % (options, result.rc, result.err))
        need(not (Path(tarn.warehouse) / "db.db/refused").exists(), "create with %s left a table" % options)


# ---------------------------------------------------------------- main

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--pypaimon", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    if args.names or args.case is None:
        rc = runner.run_tests(runner.tests_of(globals()), args.names, runner.in_a_warehouse)
        if args.names or rc:
            return rc
    python = peer.pypaimon() if args.pypaimon else None
    try:
        return run_cases(args, python, end)
    finally:
        if python:
            python.close()


def run_cases(args, python, end):
    """Random ones, up to the first failure."""
    number, snapshots, broken = args.case or 0, 0, 0
    while number == (args.case or 0) or (args.case is None and time.monotonic() < end):
        case = Case(args, number)
        try:
            case.run(python)
        except Exception as e:
            flags = "".join(" --" + f for f in ("java", "pypaimon") if getattr(args, f))
            print("case %d: %s\n  options %s\n  steps, inputs and warehouse: %s\n  repeat: build/venv/bin/python3 tests/interop/resolve_test.py --seed %d --case %d%s" % (
                number, runner.said(e), case.table.options, case.folder, args.seed, number, flags), flush=True)
            print("%d passed, 1 failed" % (number - (args.case or 0)))
            return 1
        shutil.rmtree(case.folder)
        number, snapshots, broken = number + 1, snapshots + case.snapshot_count, broken + case.broken
    print("%d snapshots read, %d processes broken off" % (snapshots, broken))
    print("%d passed, 0 failed" % (number - (args.case or 0) + len(runner.tests_of(globals())) * (args.case is None)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
