"""Random tables of all merge engines and changelog producers, whose changes tarn tells: official Paimon says the same.

    changes_test.py --seconds N --seed S [--case N]

Half of the cases have a twin: Java writes the same rows into a table of its own, commit by commit, compacted at the same times;
what changed with each commit, and the table behind it, must be the same in both. In the others tarn and Java write into one
table. Either way each snapshot is read by both, each stream is followed by both from each snapshot on, what a follower begins
with and the changes behind it make up the next state, fsck of both finds nothing, and at the end Java goes on writing. A
failure keeps the warehouse and prints the command that repeats it.
"""
import json
import random
import sys

import peer
import runner
from fixtures_test import by_key, key_of

TABLE = peer.TABLE
ENGINES = {"deduplicate": 4, "partial-update": 3, "aggregation": 3, "first-row": 1}
PRODUCERS = ["lookup", "lookup", "lookup", "full-compaction", "full-compaction", "none", "input"]
VALUES = {"g": "INT", "a": "INT", "b": "STRING", "h": "BIGINT", "c": "BIGINT", "d": "DECIMAL(10,2)", "e": "STRING", "f": "BOOLEAN"}
FUNCTIONS = {"INT": ["sum", "sum", "max", "min", "last_value", "first_value", "last_non_null_value"],
             "STRING": ["listagg", "max", "last_value", "first_non_null_value", "last_non_null_value"],
             "BOOLEAN": ["bool_and", "bool_or", "last_value"]}
FUNCTIONS["BIGINT"] = FUNCTIONS["DECIMAL(10,2)"] = FUNCTIONS["INT"]
TAKES_BACK = ("sum", "last_value", "last_non_null_value")


class Schema:
    """A random table."""

    def __init__(self, rng):
        self.rng, self.options, self.grouped = rng, {}, False
        self.keys = rng.choice([6, 15, 15, 500])  # many: levels of all sizes, and keys that a lookup doesn't find
        self.unordered = rng.random() < 0.5  # rows may lack what orders a sequence group
        self.engine = rng.choices(list(ENGINES), list(ENGINES.values()))[0]
        self.partition = ["p"] if rng.random() < 0.25 else []
        self.key = self.partition + (["k", "l"] if rng.random() < 0.3 else ["k"])
        self.columns = {name: "STRING" if name == "p" else "INT" for name in self.key}
        self.columns.update({name: VALUES[name] for name in VALUES if rng.random() < 0.7 or name == "a"})
        names = list(self.columns)
        rng.shuffle(names)
        self.columns = {name: self.columns[name] for name in names}
        self.kinds = ["+I"] * 4 + ["+U"] * 2
        self.merging()
        self.producer()
        self.layout()

    def values(self):
        return [name for name in self.columns if name not in self.key]

    def function(self, name, deletes):
        function = self.rng.choice(FUNCTIONS[self.columns[name]])
        self.options["fields.%s.aggregate-function" % name] = function
        if deletes and function not in TAKES_BACK:
            self.options["fields.%s.ignore-retract" % name] = "true"

    def merging(self):
        rng, o = self.rng, self.options
        o["merge-engine"] = self.engine
        deletes = rng.random() < 0.6
        {"deduplicate": self.deduplicate, "partial-update": self.partial_update, "aggregation": self.aggregation,
         "first-row": self.first_row}[self.engine](deletes)
        if self.engine != "first-row" and self.sequence() and rng.random() < 0.3:
            o["sequence.field.sort-order"] = rng.choice(["descending", "ascending"])

    def sequence(self):
        """Rows may come late; then some column orders them, which nothing else does."""
        free = [n for n in self.values() if self.columns[n] in ("INT", "BIGINT", "DECIMAL(10,2)") and "fields.%s.aggregate-function" % n not in self.options]
        if free and not self.grouped and self.rng.random() < 0.3:
            self.options["sequence.field"] = ",".join(self.rng.sample(free, min(len(free), self.rng.choice([1, 1, 2]))))
        return "sequence.field" in self.options

    def deletes(self):
        self.kinds += ["-D", "-D", "-U"]

    def deduplicate(self, deletes):
        if deletes:
            self.deletes()
        if self.rng.random() < 0.15:
            self.options[self.rng.choice(["ignore-delete", "ignore-update-before"])] = "true"

    def partial_update(self, deletes):
        rng, o = self.rng, self.options
        groups = [n for n in ("g", "h") if n in self.columns]
        if groups and rng.random() < 0.7:
            members = [n for n in self.values() if n not in groups]
            rng.shuffle(members)
            half = rng.randint(0, len(members))
            taken = 0
            for group, part in zip(groups, (members[:half], members[half:])):
                if part:
                    o["fields.%s.sequence-group" % group] = ",".join(part)
                    taken += 1
                    for name in part:
                        if rng.random() < 0.4:
                            self.function(name, deletes)
            if taken and deletes:
                self.deletes()
                if rng.random() < 0.4:
                    name = rng.choice([n for n in groups if "fields.%s.sequence-group" % n in o])
                    o["partial-update.remove-record-on-sequence-group"] = name
            if taken:
                self.grouped = True
                return
        if deletes:
            self.deletes()
            o[rng.choice(["partial-update.remove-record-on-delete", "ignore-delete"])] = "true"

    def aggregation(self, deletes):
        removes = deletes and self.rng.random() < 0.3
        for name in self.values():
            if self.rng.random() < 0.7:
                self.function(name, deletes and not removes)
        if removes:
            self.kinds += ["-D", "-D"]
            self.options["aggregation.remove-record-on-delete"] = "true"
        elif deletes:
            self.deletes()

    def first_row(self, deletes):
        if deletes:
            self.deletes()
            self.options["ignore-delete"] = "true"

    def producer(self):
        rng, o = self.rng, self.options
        producer = rng.choice(["none", "lookup"] if self.engine == "first-row" else PRODUCERS)
        o["changelog-producer"] = producer
        if producer in ("lookup", "full-compaction") and self.engine != "first-row":
            if rng.random() < 0.3:
                o["changelog-producer.row-deduplicate"] = "true"
                if rng.random() < 0.3:
                    o["changelog-producer.row-deduplicate-ignore-fields"] = rng.choice(self.values())
        if producer in ("none", "input") and rng.random() < 0.3:
            o["force-lookup"] = "true"
        self.looks_up = producer == "lookup" or self.engine == "first-row" or "force-lookup" in o

    def layout(self):
        rng, o = self.rng, self.options

        def maybe(chance, key, *choices):
            if rng.random() < chance:
                o[key] = str(rng.choice(choices))
        o["bucket"] = str(rng.choice([1, 1, 2]))
        o["file.format"] = "avro"
        maybe(0.4, "num-sorted-run.compaction-trigger", 2, 3, 4)
        maybe(0.3, "compaction.size-ratio", 0, 20, 100)
        maybe(0.3, "target-file-size", "1 kb", "4 kb")
        maybe(0.2, "compaction.force-rewrite-all-files", "true")
        maybe(0.2, "changelog-file.prefix", "cl-")
        maybe(0.2, "changelog-file.compression", "deflate", "zstd", "null")
        maybe(0.2, "file.compression", "deflate", "null")
        maybe(0.2, "data-file.thin-mode", "true")
        maybe(0.3, "manifest.target-file-size", "1 kb")

    def json(self):
        return json.dumps({"fields": [{"name": n, "type": t + (" NOT NULL" if n in self.key else "")} for n, t in self.columns.items()],
                           "primaryKeys": self.key, "partitionKeys": self.partition, "options": self.options})

    # ---- rows

    def value(self, name, t):
        rng = self.rng
        if name == "p":
            return rng.choice(["x", "y"])
        if name == "k":
            return rng.randrange(self.keys)
        if name == "l":
            return rng.randrange(2)
        if rng.random() < 0.25 and (self.unordered or "fields.%s.sequence-group" % name not in self.options):
            return None
        if name in ("g", "h") or name in self.options.get("sequence.field", "").split(","):
            return rng.randrange(20) if t != "DECIMAL(10,2)" else "%d.00" % rng.randrange(20)
        return {"INT": rng.randrange(-3, 1000), "BIGINT": rng.randrange(-3, 3), "STRING": rng.choice(["", "a", "bc", "def" * 9]),
                "BOOLEAN": rng.random() < 0.5, "DECIMAL(10,2)": "%d.%02d" % (rng.randrange(-50, 50), rng.randrange(100))}[t]

    def row(self, kind):
        return {"kind": kind, "row": {n: self.value(n, t) for n, t in self.columns.items()}}

    def rows(self, count):
        return "".join(json.dumps(self.row(self.rng.choice(self.kinds))) + "\n" for _ in range(count))


class Case:
    def __init__(self, seed, folder, java):
        self.rng, self.java, self.folder = random.Random(seed), java, folder
        self.schema = Schema(self.rng)
        self.options = self.schema.options
        self.twin = self.rng.random() < 0.5
        self.files = 0
        self.states, self.changes = {}, {}
        self.log("options %s" % self.options)

    def schema_text(self):
        return self.schema.json()

    def log(self, text):
        with (self.folder / "steps").open("a") as f:
            f.write(text + "\n")

    def file(self, text):
        self.files += 1
        path = self.folder / ("input-%d" % self.files)
        path.write_text(text)
        return path

    # ---- commands

    def ask(self, verb, *words, warehouse=None):
        self.log("oracle %s %s" % (verb, " ".join(map(str, words))))
        return self.java.run(verb, warehouse or self.warehouse, TABLE, *words).ok("java %s %s" % (verb, " ".join(map(str, words))))

    def do(self, verb, *words):
        self.log("tarn %s %s" % (verb, " ".join(map(str, words))))
        return self.tarn.run(verb, TABLE, *words).ok("tarn %s %s" % (verb, " ".join(map(str, words))))

    def tail(self, *words):
        return self.tarn.run("tail", TABLE, "--format", "json", *words).ok("tarn tail " + " ".join(map(str, words)))

    def cat(self, *words):
        return self.tarn.cat(*words).ok("tarn cat " + " ".join(map(str, words)))

    def latest(self, warehouse):
        folder = warehouse / "db.db/t/snapshot"
        return max((int(p.name[9:]) for p in folder.glob("snapshot-*")), default=0)

    def same(self, what, want, got):
        bad = peer.difference(want, got)
        if bad:
            raise peer.Failure("%s: %s" % (what, bad))

    # ---- cases

    def run(self):
        self.warehouse = self.folder / "warehouse"
        self.other = self.folder / "twin"
        self.warehouse.mkdir()
        self.other.mkdir()
        self.tarn = peer.Tarn(self.warehouse)
        if self.twin:
            self.choose_times()
        else:
            self.choose_waits()
        schema = self.file(self.schema.json())
        self.do("create", "--schema", schema)
        self.ask("create", schema, warehouse=self.other)
        for _ in range(self.rng.randint(2, 8)):
            if self.twin:
                self.twin_step()
            else:
                self.mixed_step()
            self.fsck()
        self.check_all()
        self.go_on()
        return {"snapshots": self.latest(self.warehouse), "twins": self.twin}

    def count(self):
        """Of rows; where there are many keys, most come first."""
        if self.schema.keys > 100 and self.latest(self.warehouse) == 0:
            return 1500
        return self.rng.choice([1, 20, 60, 60, 150])

    def fsck(self):
        self.do("fsck")
        self.ask("fsck", "--quiet", *(["--orphans"] if self.twin else []))

    # ---- one table, two writers

    def choose_waits(self):
        """When what changed is told."""
        rng, o = self.rng, self.options
        if rng.random() < 0.15:
            o["write-only"] = "true"
        if self.schema.looks_up:
            if rng.random() < 0.3:
                o["lookup-wait"] = "false"
            if rng.random() < 0.3:
                o["lookup-compact"] = "gentle"
                o["lookup-compact.max-interval"] = str(rng.choice([2, 3, 10]))
        if rng.random() < (0.4 if o["changelog-producer"] == "full-compaction" else 0.1):
            o["full-compaction.delta-commits"] = str(rng.choice([1, 2, 3]))

    def mixed_step(self):
        rng, what = self.rng, self.rng.random()
        count = self.count()
        rows = self.file(self.schema.rows(count))
        if what < 0.55:
            every = ["--commit-every", count // 4 + 1] if rng.random() < 0.4 else []
            name = ["--user", "job", "--commit-id", self.files] if not every and rng.random() < 0.4 else []
            self.do("write", rows, "--input", "changes", *every, *name)
            self.check_told()
            if name and rng.random() < 0.7:
                before = [self.cat()]
                self.kill()
                if self.options["merge-engine"] == "first-row":
                    before.append(self.cat())  # it shows what is compacted: then, or by the repeat
                self.do("write", rows, "--input", "changes", *name)
                got = self.cat()
                if all(peer.difference(x, got) for x in before):
                    self.same("rows that were committed before", before[0], got)
                self.check_told()
        elif what < 0.7:
            self.do("compact", *(["--full"] if rng.random() < 0.5 else []))
        elif what < 0.9:
            self.ask("write", rows, "--compact", rng.choice(["auto", "none"] + ([] if "write-only" in self.options else ["auto", "full"])))
        else:
            self.ask("compact", "--full")
        if rng.random() < 0.3:
            self.kill()
            self.do("write", self.file(""), *rng.choice([[], ["--user", "job", "--commit-id", self.files]]))
            self.check_told()

    def kill(self):
        """The table is left as by a process, Java's or tarn's, that is killed between the snapshot of its rows and that of their compaction."""
        folder, last = self.warehouse / "db.db/t/snapshot", self.latest(self.warehouse)
        ends = [json.loads((folder / ("snapshot-%d" % n)).read_text()) for n in (last - 1, last)] if last > 1 else []
        if [s["commitKind"] for s in ends] == ["APPEND", "COMPACT"] and ends[0]["commitUser"] == ends[1]["commitUser"]:
            self.log("kill before snapshot %d" % last)
            (folder / ("snapshot-%d" % last)).unlink()
            (folder / "LATEST").write_text(str(last - 1))

    def check_told(self):
        """Where each commit is to tell what changed, a follower that begins now has all rows."""
        full = self.options["changelog-producer"] == "full-compaction"
        late = self.options.get("full-compaction.delta-commits", "1") != "1" if full else self.options.get("lookup-compact") == "gentle"
        last = self.latest(self.warehouse)
        if last and not late and (full or self.schema.looks_up) and "write-only" not in self.options:
            state = self.tail("--from", "full:%d" % last, "--to", last)
            self.same("start at %d" % last, self.cat(), [dict(peer.members(x))["row"] for x in state])

    # ---- two tables, the same rows

    def choose_times(self):
        """How a commit is compacted, so that what comes of it doesn't hang on the sizes of files."""
        if self.options["changelog-producer"] == "full-compaction":
            self.how = self.rng.choice(["full", "later"])
        elif self.schema.looks_up and self.deletes_are_final():
            self.how = self.rng.choice(["auto", "auto", "later"])
        else:
            self.how = "later"
        if self.how == "later":
            self.options["write-only"] = "true"

    def deletes_are_final(self):
        """A late row behind a delete: whether it counts hangs on when the delete was dropped."""
        return not ("sequence.field" in self.options and "-D" in self.schema.kinds and "ignore-delete" not in self.options)

    def twin_step(self):
        before, twin_before = self.latest(self.warehouse), self.latest(self.other)
        if self.how == "later" and self.rng.random() < 0.4 and before > 0:
            self.do("compact", "--full")
            self.ask("compact", "--full", warehouse=self.other)
        else:
            rows = self.file(self.schema.rows(self.count()))
            self.do("write", rows, "--input", "changes")
            how = {"later": "none"}.get(self.how, self.how)
            self.ask("write", rows, "--compact", how, warehouse=self.other)
        if self.latest(self.warehouse) == 0:
            return
        self.same("rows", self.ask("read", warehouse=self.other), self.cat())
        got = self.tail("--from", before + 1) if self.latest(self.warehouse) > before else []
        want = self.stream(twin_before + 1, self.other) if self.latest(self.other) > twin_before else []
        key = key_of(self.warehouse / "db.db/t")
        if by_key(want, key) != by_key(got, key):
            raise peer.Failure("changes: %s" % (peer.difference(want, got) or "another order"))

    def stream(self, first, warehouse):
        lines = self.ask("changelog", "--from", first, warehouse=warehouse)
        return ['{"kind":%s,"row":%s}' % (v["kind"], v["row"]) for v in (dict(peer.members(x)) for x in lines)]

    # ---- what both read

    def check_all(self):
        last = self.latest(self.warehouse)
        key = key_of(self.warehouse / "db.db/t")
        want = {n: [] for n in range(1, last + 1)}
        for line in self.ask("changelog", "--from", 1) if last else []:
            value = dict(peer.members(line))
            want[int(value["snapshot"])].append('{"kind":%s,"row":%s}' % (value["kind"], value["row"]))
        for n, lines in want.items():
            self.same("snapshot %d" % n, self.ask("read", "--snapshot", n), self.cat("--snapshot", n))
            self.changes[n] = self.tail("--from", n, "--to", n)
            if by_key(self.changes[n], key) != by_key(lines, key):
                raise peer.Failure("changes of %d: %s" % (n, peer.difference(lines, self.changes[n]) or "another order"))
            self.states[n] = self.tail("--from", "full:%d" % n, "--to", n)
            self.same("start at %d" % n, self.ask("changelog", "--state", n), [x.replace('"+U"', '"+I"', 1) for x in self.states[n]])
        for n in self.rng.sample(sorted(want), min(3, last)):
            if self.tail("--from", n) != [x for m in range(n, last + 1) for x in self.changes[m]]:
                raise peer.Failure("tail --from %d is not what its snapshots are one by one" % n)
        if self.exact():
            for n in range(1, last):
                self.check_step(n)

    def plain(self, line):
        """(key, kind, row) of a change, without the column that isn't compared."""
        value = json.loads(line)
        row = value["row"]
        key = tuple(row[n] for n in self.schema.key)
        row.pop(self.options.get("changelog-producer.row-deduplicate-ignore-fields"), None)
        return key, value["kind"], row

    def exact(self):
        """A row that lacks what orders a group loses the group when it is merged, not when its file is moved up, in Paimon, too."""
        return self.options["changelog-producer"] in ("lookup", "full-compaction") and not (self.schema.grouped and self.schema.unordered)

    def check_step(self, n):
        """The state at a snapshot and the changes of the next make the state there, and no change contradicts it."""
        state = {key: row for key, _, row in map(self.plain, self.states[n])}
        before = None
        for line in self.changes[n + 1]:
            key, kind, row = self.plain(line)
            if self.schema.engine == "first-row":
                kind = "+I"
            if kind in ("-U", "-D"):
                good = state.pop(key, None) == row and before is None
            else:
                good = key not in state and before == (key if kind == "+U" else None)
                state[key] = row
            before = key if kind == "-U" else None
            if not good:
                raise peer.Failure("snapshot %d tells %s, which the state and the change before it don't fit" % (n + 1, line))
        end = {key: row for key, _, row in map(self.plain, self.states[n + 1])}
        if state != end:
            differ = [(k, state.get(k), end.get(k)) for k in {*state, *end} if state.get(k) != end.get(k)]
            raise peer.Failure("snapshot %d, followed from %d on: (key, followed, read) %s" % (n + 1, n, differ[:3]))

    # ---- Java goes on

    def go_on(self):
        last = self.latest(self.warehouse)
        if last == 0:
            return
        if not (self.schema.grouped and self.schema.unordered):  # a row written again may lose a group
            self.ask("exercise")
        how = "auto" if self.rng.random() < 0.5 or "write-only" in self.options else "full"
        self.ask("write", self.file(self.schema.rows(20)), "--compact", how)
        self.ask("compact", "--full")
        self.ask("fsck", "--quiet")
        self.do("fsck")
        end = self.latest(self.warehouse)
        self.same("rows after Java wrote", self.ask("read"), self.cat())
        self.same("changes that Java told", self.stream(last + 1, self.warehouse), self.tail("--from", last + 1) if end > last else [])


def main():
    return runner.random_cases(Case, "%(snapshots)d snapshots that tarn made, %(twins)d tables of them with a twin")


if __name__ == "__main__":
    sys.exit(main())
