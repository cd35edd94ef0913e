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
IN_SCOPE = {"codecs_avro", "empty", "engine_agg", "engine_first_row", "engine_groups", "engine_lookup", "engine_partial", "engine_remove",
            "engine_sequence", "engine_tagged", "py_append_avro", "tail_append", "tail_decoupled", "tail_decoupled_full", "tail_decoupled_lookup",
            "tail_decoupled_none", "tail_expired", "tail_full", "tail_input", "tail_lookup", "tail_none", "types_append_avro", "types_pk_avro"}
MUST_TAIL = IN_SCOPE | {"changelog_format"}  # its changelog is avro, its data is not
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


def key_of(table):
    """The columns that the peer orders a snapshot's changes by; a row without a key is its own."""
    schema = json.loads(max((table / "schema").glob("schema-*"), key=lambda p: int(p.name.split("-")[1])).read_text())
    primary, partition = schema["primaryKeys"], schema["partitionKeys"]
    return primary + [p for p in partition if p not in primary] if primary else []


def by_key(lines, key):
    """Ordered by key; what one key went through stays in its order."""
    def text(line):
        row = dict(peer.members(line))["row"]
        return (peer.project(row, key) if key else row).encode()
    return sorted(lines, key=text)


def check_tail(fixture, tarn, table, nested):
    """What changed, from each snapshot on. Returns why tarn can't say it, or None."""
    path = fixture / "expected-changelog.jsonl"
    if not path.exists():
        return None
    info = json.loads((fixture / "info.json").read_text())
    lines, key = peer.text_lines(path.read_bytes()), key_of(table)
    columns = flat_columns(lines, True, nested)
    only = ["--columns", ",".join(columns)] if columns else []
    first, last = info["changelogFrom"], max(info["snapshots"])
    want = {n: [expected(x, columns, True) for x in lines if json.loads(x)["snapshot"] == n] for n in range(first, last + 1)}
    got = {}
    for n in range(first, last + 1):
        result = tarn.run("tail", peer.TABLE, "--from", n, "--to", n, "--format", "json", *only)
        if result.rc != 0:
            return result.err.strip()
        got[n] = result.lines
        if not set(key) <= set(columns):
            columns = []  # nothing to compare an order by
        if by_key(got[n], key) != (want[n] if columns else by_key(want[n], key)):
            raise peer.Failure("tail of snapshot %d: %s" % (n, peer.difference(want[n], got[n]) or "another order"))
    for n in range(first, last + 1):
        rest = tarn.run("tail", peer.TABLE, "--from", n, "--format", "json", *only).ok("tail --from %d" % n)
        if rest != [x for m in range(n, last + 1) for x in got[m]]:
            raise peer.Failure("tail --from %d is not what its snapshots are one by one" % n)
    refused = tarn.run("tail", peer.TABLE, "--from", first - 1 or last + 2, *only)
    if refused.rc != 2 or refused.lines or not re.search("expired; the earliest is %d$|beyond the latest" % first, refused.err.strip()):
        raise peer.Failure("tail from a snapshot that isn't there: %d, %s" % (refused.rc, refused.err))
    return None


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
    no_tail = check_tail(fixture, tarn, warehouse / "db.db/t", nested)
    if no_tail and (fixture.name in MUST_TAIL or not REASON.search(no_tail)):
        raise peer.Failure("tail: refused: %s" % no_tail)
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
