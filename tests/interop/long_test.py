"""Rows of any length up to the limit: through every form of input, flush, compaction, cat, get and fsck, in 16 MiB.

    long_test.py [--java] [--seed S] [--rounds N] [NAME...]

With --java official Paimon reads what tarn wrote, and tarn reads and compacts what it wrote; else only tarn runs.
"""
import argparse
import base64
import csv
import io
import json
import random
import re
import sys
import tempfile
from pathlib import Path

import peer
import runner
from peer import need
from process_test import anonymous_kib

TABLE = peer.TABLE
COLUMNS = ["k", "s", "b", "n"]
TEXT_MAX = 512 * 1024
RECORD_MAX = 1000 * 1000  # bytes of one line: with `before` and `after` long ones it may be too long
LETTERS = 'abcdefgh"\\\n\té☃,'
csv.field_size_limit(1 << 30)
TOO_LONG = re.compile(r"a row of (\d+) bytes, at most (\d+) fit the memory")


class Bench(peer.Folder):
    """A warehouse with a table of long rows, and what is in it."""

    def __init__(self, seed, options=None, keys=("k",)):
        self.rng = random.Random(seed)
        super().__init__("tarn-long-")
        self.tarn = peer.Tarn(self.folder / "warehouse")
        self.rows = {}
        schema = {"fields": [{"name": "k", "type": "INT"}, {"name": "s", "type": "STRING"}, {"name": "b", "type": "BYTES"},
                             {"name": "n", "type": "BIGINT"}],
                  "primaryKeys": list(keys), "options": dict({"bucket": "1"}, **(options or {}))}
        path = self.folder / "schema.json"
        path.write_text(json.dumps(schema))
        self.tarn.run("create", TABLE, "--schema", path).ok("create")

    def row(self, k):
        """Every order of length; texts of many escapes, bytes of any value, and what does not compress."""
        rng = self.rng
        size = rng.randint(0, rng.choice([10, 100, 5000, 70000, 200000, TEXT_MAX]))
        form = rng.randrange(4)
        row = {"k": k, "s": None, "b": None, "n": rng.randrange(1000)}
        if form == 0:
            row["s"] = "".join(rng.choices(LETTERS, k=size // 3))
        elif form == 1:
            row["b"] = rng.randbytes(size).hex()
        elif form == 2:
            row["s"] = rng.randbytes(size // 2).hex()
        else:
            row["s"], row["b"] = "x" * (size // 2), rng.randbytes(size // 3).hex()
        return row

    def write(self, rows, form, *args):
        letters = self.folder / "letters"
        lines = list(encode(self, rows, form))
        data = "\n".join(lines) + self.rng.choice(["\n", ""])
        self.tarn.run("write", TABLE, "-", "--input", form, "--dead-letters", letters, *args, stdin=data).ok("write " + form)
        need(letters.read_text() == "", "%s: dead letters: %s" % (form, letters.read_text()[:300]))

    def check(self, what):
        got = {}
        for line in self.tarn.cat().ok("cat"):
            row = json.loads(line)
            need(row["k"] not in got, "%s: key %d twice" % (what, row["k"]))
            got[row["k"]] = row
        wrong = [k for k in self.rows.keys() | got.keys() if self.rows.get(k) != got.get(k)]
        need(not wrong, "%s: keys %s differ" % (what, wrong[:5]))

    def check_forms(self):
        """csv and the table for people say the same."""
        text = self.tarn.run("cat", TABLE, "--format", "csv")
        text.ok("cat csv")
        rows = csv.DictReader(io.StringIO("".join(x + "\n" for x in text.lines), newline=""))
        for row in rows:
            want = self.rows[int(row["k"])]
            need(row["s"] == (want["s"] or "") and row["b"] == (want["b"] or ""), "csv: key %s differs" % row["k"])
        table = "\n".join(self.tarn.run("cat", TABLE, "--format", "table").ok("cat table"))
        for k, row in self.rows.items():
            need(not row["b"] or row["b"] in table, "table: the bytes of key %d are not there" % k)

    def get(self, k):
        lines = self.tarn.run("get", TABLE, k, "--format", "json").ok("get")
        need(json.loads(lines[0]) == self.rows[k], "get %d differs" % k)


def as_base64(row):
    """As Debezium has bytes."""
    return row and dict(row, b=row["b"] and base64.b64encode(bytes.fromhex(row["b"])).decode())


def encode(bench, rows, form):
    """Lines of input; the bench's rows become what they mean."""
    if form == "csv":
        yield ",".join(COLUMNS)
    for row in rows:
        before = bench.rows.get(row["k"])
        if form == "csv":
            row["b"] = row["b"] or None
            s = "" if row["s"] is None else '"%s"' % row["s"].replace('"', '""')
            yield "%d,%s,%s,%d" % (row["k"], s, row["b"] or "", row["n"])
        elif form == "json":
            yield json.dumps(row, ensure_ascii=False)
        elif form == "changes":
            yield json.dumps({"kind": "+U", "row": row}, ensure_ascii=False)
        else:
            after = as_base64(row)
            line = json.dumps({"before": as_base64(before), "after": after, "op": "u" if before else "c"}, ensure_ascii=False)
            if len(line.encode()) > RECORD_MAX:
                line = json.dumps({"before": None, "after": after, "op": "u"}, ensure_ascii=False)
            yield line
        bench.rows[row["k"]] = row


def rows_of_any_length_come_back(args):
    with Bench(args.seed, {"bucket": "2"}) as b:
        for round_number in range(args.rounds):
            form = b.rng.choice(["json", "changes", "csv", "debezium-json"])
            rows = [b.row(b.rng.randrange(40)) for _ in range(b.rng.randrange(5, 50))]
            b.write(rows, form, "--commit-every", b.rng.choice([3, 10, 1000]))
            if b.rng.random() < 0.4:
                b.tarn.run("compact", TABLE, *(["--full"] if b.rng.random() < 0.5 else [])).ok("compact")
            b.check("round %d, %s" % (round_number, form))
            b.get(b.rng.choice(list(b.rows)))
            b.tarn.run("fsck", TABLE).ok("fsck")
        b.check_forms()


def both_rows_of_an_update_may_be_long(args):
    with Bench(args.seed) as b:
        for n in (1, 2):
            row = {"k": 1, "s": chr(ord("a") + n) * (TEXT_MAX - 4096), "b": None, "n": n}
            before = b.rows.get(1)
            line = json.dumps({"before": as_base64(before), "after": as_base64(row), "op": "u" if before else "c"})
            b.rows[1] = row
            b.tarn.run("write", TABLE, "-", "--input", "debezium-json", stdin=line + "\n").ok("write")
            b.check("update %d" % n)


def many_long_runs_are_merged_a_few_at_once(args):
    """Eight runs of rows that do not compress are more than fit: cat merges in passes, so does compaction. Blocks of
    short rows come first, so that it turns out in the middle."""
    with Bench(args.seed, {"write-only": "true"}) as b:
        for n in range(8):
            rows = [{"k": k, "s": b.rng.randbytes(50).hex(), "b": None, "n": n} for k in range(2000)]
            rows += [{"k": k, "s": b.rng.randbytes(TEXT_MAX // 2).hex(), "b": None, "n": n} for k in range(2000, 2004)]
            b.write(rows, "json")
        b.check("eight runs")
        b.tarn.run("compact", TABLE, "--full").ok("compact")
        files = b.tarn.run("show", TABLE, "files", "--format", "json").ok("show files")
        need(len(files) == 1, "after compaction there are %d files" % len(files))
        b.check("compacted")
        left = list((b.folder / "warehouse/.tarn/scratch").glob("*"))
        need(not left, "scratch files stay: %s" % left)


def versions_of_long_rows_are_folded(args):
    """An engine that makes one row of several holds some more of them at once, so its rows are shorter."""
    with Bench(args.seed, {"merge-engine": "partial-update", "write-only": "true"}) as b:
        size = 380 * 1024
        for n in range(5):
            rows = [{"k": k, "s": b.rng.randbytes(size // 2).hex() if n < 3 else None, "b": None, "n": n} for k in range(3)]
            kept = {k: b.rows[k]["s"] for k in b.rows}
            b.write(rows, "json")
            for k in kept:
                b.rows[k]["s"] = b.rows[k]["s"] or kept[k]
        b.check("five runs")
        b.get(1)
        b.tarn.run("compact", TABLE, "--full").ok("compact")
        b.check("compacted")
        b.get(2)


def tables_of_all_kinds_take_long_rows(args):
    """Kinds of tables and files, each with the size of a value that a row of it can hold."""
    long, folded, told = TEXT_MAX, 380 * 1024, 180 * 1024
    for options, size in (({"file.compression": "deflate"}, long), ({"file.compression": "none"}, long),
                          ({"bucket": "-1"}, long), ({"bucket": "2", "bucket-key": "k"}, long), ({"merge-engine": "partial-update"}, folded),
                          ({"changelog-producer": "lookup"}, told), ({"changelog-producer": "full-compaction"}, told)):
        keyed = "bucket" not in options
        with Bench(args.seed, options, ["k"] if keyed else []) as b:
            want = []
            for n in range(6):
                rows = [{"k": k, "s": b.rng.randbytes(b.rng.randrange(size) // 2).hex(), "b": None, "n": n} for k in range(5)]
                b.write(rows, "json")
                want = rows if keyed else want + rows
                if n in (3, 5):
                    b.tarn.run("compact", TABLE, "--full").ok("compact %s" % options)
                got = map(json.loads, b.tarn.cat().ok("cat %s" % options))
                need(sorted(got, key=json.dumps) == sorted(want, key=json.dumps), "%s: other rows" % options)
            b.tarn.run("fsck", TABLE).ok("fsck %s" % options)


def long_rows_stay_in_16_mib(args):
    """Anonymous memory, for a table where every tenth row has 512 KiB of bytes, and against one of short rows (apache/paimon#7620)."""
    peaks = {}
    for size in (16, TEXT_MAX):
        with Bench(args.seed, {"bucket": "4"}) as b:
            path = b.folder / "rows.json"
            with path.open("w") as f:
                for k in range(400):
                    b.rows[k] = {"k": k, "s": None, "b": b.rng.randbytes(size if k % 10 == 0 else 16).hex(), "n": k}
                    f.write(json.dumps(b.rows[k]) + "\n")
            for words in (["write", TABLE, str(path), "--commit-every", "50"], ["cat", TABLE], ["compact", TABLE, "--full"], ["cat", TABLE],
                          ["get", TABLE, "10"], ["fsck", TABLE]):
                peak = anonymous_kib([str(peer.TARN), words[0], "--warehouse", b.tarn.warehouse, *words[1:]])
                need(peak <= 16 * 1024, "tarn %s: %d KiB" % (words[0], peak))
                peaks[size] = max(peak, peaks.get(size, 0))
            b.check("every tenth row is of %d bytes" % size)
    need(peaks[TEXT_MAX] <= peaks[16] + 1024, "long rows take %d KiB, short ones %d" % (peaks[TEXT_MAX], peaks[16]))
    print("RssAnon: %d KiB with short rows, %d KiB with long ones" % (peaks[16], peaks[TEXT_MAX]))


def a_row_over_the_limit_is_a_dead_letter(args):
    """apache/paimon#7620: it says its size and the limit, and others of the same commit are there."""
    with Bench(args.seed) as b:
        letters = b.folder / "letters"
        long_row = {"k": 1, "s": "y" * 650000, "b": None, "n": 1}
        too_long = json.dumps({"k": 2, "s": "z" * 2000000, "b": None, "n": 1})
        good = {"k": 3, "s": "x", "b": None, "n": 1}
        b.rows[3] = good
        text = "\n".join([json.dumps(long_row), too_long, json.dumps(good)]) + "\n"
        result = b.tarn.run("write", TABLE, "-", "--dead-letters", letters, stdin=text)
        need(result.rc in (0, 1), "write: exit code %d: %s" % (result.rc, result.err))
        dead = [json.loads(x) for x in letters.read_text().splitlines()]
        need(len(dead) == 2, "%d dead letters" % len(dead))
        size = TOO_LONG.search(dead[0]["reason"])
        need(size and int(size[1]) > 650000 > int(size[2]) >= TEXT_MAX, "reason: " + dead[0]["reason"])
        need(json.loads(dead[0]["record"]) == long_row, "the letter is not the record")
        need("longer than" in dead[1]["reason"], "reason: " + dead[1]["reason"])
        b.check("the others are there")


def files_are_cut_at_thousands_of_rows(args):
    """Whatever target-file-size is, its file's size is looked at once in 1,000 rows. Paimon: RollingFileWriter"""
    with Bench(args.seed, {"target-file-size": "1b"}) as b:
        b.write([{"k": k, "s": "x", "b": None, "n": k} for k in range(3500)], "json")
        for what in ("flushed", "compacted"):
            counts = sorted(json.loads(x)["record_count"] for x in b.tarn.run("show", TABLE, "files", "--format", "json").ok("show files"))
            need(counts == [500, 1000, 1000, 1000], "%s: files of %s rows" % (what, counts))
            b.check(what)
            b.write([{"k": k, "s": "y", "b": None, "n": k} for k in range(3500)], "json")
            b.tarn.run("compact", TABLE, "--full").ok("compact")


def a_list_that_outgrows_the_memory_is_found(args):
    """Its key, its column, a file, and what helps are said by whoever meets it; other keys are there, and more memory reads all."""
    options = {"merge-engine": "aggregation", "fields.s.aggregate-function": "listagg"}
    with Bench(args.seed, options) as b:
        for n in range(4):
            rows = [{"k": 7, "s": str(n) * 150000, "b": None, "n": n}, {"k": 8, "s": "a", "b": None, "n": n}]
            b.write(rows, "json")
        for words in (["cat", TABLE], ["get", TABLE, "7"], ["compact", TABLE, "--full"]):
            result = b.tarn.run(*words)
            for word in ('key {"k":7}: ', "column 's': listagg", "--memory") + (("bucket-0/data-",) if words[0] != "get" else ()):
                need(result.rc != 0 and word in result.err, "%s: exit code %d, without %r: %s" % (words[0], result.rc, word, result.err))
        need(json.loads(b.tarn.run("get", TABLE, "8", "--format", "json").ok("get")[0])["s"] == "a,a,a,a", "key 8 differs")
        rows = [json.loads(x) for x in b.tarn.cat("--memory", "64M").ok("cat in 64 MiB")]
        need(len(rows[0]["s"]) == 600003, "in 64 MiB the list has %d letters" % len(rows[0]["s"]))


WIDE_TYPES = {"INT": lambda rng: rng.randrange(1000), "BIGINT": lambda rng: rng.randrange(10 ** 12), "STRING": lambda rng: "x" * rng.randrange(12),
              "BOOLEAN": lambda rng: rng.random() < 0.5, "DECIMAL(10,2)": lambda rng: "%d.%02d" % (rng.randrange(1000), rng.randrange(100))}


class Wide:
    """A table of many columns, and what is in it."""

    def __init__(self, seed, folder, columns, options):
        self.rng, self.rows, self.folder = random.Random(seed), {}, Path(folder)
        self.tarn = peer.Tarn(self.folder / "warehouse")
        types = list(WIDE_TYPES)
        self.columns = {"measure_%d" % i: types[i % len(types)] for i in range(columns - 1)}
        fields = [{"name": "k", "type": "INT"}] + [{"name": n, "type": t} for n, t in self.columns.items()]
        path = self.folder / "schema.json"
        path.write_text(json.dumps({"fields": fields, "primaryKeys": ["k"], "options": dict({"bucket": "1", "file.format": "avro"}, **options)}))
        self.tarn.run("create", TABLE, "--schema", path).ok("create")

    def batch(self, count):
        """A file of rows; values that partial-update keeps are never NULL."""
        path = self.folder / "rows.json"
        with path.open("w") as f:
            for _ in range(count):
                row = {"k": self.rng.randrange(1000), **{n: WIDE_TYPES[t](self.rng) for n, t in self.columns.items()}}
                self.rows[row["k"]] = row
                f.write(json.dumps(row) + "\n")
        return path

    def check(self, what, *options):
        got = {row["k"]: row for row in map(json.loads, self.tarn.cat(*options).ok("cat"))}
        need(got == self.rows, "%s: other rows" % what)
        followed = {}
        for line in self.tarn.run("tail", TABLE, "--from", "1", "--format", "json", *options).ok("tail"):
            change = json.loads(line)
            if change["kind"] in ("+I", "+U"):
                followed[change["row"]["k"]] = change["row"]
            else:
                need(followed.pop(change["row"]["k"], None) == change["row"], "%s: takes back what is not there" % what)
        need(followed == self.rows, "%s: the changes make other rows" % what)
        self.tarn.run("fsck", TABLE, *options).ok("fsck")


def keeps_up(result, what):
    """Every compaction was made, and told."""
    result.ok(what)
    need("compaction failed" not in result.err and "warning" not in result.err, "%s: %s" % (what, result.err))


def many_columns_fit_16_mib(args):
    for producer in ("lookup", "full-compaction"):
        with tempfile.TemporaryDirectory() as folder:
            wide = Wide(args.seed, folder, 500, {"changelog-producer": producer})
            for n in range(12):
                keeps_up(wide.tarn.run("write", TABLE, wide.batch(200)), "%s: write %d" % (producer, n))
            keeps_up(wide.tarn.run("compact", TABLE, "--full"), "compact")
            wide.check(producer)
            wide.tarn.run("get", TABLE, next(iter(wide.rows))).ok("get")
            for words in (["write", TABLE, str(wide.batch(200))], ["cat", TABLE], ["compact", TABLE, "--full"]):
                peak = anonymous_kib([str(peer.TARN), words[0], "--warehouse", wide.tarn.warehouse, *words[1:]])
                need(peak <= 16 * 1024, "tarn %s: %d KiB" % (words[0], peak))


def a_schema_that_is_too_large_says_what_helps(args):
    with tempfile.TemporaryDirectory() as folder:
        try:
            Wide(args.seed, folder, 800, {})
        except peer.Failure as e:
            need("--memory" in str(e), str(e))
        else:
            raise peer.Failure("800 columns fit")


def little_memory_looks_keys_up(args):
    """Half of the host board's memory: the state before and the merge share it."""
    for columns, engine in ((8, "deduplicate"), (8, "partial-update"), (100, "partial-update")):
        with tempfile.TemporaryDirectory() as folder:
            wide = Wide(args.seed, folder, columns, {"changelog-producer": "lookup", "merge-engine": engine})
            for n in range(14):
                keeps_up(wide.tarn.run("write", TABLE, "--memory", "8M", wide.batch(200)), "%d columns, %s: write %d" % (columns, engine, n))
            wide.check("%d columns, %s" % (columns, engine), "--memory", "8M")


TESTS = [rows_of_any_length_come_back, both_rows_of_an_update_may_be_long, many_long_runs_are_merged_a_few_at_once,
         versions_of_long_rows_are_folded, tables_of_all_kinds_take_long_rows,
         long_rows_stay_in_16_mib, a_row_over_the_limit_is_a_dead_letter, files_are_cut_at_thousands_of_rows,
         a_list_that_outgrows_the_memory_is_found, many_columns_fit_16_mib, a_schema_that_is_too_large_says_what_helps, little_memory_looks_keys_up]


def java_reads_long_rows(args):
    with Bench(args.seed) as b, peer.java() as java:
        for _ in range(2):
            b.write([dict(b.row(k), n=k) for k in range(6)] + [{"k": 7, "s": "é" * 250000, "b": None, "n": 7}], "json")
        need_same(b, java, "written")
        b.tarn.run("compact", TABLE, "--full").ok("compact")
        need_same(b, java, "compacted")


def need_same(b, java, what):
    want = peer.ordered(b.tarn.cat().ok("cat"))
    got = peer.ordered(java.run("read", b.tarn.warehouse, TABLE).ok("Java read"))
    need(want == got, "%s: Java reads other rows: %s" % (what, [x[:60] for x in set(got) ^ set(want)]))


def long_rows_of_java_are_read_and_compacted(args):
    with Bench(args.seed) as b, peer.java() as java:
        for n in range(3):
            path = b.folder / "java.json"
            for k in range(4):
                b.rows[k] = {"k": k, "s": b.rng.randbytes(250000).hex(), "b": None, "n": n}
            path.write_text("".join(json.dumps({"kind": "+I", "row": b.rows[k]}) + "\n" for k in range(4)))
            java.run("write", b.tarn.warehouse, TABLE, path, "--compact", "none").ok("Java write")
        b.check("of Java")
        b.get(2)
        b.tarn.run("compact", TABLE, "--full").ok("compact")
        b.check("compacted")
        b.tarn.run("fsck", TABLE).ok("fsck")
        need_same(b, java, "compacted")


def many_columns_of_java_are_read_and_compacted(args):
    with tempfile.TemporaryDirectory() as folder, peer.java() as java:
        wide = Wide(args.seed, folder, 500, {"changelog-producer": "lookup"})
        for n in range(4):
            path = wide.batch(200)
            if n % 2 == 0:
                java.run("write", wide.tarn.warehouse, TABLE, path, "--compact", "auto").ok("Java write")
            else:
                keeps_up(wide.tarn.run("write", TABLE, path), "write")
        keeps_up(wide.tarn.run("compact", TABLE, "--full"), "compact")
        wide.check("of both")
        need_same(wide, java, "compacted")


JAVA_TESTS = [java_reads_long_rows, long_rows_of_java_are_read_and_compacted, many_columns_of_java_are_read_and_compacted]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    options = "%s --seed %d --rounds %d" % (" --java" if args.java else "", args.seed, args.rounds)
    return runner.run_tests(JAVA_TESTS if args.java else TESTS, args.names, lambda test: test(args), options)


if __name__ == "__main__":
    sys.exit(main())
