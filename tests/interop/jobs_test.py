"""Verbs for tables that `tarn run` holds: it does their job, and they say what they always say.

    jobs_test.py [--java] [NAME...]
"""
import json
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager

import peer
import runner
from peer import need, same
from run_test import DEADLINE, Daemon
from verbs import writing

KEYED = ('{ fields = { "id BIGINT NOT NULL", "v STRING" }, primary_key = { "id" }, commit = "30ms",'
         ' options = { bucket = 2, ["num-sorted-run.compaction-trigger"] = 100, ["num-sorted-run.stop-trigger"] = 200%s } }')
PLAIN = '{ fields = { "id BIGINT", "v STRING" }, options = { bucket = "-1", ["compaction.min.file-num"] = 1000 }, commit = "30ms" }'
TABLES = {"db.k": KEYED % "", "db.log": PLAIN, "db.rare": KEYED % ', ["write-only"] = true'}
ROUNDS = 8


def verb(daemon, *words, code=0):
    """As in another shell: without a terminal, and with nothing in the environment."""
    argv = [str(peer.TARN), words[0], "-w", str(daemon.warehouse), *words[1:]]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=False, env={})
    same(done.returncode, code, "exit code of %s: %s; the daemon said %s" % (" ".join(words), done.stderr.decode(), daemon.log()))
    return done.stdout.decode(), done.stderr.decode()


def answer(daemon, *words, code=0):
    return json.loads(verb(daemon, *words, code=code)[0])


def snapshots(daemon, table):
    return [json.loads(line) for line in verb(daemon, "show", table, "snapshots", "--format", "json")[0].splitlines()]


def files(daemon, table):
    return [json.loads(line) for line in verb(daemon, "ls", table, "--format", "json")[0].splitlines()]


def send(daemon, table, ids):
    text = "".join('{"id":%d,"v":"x%d"}\n' % (i, i) for i in ids)
    same(daemon.ask("POST", "/tables/%s/rows" % table, text)[0], 200, "status")


def commit_some(daemon, table, rounds=ROUNDS):
    """Some commits, each with a file a bucket."""
    for i in range(rounds):
        before = len(snapshots(daemon, table))
        send(daemon, table, range(100 * i, 100 * i + 100))
        daemon.asked_until("a commit", lambda: len(snapshots(daemon, table)) > before)


@contextmanager
def running(tables):
    with Daemon(tables) as daemon:
        daemon.get_ready()
        yield daemon


@contextmanager
def rows_coming(daemon, table, first):
    """Somebody sends meanwhile; gives what waits until more are in."""
    ids, came, over, error = [], threading.Condition(), threading.Event(), []

    def work():
        try:
            while not over.is_set():
                some = range(first + len(ids), first + len(ids) + 10)
                send(daemon, table, some)
                with came:
                    ids.extend(some)
                    came.notify_all()
        except Exception as e:  # the test's thread tells
            error.append(e)

    def wait_for_more():
        with came:
            had = len(ids)
            need(came.wait_for(lambda: len(ids) > had, DEADLINE), "no more rows come; the daemon said %s" % daemon.log())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield wait_for_more
    finally:
        over.set()
        thread.join()
    need(not error, "%s" % error)


def test_compact_is_done_by_who_holds_the_table(args):
    with running(TABLES) as daemon:
        for table in TABLES:
            commit_some(daemon, table)
            need(len(files(daemon, table)) >= ROUNDS, "too few files")
            count = len(snapshots(daemon, table))
            said = answer(daemon, "compact", table, "--full")
            same(set(said), {"buckets", "compactions", "bytes_written", "snapshot"}, "columns")
            same(said["buckets"], 1 if table == "db.log" else 2, "buckets")
            same(said["compactions"], said["buckets"], "compactions")
            newest = snapshots(daemon, table)[-1]
            same((newest["snapshot_id"], newest["commit_kind"]), (said["snapshot"], "COMPACT"), "the newest snapshot")
            same(len(snapshots(daemon, table)), count + 1, "snapshots")
            same(len(files(daemon, table)), said["buckets"], "files")
            again = answer(daemon, "compact", table, "--full")
            same((again["compactions"], again["snapshot"]), (0, None), "of a second time")
            due = answer(daemon, "compact", table)
            same((due["compactions"], due["snapshot"]), (0, None), "of a round that nothing is due in")
        same(verb(daemon, "compact", "db.k", "-q")[1], "", "what -q says")
        daemon.stop()
        for table in TABLES:
            same(sorted(row["id"] for row in daemon.rows(table)), list(range(100 * ROUNDS)), "rows of %s" % table)
        daemon.check(args, TABLES)


def test_rows_go_on_while_it_is_compacted(args):
    with running(TABLES) as daemon:
        for table in TABLES:
            commit_some(daemon, table, 3)
            with rows_coming(daemon, table, 1000) as wait_for_more:
                for _ in range(3):
                    wait_for_more()
                    answer(daemon, "compact", table, "--full")
        daemon.stop()
        for table in TABLES:
            rows = [row["id"] for row in daemon.rows(table)]
            same(len(rows), len(set(rows)), "rows of %s that are there once" % table)
        daemon.check(args, TABLES)


def test_a_dedicated_job_has_its_rounds_done(args):
    with running(TABLES) as daemon:
        commit_some(daemon, "db.rare", 3)
        argv = [str(peer.TARN), "compact", "db.rare", "-w", str(daemon.warehouse), "--every", "10ms", "--full"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
            try:
                first = json.loads(job.stdout.readline())
                same(first["compactions"], 2, "compactions of the first round")
                send(daemon, "db.rare", range(5000, 5100))
                second = json.loads(job.stdout.readline())
                need(second["snapshot"] > first["snapshot"], "no later round: %s" % second)
                job.send_signal(signal.SIGTERM)
                same(job.wait(timeout=DEADLINE), 0, "exit code: %s" % job.stderr.read().decode())
            finally:
                job.kill()
        daemon.stop()
        same(len(daemon.rows("db.rare")), 400, "rows")
        daemon.check(args, TABLES)


def test_expire_is_done_by_who_holds_the_table(args):
    with running(TABLES) as daemon:
        for table in TABLES:
            commit_some(daemon, table)
            before = snapshots(daemon, table)
            words = ("expire", table, "--retain-max", "3", "--retain-min", "1")
            dry = answer(daemon, *words, "--dry-run")
            same(snapshots(daemon, table), before, "snapshots after --dry-run")
            done = answer(daemon, *words)
            same(done["snapshots"], len(before) - 3, "snapshots that went")
            same({**done, "metadata_files": 0}, {**dry, "metadata_files": 0}, "what was done, and what was said before")
            same(snapshots(daemon, table), before[-3:], "snapshots")
            same(done["earliest"], before[-3]["snapshot_id"], "the earliest")
            same(answer(daemon, *words)["snapshots"], 0, "snapshots of a second time")
            need("--retain-max 0" in verb(daemon, "expire", table, "--retain-max", "0", code=2)[1], "no reason")
            same(answer(daemon, "expire", table, "--retain-min", "1", "--older-than", "0s")["snapshots"], 2, "of --older-than")
        daemon.stop()
        for table in TABLES:
            same(len(daemon.rows(table)), 100 * ROUNDS, "rows of %s" % table)
        daemon.check(args, TABLES)


def test_what_is_begun_goes_on_without_who_asked(args):
    with running(TABLES) as daemon:
        commit_some(daemon, "db.k", 3)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(daemon.warehouse / ".tarn/daemon.sock"))
            s.sendall(b"POST /job?verb=compact&table=db.k&full=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            s.shutdown(socket.SHUT_WR)
        daemon.until("the compaction", lambda: "table=db.k compact=done" in daemon.log())
        same(len(files(daemon, "db.k")), 2, "files")
        daemon.stop()


def test_an_end_is_heard_of(args):
    """It is stopped while somebody waits for a job that waits for others."""
    with running(TABLES) as daemon:
        commit_some(daemon, "db.k", 3)
        daemon.process.send_signal(signal.SIGSTOP)
        argv = [str(peer.TARN), "compact", "db.k", "-w", str(daemon.warehouse)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waits:
            try:
                daemon.process.send_signal(signal.SIGTERM)
                daemon.process.send_signal(signal.SIGCONT)
                code = waits.wait(timeout=DEADLINE)
                said = waits.stderr.read().decode()
                need(code == 0 or (code == 4 and "tarn run has ended" in said), "exit code %d: %s" % (code, said))
            finally:
                waits.kill()
        same(daemon.process.wait(timeout=DEADLINE), 0, "exit code after SIGTERM")
        answer(daemon, "compact", "db.k", "--full")  # there is nobody any more
        same(len(files(daemon, "db.k")), 2, "files")


def test_who_else_holds_a_table_is_named(args):
    """A daemon has nothing to do with it."""
    with running({"db.k": TABLES["db.k"]}) as daemon:
        verb(daemon, "create", "db.other", "--field", "id BIGINT")
        with writing(daemon.warehouse, "db.other", "1", b'{"id":1}\n{"id":2}\n') as writer:
            for words in (("compact", "db.other"), ("expire", "db.other")):
                said = verb(daemon, *words, code=5)[1]
                need("process %d" % writer.pid in said, "another holder: %s" % said)
            writer.stdin.close()
            same(writer.wait(timeout=DEADLINE), 0, "exit code")
        daemon.stop()


# ---------------------------------------------------------------- write

QUIET = {"db.k": KEYED.replace("30ms", "1h") % "", "db.log": PLAIN.replace("30ms", "1h")}


def write(daemon, *words, rows="", code=0):
    argv = [str(peer.TARN), "write", "-w", str(daemon.warehouse), *words]
    done = subprocess.run(argv, input=rows.encode(), capture_output=True, timeout=DEADLINE, check=False, env={})
    said = done.stderr.decode()
    same(done.returncode, code, "exit code of write %s: %s; the daemon said %s" % (" ".join(words), said, daemon.log()))
    same(done.stdout.decode(), "", "standard output")
    return said


def test_rows_are_there_when_write_ends(args):
    """Though their tables commit once an hour."""
    with running(QUIET) as daemon:
        for table in QUIET:
            said = write(daemon, table, rows="".join('{"id":%d,"v":"x"}\n' % i for i in range(20000)))
            newest = snapshots(daemon, table)[-1]
            need("committed snapshot=%d rows=20000 table=%s\n" % (newest["snapshot_id"], table) in said, said)
            need(sorted(row["id"] for row in daemon.rows(table)) == list(range(20000)), "other rows in %s" % table)
            same(write(daemon, table, "-q", rows='{"id":20000}'), "", "what -q says")
            same(write(daemon, table), "", "what is said of nothing")
        file = daemon.folder / "rows.csv"
        file.write_text("v,id\n" + "".join('"a ""text""\nof %d",%d\n' % (i, i) for i in range(3000)))
        other = daemon.folder / "rows.json"
        other.write_text('{"kind":"+U","row":{"id":1,"v":"changed"}}\n{"kind":"-D","row":{"id":2,"v":null}}\n')
        write(daemon, "db.k", str(file), str(file), "--input", "csv")
        write(daemon, "db.k", str(other), "--input", "changes")
        rows = {row["id"]: row["v"] for row in daemon.rows("db.k")}
        same((rows[0], rows[1], rows.get(2), rows[2999], rows[3000]), ('a "text"\nof 0', "changed", None, 'a "text"\nof 2999', "x"), "rows")
        daemon.stop()
        daemon.check(args, QUIET)


def test_write_commits_as_often_as_it_is_told(args):
    with running(QUIET) as daemon:
        said = write(daemon, "db.log", "--commit-every", "1000", rows="".join('{"id":%d,"v":"%s"}\n' % (i, "x" * 100) for i in range(5000)))
        lines = [dict(word.split("=") for word in line.split()[1:]) for line in said.splitlines()]
        need(len(lines) > 2 and lines[-1]["rows"] == "5000", said)
        same([int(line["snapshot"]) for line in lines], list(range(1, len(lines) + 1)), "snapshots")
        with writing(daemon.warehouse, "db.log", "10ms", b'{"id":1}\n') as slow:
            slow.stdin.close()
            same(slow.wait(timeout=DEADLINE), 0, "exit code")
        daemon.stop()


def test_what_cant_be_a_row_is_a_letter_of_the_daemons(args):
    with running(QUIET) as daemon:
        said = write(daemon, "db.log", rows='{"id":1}\nnonsense\n{"id":2,"v":"%s"}\n{"id":3}' % ("long" * 20000), code=1)
        need("tarn: 2 rows went to the dead letters of tarn run\n" in said and " rows=4 " in said, said)
        same([row["id"] for row in daemon.rows("db.log")], [1, 3], "rows")
        letters = [json.loads(line) for line in (daemon.warehouse / ".tarn/db.log.letters").read_text().splitlines()]
        same(sorted(letter["record"][:8] for letter in letters), ["nonsense", '{"id":2,'], "letters")
        daemon.stop()


def test_what_a_daemon_cant_obey_is_refused(args):
    with running(QUIET) as daemon:
        for words, names in ((["--user", "me", "--commit-id", "1"], "--user, --commit-id"), (["--stats"], "--stats"), (["--from", "0"], "--from"),
                             (["--time", "id=ms"], "--time"), (["--dead-letters", "x", "--unknown-columns", "drop"], "--dead-letters, --unknown-columns")):
            said = write(daemon, "db.k", *words, rows='{"id":1}', code=2)
            same(said, "tarn: tarn run holds db.k and takes the rows: %s can't be obeyed there\n" % names, "the reason")
        need("did you mean 'json'" in write(daemon, "db.k", "--input", "jsn", code=2), "no reason")
        need("no-such-file" in write(daemon, "db.k", "no-such-file", code=2), "no reason")
        same(snapshots(daemon, "db.k"), [], "snapshots")
        daemon.stop()


def test_many_write_at_once(args):
    """More than jobs are remembered."""
    with running(QUIET) as daemon:
        argv = [str(peer.TARN), "write", "db.k", "-w", str(daemon.warehouse), "--commit-every", "100"]
        writers = [subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(20)]
        try:
            said = [None] * len(writers)

            def feed(i):
                rows = "".join('{"id":%d,"v":"%d"}\n' % (i + 20 * n, i) for n in range(500))
                said[i] = writers[i].communicate(rows.encode(), timeout=DEADLINE)[1].decode()

            threads = [threading.Thread(target=feed, args=(i,)) for i in range(len(writers))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            same([writer.returncode for writer in writers], [0] * len(writers), "exit codes: %s; the daemon said %s" % (said, daemon.log()))
        finally:
            for writer in writers:
                writer.kill()
        need(sorted(row["id"] for row in daemon.rows("db.k")) == list(range(10000)), "other rows")
        daemon.stop()


def test_who_writes_hears_that_the_daemon_was_killed(args):
    with running(QUIET) as daemon:
        with writing(daemon.warehouse, "db.k", "1", b'{"id":1}\n') as writer:
            daemon.kill()
            said = writer.communicate(b'{"id":2}\n', timeout=DEADLINE)[1].decode()
            same(writer.returncode, 4, "exit code: %s" % said)
            need("tarn run has ended" in said, said)
        same(write_alone(daemon, '{"id":3}'), 0, "exit code of a write when there is no daemon")
        same(sorted(row["id"] for row in daemon.rows("db.k")), [1, 3], "rows")


def write_alone(daemon, rows):
    argv = [str(peer.TARN), "write", "db.k", "-w", str(daemon.warehouse)]
    return subprocess.run(argv, input=rows.encode(), capture_output=True, timeout=DEADLINE, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), java=False))
