"""fsck is silent on good tables and names each damage; with --java it agrees with the official peer's fsck.

    fsck_test.py [--java] [--flips N] [--seed S] [DAMAGE...]

Tables are written by tarn, with --java also by Paimon (in avro), then damaged in one way each (damage.py). --flips also
damages N random bytes, one a copy, where the only promise is: no crash, and nothing called clean that Java finds broken.
"""
import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

import damage
import peer

TABLE = peer.TABLE
FIELDS = {"one": [("k", "INT NOT NULL"), ("a", "STRING"), ("b", "BIGINT"), ("n", "INT NOT NULL")]}
FIELDS["many"] = FIELDS["changelog"] = FIELDS["one"]
FIELDS["append"] = [("p", "STRING"), ("k", "INT"), ("a", "STRING")]
OPTIONS = {"one": {"bucket": "2"}, "many": {"bucket": "2"}, "append": {"bucket": "-1"},
           "changelog": {"bucket": "2", "changelog-producer": "input"}}


def schema_of(base):
    keyed = base != "append"
    return {"fields": [{"name": n, "type": t} for n, t in FIELDS[base]], "primaryKeys": ["k"] if keyed else [],
            "partitionKeys": [] if keyed else ["p"], "options": dict(OPTIONS[base], **{"file.format": "avro"})}


def changes(base, rng, count):
    """Lines of a commit: inserts of distinct keys and, in tables of several commits, some deletes."""
    keys = rng.sample(range(count * 2), count)
    for i, k in enumerate(keys):
        if base == "append":
            yield {"kind": "+I", "row": {"p": "abc"[i % 3], "k": k, "a": "text %d" % i}}
            continue
        kind = "-D" if base != "one" and rng.random() < 0.2 else "+I"
        yield {"kind": kind, "row": {"k": k, "a": rng.choice(["x", "yy" * 20, None]), "b": i * 3, "n": i}}


def commits(base):
    return 1 if base in ("one", "append") else 5


def write_tarn(base, folder, rng):
    tarn = peer.Tarn(folder)
    path = folder / "rows"
    path.write_text(json.dumps(schema_of(base)))
    tarn.run("create", TABLE, "--schema", path).ok("create")
    for i in range(commits(base)):
        path.write_text("".join(json.dumps(r) + "\n" for r in changes(base, rng, 60)))
        tarn.run("write", TABLE, path, "--input", "changes").ok("write")
        if base == "many" and i == commits(base) - 2:
            tarn.run("compact", TABLE, "--full").ok("compact")
    path.unlink()


def write_java(base, folder, rng, java):
    path = folder / "rows"
    path.write_text(json.dumps(schema_of(base)))
    java.run("create", folder, TABLE, path).ok("java create")
    for i in range(commits(base)):
        path.write_text("".join(json.dumps(r) + "\n" for r in changes(base, rng, 60)))
        full = base == "many" and i == commits(base) - 2
        java.run("write", folder, TABLE, path, "--compact", "full" if full else "none").ok("java write")
    path.unlink()


def bases(folder, rng, java):
    """(writer, kind, warehouse) of the good tables."""
    for base in OPTIONS:
        for writer in ["tarn"] + (["java"] if java else []):
            if base == "changelog" and writer == "tarn":
                continue
            warehouse = folder / ("good-%s-%s" % (writer, base))
            warehouse.mkdir()
            if writer == "tarn":
                write_tarn(base, warehouse, rng)
            else:
                write_java(base, warehouse, rng, java)
            yield writer, base, warehouse


def findings(warehouse, orphans=False):
    """(exit code, findings, what it said on stderr)."""
    result = peer.Tarn(warehouse).run("fsck", TABLE, "--format", "json", *(["--orphans"] if orphans else []))
    found = ["%s: %s" % (f["file"], f["problem"]) for f in map(json.loads, result.lines)]
    if result.rc not in (0, 1, 2) or (result.rc == 1) != bool(found):
        raise peer.Failure("fsck: exit code %d with %d findings: %s" % (result.rc, len(found), result.err))
    return result.rc, found, result.err.strip()


class Official:
    """Java, started anew when damage ended it."""

    def __init__(self):
        self.process = peer.java()

    def run(self, *words):
        try:
            return self.process.run(*words)
        except peer.Failure:
            self.process.close()
            self.process = peer.java()
            raise


def java_finds(java, warehouse, orphans=False):
    """The official peer's findings; none for a table that is clean."""
    result = java.run("fsck", warehouse, TABLE, "--quiet", *(["--orphans"] if orphans else []))
    found = [line for line in result.lines if line.startswith("problem: ")]
    return found or ([result.err.strip()[-200:]] if result.rc else [])


def check_good(writer, base, warehouse, java):
    rc, found, said = findings(warehouse, orphans=True)
    if rc != 0 or not said.startswith("clean: "):
        raise peer.Failure("good table: %s %s" % ("; ".join(found[:5]), said))
    theirs = java_finds(java, warehouse, orphans=True) if java else []
    if theirs:
        raise peer.Failure("Java's fsck of the good table: %s" % "; ".join(theirs[:5]))


def check_damage(name, warehouse, java):
    kind = damage.DAMAGES[name]
    kind.how(warehouse / "db.db/t")
    rc, found, said = findings(warehouse, kind.orphans)
    hit = next((f for f in found if kind.expect in f), None)
    if rc != 1 or not hit:
        raise peer.Failure("nothing says %r: exit code %d, %s %s" % (kind.expect, rc, found[:5], said))
    if java and not java_finds(java, warehouse, kind.orphans):
        return hit + " (Java doesn't mind)"
    return hit


def copy(good, folder, name):
    target = folder / name
    shutil.copytree(good, target)
    return target


def flip(warehouse, rng):
    """Damages one byte of one file; what was done."""
    files = sorted(p for p in (warehouse / "db.db/t").glob("**/*") if p.is_file() and p.stat().st_size)
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(data))
    return "%s byte %d" % (path.name, at)


def check_flip(warehouse, rng, java):
    what = flip(warehouse, rng)
    rc, found, said = findings(warehouse)
    try:
        theirs = java_finds(java, warehouse) if java else []
    except peer.Failure as e:
        theirs = [] if rc else ["it ended: %s" % str(e)[-200:]]
    if rc == 0 and theirs:
        raise peer.Failure("%s: clean, but Java says %s" % (what, "; ".join(theirs[:3])))
    return "%s: %s" % (what, found[0] if found else said)


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def run(self, name, check, *args):
        try:
            said = check(*args) or "clean"
            self.passed += 1
        except peer.Failure as e:
            said = "FAILED " + str(e)
            self.failed += 1
        print("%-40s %s" % (name, said), flush=True)


def run(args, folder, java):
    report = Report()
    rng = random.Random(args.seed)
    good = list(bases(folder, rng, java))
    for writer, base, warehouse in good:
        report.run("%s/%s" % (writer, base), check_good, writer, base, warehouse, java)
    for name, kind in damage.DAMAGES.items():
        if args.names and name not in args.names:
            continue
        for writer, base, warehouse in good:
            if base == kind.base:
                target = copy(warehouse, folder, "%s-%s" % (writer, name))
                report.run("%s/%s" % (writer, name), check_damage, name, target, java)
                shutil.rmtree(target)
    for number in range(args.flips):
        writer, base, warehouse = rng.choice(good)
        target = copy(warehouse, folder, "flip")
        report.run("%s/%s flip %d" % (writer, base, number), check_flip, target, rng, java)
        shutil.rmtree(target)
    print("%d passed, %d failed" % (report.passed, report.failed))
    return 1 if report.failed or not report.passed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--flips", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not args.java:
            return run(args, Path(folder), None)
        java = Official()
        try:
            return run(args, Path(folder), java)
        finally:
            java.process.close()


if __name__ == "__main__":
    sys.exit(main())
