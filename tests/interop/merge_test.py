"""Merge engines from end to end: what Paimon made of tables (tests/golden/merge), tarn makes of the same commits.

Each case is created, written commit by commit, compacted where the case says so, and read: by a scan, and each key by
`get`. Cases with options or types that this build refuses are counted; the last line is "N passed, M failed".
"""
import json
import re
import sys
import tempfile
from pathlib import Path

import peer

GOLDEN = peer.ROOT / "tests/golden/merge"
REFUSED = ("DATE", "TIME", "BINARY", "BYTES", "ARRAY", "MAP", "ROW")  # their JSON in the cases is another
NOT_YET = re.compile(r"deletion-vectors|DOUBLE can't be a primary key")
MODES = {"none", "full", "auto"}
KEYS_MAX = 2  # of a case, that `get` is asked for
OTHERWISE = {
    "agg_sum_decimal_overflow_null": "a sum past the digits of its type is NULL, whatever the type",
    "pu_delete_lone_key_is_silently_kept": "a row that no merge could take is refused at once",
}


def cases():
    for name in ("cases", "random"):
        for line in (GOLDEN / (name + ".jsonl")).read_text().splitlines():
            yield json.loads(line)


def in_scope(case):
    types = [f["type"] for f in case["schema"]]
    return (case["primary_key"] and case["compact"] in MODES and case["name"] not in OTHERWISE
            and all(isinstance(t, str) and not any(word in t for word in REFUSED) for t in types))


def schema_of(case):
    options = {"bucket": "1", **case["options"], "file.format": "avro"}
    if case["compact"] != "auto":
        options["write-only"] = "true"
    return {"fields": case["schema"], "primaryKeys": case["primary_key"], "partitionKeys": case.get("partition_keys", []),
            "options": {name: str(value) for name, value in options.items()}}


def write(tarn, case):
    """The first command that fails, or None."""
    for commit in case["commits"]:
        rows = "".join(json.dumps(row) + "\n" for row in commit)
        result = tarn.run("write", peer.TABLE, "--input", "changes", stdin=rows)
        if result.rc != 0:
            return result
    if case["compact"] == "full":
        result = tarn.run("compact", peer.TABLE, "--full")
        return result if result.rc != 0 else None
    return None


def plain(row):
    return json.dumps(row, sort_keys=True)


def check_keys(tarn, case):
    for row in case["expect_rows"][:KEYS_MAX]:
        key = [str(row[k]).lower() if isinstance(row[k], bool) else str(row[k]) for k in case["primary_key"]]
        lines = tarn.run("get", peer.TABLE, "--format", "json", "--", *key).ok("get " + " ".join(key))
        if [plain(json.loads(line)) for line in lines] != [plain(row)]:
            raise peer.Failure("get %s: %s, want %s" % (" ".join(key), lines, plain(row)))


def check(case):
    """False when the table is refused, as Paimon refuses it or for what this build lacks."""
    with tempfile.TemporaryDirectory() as folder:
        tarn = peer.Tarn(folder)
        path = Path(folder) / "schema.json"
        path.write_text(json.dumps(schema_of(case)))
        created = tarn.run("create", peer.TABLE, "--schema", path)
        if created.rc == 2 and ("expect_error" in case or NOT_YET.search(created.err)):
            return False
        created.ok("create")
        failed = write(tarn, case)
        read = tarn.cat() if not failed else None
        if "expect_error" in case:
            if not failed and read.rc == 0:
                raise peer.Failure("no error, where Paimon says " + case["expect_error"])
            return True
        if failed:
            failed.ok("write")
        got = sorted(plain(json.loads(line)) for line in read.ok("cat"))
        want = sorted(plain(row) for row in case["expect_rows"])
        if got != want:
            raise peer.Failure("cat: %s, want %s" % (got, want))
        check_keys(tarn, case)
        return True


def main():
    only = set(sys.argv[1:])
    passed, refused, failed = 0, 0, []
    for case in cases():
        if (only and case["name"] not in only) or not in_scope(case):
            continue
        try:
            done = check(case)
            passed += done
            refused += not done
        except peer.Failure as e:
            failed.append("%s: %s\n  repeat: build/venv/bin/python3 tests/interop/merge_test.py %s" % (case["name"], e, case["name"]))
    print("\n".join(failed), end="\n" if failed else "")
    print("%d refused" % refused)
    print("%d passed, %d failed" % (passed, len(failed)))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
