"""An object store for tests: a real one, `versitygw`, and a proxy in front of it that counts, and that fails when it is told to.

    with Store(folder) as store, Proxy(store) as proxy:
        proxy.plan = lambda request: Fault(answer=0) if request.verb == "PUT" else None

The proxy reads whole requests and whole answers, so that a fault is at a byte that the test chose, not at one that a race did. It
remembers every request and what each key holds; what may never be (a key that gets other bytes, a LIST, headers that some stores
refuse) is in `wrong`.
"""
import calendar
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from email.utils import formatdate
from urllib.parse import unquote

import child
import peer
from peer import need

PROGRAM = os.environ.get("VERSITYGW", str(peer.ROOT / "build/go/versitygw"))
ACCESS, SECRET, REGION = "tarn", "tarn-secret-key", "us-east-1"
BUCKET = "lake"
HEAD_MAX = 64 << 10
HINTS = ("LATEST", "EARLIEST")
REFUSED = ("transfer-encoding", "content-encoding", "x-amz-trailer", "x-amz-sdk-checksum-algorithm", "expect")
EXPECT = re.compile(rb"\r\nexpect: [^\r]*\r\n", re.IGNORECASE)  # the proxy answers it
SKEW_MAX = 900  # seconds, as AWS has it


def has_program():
    return shutil.which(PROGRAM) is not None


class Store(child.Child):
    """`versitygw` on files below a folder, which must be on a file system that knows extended attributes."""

    def __init__(self, folder, cert=None, key=None):
        super().__init__(folder / "store.log")
        self.root, self.users, self.port = folder / "store", folder / "users", child.free_port()
        self.tls = [] if cert is None else ["--cert", str(cert), "--key", str(key)]
        (self.root / BUCKET).mkdir(parents=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        need(has_program(), "versitygw is not there: scripts/deps/versitygw, or VERSITYGW=...")
        env = dict(os.environ, ROOT_ACCESS_KEY=ACCESS, ROOT_SECRET_KEY=SECRET)
        self.users.mkdir(exist_ok=True)
        super().start([PROGRAM, "--quiet", "--keep-alive", "--port", "127.0.0.1:%d" % self.port, "--health", "/health", "--iam-dir", str(self.users),
                       *self.tls, "posix", str(self.root)], env=env)
        child.asked_until("the store answers", self.is_well)

    def is_well(self):
        need(self.runs(), "the store ended: %s" % self.log())
        try:
            if self.tls:
                socket.create_connection(("127.0.0.1", self.port), 10).close()
                return True
            ask = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            with suppress(http.client.HTTPException):
                ask.request("GET", "/health")
                return ask.getresponse().status == 200
        except OSError:
            pass
        return False

    def make_user(self, access, secret):
        """Somebody who may do nothing yet."""
        subprocess.run([PROGRAM, "admin", "--access", ACCESS, "--secret", SECRET, "--endpoint-url", self.endpoint, "create-user",
                        "--access", access, "--secret", secret, "--role", "user"], check=True, capture_output=True)

    def allow(self, access, *actions):
        """These, of S3's names, are what a user may do with the bucket's objects, and nothing else."""
        policy = json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": [access]}, "Action": list(actions), "Resource": ["arn:aws:s3:::%s/*" % BUCKET]}]}).encode()
        head = ("PUT /%s?policy= HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-length: %d\r\nx-amz-content-sha256: %s\r\n"
                "authorization: SignedHeaders=host;x-amz-content-sha256;x-amz-date\r\n\r\n" % (
                    BUCKET, self.port, len(policy), hashlib.sha256(policy).hexdigest())).encode()
        with socket.create_connection(("127.0.0.1", self.port), child.DEADLINE) as connection, connection.makefile("rb") as stream:
            connection.sendall(signed_anew(Request(head), time.time()) + policy)
            status, answer = read_answer(stream, "PUT")
        need(status in (200, 204), "the store has not taken the policy: %r" % answer)

    @property
    def endpoint(self):
        return "http%s://127.0.0.1:%d" % ("s" if self.tls else "", self.port)

    def files(self):
        """Of the bucket, by key: its inode, its size and when it was made. None of them changes unless the object is replaced."""
        return files_below(self.root / BUCKET)


def files_below(folder):
    out = {}
    for at, folders, names in os.walk(folder):
        folders[:] = [x for x in folders if not x.startswith(".sgwtmp")]
        for name in names:
            with suppress(FileNotFoundError):
                path = os.path.join(at, name)
                known = os.stat(path)
                out[os.path.relpath(path, folder)] = (known.st_ino, known.st_size, known.st_mtime_ns)
    return out


def options(endpoint, access=ACCESS, secret=SECRET):
    """As words of a command line, for tarn and for pypaimon."""
    given = {"s3.endpoint": endpoint, "s3.access-key": access, "s3.secret-key": secret, "s3.region": REGION, "s3.path.style.access": "true"}
    return [x for pair in given.items() for x in ("--option", "%s=%s" % pair)]


# ---------------------------------------------------------------- a request

class Request:
    """What a client asked, and what became of it."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.head = head
        self.verb, self.target, _ = lines[0].split(" ", 2)
        self.headers = {}
        for line in lines[1:]:
            if line:
                name, value = line.split(":", 1)
                self.headers[name.strip().lower()] = value.strip()
        path, _, self.query = self.target.partition("?")
        self.key = unquote(path).lstrip("/").partition("/")[2]  # behind the bucket
        self.size = int(self.headers.get("content-length", 0))
        self.body, self.status, self.fault = b"", None, None

    @property
    def kind(self):
        """The verb, or LIST."""
        return "LIST" if self.verb == "GET" and not self.key else self.verb

    @property
    def is_hint(self):
        return self.key.rpartition("/")[2] in HINTS

    @property
    def is_swap(self):
        """Of who owns a mirror, for somebody who knows what was there."""
        return self.key.endswith("/owner") and "if-match" in self.headers

    @property
    def is_small(self):
        """A hint, the owner, a snapshot or a schema: whether it is there a PUT asks that makes it only if it isn't."""
        return self.is_hint or self.is_swap or "/snapshot/snapshot-" in self.key or "/schema/schema-" in self.key

    def __repr__(self):
        return "%s %s %s%s" % (self.verb, self.target, self.status, "" if self.fault is None else " (%r)" % self.fault)


class Fault:
    """What becomes of one request.

    request=N   only its first N bytes reach the store, then both connections are gone
    answer=N    the store does it, and of its answer the first N bytes come back; then the connection is gone
    status=N    this answer, without the store; with `code`, the word in it, and `headers`
    twice       the store gets it twice, and what comes back is the `last` of its answers, or the first
    slowly      its answer comes byte by byte
    silent      no answer, until the client goes
    then        is called when the bytes are through, before the connection is gone
    """

    def __init__(self, request=None, answer=None, status=None, code="InternalError", headers=(), twice=False, last=False, slowly=False,
                 silent=False, then=None):
        self.request, self.answer, self.status, self.code, self.headers = request, answer, status, code, dict(headers)
        self.twice, self.last, self.slowly, self.silent, self.then = twice, last, slowly, silent, then

    def __repr__(self):
        return " ".join("%s=%s" % (k, v) for k, v in vars(self).items() if v not in (None, False, {}) and k not in ("then",))

    def own_answer(self, verb, date):
        body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>as the test wants it</Message></Error>" % self.code
        given = {"Date": date, "Content-Type": "application/xml", "Content-Length": len(body), **self.headers}
        head = "HTTP/1.1 %d %s\r\n%s\r\n" % (self.status, self.code, "".join("%s: %s\r\n" % x for x in given.items()))
        return (head + ("" if verb == "HEAD" else body)).encode()


def random_fault(rng, request):
    """One of the network's or the store's: cut anywhere, refused for now, twice, slowly."""
    total = len(request.head) + request.size
    kind = rng.randrange(8)
    if kind < 2:
        return Fault(request=rng.choice([0, rng.randrange(total), len(request.head), total - 1]))
    if kind < 4:
        return Fault(answer=rng.choice([0, 0, rng.randrange(400)]))
    if kind == 4:
        return Fault(status=500)
    if kind == 5:
        return Fault(status=503, code=rng.choice(["SlowDown", "ServiceUnavailable"]))
    if kind == 6:
        return Fault(twice=True, last=rng.random() < 0.5)
    return Fault(slowly=True)


# ---------------------------------------------------------------- signing anew, for a store with another clock

def signed_anew(request, at):
    """The same request, signed at this time. Source: AWS, "Authenticating Requests: Using the Authorization Header"."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    names = request.headers["authorization"].split("SignedHeaders=")[1].split(",")[0].strip().split(";")
    headers = dict(request.headers, **{"x-amz-date": stamp})
    path, _, query = request.target.partition("?")
    query = "&".join(sorted(x if "=" in x else x + "=" for x in query.split("&") if x))
    lines = [request.verb, path, query, *("%s:%s" % (n, " ".join(headers[n].split())) for n in names), "", ";".join(names),
             headers["x-amz-content-sha256"]]
    scope = "%s/%s/s3/aws4_request" % (stamp[:8], REGION)
    text = "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (stamp, scope, hashlib.sha256("\n".join(lines).encode("latin-1")).hexdigest())
    key = ("AWS4" + SECRET).encode()
    for word in (*scope.split("/"), text):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    headers["authorization"] = "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s" % (ACCESS, scope, ";".join(names), key.hex())
    return ("%s %s HTTP/1.1\r\n%s\r\n" % (request.verb, request.target, "".join("%s: %s\r\n" % x for x in headers.items()))).encode("latin-1")


# ---------------------------------------------------------------- the proxy

def read_head(stream):
    """Up to and with its empty line; b"" at the end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(HEAD_MAX)
        if not line or len(head) > HEAD_MAX:
            return b""
        head += line
    return head


def read_answer(stream, verb):
    """(status, all of its bytes)"""
    head = read_head(stream)
    if not head:
        return None, b""
    status = int(head.split()[1])
    fields = {k.strip().lower(): v.strip() for k, _, v in (x.partition(b":") for x in head.split(b"\r\n")[1:])}
    if verb == "HEAD" or status in (204, 304):
        return status, head
    if fields.get(b"transfer-encoding") != b"chunked":
        return status, head + stream.read(int(fields.get(b"content-length", 0)))
    body = b""
    while not body.endswith(b"\r\n0\r\n\r\n") and body != b"0\r\n\r\n":
        size = stream.readline()
        body += size + stream.read(int(size, 16) + 2)
    return status, head + body


def gone(connection):
    """At once, as when a link is cut: what wasn't read is answered by a reset."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


class Proxy:
    def __init__(self, store):
        self.store, self.skew = store, 0  # seconds that the store's clock is ahead
        self.hides = False  # what isn't there is forbidden: AWS's answer to who may not list
        self.plan = lambda request: None
        self.requests, self.wrong, self.content = [], [], {}
        self.may_remove = False  # True: what the lake keeps has an end
        self.lock = threading.Lock()
        self.open = set()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.listener = threading.Thread(target=self.listen, daemon=True)

    def __enter__(self):
        self.listener.start()
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.listener.join(child.DEADLINE)
        with self.lock:
            for connection in self.open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @property
    def endpoint(self):
        return "http://127.0.0.1:%d" % self.port

    def listen(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with self.lock:
            self.open.add(connection)
        try:
            with connection.makefile("rb") as stream:
                while self.one(connection, stream):
                    pass
        except OSError:  # the client went; the next one tells what it lost
            pass
        finally:
            with self.lock:
                self.open.discard(connection)
            gone(connection)

    def one(self, connection, stream):
        """One request and its answer; False: that was the last one."""
        head = read_head(stream)
        if not head:
            return False
        request = Request(head)
        with self.lock:
            self.requests.append(request)
            self.check(request)
            request.fault = self.plan(request)
        fault = request.fault or Fault()
        cut = fault.request
        if "expect" in request.headers:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.body = stream.read(request.size if cut is None else max(0, min(request.size, cut - len(head))))
        if cut is not None or len(request.body) < request.size:
            self.send_a_piece(request, cut)
            return self.end(fault)
        if fault.silent:
            stream.read(1)
            return False
        answer = self.answer_of(request, fault)
        return self.give(connection, answer, fault)

    def answer_of(self, request, fault):
        date = formatdate(time.time() + self.skew, usegmt=True)
        if fault.status is not None:
            request.status = fault.status
            return fault.own_answer(request.verb, date)
        head = request.head
        if self.skew:
            signed = calendar.timegm(time.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ"))
            if abs(signed - time.time() - self.skew) > SKEW_MAX:
                request.status = 403
                return Fault(status=403, code="RequestTimeTooSkewed").own_answer(request.verb, date)
            head = signed_anew(request, time.time())
        answer = self.ask(request, head)
        if fault.twice:
            again = self.ask(request, head)
            answer = again if fault.last else answer
        if self.hides and request.status == 404:
            request.status = 403
            return Fault(status=403, code="AccessDenied").own_answer(request.verb, date)
        return answer

    def ask(self, request, head):
        """The store, and nobody else touches a key between its answer and our note of it."""
        with self.lock, socket.create_connection(("127.0.0.1", self.store.port), child.DEADLINE) as store:
            store.sendall(EXPECT.sub(b"\r\n", head) + request.body)
            with store.makefile("rb") as stream:
                request.status, answer = read_answer(stream, request.verb)
            self.note(request)
        return answer

    def send_a_piece(self, request, cut):
        piece = (request.head + request.body)[:cut]
        if piece:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.store.port), child.DEADLINE) as store:
                store.sendall(piece)

    def end(self, fault):
        if fault.then:
            fault.then()
        return False

    def give(self, connection, answer, fault):
        answer, cut = answer[:fault.answer], fault.answer is not None
        if fault.slowly:
            for at in range(len(answer)):
                connection.sendall(answer[at:at + 1])
        else:
            connection.sendall(answer)
        return self.end(fault) if cut or fault.then else True

    # ---- what it remembers

    def check(self, request):
        """What tarn may never ask, whatever the store."""
        for name in request.headers:
            if name in REFUSED or name.startswith("x-amz-checksum-"):
                self.wrong.append("%r has the header %s" % (request, name))
        if request.verb in ("PUT", "POST") and "content-length" not in request.headers:
            self.wrong.append("%r doesn't say its length" % request)
        if request.kind in ("LIST", "DELETE") and "uploadId=" not in request.query and not self.may_remove:
            self.wrong.append("%r: a sync needs PUT and GET only" % request)

    def note(self, request):
        if request.verb == "PUT" and request.status == 200 and not request.query:
            digest = hashlib.sha256(request.body).hexdigest()
            if self.content.setdefault(request.key, digest) != digest and not request.is_hint and not request.is_swap:
                self.wrong.append("%r: replaces other bytes" % request)
            self.content[request.key] = digest

    def since(self, first=0):
        with self.lock:
            return self.requests[first:]

    def counts(self, first=0):
        return Counter(x.kind for x in self.since(first))


def put_bytes(requests):
    return sum(x.size for x in requests if x.verb == "PUT")
