"""Real Flink reads mirrors: at each snapshot and tag what tarn says of the table, and as a stream the changes that tarn tells.

    flink_mirror_test.py [--cases N] [--seed S] [NAME...]

Tables of each merge engine and changelog producer, one with a script, one with all types; what they hold and what happens to them is
random. A mirror is a folder here; flink_test.py and flink_beside_test.py have Flink at a store.
"""
import json
import random
import sys

import flink
import peer
import property_test
import runner
from model import Model
from peer import TABLE, same

FIELDS = ["k INT", "a STRING", "s INT", "v BIGINT"]
ENGINES = [
    ("deduplicate", ["input", "lookup", "full-compaction"], []),
    ("partial-update", ["lookup", "full-compaction"], ["ignore-delete=true"]),
    ("aggregation", ["lookup", "full-compaction"], ["fields.v.aggregate-function=sum", "fields.s.aggregate-function=max", "ignore-delete=true"]),
    ("first-row", ["lookup"], ["ignore-delete=true"]),
]
MARK = 1 << 20  # the key of the last row


class Mirror:
    """A table and its mirror, and what it held at each snapshot and tag."""

    def __init__(self, folder, rng):
        self.rng, self.lake, self.tarn = rng, folder / "lake", peer.Tarn(folder / "warehouse")
        self.held, self.tags, self.catalog = {}, {}, None

    def write(self, lines):
        self.tarn.run("write", TABLE, "--input", "changes", stdin="".join(x + "\n" for x in lines)).ok("write")

    def step(self, change):
        """A change of its rows, or upkeep; then the mirror has it."""
        change() if self.rng.random() < 0.75 else self.tarn.run("compact", TABLE, *self.rng.choice([[], ["--full"]])).ok("compact")
        for said in map(json.loads, self.tarn.run("show", TABLE, "snapshots", "--format", "json").ok("show snapshots")):
            at = said["snapshot_id"]
            if at not in self.held:
                self.held[at] = peer.ordered(self.tarn.cat("--snapshot", at).ok("cat"))
        if self.held and self.rng.random() < 0.3:
            at = self.rng.choice(list(self.held))
            name = "t-%d" % len(self.tags)
            self.tarn.run("tag", TABLE, name, "--snapshot", at).ok("tag")
            self.tags[name] = self.held[at]
        self.sync()

    def sync(self):
        self.tarn.run("sync", TABLE, self.lake).ok("sync")
        self.catalog = self.catalog or flink.Catalog(self.lake)

    def check(self):
        for at, want in self.held.items():
            same(self.catalog.read(scan__snapshot_id=at), want, "rows at snapshot %d by Flink" % at)
        for name, want in self.tags.items():
            same(self.catalog.read(scan__tag_name=name), want, "rows of tag %s by Flink" % name)
        same(self.catalog.read(), self.held[max(self.held)], "rows by Flink")


def keyed_change(mirror, rng, retracts):
    def change():
        lines = []
        for _ in range(rng.randint(1, 12)):
            row = {"k": rng.randrange(15), "a": rng.choice(["x", "é", None]), "s": rng.randrange(9), "v": rng.choice([None, rng.randrange(-99, 99)])}
            lines.append(json.dumps({"kind": rng.choice(["+I", "+I", "+U", "-D"] if retracts else ["+I", "+U"]), "row": row}))
        mirror.write(lines)
    return change


def stream(mirror, rng, change, mark, key):
    """Begun early; the last change is that of the row `mark`, which is nobody else's."""
    mirror.step(change)
    while not mirror.held:
        mirror.step(change)
    following = mirror.catalog.follow()
    for _ in range(rng.randint(3, 6)):
        mirror.step(change)
    mirror.check()
    mirror.write([json.dumps({"kind": "+I", "row": mark})])
    mirror.tarn.run("compact", TABLE, "--full").ok("compact")  # changes of some producers come with it
    mirror.sync()
    want = flink.changes_by_tarn(mirror.tarn, "--from", 1)
    got = flink.followed(following, want[-1])
    flink.check_changes(got, want, key)
    return got


def test_changes_of_each_engine_and_producer(args):
    rng = random.Random(args.seed)
    for engine, producers, options in ENGINES:
        for producer in producers:
            with peer.Folder("tarn-flink-mirror-") as f:
                mirror = Mirror(f.folder, rng)
                given = ["bucket=1", "merge-engine=" + engine, "changelog-producer=" + producer, *options]
                mirror.tarn.run("create", TABLE, *[x for y in FIELDS for x in ("--field", y)], "--primary-key", "k",
                                *[x for y in given for x in ("--option", y)]).ok("create")
                try:
                    got = stream(mirror, rng, keyed_change(mirror, rng, engine == "deduplicate"), {"k": MARK, "a": "mark", "s": 1, "v": 1}, ["k"])
                    same(flink.folded(got, ["k"]), peer.ordered(mirror.tarn.cat().ok("cat")), "what the changes lead to")
                except peer.Failure as e:
                    raise peer.Failure("%s, %s: %s" % (engine, producer, e)) from e


def test_a_table_with_a_script(args):
    """What a follower sees is what the script announces."""
    rng = random.Random(args.seed)
    with peer.Folder("tarn-flink-script-") as f:
        mirror = Mirror(f.folder, rng)
        fields = ["dev STRING", "ts TIMESTAMP(3)", "temp DOUBLE", "temp_told DOUBLE", "hot BOOLEAN"]
        mirror.tarn.run("create", TABLE, *[x for y in fields for x in ("--field", y)], "--primary-key", "dev", "--option", "bucket=1",
                        "--option", "changelog-producer=input", "--option", "tarn.script=%s" % (peer.ROOT / "scripts/deadband.lua")).ok("create")

        def change():
            rows = [{"dev": rng.choice("abc"), "ts": "2026-01-01T00:00:%06.3f" % rng.uniform(0, 59), "temp": round(rng.uniform(70, 85), 1)}
                    for _ in range(rng.randint(1, 20))]
            mirror.write([json.dumps({"kind": "+I", "row": row}) for row in rows])
        got = stream(mirror, rng, change, {"dev": "mark", "ts": "2026-01-01 00:01:00", "temp": 1.0}, ["dev"])
        want = [json.loads(x) for x in mirror.tarn.cat().ok("cat")]
        same([(r["dev"], r["temp"], r["hot"]) for r in map(json.loads, flink.folded(got, ["dev"]))],
             sorted((r["dev"], r["temp_told"], r["hot"]) for r in want), "what the script has announced")


def test_random_tables(args):
    """Of all types, keyed or not, by what property_test makes."""
    for number in range(args.cases):
        rng = random.Random("%d/%d" % (args.seed, number))
        with peer.Folder("tarn-flink-random-") as f:
            table = property_test.random_table(rng, False)
            table.options = {k: v for k, v in table.options.items() if not k.startswith("snapshot.")}
            (f.folder / "schema.json").write_text(table.json())
            mirror, model, rows = Mirror(f.folder, rng), Model(table), property_test.Rows(rng, table)
            mirror.tarn.run("create", TABLE, "--schema", f.folder / "schema.json").ok("create")

            def change(mirror=mirror, model=model, rows=rows, table=table):
                records = property_test.Input(mirror.rng, table, "changes")
                for kind, row in rows.changes(model, 20, records.kinds(), set()):
                    records.add(kind, row)
                mirror.write(records.texts)
            try:
                for _ in range(4):
                    mirror.step(change)
                if mirror.held:
                    mirror.check()
            except peer.Failure as e:
                raise peer.Failure("case %d: %s" % (number, e)) from e


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), cases=6))
