"""`lakes` of `tarn run` in a real object store, by HTTP and by TLS, also while it is away; a folder beside it has all meanwhile.

    mirror_store_test.py [--seed S] [NAME...]
"""
import json
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import peer
import runner
import store
from mirror_test import TABLE, Daemon, line_of
from peer import need, same


def certificate(folder):
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=lake",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


@contextmanager
def bucket(tls):
    """A store, and the lakes of a daemon that has it and a folder."""
    with tempfile.TemporaryDirectory(prefix="tarn-bucket-") as name:
        folder = Path(name)
        cert, key = certificate(folder) if tls else (None, None)
        with store.Store(folder, cert, key) as s:
            options = {"s3.endpoint": "%s://127.0.0.1:%d" % ("https" if tls else "http", s.port), "s3.access-key": store.ACCESS,
                       "s3.secret-key": store.SECRET, "s3.region": store.REGION, "s3.path.style.access": "true"}
            options.update({"s3.ca-file": str(cert)} if tls else {})
            yield s, 'near = { target = "lake" }, far = { target = "s3://%s/plant", options = { %s } }' % (
                store.BUCKET, ", ".join('["%s"] = "%s"' % pair for pair in options.items()))


def files_of(lake):
    """Of the table, but for what is not whole; a folder has a lock, too."""
    return {str(path.relative_to(lake)): path.read_bytes() for path in (lake / "db.db/t").rglob("*") if path.is_file()}


def goes_on(tls):
    with bucket(tls) as (s, lakes), Daemon(lakes) as daemon:
        daemon.once("".join(map(line_of, range(50))).encode())
        daemon.get_ready()
        newest = daemon.newest_of(daemon.warehouse)
        daemon.send(range(50, 100))
        daemon.asked_until("both have all", lambda: all(m["state"] == "has all" and m["snapshot"] > newest for m in daemon.status("mirror")))
        far = [lake for lake in daemon.status("lake") if lake["lake"] == "far"][0]
        need(far["puts"] > 4 and far["failures"] == far["deletes"] == 0, far)
        s.kill()
        newest = daemon.newest_of(daemon.warehouse)
        daemon.send(range(100, 150))
        daemon.asked_until("rows go on", lambda: daemon.newest_of(daemon.warehouse) > newest)
        daemon.process.terminate()  # in the middle of a try: the end doesn't wait for it
        daemon.finished("SIGTERM")
        s.start()
        daemon.once()
        same(files_of(s.root / store.BUCKET / "plant"), files_of(daemon.lake), "files of the table in the bucket")
        peer.Tarn(daemon.lake).run("fsck", TABLE).ok("fsck of the other lake")


def test_a_bucket_by_http(_args):
    goes_on(False)


def test_a_bucket_by_tls(_args):
    goes_on(True)


def test_check_connect_says_what_is_wrong_with_a_bucket(_args):
    """Right, then each thing wrong in turn; the bucket has nothing more afterwards, and no secret is told."""
    with bucket(True) as (s, lakes), Daemon(lakes) as daemon:
        right = daemon.config.read_text()
        other, _ = certificate(daemon.folder)
        before = s.files()
        port = "127.0.0.1:%d" % s.port
        for was, now, kind, why in (
                (store.SECRET, store.SECRET, None, "lets us read"),
                (store.SECRET, "anotherSecret", "credentials", "secret key"),
                ('"%s"' % store.ACCESS, '"NOBODY"', "credentials", "access key"),
                ("s3://%s/" % store.BUCKET, "s3://nobucket/", "store", "there is no such bucket"),
                (port, "127.0.0.1:1", "network", "refused"),
                (re.search(r'"s3.ca-file"\] = "([^"]*)"', right).group(1), str(other), "certificate", "certificate"),
                (re.search(r'"s3.ca-file"\] = "([^"]*)"', right).group(1), "/no/file", "certificate", "no such file")):
            need(was in right, was)
            daemon.config.write_text(right.replace(was, now))
            result = peer.Tarn(daemon.warehouse).run("check", str(daemon.config), "--connect", "--format", "json")
            rows = {row["name"]: row for row in map(json.loads, result.lines) if "connect" in row}
            same((rows["near"]["works"], rows["far"]["works"], result.rc), (True, kind is None, 4 if kind else 0), "%s for %s: %s" % (now, was, rows))
            same(rows["far"]["kind"], kind, rows["far"]["text"])
            need(why in rows["far"]["text"], rows["far"]["text"])
            need(now in (store.ACCESS, "NOBODY") or not any(x in str(rows) + result.err for x in (store.SECRET, "anotherSecret")), "a secret is told")
        same(s.files(), before, "what is in the bucket")


def test_check_connect_says_how_far_the_clocks_are_apart(_args):
    with bucket(False) as (s, lakes), store.Proxy(s) as proxy, Daemon(lakes.replace(s.endpoint, proxy.endpoint)) as daemon:
        for skew, text in ((0, "(nothing was written)"), (7200, "clock is 7200 s behind the store's"), (-7200, "clock is 7200 s ahead of the store's")):
            proxy.skew = skew
            result = peer.Tarn(daemon.warehouse).run("check", str(daemon.config), "--connect", "--format", "json")
            far = [row for row in map(json.loads, result.lines) if row.get("name") == "far"][0]
            need(far["works"] and re.sub("7(199|201)", "7200", far["text"]).find(text) >= 0, far)


def test_check_connect_says_where_a_403_leaves_open_whether_we_may_read(_args):
    """A store tells whoever may not list "forbidden" of what isn't there; once it is there, its being read shows the right."""
    with bucket(False) as (s, lakes), store.Proxy(s) as proxy, Daemon(lakes.replace(s.endpoint, proxy.endpoint)) as daemon:
        proxy.hides = True
        said = []
        for _ in range(2):
            result = peer.Tarn(daemon.warehouse).run("check", str(daemon.config), "--connect", "--format", "json")
            far = [row for row in map(json.loads, result.lines) if row.get("name") == "far"][0]
            same(far["works"], True, far)
            said.append(far["text"])
            daemon.once("".join(map(line_of, range(5))).encode())
        need("403 of what isn't there: whether we may read shows where something is" in said[0], said[0])
        need("lets us read" in said[1], said[1])


if __name__ == "__main__":
    sys.exit(runner.run_given(globals()))
