"""Golden tables of official Paimon: tarn reads each as expected, or refuses it and says why; it never misreads.

Prints a table, fixture by fixture; the last line is "N passed, M failed". Which fixtures must be read is said in
IN_SCOPE; any other may be read only if every row is right.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import peer

GOLDEN = peer.ROOT / "tests/golden/fixtures"
IN_SCOPE = {"codecs_avro", "empty", "py_append_avro", "types_append_avro", "types_pk_avro"}
NESTED = ("ARRAY", "MAP", "MULTISET", "ROW", "VARIANT", "BLOB")
# A refusal names what tarn can't do: a file, an option or a type.
REASON = re.compile(r"parquet|orc\b|merge-engine|aggregate-function|deletion-vectors|bucket|VARIANT|manifest", re.IGNORECASE)


def nested_columns(table):
    """Names that are a nested column in any schema."""
    return {f["name"] for path in (table / "schema").glob("schema-*") for f in json.loads(path.read_text())["fields"]
            if isinstance(f["type"], dict) or f["type"].startswith(NESTED)}


def flat_columns(lines, kinds, nested):
    """The columns that were read, less the nested ones; none for no rows."""
    for line in lines:
        row = dict(peer.members(line))["row"] if kinds else line
        return [name for name, _ in peer.members(row) if name not in nested]
    return []


def reads(fixture):
    """(arguments of cat, expected lines, with kinds?) for everything there is an expectation for."""
    for path in sorted(fixture.glob("expected-*.jsonl")):
        lines = peer.text_lines(path.read_bytes())
        what, _, name = path.stem[len("expected-"):].partition("-")
        if what == "snapshot":
            yield ["--snapshot", name], lines, False
        elif what == "tag":
            yield ["--tag", name], lines, False
        elif what == "incremental":
            a, b = json.loads((fixture / "info.json").read_text())["incremental"]
            yield ["--incremental", "%d,%d" % (a, b)], lines, True


def expected(line, columns, kinds):
    if not kinds:
        return peer.project(line, columns)
    value = dict(peer.members(line))
    return '{"kind":%s,"row":%s}' % (value["kind"], peer.project(value["row"], columns))


def check(fixture, warehouse):
    """(verdict, what was said). Raises Failure when tarn misreads, crashes or refuses without a reason."""
    tarn = peer.Tarn(warehouse)
    nested = nested_columns(warehouse / "db.db/t")
    read, refused, why = 0, 0, ""
    for args, lines, kinds in reads(fixture):
        columns = flat_columns(lines, kinds, nested)
        result = tarn.cat(*args, *(["--columns", ",".join(columns)] if columns else []), *(["--kind"] if kinds else []))
        if result.rc == 0:
            bad = peer.difference([expected(x, columns, kinds) for x in lines], result.lines)
            if bad:
                raise peer.Failure("cat %s: %s" % (" ".join(args), bad))
            read += 1
            continue
        refused, why = refused + 1, result.err.strip()
        if fixture.name in IN_SCOPE:
            raise peer.Failure("cat %s: refused: %s" % (" ".join(args), why))
        if result.rc != 2 or result.lines or len(why.splitlines()) != 1 or not REASON.search(why):
            raise peer.Failure("cat %s: exit code %d, %d rows, said: %s" % (" ".join(args), result.rc, len(result.lines), why))
    if fixture.name in IN_SCOPE:
        result = tarn.run("fsck", peer.TABLE)
        if result.rc != 0:
            raise peer.Failure("fsck: exit code %d: %s" % (result.rc, "\n".join([*result.lines, result.err])))
    return ("read %d" % read if not refused else "refused %d, read %d" % (refused, read)), why


def empty_reads(tarn):
    """A table without a snapshot has no rows, and that is no error."""
    lines = tarn.cat().ok("cat of a table without a snapshot")
    if lines:
        raise peer.Failure("%d rows in a table without a snapshot" % len(lines))


def run(fixture):
    with tempfile.TemporaryDirectory() as folder:
        archive = fixture / "warehouse.tar.zst"
        subprocess.run(["tar", "--use-compress-program=zstd", "--extract", "--file", archive, "--directory", folder], check=True)
        warehouse = Path(folder) / "warehouse"
        if fixture.name == "empty":
            empty_reads(peer.Tarn(warehouse))
        return check(fixture, warehouse)


def main():
    only = set(sys.argv[1:])
    passed, failed = 0, []
    for fixture in sorted(p for p in GOLDEN.iterdir() if p.is_dir() and (not only or p.name in only)):
        try:
            verdict, why = run(fixture)
            passed += 1
        except peer.Failure as e:
            verdict, why = "FAILED", str(e)
            failed.append("%s: %s\n  repeat: build/venv/bin/python3 tests/interop/fixtures_test.py %s" % (fixture.name, why, fixture.name))
        print("%-26s %-22s %s" % (fixture.name, verdict, why), flush=True)
    print("\n".join(failed), end="\n" if failed else "")  # again, at the end, where it is seen
    print("%d passed, %d failed" % (passed, len(failed)))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
