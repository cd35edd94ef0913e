"""The daemon's socket source (tests/interop/socket_driver.c) with Python's sockets at the other end.

    socket_test.py [--seed S] [--kills N] [--driver PROGRAM] [NAME...]
"""
import json
import random
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import runner
from child import DEADLINE, Driver
from peer import need



class Bench(Driver):
    """It is talked to as a client would."""

    def __init__(self, args, *options):
        super().__init__(args, "tarn-socket-", *options)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)


def talk(client, text):
    """Sends all, ends, and returns the answers."""
    client.sendall(text.encode())
    client.shutdown(socket.SHUT_WR)
    with client, client.makefile() as answers:
        return [json.loads(line) for line in answers]


def lines_of(name, count):
    return ['{"id":"%s-%d"}' % (name, i) for i in range(count)]


def text_of(lines):
    return "".join(line + "\n" for line in lines)


def test_a_file_through_a_pipe(args):
    with Bench(args) as bench:
        lines = lines_of("a", 50000)
        answers = talk(bench.connect(), text_of(lines))
        counts = [answer["received"] for answer in answers]
        need(counts == sorted(set(counts)) and counts[-1] == len(lines), "received %r" % counts[-5:])
        need(bench.rows() == lines, "other rows than sent")
        need(talk(bench.connect(), "{}\nhalf") == [{"received": 1}], "half a line is a line")
        bench.stop()


def test_a_file_that_is_sent_again(args):
    with Bench(args) as bench:
        lines = lines_of("f", 3000)
        for upto in (1000, 500, 3000, 3000):
            answers = talk(bench.connect(), 'tarn {"sender":"f","first":1}\n' + text_of(lines[:upto]))
            need(answers[0]["sender"] == "f" and answers[-1]["received"] >= upto, "answers %r" % answers)
        need(bench.rows() == lines, "other rows than sent")
        bench.stop()


def test_a_unix_socket_with_a_token(args):
    folder = tempfile.mkdtemp(prefix="tarn-socket-")
    path = folder + "/socket"
    with Bench(args, "unix=" + path, "token=secret", "line=80") as bench:
        for greeting, text in (("", "the first line must be"), ('tarn {"token":"wrong"}\n', "doesn't have the token")):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                answers = talk(client, greeting + text_of(lines_of("x", 2000)))
                need(text in answers[-1]["error"], "answers %r" % answers)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            answers = talk(client, 'tarn {"token":"secret"}\na\n' + "x" * 100000 + "\nb\n")
            need(answers[0] == {"received": 0} and answers[-1] == {"received": 3}, "answers %r" % answers)
        need(bench.rows() == ["a", "cut:100001", "b"], "rows %r" % bench.rows())
        bench.stop()
    need(not Path(path).exists(), "the socket's file is still there")
    shutil.rmtree(folder)


def test_stopping_says_so(args):
    with Bench(args) as bench:
        with bench.connect() as client, client.makefile() as answers:
            client.sendall(b"a\n")
            need(json.loads(answers.readline()) == {"received": 1}, "it isn't received")
            bench.stop()
            need(json.loads(answers.readline()) == {"error": "the server stops"}, "it doesn't say why")
            need(answers.readline() == "", "it doesn't end")


class Sender(threading.Thread):
    """Sends its lines until all were received, through any number of cuts. Without a name it begins where it heard of last."""

    def __init__(self, bench, name, lines, named, seed):
        super().__init__()
        self.bench, self.lines, self.named = bench, lines, named
        self.name_ = name
        self.rng = random.Random(seed)
        self.received = self.connections = 0
        self.error = None

    def hear(self, answers, base):
        answer = json.loads(answers.readline() or '{"error":"cut"}')
        if "received" not in answer:
            raise OSError(answer["error"])
        self.received = base + answer["received"]

    def send_some(self, client, answers):
        base = 0 if self.named else self.received
        if self.named:
            client.sendall(b'tarn {"sender":"%s"}\n' % self.name_.encode())
            self.hear(answers, 0)
        sent = self.received
        while self.received < len(self.lines):
            upto = min(len(self.lines), sent + self.rng.randrange(1, 40))
            client.sendall(text_of(self.lines[sent:upto]).encode())
            sent = upto
            while self.received < sent and (sent == len(self.lines) or sent - self.received > 100):
                self.hear(answers, base)

    def run(self):
        end = time.monotonic() + DEADLINE
        try:
            while self.received < len(self.lines):
                need(time.monotonic() < end, "sender %s got no further than %d" % (self.name_, self.received))
                self.connections += 1
                starts = self.bench.starts()
                try:
                    with self.bench.connect() as client, client.makefile() as answers:
                        self.send_some(client, answers)
                except ConnectionRefusedError:
                    self.bench.until("it is there again", lambda: self.bench.starts() > starts, ends=False)
                except (OSError, ValueError):
                    pass  # it was cut
        except Exception as e:  # told by the test
            self.error = e


def test_killed_while_senders_send(args):
    """kill -9 at random instants: lines of senders with names are there exactly once and in order, the others' at least once."""
    with Bench(args, "commit=7") as bench:
        senders = [Sender(bench, "s%d" % i, lines_of("s%d" % i, 4000), i < 3, args.seed + i) for i in range(5)]
        bench.kill_while(senders, 0.06)
        bench.stop()
        rows = bench.rows()
        for sender in senders:
            own = [row for row in rows if row.startswith('{"id":"%s-' % sender.name_)]
            if sender.named:
                need(own == sender.lines, "sender %s: %d rows of %d lines" % (sender.name_, len(own), len(sender.lines)))
            need(set(Counter(own)) == set(sender.lines), "sender %s: lines are missing" % sender.name_)
        need(sum(sender.connections for sender in senders) > len(senders), "nobody was cut")

if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), kills=20, driver="build/host/tests/interop/socket_driver"))
