"""Tables that official Paimon writes at random: what changed in them is for tarn what it is for Paimon's streaming reader.

    tail_test.py --seconds N --seed S [--case N]

A case makes one table (changelog producer, merge engine, buckets, partitions, sequence field) and takes some steps: Java writes,
overwrites, compacts, tags, alters. Then tarn's `tail` of each snapshot, and from each on, is the stream that Java gives; the
state at a snapshot and the changes behind it fold to the state at the end; `cat --incremental` is Java's incremental read in
each mode; and a consumer holds what it has not seen against Java's expiry. A failure keeps the warehouse and prints the command
that repeats it.
"""
import json
import random
import sys

import peer
import runner
from fixtures_test import by_key, key_of

TABLE = peer.TABLE
ENGINES = {"deduplicate": 6, "partial-update": 1, "aggregation": 1, "first-row": 1}
PRODUCERS = {"deduplicate": ["none", "input", "lookup", "full-compaction"], "first-row": ["none", "lookup"]}


def random_schema(rng):
    """(schema, has primary key)"""
    keyed, partitioned = rng.random() < 0.85, rng.random() < 0.4
    fields = [("p", "STRING NOT NULL"), ("k", "INT NOT NULL"), ("a", "STRING"), ("s", "INT"), ("v", "BIGINT")]
    options = {"bucket": str(rng.choice([1, 2, 3])), "file.format": "avro"}
    primary = (["p", "k"] if partitioned else ["k"]) if keyed else []
    if keyed:
        engine = rng.choices(list(ENGINES), list(ENGINES.values()))[0]
        options["merge-engine"] = engine
        options["changelog-producer"] = rng.choice(PRODUCERS.get(engine, ["lookup", "full-compaction"]))
        if engine == "partial-update":
            options["ignore-delete"] = "true"
        if engine == "aggregation":
            options["fields.v.aggregate-function"] = "sum"
        if engine == "deduplicate" and rng.random() < 0.3:
            options["sequence.field"] = "s"
        if rng.random() < 0.3:
            options["num-sorted-run.compaction-trigger"] = str(rng.choice([2, 3]))
        if rng.random() < 0.2:
            options["changelog-producer.row-deduplicate"] = "true"
        if rng.random() < 0.2:
            options["changelog-file.prefix"] = "cl-"
    else:
        options["bucket"] = "-1"
    if rng.random() < 0.3:
        options["manifest.target-file-size"] = "1 kb"
    if rng.random() < 0.3:
        options["file.compression"] = rng.choice(["null", "snappy", "deflate"])
    return {"fields": [{"name": n, "type": t} for n, t in fields], "primaryKeys": primary, "partitionKeys": ["p"] if partitioned else [],
            "options": options}


class Case:
    def __init__(self, seed, folder, java):
        self.rng, self.java, self.folder = random.Random(seed), java, folder
        self.warehouse = folder / "warehouse"
        self.tarn = peer.Tarn(self.warehouse)
        self.schema = random_schema(self.rng)
        self.options = self.schema["options"]
        self.tags, self.overwritten, self.sequence, self.columns = [], 0, 0, ["p", "k", "a", "s", "v"]

    def schema_text(self):
        return json.dumps(self.schema)

    # ---- Java writes

    def ask(self, *words):
        return self.java.run(words[0], self.warehouse, TABLE, *words[1:]).ok("java %s" % " ".join(map(str, words)))

    def file(self, text):
        path = self.folder / "input"
        path.write_text(text)
        return path

    def rows(self, count):
        rng, out = self.rng, []
        kinds = ["+I"] * 6 + ["+U"] + (["-D"] * 2 + ["-U"] if self.schema["primaryKeys"] and self.options["merge-engine"] == "deduplicate" else [])
        for _ in range(count):
            self.sequence += 1
            k = rng.randrange(12)
            row = {"p": "p%d" % (k % 3 if rng.random() < 0.7 else rng.randrange(3)), "k": k, "a": rng.choice([None, "a", "text %d" % self.sequence]),
                   "s": rng.randrange(50) if rng.random() < 0.9 else None, "v": rng.choice([None, rng.randrange(-5, 5), self.sequence])}
            row.update({c: rng.choice([None, "x"]) for c in self.columns if c not in row})
            out.append(json.dumps({"kind": rng.choice(kinds) if self.schema["primaryKeys"] else "+I", "row": row}))
        return self.file("".join(x + "\n" for x in out))

    def step(self):
        rng = self.rng
        what = rng.random()
        if what < 0.75:
            compact = ["none", "auto", "auto", "full"] if self.schema["primaryKeys"] else ["none"]
            self.ask("write", self.rows(rng.randint(1, 25)), "--compact", rng.choice(compact))
        elif what < 0.82:
            over = "p=p%d" % rng.randrange(3) if self.schema["partitionKeys"] else "all"
            rows = [x for x in self.rows(20).read_text().splitlines() if over == "all" or '"%s"' % over[2:] in x]
            self.ask("write", self.file("".join(x + "\n" for x in rows if '"-' not in x[:13])), "--overwrite", over, "--compact", "none")
            self.overwritten = self.latest()
        elif what < 0.9:
            self.ask("compact", "--full")
        elif what < 0.95:
            name = "tag%d" % len(self.tags)
            self.ask("tag", "create", name)
            self.tags.append(name)
        elif len(self.columns) < 7:
            name = "n%d" % len(self.columns)
            self.ask("alter", self.file(json.dumps([{"op": "add", "name": name, "type": "STRING"}])))
            self.columns.append(name)

    def latest(self):
        return max(int(p.name.split("-")[1]) for p in (self.warehouse / "db.db/t/snapshot").glob("snapshot-*"))

    def earliest(self):
        return min(int(p.name.split("-")[1]) for p in (self.warehouse / "db.db/t/snapshot").glob("snapshot-*"))

    # ---- what tarn says

    def tail(self, *args):
        return self.tarn.run("tail", TABLE, "--format", "json", *args).ok("tail " + " ".join(map(str, args)))

    def check_stream(self, first, last):
        """Each snapshot as Java streams it; then from each on. Returns {snapshot: lines}."""
        key = key_of(self.warehouse / "db.db/t")
        want = {n: [] for n in range(first, last + 1)}
        for line in self.ask("changelog", "--from", first):
            value = dict(peer.members(line))
            want[int(value["snapshot"])].append('{"kind":%s,"row":%s}' % (value["kind"], value["row"]))
        got = {n: self.tail("--from", n, "--to", n) for n in want}
        for n, lines in want.items():
            if by_key(got[n], key) != by_key(lines, key):
                raise peer.Failure("snapshot %d: %s" % (n, peer.difference(lines, got[n]) or "another order"))
        for n in want:
            if self.tail("--from", n) != [x for m in range(n, last + 1) for x in got[m]]:
                raise peer.Failure("tail --from %d is not what its snapshots are one by one" % n)
        return got

    def exact(self):
        """Whether changes are applied to a state by their kinds alone."""
        if not self.schema["primaryKeys"]:
            return False
        if self.options["changelog-producer"] in ("lookup", "full-compaction"):
            return True
        return self.options["merge-engine"] == "deduplicate" and "sequence.field" not in self.options

    def check_states(self, changes, first, last):
        """The state at a snapshot and what came behind it make the state at the end."""
        key = key_of(self.warehouse / "db.db/t")
        if not self.exact():
            return
        end = sorted(json.loads(x)["row"].items() for x in self.tail("--from", "full:%d" % last, "--to", last))
        for n in range(max(first, self.overwritten), last + 1):
            state = {}
            for line in self.tail("--from", "full:%d" % n, "--to", n) + [x for m in range(n + 1, last + 1) for x in changes[m]]:
                value = json.loads(line)
                name = tuple(value["row"][c] for c in key)
                state.pop(name, None)
                if value["kind"] in ("+I", "+U"):
                    state[name] = value["row"]
            if sorted((sorted(r.items()) for r in state.values()), key=str) != sorted((sorted(x) for x in end), key=str):
                raise peer.Failure("full at %d and the changes behind it are not full at %d" % (n, last))

    def check_incremental(self, first, last):
        for _ in range(3):
            a = self.rng.randint(first - 1, last)
            b = self.rng.randint(a, last)
            for mode in ("auto", "delta", "changelog"):
                want = self.ask("read", "--incremental", "%d,%d" % (a, b), "--with-kind", "--option", "incremental-between-scan-mode=%s" % mode)
                got = self.tarn.cat("--kind", "--incremental", "%d,%d" % (a, b), "--incremental-mode", mode).ok("cat --incremental %d,%d %s" % (a, b, mode))
                self.same(want, got, "%d,%d %s" % (a, b, mode))
            if a >= first:
                self.check_diff("%d,%d" % (a, b), "--option", "incremental-between-scan-mode=diff")
        if len(self.tags) > 1:
            self.check_diff("%s,%s" % (self.tags[0], self.tags[-1]))

    def check_diff(self, pair, *options):
        if self.options.get("merge-engine", "deduplicate") != "deduplicate":
            return  # official Paimon then compares parts of rows, and 1.3.1 drops those of equal sequence
        want = self.ask("read", "--incremental", pair, *options)
        mode = ["--incremental-mode", "diff"] if options else []
        got = self.tarn.cat("--incremental", pair, *mode).ok("cat --incremental %s diff" % pair)
        begin, end = (self.cat_at(at) if at != "0" else [] for at in pair.split(","))
        # Paimon 1.3.1 takes the row of the larger sequence for the newer one, whichever snapshot has it, and then gives nothing: with
        # sequence.field, and where a bucket was emptied and its numbers began anew. Its main branch does as tarn.
        want = want + [x for x in got if x not in want and x in end and x not in begin]
        self.same(want, got, "diff " + pair)
        if self.schema["primaryKeys"]:
            self.check_kinds(got, pair, mode, options)

    def check_kinds(self, rows, pair, mode, options):
        """With kinds come the same rows, and one for each key that is gone (a late delete says so falsely). All that Paimon's audit_log
        says is among them."""
        got = self.tarn.cat("--kind", "--incremental", pair, *mode).ok("cat --kind diff")
        self.same(rows, [self.row(x) for x in got if x[9] == "+"], "diff with kinds " + pair)
        a, b = (self.keys_at(end) for end in pair.split(","))
        gone = [x for x in got if x[9] == "-" and self.name(x) in a]
        if "sequence.field" not in self.options and sorted(map(self.name, gone)) != sorted(a - b):
            raise peer.Failure("diff with kinds %s: gone are %s, not %s" % (pair, gone, a - b))
        audited = self.java.run("read", self.warehouse, TABLE + "$audit_log", "--incremental", pair, *options).ok("audit_log")
        for line in map(self.of_audit, audited):
            if line not in got and (line[9] == "+" or self.name(line) in a):
                raise peer.Failure("diff with kinds %s: missing %s" % (pair, line))

    def cat_at(self, end):
        """The rows at a snapshot or tag, in the columns of now."""
        at = ["--tag", end] if end in self.tags else ["--snapshot", end]
        lines = self.tarn.cat(*at).ok("cat " + " ".join(at))
        rest = {c for c in self.columns if lines and '"%s":' % c not in lines[0]}
        return [x[:-1] + "".join(',"%s":null' % c for c in sorted(rest)) + "}" for x in lines]

    def keys_at(self, end):
        return {self.name('{"kind":"+I","row":%s}' % x) for x in self.cat_at(end)}

    def name(self, line):
        row = json.loads(line)["row"]
        return tuple(row[c] for c in self.schema["primaryKeys"])

    def row(self, line):
        return dict(peer.members(line))["row"]

    def of_audit(self, line):
        values = peer.members(line)
        return '{"kind":%s,"row":{%s}}' % (values[0][1], ",".join("%s:%s" % (json.dumps(n), v) for n, v in values[1:]))

    def same(self, want, got, what):
        bad = peer.difference(want, got)
        if bad:
            raise peer.Failure("cat --incremental %s: %s" % (what, bad))

    def check_consumer(self, first, last):
        """A consumer goes on where it stopped; Java's expiry stops there, and takes all when it is forgotten."""
        middle = self.rng.randint(first, last)
        begin = self.tail("--consumer", "c", "--from", first, "--to", middle)
        held = self.tarn.run("show", TABLE, "consumers", "--format", "json").ok("show consumers")
        if [json.loads(x) for x in held] != [{"consumer_id": "c", "next_snapshot_id": middle + 1}]:
            raise peer.Failure("show consumers: %s, not %d" % (held, middle + 1))
        whole = self.tail("--from", first)
        self.ask("expire", "--retain-max", 1, "--retain-min", 1)
        if self.earliest() != min(middle + 1, last):
            raise peer.Failure("Java expired up to %d, the consumer stands at %d" % (self.earliest(), middle + 1))
        if begin + self.tail("--consumer", "c", "--from", "latest") != whole:
            raise peer.Failure("the consumer at %d of %d..%d missed something" % (middle + 1, first, last))
        self.tail("--consumer", "c", "--forget")
        self.ask("expire", "--retain-max", 1, "--retain-min", 1)
        if self.earliest() != last:
            raise peer.Failure("the forgotten consumer still holds")
        if last > first:
            late = self.tarn.run("tail", TABLE, "--from", last - 1)
            if late.rc != 2 or late.lines or "has expired; the earliest is %d" % last not in late.err:
                raise peer.Failure("an expired snapshot: %d: %s" % (late.rc, late.err))

    def run(self):
        self.java.run("create", self.warehouse, TABLE, self.file(json.dumps(self.schema))).ok("java create")
        self.ask("write", self.rows(20), "--compact", "auto")
        for _ in range(self.rng.randint(3, 9)):
            self.step()
        if self.rng.random() < 0.3:
            self.ask("expire", "--retain-max", self.rng.randint(2, 6))
        first, last = self.earliest(), self.latest()
        changes = self.check_stream(first, last)
        self.check_states(changes, first, last)
        self.check_incremental(first, last)
        if not self.tags:
            self.check_consumer(first, last)
        said = self.tarn.run("fsck", TABLE)
        if said.rc != 0:
            raise peer.Failure("fsck: %s%s" % (said.lines, said.err))
        return {"snapshots": last - first + 1}


def main():
    return runner.random_cases(Case, "%(snapshots)d snapshots read as Java streams them")


if __name__ == "__main__":
    sys.exit(main())
