"""How fast files go to a bucket: tarn against rclone and boto3, on loopback, in the same run, by HTTP and by TLS.

    upload.py BUILD_FOLDER [--files N] [--size BYTES] [--rounds N] [--rate BYTES_A_SECOND]

The bucket is a real store's, versitygw on a folder, over TLS with an authority of its own. In each round each of the three sends
N new files of SIZE bytes over four connections: tarn's program is tests/bench/upload.c, which sends as a sync does, in one MiB of
memory of the upload; rclone is `rclone copy --transfers 4`, and boto3 puts with four threads. What starts and ends a process counts
for nobody. The order changes from round to round, and of the ratios the median counts: other work on the machine is everybody's.

What must hold: tarn is no slower than either, in 1 MiB; and with a rate it sends that many bytes a second within 5% over ten seconds.
Ends with 1 when something does not.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# What a machine has set for other stores is nobody's here.
for setting in [x for x in os.environ if x.startswith(("AWS_", "RCLONE_")) or x.upper().endswith("_PROXY")]:
    del os.environ[setting]

import boto3
from botocore.config import Config

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/interop"))
import store

CONNECTIONS = 4
MEMORY = 1 << 20
RATE_ERROR = 0.05
MB = 1e6


def make_files(folder, count, size):
    folder.mkdir()
    for i in range(count):
        (folder / ("data-%d" % i)).write_bytes(os.urandom(size))


def make_authority(folder):
    """An authority's certificate, and a server's that it has signed."""
    ca, ca_key, cert, key = (folder / x for x in ("ca.pem", "ca.key", "server.pem", "server.key"))
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    openssl("req", "-x509", *curve, "-days", 2, "-subj", "/CN=bench", "-keyout", ca_key, "-out", ca)
    openssl("req", *curve, "-subj", "/CN=store", "-keyout", key, "-out", folder / "server.csr")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", folder / "server.csr", "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", 2,
            "-extfile", folder / "names", "-out", cert)
    return ca, cert, key


class Tarn:
    name = "tarn"

    def __init__(self, bench, server):
        self.bench, self.server, self.seen = bench, server, []

    def send(self, prefix, count, rate=0):
        words = [self.bench.build / "upload", self.server.endpoint, self.server.ca or "-", self.bench.files, count,
                 self.bench.size, "s3://%s/%s" % (store.BUCKET, prefix), rate]
        said = json.loads(subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True,
                                         env=dict(os.environ, AWS_ACCESS_KEY_ID=store.ACCESS, AWS_SECRET_ACCESS_KEY=store.SECRET)).stdout)
        self.seen.append(said)
        return said["seconds"]


class Rclone:
    name = "rclone"

    def __init__(self, bench, server):
        self.bench = bench
        self.env = dict(os.environ, RCLONE_CONFIG="/dev/null", RCLONE_CONFIG_LAKE_TYPE="s3", RCLONE_CONFIG_LAKE_PROVIDER="Other",
                        RCLONE_CONFIG_LAKE_ENDPOINT=server.endpoint, RCLONE_CONFIG_LAKE_ACCESS_KEY_ID=store.ACCESS,
                        RCLONE_CONFIG_LAKE_SECRET_ACCESS_KEY=store.SECRET, RCLONE_CONFIG_LAKE_REGION=store.REGION)
        self.ca = ["--ca-cert", str(server.ca)] if server.ca else []
        self.idle = min(self.run(["copy", str(bench.nothing), "lake:%s/nothing" % store.BUCKET]) for _ in range(3))

    def run(self, words):
        began = time.monotonic()
        subprocess.run(["rclone", *words, "--transfers", str(CONNECTIONS), *self.ca], check=True, env=self.env, stdout=subprocess.DEVNULL)
        return time.monotonic() - began

    def send(self, prefix, _count):
        """Without what it takes to copy nothing."""
        return self.run(["copy", str(self.bench.files), "lake:%s/%s" % (store.BUCKET, prefix)]) - self.idle


class Boto3:
    name = "boto3"

    def __init__(self, bench, server):
        self.bench = bench
        self.client = boto3.client("s3", endpoint_url=server.endpoint, aws_access_key_id=store.ACCESS, aws_secret_access_key=store.SECRET,
                                   region_name=store.REGION, verify=str(server.ca) if server.ca else None,
                                   config=Config(s3={"addressing_style": "path"}, max_pool_connections=CONNECTIONS,
                                                 request_checksum_calculation="when_required"))

    def put(self, prefix, path):
        with path.open("rb") as body:
            self.client.put_object(Bucket=store.BUCKET, Key="%s/%s" % (prefix, path.name), Body=body)

    def send(self, prefix, _count):
        paths = sorted(self.bench.files.glob("data-*"))
        began = time.monotonic()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda path: self.put(prefix, path), paths))
        return time.monotonic() - began


class Bench:
    def __init__(self, build, args):
        self.build, self.size, self.count, self.rounds = build, args.size, args.files, args.rounds
        self.work = build / "upload.work"
        subprocess.run(["rm", "-rf", str(self.work)], check=True)
        self.work.mkdir()
        self.files, self.nothing = self.work / "files", self.work / "nothing"
        make_files(self.files, self.count, self.size)
        self.nothing.mkdir()
        self.bad = []

    def check(self, good, text):
        print("  %s: %s" % ("holds" if good else "DOES NOT HOLD", text))
        if not good:
            self.bad.append(text)

    def compare(self, kind, server):
        peers = [x(self, server) for x in (Tarn, Rclone, Boto3)]
        seconds = {x.name: [] for x in peers}
        for number in range(self.rounds):
            for peer in peers[number % 3:] + peers[:number % 3]:
                seconds[peer.name].append(peer.send("%s-%s-%d" % (kind, peer.name, number), self.count))
        print("%s, %d files of %d bytes, %d connections, median of %d rounds:" % (kind, self.count, self.size, CONNECTIONS, self.rounds))
        for name, took in seconds.items():
            middle = statistics.median(took)
            print("  %-7s %7.3f s  %7.1f MB/s" % (name, middle, self.count * self.size / middle / MB))
        for name in ("rclone", "boto3"):
            ratio = statistics.median(a / b for a, b in zip(seconds["tarn"], seconds[name]))
            self.check(ratio <= 1, "tarn takes %.2f of the time of %s" % (ratio, name))
        tarn = peers[0].seen
        self.check(max(x["upload_memory"] for x in tarn) <= MEMORY, "memory of the upload: %d bytes; of the process, with TLS and the system's: "
                   "%d KB at its peak" % (max(x["upload_memory"] for x in tarn), max(x["process_kb"] for x in tarn)))
        print("  CPU of tarn: %.3f s user, %.3f s system" % tuple(statistics.median(x[k] for x in tarn) for k in ("user", "system")))

    def measure_rate(self, kind, server, rate):
        """Ten seconds of it."""
        tarn = Tarn(self, server)
        count = min(self.count, max(1, round(10 * rate / self.size)))
        took = tarn.send("%s-rate" % kind, count, rate)
        got = count * self.size / took
        self.check(abs(got / rate - 1) <= RATE_ERROR, "%s, at most %d bytes a second: %.0f over %.1f s" % (kind, rate, got, took))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--size", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=2000000)
    args = parser.parse_args()
    bench = Bench(args.build.resolve(), args)
    ca, cert, key = make_authority(bench.work)
    for kind, files in (("HTTP", ()), ("TLS", (cert, key))):
        folder = bench.work / kind
        folder.mkdir()
        with store.Store(folder, *files) as server:
            server.ca = ca if files else None
            bench.compare(kind, server)
            bench.measure_rate(kind, server, args.rate)
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
