"""The daemon's HTTP server (tests/interop/http_driver.c) asked by clients that others wrote: Python's http.client, and curl.

    http_test.py [--seed S] [--kills N] [--driver PROGRAM] [NAME...]
"""
import http.client
import json
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter

import runner
from child import DEADLINE, Driver
from peer import need

ROWS = "/tables/db.t/rows"


class Bench(Driver):
    """It is asked as a client would."""

    def __init__(self, args, *options, tls=False):
        super().__init__(args, "tarn-http-", *options)
        self.trust = None
        if tls:
            self.use_tls()

    def connect(self):
        if self.trust:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=self.trust)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)

    def use_tls(self):
        pem, key = str(self.folder / "pem"), str(self.folder / "key")
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                               "-days", "2", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1",
                               "-keyout", key, "-out", pem], text=True, capture_output=True)
        need(done.returncode == 0, "openssl: " + done.stderr)
        self.options += ("certificate=" + pem, "key=" + key)
        self.trust = ssl.create_default_context(cafile=pem)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Status, headers and text of one answer."""
        client = connection or self.connect()
        try:
            client.request(method, path, body=body, headers=headers or {})
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            if not connection:
                client.close()


def rows_of(name, count):
    return "".join('{"id":"%s-%d"}\n' % (name, i) for i in range(count))


def ask_much(args, tls):
    with Bench(args, tls=tls) as bench:
        client = bench.connect()
        wanted = []
        for i in range(200):
            body = rows_of("a%d" % i, 1 + i % 50)
            pieces = (body[k:k + 37].encode() for k in range(0, len(body), 37))
            status, _, text = bench.ask("POST", ROWS, pieces if i % 2 else body, connection=client)
            need(status == 200 and json.loads(text)["rows"] == 1 + i % 50, text)
            wanted += body.splitlines()
            need(bench.rows() == wanted, "rows aren't in the file at their answer")
            need(bench.ask("GET", "/health", connection=client)[2].startswith("place "), "no health")
            need(bench.ask("HEAD", "/health", connection=client)[2] == "", "HEAD with a body")
        status, _, text = bench.ask("POST", ROWS, "good\nbad\n", connection=client)
        need(status == 400 and json.loads(text)["line"] == 2, text)
        status, _, text = bench.ask("POST", "/tables/db.u/rows", "good\n", connection=client)
        need(status == 404 and "db.u" in json.loads(text)["error"], text)
        need(bench.rows() == wanted, "refused rows are there")
        client.close()
        bench.stop()


def test_http_client_on_one_connection(args):
    ask_much(args, False)


def test_http_client_over_tls(args):
    ask_much(args, True)


def test_tls_and_plain_strangers(args):
    with Bench(args, "timeout=500", tls=True) as bench:
        with socket.create_connection(("127.0.0.1", bench.port)) as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            plain.settimeout(DEADLINE)
            need(b"HTTP" not in plain.recv(100), "it answers without TLS")
        bench.trust = ssl.create_default_context()  # to which its certificate is a stranger's
        try:
            bench.ask("GET", "/health")
            need(False, "a stranger is trusted")
        except ssl.SSLError:
            pass
        bench.stop()


def curl(bench, *options):
    done = subprocess.run(["curl", "--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}", *options,
                           "http://127.0.0.1:%d%s" % (bench.port, ROWS)], text=True, capture_output=True, timeout=DEADLINE)
    need(done.returncode == 0, "curl: %s" % done.stderr)
    text, _, status = done.stdout.rpartition("\n")
    return int(status), text


def test_curl(args):
    need(shutil.which("curl"), "curl is not installed: scripts/deps/debian test")
    with Bench(args, "token=secret") as bench:
        body = bench.folder / "body"
        body.write_text(rows_of("c", 1000))
        right = ("--header", "Authorization: Bearer secret", "--header", "Content-Type: application/x-ndjson")
        for options in ((), ("--header", "Transfer-Encoding: chunked"), ("--header", "Expect: 100-continue"), ("--http1.0",)):
            status, text = curl(bench, *right, *options, "--data-binary", "@%s" % body)
            need(status == 200 and json.loads(text)["rows"] == 1000, "%s: %s" % (options, text))
        need(Counter(bench.rows()) == Counter(body.read_text().splitlines() * 4), "other rows than sent")
        need(curl(bench, "--data-binary", "@%s" % body)[0] == 401, "no token is asked for")
        need(curl(bench, *right[:2], "--data-binary", "@%s" % body)[0] == 415, "a form is taken for rows")
        need(curl(bench, *right, "--header", "Content-Encoding: gzip", "--data-binary", "@%s" % body)[0] == 415, "gzip is taken for rows")
        body.write_text(rows_of("c", 100000))
        for options in ((), ("--header", "Transfer-Encoding: chunked"), ("--header", "Expect:")):
            status, text = curl(bench, *right, *options, "--data-binary", "@%s" % body)
            need(status == 413 and "65536" in text, "%s: %d %s" % (options, status, text))
        bench.stop()


def test_the_slow_and_the_many_are_dropped(args):
    with Bench(args, "connections=2", "timeout=2000") as bench:
        silent = [socket.create_connection(("127.0.0.1", bench.port)) for _ in range(2)]
        silent[1].sendall(b"POST " + ROWS.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
        status, headers, _ = bench.ask("GET", "/health")
        need(status == 503 and int(headers["Retry-After"]) > 0, "one too many got %d" % status)
        for s in silent:
            s.settimeout(DEADLINE)
        need(silent[0].recv(100) == b"", "who says nothing hears something")
        need(b" 408 " in silent[1].recv(1000), "who is slow isn't told")
        for s in silent:
            s.close()
        need(bench.ask("GET", "/health")[0] == 200, "no health after all are gone")
        need(bench.rows() == [], "a part of a body is taken")
        bench.stop()


class Sender(threading.Thread):
    """Numbers its requests, or gives them keys, and repeats each until it has its 200."""

    def __init__(self, bench, name, count, keys):
        super().__init__()
        self.bench, self.name_, self.count, self.keys = bench, name, count, keys
        self.repeated = self.tries = 0
        self.error = None

    def headers(self, i):
        if self.keys:
            return {"Idempotency-Key": "%s-%d" % (self.name_, i)}
        return {"X-Sender": self.name_, "X-Sequence": str(i + 1)}

    def send(self, client, i):
        self.tries += 1
        status, _, text = self.bench.ask("POST", ROWS, rows_of("%s.%d" % (self.name_, i), 3), self.headers(i), client)
        need(status in (200, 503), text)
        self.repeated += "repeated" in text
        return status == 200

    def run(self):
        client, i, end = self.bench.connect(), 0, time.monotonic() + DEADLINE
        try:
            while i < self.count:
                need(time.monotonic() < end, "sender %s got no further than %d" % (self.name_, i))
                starts = self.bench.starts()
                try:
                    i += self.send(client, i)
                except ConnectionRefusedError:
                    self.bench.until("it is there again", lambda: self.bench.starts() > starts, ends=False)
                except (OSError, http.client.HTTPException):
                    client.close()
                    client = self.bench.connect()
        except Exception as e:  # told by the test
            self.error = e
        client.close()


def test_killed_and_started_again(args):
    """Each row exactly once, with kill -9 at random instants."""
    with Bench(args, "commit=5") as bench:
        senders = [Sender(bench, "s%d" % k, 30 * args.kills, k % 2 == 1) for k in range(4)]
        bench.kill_while(senders, 0.2)
        wanted = Counter()
        for sender in senders:
            for i in range(sender.count):
                wanted.update(rows_of("%s.%d" % (sender.name_, i), 3).splitlines())
        got = Counter(bench.rows())
        need(got == wanted, "lost: %s, twice: %s" % (list((wanted - got).keys())[:5], list((got - wanted).keys())[:5]))
        need(sum(s.tries for s in senders) > sum(s.count for s in senders), "no kill met a request")
        bench.stop()

if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), kills=10, driver="build/host/tests/interop/http_driver"))
