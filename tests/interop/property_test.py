"""Random tables, options, rows and commits: tarn, official Paimon and a small model must agree at every snapshot.

    property_test.py --seconds N --seed S [--java] [--pypaimon] [--case N] [--no-tarn]

A case makes one table from its seed and takes some steps: tarn or Java writes, compacts or expires. After each step tarn's and
Java's fsck find nothing, and every engine reads at every snapshot what the model says; at the end Java writes, compacts and
expires on a copy (`oracle exercise`). A failure keeps the warehouse and prints the command that repeats it. `--no-tarn` lets
Java do all the writing: it tests this file.
"""
import argparse
import json
import random
import re
import shutil
import sys
import time
from pathlib import Path

import peer
import values
from model import Model, Table, Where

TABLE = peer.TABLE
COMMITTED = re.compile(r"^committed snapshot=(\d+) rows=(\d+)\b.*$", re.MULTILINE)


# ---------------------------------------------------------------- random tables

def random_table(rng, floats):
    """With `floats` also FLOAT and DOUBLE as keys: such tables are made by others only."""
    table = Table()
    table.wide = rng.random() < 0.1
    keyed = rng.random() < 0.8
    part_count = rng.choice([0, 0, 0, 1, 1, 2])
    key_count = rng.choice([1, 1, 2, 3])
    columns = []
    for i in range(part_count):
        columns.append(("p%d" % i, partition_type(rng), keyed or rng.random() < 0.3, None))
    if keyed:
        columns += [("k%d" % i, values.random_type(rng, floats), True, None) for i in range(key_count)]
    for i in range(rng.randint(1, 7)):
        t = values.random_type(rng)
        default = random_default(rng, t) if rng.random() < 0.1 else None
        columns.append((rng.choice(["v%d", "Value_%d", "v_%d_x"]) % i, t, rng.random() < 0.15 and default is None, default))
    names = [c[0] for c in columns]
    rng.shuffle(columns)
    for column in columns:
        table.add(*column)
    table.partition = [n for n in names if n.startswith("p")]
    if keyed:
        table.primary = table.partition + [n for n in names if n[0] == "k"]
        rng.shuffle(table.primary)
    bucket_options(rng, table, keyed, floats)
    if keyed:
        merge_options(rng, table)
    file_options(rng, table)
    return table


def partition_type(rng):
    """No FLOAT and DOUBLE: Python looks for Infinity in another folder than Java's."""
    return rng.choice([values.Type("STRING"), values.Type("VARCHAR", 20), values.Type("INT"), values.Type("BIGINT"), values.Type("SMALLINT"),
                       values.Type("DATE"), values.Type("BOOLEAN"), values.Type("DECIMAL", 10, 2), values.Type("TIMESTAMP", 3),
                       values.Type("TIMESTAMP", 0), values.Type("TIME", 0), values.Type("TIMESTAMP_LTZ", 6)])


def random_default(rng, t):
    """Defaults are text that Paimon casts; only types whose cast is plain."""
    if t.name in ("INT", "BIGINT", "SMALLINT", "STRING", "BOOLEAN"):
        return rng.choice(["7", "-1"]) if t.name != "STRING" and t.name != "BOOLEAN" else {"STRING": '"none"', "BOOLEAN": "true"}[t.name]
    return None


def bucket_options(rng, table, keyed, floats):
    plain = [n for i, n in enumerate(table.names) if n not in table.partition and (floats or not table.types[i].floating)]
    trimmed = [n for n in table.primary if n not in table.partition]
    if keyed:
        table.options["bucket"] = str(rng.choice([1, 1, 2, 4]))
        if len(trimmed) > 1 and rng.random() < 0.3:
            table.options["bucket-key"] = ",".join(rng.sample(trimmed, rng.randint(1, len(trimmed) - 1)))
    elif plain and rng.random() < 0.5:
        table.options["bucket"] = str(rng.choice([1, 2, 4]))
        table.options["bucket-key"] = ",".join(rng.sample(plain, rng.randint(1, min(2, len(plain)))))
    else:
        table.options["bucket"] = "-1"
    key = table.options.get("bucket-key", ",".join(trimmed))
    if table.options["bucket"] != "-1" and key in table.names and table.types[table.index(key)].name in ("INT", "BIGINT") and rng.random() < 0.3:
        table.options["bucket-function.type"] = "mod"


def merge_options(rng, table):
    numbers = [n for i, n in enumerate(table.names) if n not in table.primary and table.defaults[i] is None and
               table.types[i].name in (*values.INTEGER_BITS, "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")]
    if numbers and rng.random() < 0.45:
        table.options["sequence.field"] = ",".join(rng.sample(numbers, min(len(numbers), rng.choice([1, 1, 2]))))
        if rng.random() < 0.3:
            table.options["sequence.field.sort-order"] = rng.choice(["descending", "ascending"])
    if rng.random() < 0.1:
        table.options["ignore-delete"] = "true"
    elif rng.random() < 0.1:
        table.options["ignore-update-before"] = "true"
    if rng.random() < 0.1:
        table.add("op", values.Type("STRING"))
        table.options["rowkind.field"] = "op"
    if rng.random() < 0.2:
        table.options["data-file.thin-mode"] = "true"


def file_options(rng, table):
    def maybe(chance, key, *choices):
        if rng.random() < chance:
            table.options[key] = str(rng.choice(choices))
    maybe(0.3, "file.compression", "null", "zstd", "deflate")
    maybe(0.1, "file.compression.zstd-level", 1, 3)
    maybe(0.3, "metadata.stats-mode", "none", "counts", "truncate(1)", "truncate(5)", "full")
    maybe(0.2, "metadata.stats-dense-store", "false", "true")
    if rng.random() < 0.2:
        table.options["fields.%s.stats-mode" % rng.choice(table.names)] = rng.choice(["none", "counts", "truncate(3)", "full"])
    maybe(0.4, "num-sorted-run.compaction-trigger", 2, 3, 4, 8)
    maybe(0.1, "num-sorted-run.stop-trigger", 8, 12)
    maybe(0.2, "compaction.size-ratio", 0, 10, 50)
    maybe(0.2, "compaction.max-size-amplification-percent", 50, 100, 400)
    maybe(0.2, "compaction.min.file-num", 2, 3)
    maybe(0.3, "tarn.compaction.unit-size-max", "1 b", "2 kb", "10 kb")
    if rng.random() < 0.1:
        table.options["compaction.offpeak.start.hour"] = str(rng.randrange(24))
        table.options["compaction.offpeak.end.hour"] = str(rng.randrange(25))
        table.options["compaction.offpeak-ratio"] = str(rng.choice([10, 100]))
    maybe(0.3, "target-file-size", "1 kb", "4 kb", "64 kb")
    maybe(0.3, "manifest.merge-min-count", 2, 3, 5)
    maybe(0.3, "manifest.target-file-size", "1 kb", "10 kb")
    maybe(0.2, "manifest.full-compaction-threshold-size", "1 kb", "20 kb")
    maybe(0.2, "manifest.compression", "null", "zstd")
    maybe(0.15, "write-only", "true")
    maybe(0.1, "data-file.prefix", "part-")
    maybe(0.1, "data-file.path-directory", "data")
    maybe(0.1, "file.suffix.include.compression", "true")
    maybe(0.1, "write-buffer-size", "1 mb")
    if table.partition:
        # The new names of an instant depend on the zone of whoever writes.
        instants = any(table.types[table.index(n)].name == "TIMESTAMP_LTZ" for n in table.partition)
        maybe(0.5, "partition.legacy-name", "true" if instants else "false", "true")
        maybe(0.1, "partition.default-name", "__nothing__")
    if rng.random() < 0.4:
        table.options["snapshot.num-retained.min"] = str(rng.choice([1, 2]))
        table.options["snapshot.num-retained.max"] = str(rng.choice([2, 3, 6]))
        maybe(0.3, "snapshot.time-retained", "1 h", "1 ms")
    table.options["file.format"] = "avro"


def pypaimon_reads(table):
    """Whether pypaimon 2.1.0 can read such a table (see oracle/README.md), found by asking it."""
    o = table.options
    return not (table.wide or table.altered or o.get("ignore-delete") == "true")


# ---------------------------------------------------------------- random rows

class Rows:
    """Makes records for a table, and keeps the model of what they do.

    Some orders have more than one right answer and are not made: an older row after a delete of its key (whether it counts
    depends on whether a compaction dropped the delete).
    """

    def __init__(self, rng, table):
        self.rng, self.table = rng, table
        self.few = rng.choice([2, 3, 6])

    def row(self, model):
        rng, table = self.rng, self.table
        row = []
        for i, t in enumerate(table.types):
            name = table.names[i]
            few = self.few if name in table.primary or name in table.partition else 0
            value = values.random_value(rng, t, few, table.wide and name not in table.partition)
            if name in table.partition and t.textual:
                value = value.replace("\\u0001\\u001f", "c")
            if value in values.NO_KEYS and table.types[i].floating and name in table.primary and name not in table.partition:
                value = "0.0"
            nullable = not table.not_null[i] and name not in table.primary
            row.append(values.NULL if nullable and rng.random() < 0.15 else value)
        for i in table.sequence:
            if row[i] != values.NULL and rng.random() < 0.6:
                row[i] = values.random_value(rng, table.types[i], 5)  # ties
        self.not_behind_a_delete(model, row)
        return row

    def not_behind_a_delete(self, model, row):
        if not self.table.sequence:
            return
        kind, last = model.keys.get(model.key(row), ("+I", None))
        if kind in ("-U", "-D") and model.rank(row) < model.rank(last):
            for i in self.table.sequence:
                row[i] = last[i]

    def kind(self, choices):
        return self.rng.choice(choices)

    def changes(self, model, count, kinds, taken):
        """[(kind, row)], applied to the model. No key twice where a flush keeps the largest sequence and a merge the smallest:
        then `taken` has those of the flush."""
        out = []
        for _ in range(count):
            row = self.row(model)
            kind = self.kind(kinds)
            if "rowkind.field" in self.table.options:
                row[self.table.index("op")] = '"%s"' % kind
                kind = "+I"
            if self.table.descending and model.key(row) in taken:
                continue
            taken.add(model.key(row))
            model.apply(kind, row)
            out.append((kind, row))
        return out


def kinds_for(table):
    if not table.primary:
        return ["+I", "+I", "+U"]
    return ["+I", "+I", "+I", "+U", "+U", "-D", "-U"]


# ---------------------------------------------------------------- input formats of tarn

DATABASES = ["debezium-json", "canal-json", "maxwell-json"]  # forms of updates with both images


class Input:
    """Records in one of tarn's formats: the text, and for each record the changes it means (None: a dead letter)."""

    def __init__(self, rng, table, name):
        self.rng, self.table, self.name = rng, table, name
        self.texts, self.records = [], []

    def object(self, row, shuffle=True, whole=False):
        rng, table = self.rng, self.table
        form = {"debezium-json": values.database_form, "maxwell-json": values.database_form,
                "canal-json": values.canal_form}.get(self.name, values.json_form)
        pairs = [(n, form(rng, t, v)) for n, t, v in zip(table.names, table.types, row)
                 if v != values.NULL or whole or rng.random() < 0.5]
        if shuffle:
            rng.shuffle(pairs)
        blank = rng.choice(["", "", " "])
        return "{%s}" % ",".join("%s:%s%s" % (json.dumps(n, ensure_ascii=rng.random() < 0.3), blank, v) for n, v in pairs)

    def add(self, kind, row):
        self.texts.append({"json": self.json, "changes": self.changes, "csv": self.csv, "debezium-json": self.debezium,
                           "canal-json": self.canal, "maxwell-json": self.maxwell}[self.name](kind, row))
        self.records.append([(kind, row)])

    def json(self, _kind, row):
        return self.object(row)

    def changes(self, kind, row):
        return '{"kind":"%s","row":%s}' % (kind, self.object(row))

    def csv(self, _kind, row):
        return ",".join(values.csv_form(v) for v in row)

    def debezium(self, kind, row):
        image = self.object(row)
        text = {"+I": '{"before":null,"after":%s,"op":"%s","ts_ms":1}' % (image, self.rng.choice("cr")),
                "+U": '{"op":"u","before":null,"after":%s,"source":{"a":[1,{"b":null}]}}' % image,
                "-D": '{"before":%s,"after":null,"op":"d"}' % image}[kind]
        return '{"schema":{"type":"struct"},"payload":%s}' % text if self.rng.random() < 0.2 else text

    def canal(self, kind, row):
        word = {"+I": "INSERT", "+U": "UPDATE", "-D": "DELETE"}[kind]
        members = ['"data":[%s]' % self.object(row), '"type":"%s"' % word, '"old":null', '"isDdl":false']
        return "{%s}" % ",".join(self.rng.sample(members, len(members)))

    def maxwell(self, kind, row):
        word = {"+I": "insert", "+U": "update", "-D": "delete"}[kind]
        members = ['"data":%s' % self.object(row), '"type":"%s"' % word, '"ts":1']
        return "{%s}" % ",".join(self.rng.sample(members, len(members)))

    def update(self, before, after):
        """An update with both images: two changes."""
        form = {"debezium-json": '{"before":%s,"after":%s,"op":"u"}', "canal-json": '{"old":[%s],"data":[%s],"type":"UPDATE"}',
                "maxwell-json": '{"old":%s,"data":%s,"type":"update"}'}[self.name]
        self.texts.append(form % (self.object(before, whole=True), self.object(after)))
        self.records.append([("-U", before), ("+U", after)])

    def bad(self):
        """A record that can't become a row."""
        rng, table = self.rng, self.table
        keys = [i for i, n in enumerate(table.names) if table.types[i].floating and n in table.primary and n not in table.partition]
        if keys and "rowkind.field" not in table.options and rng.random() < 0.5:
            row = [values.random_value(rng, t) for t in table.types]
            row[rng.choice(keys)] = rng.choice(values.NO_KEYS)
            self.add("+I", row)
            self.records[-1] = None
            return
        if self.name == "csv":
            text = ",".join(["1"] * (len(table.names) + 3))
        else:
            images = ['{"no_such_column":1}', '{"%s":[}' % table.names[0], "{", "[]", "nonsense", '{"%s":{"x":1}}' % table.names[0]]
            image = rng.choice(images[:-1] if self.name == "maxwell-json" else images)  # whose JSON columns are objects
            text = {"json": image, "changes": '{"kind":"+I","row":%s}' % image, "debezium-json": '{"op":"c","after":%s}' % image,
                    "canal-json": '{"data":[%s],"type":"INSERT"}' % image, "maxwell-json": '{"data":%s,"type":"insert"}' % image}[self.name]
        self.texts.append(text)
        self.records.append(None)

    def text(self):
        head = ",".join(self.table.names) + "\n" if self.name == "csv" else ""
        return head + "".join(t + "\n" for t in self.texts)

    def kinds(self):
        all_kinds = kinds_for(self.table)
        return {"json": ["+I"], "csv": ["+I"], "changes": all_kinds}.get(self.name, [k for k in all_kinds if k != "-U"])


# ---------------------------------------------------------------- a case

class Notes:
    """What a case keeps in its `folder`, for who looks at it: its steps, and what it wrote."""

    folder, files = None, 0

    def log(self, text):
        with (self.folder / "steps").open("a") as f:
            f.write(text + "\n")

    def file(self, text, ending):
        self.files += 1
        path = self.folder / ("input-%d.%s" % (self.files, ending))
        path.write_text(text)
        return path


class Case(Notes):
    def __init__(self, args, number):
        self.args, self.number = args, number
        self.rng = random.Random("%d/%d" % (args.seed, number))
        self.folder = peer.ROOT / ("build/property/%d-%d" % (args.seed, number))
        shutil.rmtree(self.folder, ignore_errors=True)
        self.warehouse = self.folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        self.tarn = None if args.no_tarn else peer.Tarn(self.warehouse)
        self.by_java = args.no_tarn or (bool(args.java) and self.rng.random() < 0.3)  # who made the table
        self.table = random_table(self.rng, self.by_java)
        self.model = Model(self.table)
        self.rows = Rows(self.rng, self.table)
        self.expected = {}  # snapshot -> lines
        self.checked = set()
        self.tags = {}  # name -> lines
        self.consumed = None  # a consumer reads from this snapshot on, so nothing behind it may go
        self.foreign = False  # another engine wrote here, too
        self.java = self.python = None

    def run(self, python):
        self.python = python
        schema = self.file(self.table.json(), "json")
        if self.args.java:
            self.java = peer.java()
        try:
            self.create(schema)
            for _ in range(self.rng.randint(2, 9)):
                self.step()
                self.check()
            self.finish()
        finally:
            if self.java:
                self.java.close()

    # -- steps

    def create(self, schema):
        if not self.by_java:
            self.log("tarn create --schema %s" % schema)
            self.tarn.run("create", TABLE, "--schema", schema).ok("tarn create")
        else:
            self.log("oracle create %s" % schema)
            self.java.run("create", self.warehouse, TABLE, schema).ok("oracle create")
            self.foreign = True

    def step(self):
        steps = []
        if self.tarn:
            steps += [self.tarn_write] * 6 + [self.tarn_compact] * 2 + [self.tarn_expire, self.tarn_repeat]
        if self.java:
            steps += [self.java_write] * 2 + [self.java_compact, self.java_tag, self.java_consumer, self.java_alter]
        self.rng.choice(steps)()

    def records(self, name, count, bad_chance):
        """An Input; the model moves on with it."""
        rng, records, taken = self.rng, Input(self.rng, self.table, name), set()
        updates = name in DATABASES and self.table.primary and "rowkind.field" not in self.table.options
        for _ in range(count):
            if rng.random() < bad_chance:
                records.bad()
            elif updates and not self.table.descending and rng.random() < 0.2:
                self.add_update(records)
            else:
                for kind, row in self.rows.changes(self.model, 1, records.kinds(), taken):
                    records.add(kind, row)
        return records

    def add_update(self, records):
        before = self.rows.row(self.model)
        after = list(before)
        for i, name in enumerate(self.table.names):
            if name not in self.table.primary:
                after[i] = values.random_value(self.rng, self.table.types[i], 5 if i in self.table.sequence else 0)
        self.model.apply("-U", before)
        self.rows.not_behind_a_delete(self.model, after)
        self.model.apply("+U", after)
        records.update(before, after)

    def tarn_write(self):
        rng = self.rng
        base, last = self.model.copy(), self.latest()
        # In csv a NULL of a table with one column is a blank line, which is no record.
        name = rng.choice(["json", "changes"] + DATABASES + (["csv"] if len(self.table.names) > 1 else []))
        records = self.records(name, rng.choice([1, 5, 30, 30, 100, 400]), rng.choice([0, 0, 0.1]))
        path = self.file(records.text(), name)
        dead = self.folder / ("dead-%d" % self.files)
        args = ["write", TABLE, "--input", name, "--dead-letters", dead]
        if rng.random() < 0.5:
            args += ["--commit-every", rng.choice([1, 3, 10, 50]) if len(records.texts) < 50 else rng.choice([20, 100])]
        self.log("tarn %s %s" % (" ".join(map(str, args)), path))
        if rng.random() < 0.5:
            result = self.tarn.run(*args, "-", stdin=records.text())
        else:
            result = self.tarn.run(*args, path)
        self.check_write(records, result, dead)
        self.learn(base, records, result, last)

    def check_write(self, records, result, dead):
        bad = sum(r is None for r in records.records)
        if result.rc != (1 if bad else 0):
            raise peer.Failure("tarn write: exit code %d with %d bad records: %s" % (result.rc, bad, result.err[-2000:]))
        letters = len(peer.text_lines(dead.read_bytes())) if dead.exists() else 0
        if letters != bad:
            raise peer.Failure("%d dead letters for %d bad records: %s" % (letters, bad, result.err[-2000:]))
        if result.lines:
            raise peer.Failure("tarn write says on stdout: %s" % result.lines[:3])

    def learn(self, base, records, result, last):
        """What each new snapshot must hold, from what tarn reported."""
        reports = [(int(s), int(n)) for s, n in COMMITTED.findall(result.err)]
        # Dead letters alone need no commit.
        done = reports[-1][1] if reports else 0
        if any(records.records[done:]):
            raise peer.Failure("%d records, but the last commit reported is %s: %s" % (len(records.texts), reports[-1:], result.err[-2000:]))
        done = 0
        for snapshot, rows in reports:
            for changes in records.records[done:rows]:
                for kind, row in changes or []:
                    base.apply(kind, row)
            done = max(done, rows)
            for s in range(last + 1, snapshot + 1):
                self.expected[s] = base.lines()
            last = max(last, snapshot)
        for s in range(last + 1, self.latest() + 1):
            self.expected[s] = base.lines()

    def tarn_repeat(self):
        """The same rows with the same user and identifier: the second time changes nothing."""
        last = self.latest()
        records = self.records("changes", 10, 0)
        path = self.file(records.text(), "changes")
        args = ["write", TABLE, path, "--input", "changes", "--user", "repeat", "--commit-id", str(self.files)]
        for _ in range(2):
            self.log("tarn " + " ".join(map(str, args)))
            self.tarn.run(*args).ok("tarn write --commit-id")
        self.hold(last)

    def tarn_compact(self):
        last = self.latest()
        args = ["compact", TABLE] + (["--full"] if self.rng.random() < 0.5 else [])
        self.log("tarn " + " ".join(args))
        self.tarn.run(*args).ok("tarn compact")
        self.hold(last)

    def tarn_expire(self):
        last = self.latest()
        self.log("tarn expire")
        self.tarn.run("expire", TABLE).ok("tarn expire")
        self.hold(last)
        most = int(self.table.options.get("snapshot.num-retained.max", 1 << 30))
        if self.consumed is not None:
            if self.consumed not in self.snapshots():
                raise peer.Failure("snapshot %d went, which a consumer waits for" % self.consumed)
        elif len(self.snapshots()) > max(most, self.latest() - self.own_consumer() + 1):
            raise peer.Failure("%d snapshots after expire, at most %d are to stay" % (len(self.snapshots()), most))

    def java_write(self):
        rng, last = self.rng, self.latest()
        changes = self.rows.changes(self.model, rng.choice([1, 5, 30, 100]), kinds_for(self.table), set())
        text = "".join('{"kind":"%s","row":%s}\n' % (k, self.table.line(r)) for k, r in changes)
        path = self.file(text, "changes")
        # Java's writer compacts nothing on request in such tables.
        passive = self.table.flag("write-only") or self.table.options["bucket"] == "-1"
        how = rng.choice(["auto", "auto", "none"] + ([] if passive else ["full"]))
        # A codec that tarn reads and does not write.
        options = ["--option", "file.compression=snappy"] if rng.random() < 0.2 else []
        self.log("oracle write %s --compact %s %s" % (path, how, options))
        self.java.run("write", self.warehouse, TABLE, path, "--compact", how, *options).ok("oracle write")
        self.foreign = True
        self.hold(last)

    def java_compact(self):
        last = self.latest()
        self.log("oracle compact --full")
        self.java.run("compact", self.warehouse, TABLE, "--full").ok("oracle compact")
        self.foreign = True
        self.hold(last)

    def java_alter(self):
        """A column gets another type; Java says what its values become. Then a commit, since a snapshot is read in its own schema.

        Once a column: with INT, TINYINT, INT a value depends on whether it was compacted in between. And no bucket key: compaction
        leaves its rows in the buckets of the old type.
        """
        rng, table = self.rng, self.table
        fixed = {*table.altered, *table.primary, *table.partition, "op", *table.options.get("bucket-key", "").split(","), *(table.names[i] for i in table.sequence),
                 *(n for n, d in zip(table.names, table.defaults) if d is not None)}
        names = [n for n in table.names if n not in fixed]
        if not names or table.wide or not self.model.has_rows():
            return
        at = table.index(rng.choice(names))
        for _ in range(10):
            new = values.random_type(rng)
            becomes = self.cast(at, new)
            if becomes is not None:
                break
        else:
            return
        changes = self.file(json.dumps([{"op": "type", "name": table.names[at], "type": self.full(new, at)}]), "json")
        self.log("oracle alter %s" % changes)
        self.java.run("alter", self.warehouse, TABLE, changes).ok("oracle alter")
        table.types[at] = new
        table.altered.add(table.names[at])
        self.model.change(at, becomes)
        self.foreign = True
        rng.choice([self.java_write] + [self.tarn_write] * bool(self.tarn))()

    def full(self, t, at):
        return t.text + " NOT NULL" * self.table.not_null[at]

    def cast(self, at, new):
        """What the column's values become, or None where not all can, or one has no canonical form."""
        old = self.table.types[at]
        if old.text == new.text or old.binary and new.textual:
            return None
        have = sorted(self.model.values_of(at))
        lines = self.java.run("cast", self.file(json.dumps([self.full(old, at), self.full(new, at)])[:-1] + ",[%s]]" % ",".join(have), "json"),
                              "--canonical").ok("oracle cast")
        if lines[0].split("\t")[2] != "alter":
            return None
        got = [line.split("\t")[1] for line in lines[1:]]
        odd = new.name == "TIME" and any(not values.TIME_OF_DAY.fullmatch(g) for g in got if g != values.NULL)
        # Where a DECIMAL doesn't fit, Java reads NULL, but its avro writer falls over it in a compaction.
        if "!" in got or odd or values.NULL in got:
            return None
        return dict(zip(have, got, strict=True))

    def java_tag(self):
        snapshot = self.rng.choice(self.snapshots() or [None])
        if snapshot is not None:
            name = "tag%d" % len(self.tags)
            self.log("oracle tag create %s --snapshot %d" % (name, snapshot))
            self.java.run("tag", self.warehouse, TABLE, "create", name, "--snapshot", snapshot).ok("oracle tag")
            self.tags[name] = self.expected[snapshot]

    def java_consumer(self):
        if self.consumed is None and self.snapshots():
            self.consumed = self.latest()
            self.log("oracle consumer c %d" % self.consumed)
            self.java.run("consumer", self.warehouse, TABLE, "c", self.consumed).ok("oracle consumer")

    def hold(self, last):
        """Every snapshot after `last` holds what the model holds now."""
        for s in range(last + 1, self.latest() + 1):
            self.expected[s] = self.model.lines()

    # -- checks

    def snapshots(self):
        folder = self.warehouse / "db.db/t/snapshot"
        return sorted(int(p.name[9:]) for p in folder.glob("snapshot-*")) if folder.exists() else []

    def latest(self):
        return max(self.snapshots(), default=0)

    def own_consumer(self):
        """The snapshot from which on tarn keeps its positions: its newest, which peers may have gone beyond."""
        files = (self.warehouse / "db.db/t/consumer").glob("consumer-tarn-*")
        return min((json.loads(f.read_text())["nextSnapshot"] for f in files), default=self.latest())

    def check(self):
        ids = self.snapshots()
        if ids and ids != list(range(ids[0], ids[-1] + 1)):
            raise peer.Failure("snapshots with a gap: %s" % ids)
        self.fsck()
        fresh = [s for s in ids if s not in self.checked]
        old = [s for s in ids if s in self.checked]
        for s in fresh[-6:] + self.rng.sample(old, min(1, len(old))):
            self.read(s)
            self.checked.add(s)
        if ids and self.tarn:
            self.ask(ids[-1])

    def fsck(self):
        if self.tarn:
            self.tarn.run("fsck", TABLE).ok("tarn fsck")
        if self.java:
            # What tarn alone wrote leaves no file behind that nothing reaches.
            orphans = [] if self.foreign else ["--orphans"]
            self.java.run("fsck", self.warehouse, TABLE, "--quiet", *orphans).ok("oracle fsck")

    def read(self, snapshot):
        want = self.expected[snapshot]
        if self.tarn:
            self.agree("tarn", snapshot, want, self.tarn.cat("--snapshot", snapshot).ok("tarn cat"))
        if self.java:
            got = self.java.run("read", self.warehouse, TABLE, "--snapshot", snapshot).ok("oracle read")
            self.agree("Java", snapshot, want, got)
        if self.python and pypaimon_reads(self.table):
            got = self.python.run("read", self.warehouse, TABLE, "--snapshot", snapshot).ok("pypaimon read")
            self.agree("pypaimon", snapshot, want, got)

    def agree(self, who, snapshot, want, got):
        bad = peer.difference(want, got)
        if bad:
            raise peer.Failure("snapshot %d as %s reads it: %s" % (snapshot, who, bad))

    def ask(self, snapshot):
        """Filters, projections and point queries of the newest snapshot."""
        rng, table = self.rng, self.table
        columns = rng.sample(table.names, rng.randint(1, len(table.names)))
        where = Where(rng, self.model)
        self.log("where " + where.text)
        want = [peer.project(table.line(r), columns) for r in self.model.visible() if where.holds(r) is True]
        got = self.tarn.cat("--where", where.text, "--columns", ",".join(columns)).ok("tarn cat --where %s" % where.text)
        bad = peer.difference(want, got)
        if bad:
            raise peer.Failure("snapshot %d where %s: %s" % (snapshot, where.text, bad))
        if table.primary:
            self.get()

    def get(self):
        row = self.rng.choice(self.model.visible() or [self.rows.row(self.model)])
        key = self.model.key(row)
        plain = [values.plain_form(v) for v in key]
        if any("\0" in p for p in plain):
            return
        kind, last = self.model.keys.get(key, ("-D", None))
        result = self.tarn.run("get", "--format", "json", TABLE, "--", *plain)
        want = [self.table.line(last)] if kind not in ("-U", "-D") else []
        if result.rc != (0 if want else 1) or result.lines != want:
            raise peer.Failure("get %s: exit code %d, %s instead of %s: %s" % (plain, result.rc, result.lines, want, result.err))

    def finish(self):
        for s in self.snapshots():
            if s not in self.checked:
                self.read(s)
        for name, want in self.tags.items():
            got = (self.tarn.cat("--tag", name).ok("tarn cat --tag") if self.tarn else
                   self.java.run("read", self.warehouse, TABLE, "--tag", name).ok("oracle read --tag"))
            bad = peer.difference(want, got)
            if bad:
                raise peer.Failure("tag %s: %s" % (name, bad))
        if self.java and self.snapshots():
            self.log("oracle exercise")
            self.java.run("exercise", self.warehouse, TABLE).ok("oracle exercise")


# ---------------------------------------------------------------- main

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--case", type=int)
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--pypaimon", action="store_true")
    parser.add_argument("--no-tarn", action="store_true")
    args = parser.parse_args()
    args.java = args.java or args.no_tarn
    end = time.monotonic() + args.seconds
    number, passed, failed = args.case or 0, 0, 0
    python = peer.pypaimon() if args.pypaimon else None
    try:
        while failed < 5 and (not passed + failed or time.monotonic() < end):
            case = Case(args, number)
            try:
                case.run(python)
                shutil.rmtree(case.folder)
                passed += 1
            except peer.Failure as e:
                failed += 1
                report(args, case, e)
            number += 1
            if args.case is not None:
                break
    finally:
        if python:
            python.close()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


def report(args, case, failure):
    flags = "".join(" --" + f for f in ("java", "pypaimon", "no-tarn") if getattr(args, f.replace("-", "_")))
    print("case %d: %s\n  options %s\n  steps, inputs and warehouse: %s\n  repeat: build/venv/bin/python3 %s --seed %d --case %d%s"
          % (case.number, failure, case.table.options, case.folder, Path(__file__).relative_to(peer.ROOT), args.seed, case.number, flags),
          flush=True)


if __name__ == "__main__":
    sys.exit(main())
