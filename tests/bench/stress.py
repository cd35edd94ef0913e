"""A source that offers three times what the daemon takes, for as long as it is told to, and a picture of what that does.

    stress.py OUT_FOLDER [--seconds S] [--seed S]

One table whose 100,000 keys are added to, over HTTP, on one core. First the senders send as fast as they are answered: that is what it
takes. Then each keeps a schedule of three times its part of that, and is late by what it is slowed down.

What must hold: no row is lost and none is there twice; runs never pass the stop trigger by more than 1; parts of the memory stay what
they are, and so does what the process has of its own; over the second half (the last ten minutes, when that is less) neither runs nor
the delay of an answer grow: the line through them rises by at most 5% of their mean.

Prints what it saw, writes stress.csv (a line a second) and stress.png, and ends with 1 when something did not hold.
"""
import argparse
import csv
import http.client
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "interop"))
import peer
from run_test import Daemon

TABLE = "db.t"
KEYS = 100000
SENDERS = 4
BATCH = 250  # rows of a request
BODIES = 200  # that a sender has ready
CALIBRATION = 20  # seconds
TIMES = 3
GROWS_AT_MOST = 0.05
WINDOW = 600  # seconds at the end that may not grow
BOARD_MEMORY = 16 << 20
SPEC = """{ fields = { "sensor INT NOT NULL", "n BIGINT", "temp DOUBLE", "unit STRING" }, primary_key = { "sensor" },
    options = { bucket = 1, ["merge-engine"] = "aggregation", ["fields.n.aggregate-function"] = "sum" },
    commit = "2s" }"""


class Sender(threading.Thread):
    """Repeats its bodies, each once acknowledged, by its schedule: requests a second, or as fast as it is answered."""

    def __init__(self, port, number, seed):
        super().__init__(daemon=True)
        rng = random.Random("%d %d" % (seed, number))
        self.port, self.number = port, number
        self.bodies = ["".join('{"sensor":%d,"n":1,"temp":%.1f,"unit":"C"}\n' % (rng.randrange(KEYS), rng.uniform(-20, 60)) for _ in range(BATCH))
                       for _ in range(BODIES)]
        self.rate = None
        self.begin, self.offered = 0.0, 0  # of the schedule
        self.sent = 0
        self.delays = []  # seconds, of those answered since they were asked for
        self.error = None
        self.ends = threading.Event()

    def schedule(self, rate):
        self.rate, self.begin, self.offered = rate, time.monotonic(), self.sent

    def due(self):
        """Requests that should be sent by now."""
        return self.offered + int((time.monotonic() - self.begin) * self.rate)

    def run(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            while not self.ends.is_set():
                early = (self.sent - self.offered) / self.rate - (time.monotonic() - self.begin) if self.rate else 0
                if early <= 0 or not self.ends.wait(early):
                    self.send(connection)
        except Exception as e:  # the main thread tells
            self.error = e

    def send(self, connection):
        begin = time.monotonic()
        while True:
            connection.request("POST", "/tables/%s/rows" % TABLE, self.bodies[self.sent % BODIES], {
                "Content-Type": "application/json", "X-Sender": "sender-%d" % self.number, "X-Sequence": str(self.sent + 1)})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status == 200:
                break
            peer.need(answer.status == 503, "status %d: %s" % (answer.status, text))
        self.sent += 1
        self.delays.append(time.monotonic() - begin)


def take_delays(senders):
    delays = []
    for sender in senders:
        if sender.error:
            raise sender.error
        delays, sender.delays = delays + sender.delays, []
    return sorted(delays)


def figures(daemon):
    """{name or name{label}: value} of /metrics."""
    status, text = daemon.ask("GET", "/metrics")
    peer.same(status, 200, "status of /metrics")
    return {m[1]: float(m[2]) for m in re.finditer(r"^([a-z]\S*) (\S+)$", text, re.M)}


def of_table(seen, name):
    return next(value for key, value in seen.items() if key.startswith(name + "{"))


def own_memory(pid):
    return int(re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/%d/status" % pid).read_text())[1]) << 10


def sample(daemon, senders, second):
    delays = take_delays(senders)
    seen = figures(daemon)
    return {
        "second": second,
        "rows": sum(s.sent for s in senders) * BATCH,
        "late": sum(s.due() - s.sent for s in senders) * BATCH,
        "p50_ms": 1000 * delays[len(delays) // 2] if delays else None,
        "p99_ms": 1000 * delays[len(delays) * 99 // 100] if delays else None,
        "runs": of_table(seen, "tarn_table_sorted_runs"),
        "stop": of_table(seen, "tarn_table_stop_sorted_runs"),
        "backlog_bytes": of_table(seen, "tarn_table_level0_bytes"),
        "journal_bytes": seen["tarn_journal_bytes"],
        "own_bytes": own_memory(daemon.process.pid),
    }


def tenths(samples, name, fold):
    """The means of ten seconds each, or what `fold` makes of them: a line through single ones would follow each round."""
    values = [[s[name] for s in samples[i:i + 10] if s[name] is not None] for i in range(0, len(samples) - 9, 10)]
    return [fold(v) for v in values if v]


def growth(values):
    """By how much of their mean the least-squares line through them rises from end to end."""
    n, mean = len(values), sum(values) / len(values)
    middle = (n - 1) / 2
    slope = sum((i - middle) * (v - mean) for i, v in enumerate(values)) / sum((i - middle) ** 2 for i in range(n))
    return slope * (n - 1) / mean if mean else 0.0


PICTURE = """
set terminal png size 1000, 1100
set output 'stress.png'
set datafile separator ','
set multiplot layout 4, 1
set yrange [0:]
set offsets 0, 0, graph 0.05, 0
set key outside top horizontal
set ylabel 'sorted runs'; plot %s
set ylabel 'backlog, MB'; plot %s
set ylabel 'delay of an answer, ms'; plot %s
set ylabel 'own memory, MB'; set xlabel 'seconds'; plot %s
"""
LINES = ((("runs", 1), ("stop", 1)), (("backlog_bytes", 1e6), ("journal_bytes", 1e6)), (("p50_ms", 1), ("p99_ms", 1)), (("own_bytes", 1e6),))


def draw(samples, out):
    with (out / "stress.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(samples[0]))
        table.writeheader()
        table.writerows(samples)
    plots = tuple(", ".join("'stress.csv' using 'second':(column('%s')/%g) with lines title '%s'" % (name, scale, name.replace("_", " "))
                            for name, scale in lines) for lines in LINES)
    subprocess.run(["gnuplot"], input=PICTURE % plots, text=True, check=True, cwd=out)
    print("drawn: %s" % (out / "stress.png"))


def judge(samples, senders, took, problems):
    half = samples[len(samples) // 2:][-WINDOW:]
    runs = growth(tenths(half, "runs", lambda v: sum(v) / len(v)))
    delay = growth(tenths(half, "p99_ms", lambda v: sorted(v)[len(v) // 2]))
    most, stop = max(s["runs"] for s in samples), samples[-1]["stop"]
    own = max(s["own_bytes"] for s in samples)
    early = max(s["own_bytes"] for s in samples[:len(samples) // 2])
    offered = sum(s.due() for s in senders) * BATCH
    sent = sum(s.sent for s in senders) * BATCH
    print("takes %.0f rows/s; %d offered, %d taken" % (took, offered, sent))
    print("runs: %d at the most, writers wait at %d; delay p99: %.1f ms in the middle" % (
        most, stop, sorted(s["p99_ms"] for s in samples if s["p99_ms"] is not None)[len(samples) // 2]))
    print("own memory: %d KiB at the most, %d in the first half" % (own >> 10, early >> 10))
    print("over the last %d s runs rise by %+.1f%%, the delay by %+.1f%%" % (len(half), 100 * runs, 100 * delay))
    for holds, what in ((stop > 0 and most <= stop + 1, "runs pass the stop trigger"), (own <= BOARD_MEMORY, "more memory than the board has"),
                        (offered >= 2 * sent, "nobody was slowed down"), (runs <= GROWS_AT_MOST, "runs grow"),
                        (delay <= GROWS_AT_MOST, "the delay grows")):
        if not holds:
            problems.append(what)


def start_on_one_core(daemon):
    """All of its threads on the first core, and this process on the others."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])
    daemon.start()
    os.sched_setaffinity(0, cores[1:] or cores)
    daemon.wait_until_ready()


def run(args, daemon):
    start_on_one_core(daemon)
    senders = [Sender(daemon.port, i, args.seed) for i in range(SENDERS)]
    for sender in senders:
        sender.start()
    time.sleep(CALIBRATION)  # what is measured is a rate
    took = sum(s.sent for s in senders) * BATCH / CALIBRATION
    for sender in senders:
        sender.schedule(TIMES * took / BATCH / SENDERS)
    take_delays(senders)
    begin = time.monotonic()
    samples = []
    while len(samples) < args.seconds:
        time.sleep(max(0.0, begin + len(samples) + 1 - time.monotonic()))  # a sample a second
        samples.append(sample(daemon, senders, len(samples) + 1))
    problems = []
    judge(samples, senders, took, problems)
    for sender in senders:
        sender.ends.set()
    for sender in senders:
        sender.join()
    daemon.stop()
    take_delays(senders)
    want = sum(s.sent for s in senders) * BATCH
    got = sum(row["n"] for row in daemon.rows(TABLE))
    print("%d rows acknowledged, %d in the table" % (want, got))
    if got != want:
        problems.append("rows are lost or there twice")
    peer.Tarn(daemon.warehouse).run("fsck", TABLE).ok("fsck")
    return samples, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with Daemon({TABLE: SPEC}) as daemon:
        samples, problems = run(args, daemon)
    draw(samples, args.out)
    print(json.dumps({"holds": not problems, "problems": problems}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
