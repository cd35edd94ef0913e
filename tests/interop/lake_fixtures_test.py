"""`tarn sync` of the golden tables of official Paimon: a copy is a copy, whatever a table is made of, also what tarn itself can't read
(parquet and orc, deletion vectors, dynamic buckets, nested columns).

    lake_fixtures_test.py [--java [--all]] [--seed S] [NAME...]

The lake of each fixture has the same bytes under each name as the table. In those of tables with index files official Paimon finds nothing
amiss (with --java; --all: of all tables), and it and pypaimon read there what the fixture expects.
"""
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import peer
import runner
from peer import need, same

GOLDEN = peer.ROOT / "tests/golden/fixtures"
REFUSED = {"manifest_parquet": "parquet manifests can't be read yet"}
WITH_INDEXES = ["bucket_dynamic", "dv_append", "dv_pk", "dv_pk_bitmap64", "dv_pk_orc_part", "layout_options"]
TAGGED = ["engine_tagged", "expired", "tags_branches"]
TAGGED_BY_PYPAIMON = ["tags_branches", "expired"]
NOT_BY_PYPAIMON = {"dv_pk_bitmap64"}


def files_below(folder):
    return {str(x.relative_to(folder)): x.read_bytes() for x in folder.rglob("*") if x.is_file()}


class Copy:
    """A fixture in a folder, and its lake."""

    def __init__(self, name):
        self.name, self.golden = name, GOLDEN / name
        self.folder = Path(tempfile.mkdtemp(prefix="tarn-lake-fixtures-"))
        subprocess.run(["tar", "--use-compress-program", "zstd", "-xf", self.golden / "warehouse.tar.zst", "-C", self.folder], check=True)
        self.warehouse, self.lake = self.folder / "warehouse", self.folder / "lake"
        self.tarn = peer.Tarn(self.warehouse)
        self.info = json.loads((self.golden / "info.json").read_text())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print("kept: %s" % self.folder)

    def sync(self):
        return self.tarn.run("sync", peer.TABLE, self.lake)

    def check_files(self):
        here, there = files_below(self.warehouse / "db.db/t"), files_below(self.lake / "db.db/t")
        other = [x for x, text in there.items() if here.get(x) != text and Path(x).name not in ("LATEST", "EARLIEST")]
        need(not other, "%s: the lake has other bytes in %s" % (self.name, other))
        again = self.sync()
        need(again.rc == 0 and "synced nothing" in again.err, "%s: a second sync said %s" % (self.name, again.err))
        same(files_below(self.lake / "db.db/t"), there, "files after a second sync")

    def expected(self, rng, few):
        numbers = self.info["snapshots"]
        for number in sorted({*rng.sample(numbers, min(few, len(numbers))), *numbers[-1:]}):
            path = self.golden / ("expected-snapshot-%d.jsonl" % number)
            if path.exists():
                yield number, peer.text_lines(path.read_bytes())

    def check_tags(self, reader):
        """Those of the table, as the fixture expects them."""
        for name in self.info["tags"]:
            want = peer.text_lines((self.golden / ("expected-tag-%s.jsonl" % name)).read_bytes())
            got = reader.run("read", str(self.lake), peer.TABLE, "--tag", name).ok("%s: read of tag %s" % (self.name, name))
            need(not peer.difference(want, got), "%s: tag %s in the lake: %s" % (self.name, name, peer.difference(want, got)))

    def check_rows(self, reader, rng, few):
        for number, want in self.expected(rng, few):
            got = reader.run("read", str(self.lake), peer.TABLE, "--snapshot", number).ok("%s: read of snapshot %d" % (self.name, number))
            need(not peer.difference(want, got), "%s: snapshot %d in the lake: %s" % (self.name, number, peer.difference(want, got)))


def names_of(args):
    return sorted(x.name for x in GOLDEN.iterdir() if x.is_dir())


def test_every_table_of_paimon_travels(args):
    rng = random.Random(args.seed)
    for name in names_of(args):
        with Copy(name) as copy:
            said = copy.sync()
            if name in REFUSED:
                need(said.rc != 0 and REFUSED[name] in said.err, "%s: %d %s" % (name, said.rc, said.err))
                continue
            need(said.rc == 0, "%s: %s" % (name, said.err))
            copy.check_files()
            if args.java and (args.all or name in WITH_INDEXES):
                with peer.java() as java:
                    java.run("fsck", str(copy.lake), peer.TABLE).ok("%s: fsck of the lake" % name)
                    copy.check_rows(java, rng, 2)


def test_index_files_are_read_at_the_lake(args):
    rng = random.Random(args.seed)
    with peer.pypaimon() as python:
        for name in WITH_INDEXES:
            with Copy(name) as copy:
                copy.sync().ok("%s: sync" % name)
                need(list(copy.lake.rglob("index-manifest-*")), "%s has no index manifest" % name)
                if name not in NOT_BY_PYPAIMON:
                    copy.check_rows(python, rng, 3)


def without_vectors(copy):
    """As tarn takes a table that had them: it refuses to expire one whose readers need them."""
    for path in (copy.warehouse / "db.db/t/schema").glob("schema-*"):
        schema = json.loads(path.read_text())
        for name in ("deletion-vectors.enabled", "file.compression"):
            schema["options"].pop(name, None)
        schema["options"]["file.format"] = "avro"
        path.write_text(json.dumps(schema))


def names_in(warehouse):
    return {x for x in files_below(warehouse / "db.db/t") if Path(x).name not in ("LATEST", "EARLIEST")}


def test_index_files_go_as_with_java(args):
    """Expiry in steps leaves the files that Java's leaves, and cleaning takes none of them for an orphan."""
    with contextlib.ExitStack() as stack:
        java = stack.enter_context(peer.java()) if args.java else None
        for name in WITH_INDEXES[1:]:
            with Copy(name) as copy:
                without_vectors(copy)
                before = names_in(copy.warehouse)
                for keep in (3, 1):
                    other = copy.folder / ("java-%d" % keep)
                    shutil.copytree(copy.warehouse, other)
                    words = ["--retain-max", keep, "--retain-min", keep]
                    copy.tarn.run("expire", peer.TABLE, "--older-than", "0 s", *words).ok("%s: expire" % name)
                    if java:
                        java.run("expire", other, peer.TABLE, *words).ok("%s: java expire" % name)
                        same(names_in(copy.warehouse), names_in(other), "%s: files after an expiry to %d" % (name, keep))
                left = names_in(copy.warehouse)
                need([x for x in before - left if "/index-" in x and not x.startswith("manifest/")], "%s: no index file went" % name)
                for path in (copy.warehouse / "db.db/t").rglob("*"):
                    os.utime(path, (0, 0))
                copy.tarn.run("clean", peer.TABLE).ok("%s: clean" % name)
                same(names_in(copy.warehouse), left, "%s: files after cleaning" % name)
                if java:
                    java.run("fsck", copy.warehouse, peer.TABLE, "--orphans").ok("%s: java fsck" % name)


def test_tags_are_read_at_the_lake(args):
    """Also those of snapshots that expired at home before the lake was made; one that goes at home goes there."""
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(peer.java() if args.java else peer.pypaimon())
        for name in TAGGED if args.java else TAGGED_BY_PYPAIMON:
            with Copy(name) as copy:
                copy.sync().ok("%s: sync" % name)
                tags = copy.info["tags"]
                need(tags and sorted(x.name for x in (copy.lake / "db.db/t/tag").iterdir()) == sorted("tag-" + x for x in tags), tags)
                copy.check_tags(reader)
                if args.java:
                    reader.run("fsck", str(copy.lake), peer.TABLE).ok("%s: fsck of the lake" % name)
                copy.tarn.run("tag", peer.TABLE, tags[0], "--delete").ok("tag remove")
                said = copy.sync()
                need(said.rc == 0 and "1 removed" in said.err, said.err)
                need(not (copy.lake / "db.db/t/tag" / ("tag-" + tags[0])).exists(), "tag %s is there still" % tags[0])


if __name__ == "__main__":
    sys.exit(runner.run_given(globals(), java=False, all=False))
