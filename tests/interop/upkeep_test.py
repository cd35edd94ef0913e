"""Expiry, tags and rollback on copies of one table, by tarn and by official Paimon: both leave the same files.

    upkeep_test.py --seconds N --seed S [--case N]

A case makes one table, with changelogs that outlive their snapshots or without, and takes some steps. In some, Java or tarn writes. In
others the table is copied, tarn does something to the one and Java to the other: expires, removes a tag, rolls back. Then the folders hold
the same names. It goes on with what tarn left; in the end Java and tarn find it sound, and stream the same from the first record on.
A failure keeps the warehouses and prints the command that repeats it.
"""
import json
import os
import shutil
import sys

import peer
import runner
import tail_test
from peer import need

TABLE = peer.TABLE
HINTS = ("EARLIEST", "LATEST")


class Case(tail_test.Case):
    def __init__(self, seed, folder, java):
        super().__init__(seed, folder, java)
        self.other = folder / "other"
        self.kept = self.rng.choice([0, 0, 5, 8])  # changelogs; 0: they go with their snapshots
        self.orphans = False
        self.counts = {"expiries": 0, "tags": 0, "rollbacks": 0, "files": 0}
        if self.options.get("file.compression") == "snappy":
            del self.options["file.compression"]  # which tarn doesn't write
        if self.kept:
            self.options["changelog.num-retained.min"] = self.options["changelog.num-retained.max"] = str(self.kept)
            self.options["changelog.time-retained"] = "10000 d"

    @property
    def table(self):
        return self.warehouse / "db.db/t"

    def producer(self):
        return self.options.get("changelog-producer", "none")

    # ---- two copies

    def names(self, warehouse):
        table = warehouse / "db.db/t"
        return {str(p.relative_to(table)) for p in table.rglob("*") if p.is_file() and p.name not in HINTS}

    def compare(self, what, ours, theirs, more=False):
        """`more`: tarn may have kept what Java lost."""
        shutil.rmtree(self.other, ignore_errors=True)
        shutil.copytree(self.warehouse, self.other)
        before = self.names(self.warehouse)
        ours()
        theirs()
        got, want = self.names(self.warehouse), self.names(self.other)
        self.counts["files"] += len(before - got)
        need(got == want or (more and got >= want), "%s: tarn alone keeps %s, Java alone %s" % (
            what, sorted(got - want)[:8], sorted(want - got)[:8]))

    def theirs(self, *words):
        return self.java.run(words[0], self.other, TABLE, *words[1:])

    def expire(self):
        keep = self.rng.randint(1, 4)
        if self.rng.random() < 0.3:
            self.compare_consumer()
        words = ["--retain-max", keep, "--retain-min", keep]

        def java():
            said = self.theirs("expire", *words, *(["--changelog-retain-max", self.kept] if self.kept else []))
            # 1.3.1 reads a changelog that isn't there when none is to go
            need(said.rc == 0 or (self.kept and "changelog" in said.err), "java expire: %s" % said.err)

        self.compare("expire to %d" % keep,
                     lambda: self.tarn.run("expire", TABLE, "--older-than", "0 s", *words).ok("expire"), java)
        self.counts["expiries"] += 1
        # an overwrite by Java leaves changelog files that it doesn't commit
        self.orphans = self.orphans or (self.overwritten and self.producer() != "none")
        self.sound(*([] if self.orphans else ["--orphans"]))

    def compare_consumer(self):
        self.ask("consumer", "c", self.rng.randint(self.earliest(), self.latest() + 1))

    # ---- tags

    def has_tags(self):
        return sorted(p.name[4:] for p in (self.table / "tag").glob("tag-*"))

    def make_tag(self):
        """The same text, whoever makes it."""
        name = "t%d" % self.rng.randrange(1000)
        if name in self.has_tags():
            return
        at = self.rng.randint(self.earliest(), self.latest())
        self.compare("tag", lambda: self.tarn.run("tag", TABLE, name, "--snapshot", at).ok("tag"),
                     lambda: self.theirs("tag", "create", name, "--snapshot", at).ok("java tag"))
        texts = [json.loads((w / "db.db/t/tag" / ("tag-" + name)).read_text()) for w in (self.warehouse, self.other)]
        need(texts[0] == texts[1], "tag %s: %s, Java's is %s" % (name, texts[0], texts[1]))
        again = self.tarn.run("tag", TABLE, name)
        need(again.rc == 2 and "already" in again.err, "a tag twice: %d %s" % (again.rc, again.err))
        self.same_rows(name)

    def same_rows(self, name):
        want = self.ask("read", "--tag", name)
        got = self.tarn.cat("--tag", name).ok("cat --tag %s" % name)
        need(not peer.difference(want, got), "tag %s: %s" % (name, peer.difference(want, got)))

    def drop_tag(self):
        """What a long-lived changelog tells by data files stays; Java removes those with the tag."""
        if self.has_tags():
            name = self.rng.choice(self.has_tags())
            self.same_rows(name)
            self.compare("tag --delete", lambda: self.tarn.run("tag", TABLE, name, "--delete").ok("tag --delete"),
                         lambda: self.theirs("tag", "delete", name).ok("java tag delete"), bool(self.kept) and self.producer() == "none")
            self.counts["tags"] += 1

    def timed_tags(self):
        """Over at once: the next commit of either removes the other's."""
        rows = self.rows(3)
        self.tarn.run("tag", TABLE, "ours", "--time-retained", "1 ms").ok("tag")
        self.ask("write", rows, "--compact", "auto")
        # 1.3.1's expiry of changelogs fails when none is to go, and then its tags stay
        need("ours" not in self.has_tags() or self.kept, "Java's commit left a tag whose time was over")
        self.ask("tag", "create", "theirs", "--option", "tag.default-time-retained=1 ms")
        self.tarn.run("expire", TABLE, "--retain-max", 1000000).ok("expire")
        need(not {"ours", "theirs"} & set(self.has_tags()), "tarn left a tag whose time was over")

    # ---- rollback

    def rollback(self):
        tags = self.has_tags()
        if tags and self.rng.random() < 0.5:
            target = self.rng.choice(tags)
            where = ["--tag", target]
        else:
            target = self.rng.randint(self.earliest(), self.latest())
            where = ["--snapshot", target]
        want = [self.widened(x) for x in self.ask("read", *where)]
        said = []

        def ours():
            said.append(self.tarn.run("rollback", TABLE, target))
            said[0].ok("rollback")

        self.compare("rollback to %s" % target, ours, lambda: self.theirs("rollback", *where).ok("java rollback"))
        self.forget_consumer(said[0].err)
        hints = [(w / "db.db/t/snapshot/LATEST").read_text() for w in (self.warehouse, self.other)]
        need(hints[0] == hints[1], "LATEST is %s, Java's is %s" % tuple(hints))
        got = self.tarn.cat().ok("cat")
        need(not peer.difference(want, got), "rolled back to %s: %s" % (target, peer.difference(want, got)))
        need(not peer.difference(want, self.ask("read")), "Java reads something else behind a rollback to %s" % target)
        self.orphans = True
        self.overwritten = max(self.overwritten, 1)
        self.counts["rollbacks"] += 1

    def widened(self, line):
        """A row of an old schema in that of now, which stays: with NULL for columns that were added."""
        return line[:-1] + "".join(',"%s":null' % c for c in self.columns if '"%s":' % c not in line) + "}"

    def forget_consumer(self, said):
        """One that is further on is told of; it would wait for what doesn't come."""
        path = self.table / "consumer/consumer-c"
        if path.exists() and json.loads(path.read_text())["nextSnapshot"] > self.latest() + 1:
            need("consumer 'c' goes on at snapshot" in said, "rollback doesn't tell of the consumer: %s" % said)
            self.tarn.run("tail", TABLE, "--consumer", "c", "--forget").ok("forget")

    # ---- the whole

    def write_ours(self):
        rows = self.rows(self.rng.randint(1, 20)).read_text()
        self.tarn.run("write", TABLE, "-", "--input", "changes", stdin=rows).ok("write")

    def sound(self, *args):
        said = self.tarn.run("fsck", TABLE, *args)
        need(said.rc == 0, "fsck: %s%s" % (said.lines, said.err))
        told_by_deltas = self.kept and self.producer() == "none"  # whose base lists the oracle doesn't know
        said = self.java.run("fsck", self.warehouse, TABLE, *([] if told_by_deltas else args))
        need(said.rc == 0, "java fsck: %s" % [x for x in said.lines if x.startswith("problem")][:5])

    def first_record(self):
        ids = {int(p.name.split("-")[1]) for p in (self.table / "changelog").glob("changelog-*")}
        first = self.earliest()
        while first - 1 in ids:
            first -= 1
        return first

    def check_changes(self):
        first, last = self.first_record(), self.latest()
        said = self.tarn.run("tail", TABLE, "--from", "earliest").ok("tail")
        self.check_stream(first, last)
        need(said == self.tail("--from", first), "tail --from earliest doesn't begin at %d" % first)

    def run(self):
        self.java.run("create", self.warehouse, TABLE, self.file(json.dumps(self.schema))).ok("java create")
        self.ask("write", self.rows(20), "--compact", "auto")
        steps = [(5, self.step), (3, self.write_ours), (3, self.expire), (3, self.make_tag), (2, self.drop_tag),
                 (1, self.rollback), (1, self.timed_tags)]
        for _ in range(self.rng.randint(10, 25)):
            self.rng.choices([s for _, s in steps], [w for w, _ in steps])[0]()
        self.expire()
        self.sound()
        self.check_changes()
        return self.counts


def main():
    os.environ["TZ"] = "UTC"  # as the JVM has it: a tag's time is of the wall clock
    return runner.random_cases(Case, "%(expiries)d expiries, %(tags)d tags, %(rollbacks)d rollbacks: %(files)d files went as with Java")


if __name__ == "__main__":
    sys.exit(main())
