"""`tarn compact --every` beside Paimon that writes: the table and its changelog are right to both.

Java creates a write-only table and commits random rows; all that time tarn's job compacts it, and both race for snapshots.
In the end Java must find nothing wrong, both must read the rows of a fold in Python, and the changelog that the job told,
as Java streams it, must lead from nothing to these rows, without a step that does not fit what was before.
usage: job_test.py [--seed N]
"""
import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import peer
from peer import Failure

COMMITS = 12
ROWS_MAX = 15
KEYS = 10
CASES = [
    ("deduplicate", "lookup", {}),
    ("deduplicate", "full-compaction", {}),
    ("partial-update", "lookup", {"changelog-producer.row-deduplicate": "true"}),
    ("aggregation", "lookup", {"fields.v.aggregate-function": "sum"}),
    ("aggregation", "full-compaction", {"fields.v.aggregate-function": "sum", "full-compaction.delta-commits": "2"}),
    ("first-row", "lookup", {}),
]


def fold(rows, engine):
    """Rows by key, as the engine merges them."""
    state = {}
    for kind, row in rows:
        old = state.get(row["k"])
        if kind == "-D":
            state.pop(row["k"], None)
        elif old is None or engine == "deduplicate":
            state[row["k"]] = row
        elif engine == "partial-update":
            state[row["k"]] = {c: old[c] if row[c] is None else row[c] for c in row}
        elif engine == "aggregation":
            both = old["v"] is not None and row["v"] is not None
            state[row["k"]] = {"k": row["k"], "v": old["v"] + row["v"] if both else old["v"] if row["v"] is None else row["v"],
                               "s": old["s"] if row["s"] is None else row["s"]}
    return state


def draw(rng, engine):
    kind = "-D" if engine == "deduplicate" and rng.random() < 0.2 else "+I"
    return kind, {"k": rng.randrange(KEYS), "v": rng.choice([None, rng.randrange(100)]), "s": rng.choice([None, "a", "text"])}


def job_of(warehouse):
    argv = [str(peer.TARN), "compact", peer.TABLE, "--warehouse", str(warehouse), "--every", "30ms", "--format", "json"]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def write(ask, folder, engine, rng):
    written = []
    for _ in range(COMMITS):
        rows = [draw(rng, engine) for _ in range(rng.randint(1, ROWS_MAX))]
        path = folder / "rows"
        path.write_text("".join(json.dumps({"kind": kind, "row": row}) + "\n" for kind, row in rows))
        ask("write", path, "--compact", "none")
        written += rows
    return written


def replay(lines):
    """Rows that a changelog leads to."""
    state = {}
    for line in map(json.loads, lines):
        key, row = line["row"]["k"], line["row"]
        before = state.get(key)
        if (before is not None) != (line["kind"] != "+I") or (line["kind"] in ("-U", "-D") and before != row):
            raise Failure("changelog: %s of %s, which was %s" % (line["kind"], row, before))
        if line["kind"] == "-D":
            del state[key]
        elif line["kind"] != "-U":
            state[key] = row
    return state


def follow(process, done):
    """What the job says, until it ends; each commit sets `done`."""
    for line in process.stderr:
        if "committed snapshot=" in line:
            done.set()
        else:
            sys.stderr.write(line)


def compacted(ask):
    return all(json.loads(x)["level"] > 0 for x in ask("files"))


def run_case(java, folder, engine, producer, options, rng):
    warehouse = folder / "warehouse"
    schema = {"fields": [{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "INT"}, {"name": "s", "type": "STRING"}], "primaryKeys": ["k"],
              "options": {"bucket": "2", "file.format": "avro", "write-only": "true", "merge-engine": engine, "changelog-producer": producer, **options}}

    def ask(*words):
        return java.run(words[0], warehouse, peer.TABLE, *words[1:]).ok("java %s" % words[0])

    (folder / "schema").write_text(json.dumps(schema))
    ask("create", folder / "schema")
    process, done = job_of(warehouse), threading.Event()
    watchdog = threading.Timer(peer.SECONDS_MAX, process.kill)
    watchdog.start()
    reader = threading.Thread(target=follow, args=(process, done))
    reader.start()
    try:
        want = fold(write(ask, folder, engine, rng), engine)
        while not compacted(ask):
            if not done.wait(peer.SECONDS_MAX):
                raise Failure("what was written last is not compacted")
            done.clear()
        process.send_signal(signal.SIGTERM)
        out = process.stdout.read()
        if process.wait() != 0:
            raise Failure("the job ended with %d" % process.returncode)
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()
        watchdog.cancel()
    ask("fsck", "--quiet")  # Java leaves manifests behind when it loses a race, so orphans are no question
    rows = {json.loads(x)["k"]: json.loads(x) for x in ask("read")}
    own = {json.loads(x)["k"]: json.loads(x) for x in peer.Tarn(warehouse).cat().ok("cat")}
    told = replay(ask("changelog", "--from", "1"))
    for what, got in (("Java reads", rows), ("tarn reads", own), ("the changelog leads to", told)):
        if got != want:
            raise Failure("%s %s, not %s" % (what, got, want))
    return len(out.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    failed = rounds = 0
    with peer.java() as java:
        for engine, producer, options in CASES:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    rounds += run_case(java, Path(folder), engine, producer, options, random.Random("%s %s %d" % (engine, producer, seed)))
                except Failure as e:
                    failed += 1
                    print("%s, %s, seed %d: %s" % (engine, producer, seed, e))
    print("%d rounds" % rounds)
    print("%d passed, %d failed" % (len(CASES) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
