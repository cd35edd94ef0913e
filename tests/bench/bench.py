"""Runs tarn and its peers over the same rows, one durable commit each 100,000 of them, and prints three tables.

    bench.py BUILD_FOLDER        environment: W1, W2, W3, W4 rows of a workload (0: leave out), LOOKUP and SCRIPT rows of the
                                 second and third table, CLASSPATH of PaimonBench

The second table says what changelog-producer = lookup costs: rows of W2 into an empty table, whose keys come to 100,000, and into
one of a million.

The third says what a script costs: rows of W2 into a bucket of 100,000 keys, with a merge that reads three columns and writes two
(with what they had, so that the sums stay), and with a script that has no merge, which costs all but Lua's own time. A flush looks
at the keys that are there, so keys a bucket / rows a flush is what its cost goes with: the same with other memory.

Called by scripts/bench. CPU is user and system time of the whole process, all threads, JVM start and JIT too; tarn's contains
parsing JSON or csv, the peers read raw records. A peer whose merged table has other sums than the generator's is an error.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(sys.argv[1])
ROOT = Path(__file__).resolve().parents[2]
TARN = Path(os.environ.get("TARN", ROOT / "build/host/tarn"))
ROWS = {w: int(os.environ.get(w, n)) for w, n in (("W1", 1000000), ("W2", 2000000), ("W3", 0), ("W4", 0))}
LOOKUP = int(os.environ.get("LOOKUP", 1000000))
SCRIPT = int(os.environ.get("SCRIPT", 1000000))
KEYS = 100000  # of W2
SCRIPTS = {
    "no script": None,
    "a script without a merge": 'return { retract = function() return tarn.DELETE end }\n',
    "merge: reads 3, writes 2": """local m = {}
function m.merge(now, row)
    local v1, v2, status = row.v1, now and now.v2, row.status
    row.v1 = v1
    row.status = v2 and v1 > v2 and status or row.status
    return row
end
return m
""",
}
# Issue: microseconds a row, besides the script's own time.
GOAL_SCRIPT_US = 1.2
# Issue: what tarn's CPU a row may be of the Java peer's in the same run.
GOALS = {"W1": 1 / 3, "W2": 1 / 4}

FIELDS = [("device_id", "STRING"), ("metric", "INT"), ("ts", "TIMESTAMP(3)"), ("v1", "DOUBLE"), ("v2", "DOUBLE"), ("v3", "DOUBLE"),
          ("v4", "DOUBLE"), ("status", "INT"), ("seq", "BIGINT"), ("unit", "VARCHAR(12)"), ("ok", "BOOLEAN")]


def measure(argv):
    """What a command cost (see measure.c)."""
    read, write = os.pipe()
    def on_three():
        os.dup2(write, 3)
    with (BUILD / "stderr").open("wb") as err:
        done = subprocess.run([BUILD / "measure", *argv], stdout=subprocess.DEVNULL, stderr=err, preexec_fn=on_three,
                              close_fds=False, check=False)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    if done.returncode != 0:
        raise SystemExit("%s: exit code %d: %s" % (argv[0], done.returncode, (BUILD / "stderr").read_text()[-2000:]))
    return json.loads(text)


def create(folder, more):
    options = {"bucket": "1", "file.format": "avro", **more}
    schema = {"fields": [{"name": n, "type": t} for n, t in FIELDS], "primaryKeys": ["device_id", "metric"], "options": options}
    path = folder / "schema.json"
    if not path.exists():
        path.write_text(json.dumps(schema))
        subprocess.run([TARN, "create", "b.t", "--schema", path, "--warehouse", folder], check=True, stderr=subprocess.DEVNULL)


def tarn_ingest(form, suffix, options=()):
    def run(folder, workload):
        create(folder, {**dict(options), **({"sequence.field": "seq"} if workload == "W4" else {})})
        return measure([TARN, "write", "b.t", BUILD / (workload + suffix), "--input", form, "--commit-every", "100000", "--time", "ts=ms",
                        "--quiet", "--warehouse", folder])
    return run


def tarn_sums(folder, _workload):
    """Sums of `tarn cat`, in Python since tarn prints rows."""
    n = seq = status = v = ok = 0
    with subprocess.Popen([TARN, "cat", "b.t", "--format", "json", "--warehouse", folder], stdout=subprocess.PIPE) as cat:
        for line in cat.stdout:
            row = json.loads(line)
            n, seq, status, ok = n + 1, seq + row["seq"], status + row["status"], ok + row["ok"]
            for name in ("v1", "v2", "v3", "v4"):
                x = row[name] * 1000.0
                v += int(x + 0.5) if x >= 0 else -int(0.5 - x)
    return "n=%d seq=%d st=%d v=%d ok=%d" % (n, seq, status, v % 2 ** 64, ok)


def peer(*argv):
    """(ingest, sums) of a command that takes ingest|scan FOLDER FILE.raw."""
    def place(folder):
        return folder / "db" if "sqlite" in str(argv[0]) else folder
    return (lambda folder, w: measure([*argv, "ingest", place(folder), BUILD / (w + ".raw")]),
            lambda folder, w: subprocess.run([*argv, "scan", place(folder), BUILD / (w + ".raw")], check=True, text=True,
                                             capture_output=True).stdout.strip())


def contestants():
    yield "tarn, Debezium JSON", tarn_ingest("debezium-json", ".json"), tarn_sums
    yield "tarn, csv", tarn_ingest("csv", ".csv"), tarn_sums
    if os.environ.get("CLASSPATH"):
        yield ("Paimon Java, avro, 16 MB", *peer("java", "-Xmx512m", "PaimonBench"))
    for name, title in (("sqlite", "SQLite, WAL, FULL"), ("lmdb", "LMDB")):
        if (BUILD / ("peer_" + name)).exists():
            yield (title, *peer(BUILD / ("peer_" + name)))


def generate(workload):
    for form, suffix in (("raw", ".raw"), ("json", ".json")) + ((("csv", ".csv"),) if workload != "W3" else ()):
        subprocess.run([BUILD / "gen", workload, str(ROWS[workload]), form, BUILD / (workload + suffix)], check=True)
    return subprocess.run([BUILD / "gen", "check", BUILD / (workload + ".raw")], check=True, text=True, capture_output=True).stdout.strip()


def run(workload):
    want, results = generate(workload), {}
    for name, ingest, sums in contestants():
        if name == "tarn, csv" and workload == "W3":
            continue
        folder = BUILD / "table"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        results[name] = ingest(folder, workload)
        got = sums(folder, workload)
        if got != want:
            raise SystemExit("%s %s holds other rows: %s instead of %s" % (name, workload, got, want))
        shutil.rmtree(folder)
        print_line(workload, name, results)
    for path in BUILD.glob(workload + ".*"):
        path.unlink()
    return results


def print_line(workload, name, results):
    r, first = results[name], next(iter(results.values()))
    n = ROWS[workload]
    print("%-3s %9d  %-26s %7.2f %8.1fx %10.1f %9.0f %11.1f" % (
        workload, n, name, r["cpu_s"] / n * 1e6, r["cpu_s"] / first["cpu_s"], r["peak_kib"] / 1024, n / r["wall_s"] / 1000, r["written"] / n),
        flush=True)


def lookup_contestants():
    for producer in ("none", "lookup"):
        option = {"changelog-producer": producer}
        yield "tarn, " + producer, tarn_ingest("debezium-json", ".json", option.items()), tarn_sums, ".json"
    if os.environ.get("CLASSPATH"):
        java = ("java", "-Xmx512m", "PaimonBench")
        for producer in ("none", "lookup"):
            def ingest(folder, w, option="changelog-producer=" + producer):
                return measure([*java, "ingest", folder, BUILD / (w + ".raw"), option])
            yield "Paimon Java, " + producer, ingest, peer(*java)[1], ".raw"


def run_lookup(keys):
    """What each row costs with a changelog by lookup, and without one; the sums of all must agree."""
    sums, none = set(), {}
    for name, ingest, sums_of, suffix in lookup_contestants():
        folder = BUILD / "table"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if keys > 100000:
            ingest(folder, "W1")
        r = ingest(folder, "W2")
        sums.add(sums_of(folder, "W2"))
        shutil.rmtree(folder)
        who = name.split(",")[0]
        none.setdefault(who, r)
        read = r["read"] - (BUILD / ("W2" + suffix)).stat().st_size
        print("%9d  %-26s %7.2f %8.2fx %10.1f %11.1f %11.1f" % (
            keys, name, r["cpu_s"] / LOOKUP * 1e6, r["cpu_s"] / none[who]["cpu_s"], r["peak_kib"] / 1024, read / LOOKUP,
            r["written"] / LOOKUP), flush=True)
    if len(sums) != 1:
        raise SystemExit("tables that should be the same are not: %s" % sums)


def main_lookup():
    ROWS.update({"W1": 1000000, "W2": LOOKUP})
    generate("W1")
    generate("W2")
    print("\n%9s  %-26s %7s %9s %10s %11s %11s" % ("keys", "W2, changelog-producer", "CPU us", "of none's", "peak MiB", "read B", "written B"))
    print("%9s  %-26s %7s %9s %10s %11s %11s" % ("", "", "a row", "CPU", "memory", "a row", "a row"))
    for keys in (100000, 1000000):
        run_lookup(keys)


def run_script(name, memory):
    """What the table's writer cost, and its counts."""
    folder = BUILD / "table"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    script = folder / "bench.lua"
    options = {}
    if SCRIPTS[name]:
        script.write_text(SCRIPTS[name])
        options["tarn.script"] = str(script)
    create(folder, options)
    r = measure([TARN, "write", "b.t", BUILD / "W2.csv", "--input", "csv", "--commit-every", "100000", "--time", "ts=ms", "--quiet",
                 "--stats", "--memory", memory, "--warehouse", folder])
    counts = dict(pair.split("=") for pair in (BUILD / "stderr").read_text().splitlines()[-1].split())
    sums = tarn_sums(folder, "W2")
    shutil.rmtree(folder)
    r["us"] = r["cpu_s"] / SCRIPT * 1e6
    r["keys_a_row"] = KEYS * int(counts["flushes"]) / SCRIPT
    print("%9s  %-26s %7.2f %10.1f %9.0f %13.1f" % (memory, name, r["us"], r["peak_kib"] / 1024, SCRIPT / int(counts["flushes"]),
                                                   r["keys_a_row"]), flush=True)
    return r, sums


def main_script():
    ROWS["W2"] = SCRIPT
    want = generate("W2")
    print("\n%9s  %-26s %7s %10s %9s %13s" % ("memory", "W2 from csv, 100,000 keys", "CPU us", "peak MiB", "rows", "keys a bucket"))
    print("%9s  %-26s %7s %10s %9s %13s" % ("", "in a bucket", "a row", "memory", "a flush", "/ rows a flush"))
    results = {}
    for memory in ("16M", "48M", "12M"):
        for name in SCRIPTS:
            if memory == "16M" or SCRIPTS[name]:
                results[memory, name], sums = run_script(name, memory)
                if sums != want:
                    raise SystemExit("%s: the table holds other rows: %s instead of %s" % (name, sums, want))
    _, without, merge = SCRIPTS
    rest, all_us = results["16M", without]["us"], results["16M", merge]["us"]
    few, many = results["48M", without], results["12M", without]
    slope = (many["us"] - few["us"]) / (many["keys_a_row"] - few["keys_a_row"])
    print("    Lua's own time is %.2f us a row; the rest is %.2f, the goal is %.2f: %s" % (
        all_us - rest, rest, GOAL_SCRIPT_US, "met" if rest <= GOAL_SCRIPT_US else "MISSED"))
    print("    each key a bucket / row a flush costs %.2f us a row" % slope)
    return rest > GOAL_SCRIPT_US


def main():
    print("%-3s %9s  %-26s %7s %9s %10s %9s %11s" % ("", "rows", "who", "CPU us", "of tarn's", "peak MiB", "krows/s", "written B"))
    print("%-3s %9s  %-26s %7s %9s %10s %9s %11s" % ("", "", "", "a row", "CPU", "memory", "", "a row"))
    missed = 0
    for workload, rows in ROWS.items():
        if rows == 0:
            continue
        results = run(workload)
        java = results.get("Paimon Java, avro, 16 MB")
        if java and workload in GOALS:
            ratio = results["tarn, Debezium JSON"]["cpu_s"] / java["cpu_s"]
            missed += ratio > GOALS[workload]
            print("    tarn from JSON takes %.2f of the Java peer's CPU; the goal is %.2f: %s" % (
                ratio, GOALS[workload], "met" if ratio <= GOALS[workload] else "MISSED"))
    if LOOKUP:
        main_lookup()
    if SCRIPT:
        missed += main_script()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
