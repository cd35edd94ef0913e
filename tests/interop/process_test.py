"""What only whole processes show: a second writer, kill -9, a full disk, damaged files, a wrong command line.

    process_test.py [--seed S] [--kills N] [--rows N] [NAME...]

The simulator cuts the power between any two calls and loses what was not synced; this is the smoke test beside it.
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import peer
import runner
from peer import need

TABLE = peer.TABLE
COMMITTED = re.compile(r"^committed snapshot=(\d+) rows=(\d+)\b", re.MULTILINE)


class Bench(peer.Folder):
    """A warehouse in a folder of its own, with one table."""

    def __init__(self, seed, keyed=True, options=None, folder=None):
        self.rng = random.Random(seed)
        super().__init__("tarn-process-", folder)
        self.warehouse = self.folder / "warehouse"
        self.warehouse.mkdir()
        self.tarn = peer.Tarn(self.warehouse)
        self.table = self.warehouse / "db.db/t"
        schema = {"fields": [{"name": "k", "type": "INT"}, {"name": "v", "type": "STRING"}, {"name": "n", "type": "BIGINT"}],
                  "primaryKeys": ["k"] if keyed else [],
                  "options": dict({"bucket": "2" if keyed else "-1"}, **(options or {}))}
        path = self.folder / "schema.json"
        path.write_text(json.dumps(schema))
        self.tarn.run("create", TABLE, "--schema", path).ok("create")
        self.keyed = keyed

    def rows(self, count, keys):
        return [{"k": self.rng.randrange(keys), "v": "x" * self.rng.randrange(40), "n": i} for i in range(count)]

    def file(self, rows):
        path = self.folder / "rows.json"
        path.write_text("".join(line(r) + "\n" for r in rows))
        return path

    def merged(self, rows):
        return list({r["k"]: r for r in rows}.values()) if self.keyed else rows

    def start(self, *args):
        argv = [str(peer.TARN), "write", "--warehouse", str(self.warehouse), TABLE, *map(str, args)]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def line(row):
    return json.dumps(row, separators=(",", ":"))


# ---------------------------------------------------------------- tests

def a_second_writer_says_who_holds_the_table(args):
    with Bench(args.seed) as b:
        holder = b.start("-", "--commit-every", "1")
        holder.stdin.write((line(b.rows(1, 9)[0]) + "\n").encode() * 2)
        holder.stdin.flush()
        need(b"committed" in holder.stderr.readline(), "the first writer commits nothing")
        second = b.tarn.run("write", TABLE, "-", stdin='{"k":1}\n')
        need(second.rc == 5, "the second writer: exit code %d: %s" % (second.rc, second.err))
        need(str(holder.pid) in second.err, "it does not say who holds the table: %s" % second.err)
        b.tarn.cat().ok("a reader beside a writer")
        holder.stdin.close()
        need(holder.wait() == 0, "the first writer: exit code %d" % holder.returncode)
        b.tarn.run("write", TABLE, "-", stdin='{"k":1}\n').ok("a writer after it")


def kill_minus_9_costs_nothing_that_was_reported(args):
    """Append tables show a row that came twice; keyed ones compact as they go."""
    for keyed in (True, False):
        with Bench(args.seed, keyed, {"num-sorted-run.compaction-trigger": "3", "snapshot.num-retained.max": "4",
                                      "snapshot.num-retained.min": "2"}) as b:
            rows = b.rows(6000, 700)
            path = b.file(rows)
            begin = time.monotonic()
            whole = Bench(args.seed, keyed)
            whole.tarn.run("write", TABLE, path, "--input", "json", "--commit-every", "200").ok("write")
            seconds = time.monotonic() - begin
            shutil.rmtree(whole.folder)
            for _ in range(args.kills // 2):
                kill_once(b, rows, path, b.rng.uniform(0, seconds / 4))
            b.tarn.run("write", TABLE, path, "--input", "json", "--commit-every", "200").ok("write to the end")
            expect(b, rows, "at the end")
            b.tarn.run("compact", TABLE, "--full").ok("compact")
            expect(b, rows, "compacted")
            b.tarn.run("clean", TABLE, "--older-than", "0 ms").ok("clean")
            b.tarn.run("fsck", TABLE, "--orphans").ok("what the kills left is gone")
            expect(b, rows, "cleaned")


def kill_once(b, rows, path, seconds):
    process = b.start(path, "--input", "json", "--commit-every", "200")
    try:
        err = process.communicate(timeout=seconds)[1].decode()
    except subprocess.TimeoutExpired:
        process.kill()
        err = process.communicate()[1].decode()
    need(process.returncode in (0, -signal.SIGKILL), "write: exit code %d: %s" % (process.returncode, err))
    reported = max([int(n) for _, n in COMMITTED.findall(err)], default=0)
    b.tarn.run("fsck", TABLE).ok("fsck after a kill")
    got = b.tarn.cat().ok("cat after a kill")
    # All commits are of 200 rows, but for the last: the table is one of the prefixes.
    for count in range(reported, len(rows) + 200, 200):
        if not peer.difference([line(r) for r in b.merged(rows[:count])], got):
            return
    raise peer.Failure("after a kill the table is no prefix with the %d reported rows: %d rows" % (reported, len(got)))


def expect(b, rows, when):
    bad = peer.difference([line(r) for r in b.merged(rows)], b.tarn.cat().ok("cat"))
    need(not bad, "%s: %s" % (when, bad))
    b.tarn.run("fsck", TABLE).ok("fsck " + when)


def a_full_disk_keeps_the_last_snapshot(args):
    """On a small file system in memory; passed over where mounting is not allowed."""
    folder = Path(tempfile.mkdtemp(prefix="tarn-full-"))
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tarn", folder], capture_output=True, check=False).returncode != 0:
        print("    a full disk: passed over, mount is not allowed here")
        folder.rmdir()
        return
    try:
        b = Bench(args.seed, folder=folder)
        rows = b.rows(1000, 300)
        text = "".join(line(r) + "\n" for r in rows)
        b.tarn.run("write", TABLE, "-", stdin=text).ok("write")
        ballast = folder / "ballast"
        with ballast.open("wb", buffering=0) as f:
            try:
                while f.write(b"\0" * 4096):
                    pass
            except OSError:
                pass
        more = b.rows(1000, 300)
        result = b.tarn.run("write", TABLE, "-", stdin="".join(line(r) + "\n" for r in more))
        need(result.rc == 4, "write on a full disk: exit code %d: %s" % (result.rc, result.err))
        expect(b, rows, "on a full disk")
        ballast.unlink()
        b.tarn.run("write", TABLE, "-", stdin="".join(line(r) + "\n" for r in more)).ok("write, with room again")
        expect(b, rows + more, "with room again")
    finally:
        subprocess.run(["umount", folder], check=False)
        folder.rmdir()


def damaged_files_are_named_and_end_nothing(args):
    """Each file of a table cut short, then with some bytes changed: exit code 3 and its name, or an answer; never a crash."""
    with Bench(args.seed) as b:
        for _ in range(3):
            b.tarn.run("write", TABLE, "-", stdin="".join(line(r) + "\n" for r in b.rows(300, 200))).ok("write")
        want = b.tarn.cat().ok("cat")
        for path in sorted(p for p in b.table.rglob("*") if p.is_file()):
            whole = path.read_bytes()
            for _ in range(3):
                path.write_bytes(whole[:b.rng.randrange(len(whole))])
                damaged(b, path, want, "cut short")
            for _ in range(10):
                changed = bytearray(whole)
                for _ in range(b.rng.choice([1, 1, 4])):
                    changed[b.rng.randrange(len(changed))] = b.rng.randrange(256)
                path.write_bytes(changed)
                damaged(b, path, None, "changed")
            path.write_bytes(whole)
        need(not peer.difference(want, b.tarn.cat().ok("cat")), "the table is not as it was")


A_FILE = re.compile(r"(data|manifest|snapshot|schema)-[-0-9a-f]+")


def damaged(b, path, want, how):
    result = b.tarn.run("cat", TABLE, "--format", "json", errors="backslashreplace")
    what = "%s %s" % (path.relative_to(b.table), how)
    need(result.rc in (0, 2, 3), "%s: cat: exit code %d: %s" % (what, result.rc, result.err))
    if result.rc == 3:
        # A changed byte may make a good name of another file, which is then the one that is missing or wrong.
        named = path.name in result.err or (how == "changed" and A_FILE.search(result.err))
        need(named, "%s: cat names no file: %s" % (what, result.err))
    elif want is not None and result.rc == 0:
        # A hint, or a file that nothing newer reaches, may be damaged without harm.
        need(not peer.difference(want, result.lines), "%s: cat gives wrong rows" % what)
    checked = b.tarn.run("fsck", TABLE)
    need(checked.rc in (0, 1, 2, 3), "%s: fsck: exit code %d: %s" % (what, checked.rc, checked.err))


def everything_stays_in_16_mib(args):
    """Anonymous memory (so without text), sampled while the verbs run over a table that is many times larger."""
    with Bench(args.seed, options={"bucket": "2"}) as b:
        path = b.folder / "rows.json"
        with path.open("w") as f:
            for i in range(args.rows):
                f.write('{"k":%d,"v":"sensor %d of many","n":%d}\n' % (i * 7919 % args.rows, i % 1000, i))
        for words in (["write", TABLE, str(path), "--commit-every", "100000"], ["cat", TABLE, "--format", "json"], ["compact", TABLE, "--full"],
                      ["fsck", TABLE], ["cat", TABLE, "--where", "n = 5"], ["get", TABLE, "17"]):
            peak = anonymous_kib([str(peer.TARN), words[0], "--warehouse", str(b.warehouse), *words[1:]])
            need(peak <= 16 * 1024, "tarn %s: %d KiB" % (words[0], peak))


def ended_within(process, seconds):
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def anonymous_kib(argv):
    """The largest RssAnon that was seen of a command that must end with 0."""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        status, peak = Path("/proc/%d/status" % process.pid), 0
        while not ended_within(process, 0.002):
            match = re.search(r"RssAnon:\s+(\d+)", status.read_text())
            peak = max(peak, int(match.group(1)) if match else 0)
        err.seek(0)
        need(process.returncode == 0, "%s: exit code %d: %s" % (argv, process.returncode, err.read().decode()))
    return peak


def a_wrong_command_line_changes_nothing(args):
    with Bench(args.seed) as b:
        for words, hint in ((["creat", "db.x"], "create"), (["cat", "db.t", "--colums", "k"], "columns"),
                            (["cat", "db.t", "--where", "kk = 1"], "k"), (["write", "db.t", "-", "--input", "jsno"], "json"),
                            (["cat", "db.nothing"], "nothing"), (["cat", "db.t", "--snapshot", "99"], "99")):
            result = b.tarn.run(*words, stdin="")
            need(result.rc == 2, "%s: exit code %d: %s" % (words, result.rc, result.err))
            need(hint in result.err and len(result.err.strip().splitlines()) == 1 and not result.lines,
                 "%s: said: %s%s" % (words, result.err, result.lines))
        for options, word in (({"merge-engine": "frist-row"}, "first-row"), ({"deletion-vectors.enabled": "true"}, "deletion-vectors"),
                              ({"bucket": "-1"}, "bucket"), ({"file.format": "orc"}, "file.format")):
            refused(b, [{"name": "k", "type": "INT"}], options, word)
        refused(b, [{"name": "k", "type": "DOUBLE"}], {"bucket": "1"}, "DOUBLE")
        refused(b, [{"name": "k", "type": "INT"}, {"name": "a", "type": "ARRAY<INT>"}], {"bucket": "1"}, "a")
        refused(b, [{"name": "k", "type": "INT"}, {"name": "a", "type": "DUOBLE"}], {"bucket": "1"}, "DOUBLE")


def refused(b, fields, options, word):
    path = b.folder / "refused.json"
    path.write_text(json.dumps({"fields": fields, "primaryKeys": ["k"], "options": dict({"bucket": "1"}, **options)}))
    result = b.tarn.run("create", "db.refused", "--schema", path)
    need(result.rc == 2 and word in result.err, "create with %s %s: exit code %d: %s" % (fields, options, result.rc, result.err))
    need(not (b.warehouse / "db.db/refused").exists(), "create with %s left a table" % options)


TESTS = [a_second_writer_says_who_holds_the_table, kill_minus_9_costs_nothing_that_was_reported, a_full_disk_keeps_the_last_snapshot,
         damaged_files_are_named_and_end_nothing, everything_stays_in_16_mib, a_wrong_command_line_changes_nothing]

if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), TESTS, kills=50, rows=300000))
