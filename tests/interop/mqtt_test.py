"""A subscriber's session (tests/interop/mqtt_driver.c) against a broker that others wrote: mosquitto, fed by mosquitto_pub.

    mqtt_test.py [--seed S] [--kills N] [--driver PROGRAM] [NAME...]

The broker is started by the test, on a free port of the loopback, with its state in a folder of the test.
"""
import argparse
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import runner
from peer import need

DEADLINE = 60  # seconds until something that has to happen counts as not happening


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE
    while not condition():
        need(time.monotonic() < end, "%s: not within %d s" % (what, DEADLINE))
        time.sleep(0.01)


class Bench:
    """A broker in a folder of its own."""

    def __init__(self, args, settings=""):
        self.args = args
        self.rng = random.Random(args.seed)
        self.folder = Path(tempfile.mkdtemp(prefix="tarn-mqtt-"))
        self.folder.chmod(0o777)  # the broker gives up its rights where it starts as root
        self.port = free_port()
        self.state = self.folder / "state"
        self.log = self.folder / "driver.log"
        config = self.folder / "mosquitto.conf"
        config.write_text("listener %d 127.0.0.1\npersistence true\npersistence_location %s/\nmax_queued_messages 0\n%s\n" % (
            self.port, self.folder, settings or "allow_anonymous true"))
        self.config = config
        self.broker = self.driver = None
        self.subscribed = 0  # times that `ready` saw it
        self.start_broker()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in (self.driver, self.broker):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        if kind is None:
            shutil.rmtree(self.folder)

    def start_broker(self):
        program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
        need(program, "mosquitto is not installed: scripts/deps/debian test")
        with open(self.folder / "broker.log", "ab") as log:
            self.broker = subprocess.Popen([program, "-c", str(self.config), "-v"], stdout=log, stderr=log)
        wait_for(self.listens, "the broker listens")

    def listens(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def stop_broker(self):
        self.broker.terminate()  # in order: it writes down what it knows
        self.broker.wait()

    def start(self, *options):
        with open(self.log, "ab") as log:
            self.driver = subprocess.Popen([self.args.driver, "port=%d" % self.port, "state=%s" % self.state, *options],
                                           stdout=log, stderr=log)
        return self.driver

    def kill(self):
        self.driver.kill()
        self.driver.wait()

    def said(self):
        return self.log.read_text() if self.log.exists() else ""

    def publish(self, lines, topic="plant/1/data", qos=2, *options):
        """Each line a message; returns when the broker has them."""
        done = subprocess.run(["mosquitto_pub", "-p", str(self.port), "-t", topic, "-q", str(qos), "-l", *options],
                              input="".join(line + "\n" for line in lines), text=True, capture_output=True, timeout=DEADLINE)
        need(done.returncode == 0, "mosquitto_pub: " + done.stderr)

    def rows(self):
        lines = self.state.read_text().splitlines() if self.state.exists() else [""]
        return lines[1:]

    def ready(self):
        self.subscribed += 1
        wait_for(lambda: self.said().count("subscribed 0:") >= self.subscribed or self.driver.poll() is not None, "the driver is subscribed")

    def finished(self):
        need(self.driver.wait(timeout=DEADLINE) == 0, "the driver: " + self.said()[-500:])


def sent_and_kept(bench, count, qos, *options):
    lines = ["m%d" % i for i in range(count)]
    bench.start("filter=plant/+/data:%d" % qos, "stop=%d" % count, *options)
    bench.ready()
    bench.publish(lines, qos=qos)
    bench.finished()
    need(bench.rows() == ["%s plant|1|data %d" % (line, qos) for line in lines], "%d rows, sent %d" % (len(bench.rows()), count))


def test_each_version_and_qos_in_order(args):
    for version, spoken in (("3", "version=4"), ("5", "version=5"), ("any", "version=5")):
        for qos in (0, 1, 2):
            with Bench(args) as bench:
                sent_and_kept(bench, 500, qos, "version=" + version)
                need("connected %s resumed=0 stranger=0" % spoken in bench.said(), bench.said())


def test_killed_and_started_again(args):
    """QoS 2 exactly once and QoS 1 at least once, with kill -9 at random instants while messages come."""
    for version in ("3", "5"):
        with Bench(args) as bench:
            options = ["filter=exact/#:2", "filter=least/#:1", "version=" + version, "commit=7"]
            bench.start(*options)
            bench.ready()
            sent = Counter()
            for i in range(args.kills):
                time.sleep(bench.rng.random() * 0.05)
                for topic, qos in (("exact/a", 2), ("least/a", 1)):
                    lines = ["%s-%d-%d" % (topic, i, n) for n in range(bench.rng.randrange(120))]
                    bench.publish(lines, topic, qos)
                    sent.update(lines)
                if bench.rng.random() < 0.7:
                    bench.kill()
                    bench.start(*options)
            wait_for(lambda: set(sent) <= {row.split()[0] for row in bench.rows()}, "all messages are kept")
            bench.kill()
            got = Counter(row.split()[0] for row in bench.rows())
            need(set(got) == set(sent), "rows that nobody sent")
            twice = [line for line, count in got.items() if count > 1 and line.startswith("exact")]
            need(not twice, "QoS 2 twice: %s" % twice[:5])


def test_same_payloads_killed(args):
    """Messages that can't be told apart: only their number is right or wrong."""
    with Bench(args) as bench:
        options = ["filter=plant/#:2", "commit=5"]
        bench.start(*options)
        bench.ready()
        count = 0
        for _ in range(args.kills):
            burst = bench.rng.randrange(100)
            bench.publish(["on"] * burst)
            count += burst
            bench.kill()
            bench.start(*options)
        wait_for(lambda: len(bench.rows()) >= count, "%d messages are kept" % count)
        bench.kill()
        bench.start("stop=%d" % count, *options)
        bench.finished()
        need(len(bench.rows()) == count, "%d rows of %d messages" % (len(bench.rows()), count))


def test_a_broker_that_restarts(args):
    """It keeps sessions and messages over a restart in order; the subscriber comes back by itself, and nothing is lost.

    Exactly once can't be asked for: mosquitto 2.0.11 then sends messages again that it had released, which the standard forbids.
    """
    for version in ("3", "5"):
        with Bench(args) as bench:
            lines = ["m%d" % i for i in range(900)]
            bench.start("filter=plant/+/data", "version=" + version, "commit=15")
            bench.ready()
            for part in range(3):
                bench.publish(lines[part * 300:part * 300 + 300])
                bench.stop_broker()
                bench.start_broker()
            wait_for(lambda: set(lines) <= {row.split()[0] for row in bench.rows()}, "all messages are kept")
            need({row.split()[0] for row in bench.rows()} == set(lines), "rows that nobody sent")
            need("resumed=1" in bench.said(), bench.said())
            need("no answer" not in bench.said(), bench.said())


def test_a_broker_that_forgets(args):
    """Its state is deleted: the session is a new one, and ids begin at 1 again."""
    with Bench(args) as bench:
        bench.start("filter=plant/+/data", "stop=90", "commit=15")
        bench.ready()
        for part in range(3):
            lines = ["p%d-%d" % (part, i) for i in range(30)]
            bench.publish(lines)
            wait_for(lambda: len(bench.rows()) == part * 30 + 30, "the part is kept")
            if part < 2:
                bench.broker.kill()
                bench.broker.wait()
                for path in bench.folder.glob("mosquitto.db*"):
                    path.unlink()
                bench.start_broker()
                bench.ready()
        bench.finished()
        need(bench.said().count("resumed=0") == 3, bench.said())


def test_a_slow_subscriber(args):
    """Rows are taken slower than they come: the broker keeps the rest. mosquitto 2.0.11 has more in flight than it is asked to; what is
    too much comes again on further connections, in order."""
    for version in ("3", "5"):
        with Bench(args) as bench:
            sent_and_kept(bench, 600, 2, "take=300", "keepalive=1", "version=" + version)
            need("no answer" not in bench.said(), bench.said())


def test_long_messages(args):
    """What doesn't fit is passed over, and what follows isn't harmed."""
    for version in ("3", "5"):
        with Bench(args) as bench:
            sizes = [10, 1000, 1001, 1002, 1003, 1004, 1024, 5000, 100000, 1, 1025]
            bench.start("filter=plant/+/data", "version=" + version, "input=1024", "stop=%d" % len(sizes))
            bench.ready()
            for size in sizes:
                bench.publish(["x" * size])
            bench.finished()
            got = [row.split()[0] for row in bench.rows()]
            head = 16 if version == "3" else 17  # topic with its size, packet id, properties
            for row, size in zip(got, sizes):
                whole = size + head + (2 if size + head < 128 else 3) <= 1024
                text = "x" * size if whole else "cut:%d" % (size + head + (3 if size + head < 16384 else 4))
                need(row == text, "%d bytes came as %s" % (size, row[:20]))
            need(len(got) == len(sizes), "%d of %d" % (len(got), len(sizes)))


def test_retained_messages_and_leaving(args):
    with Bench(args) as bench:
        bench.publish(["kept"], "plant/1/data", 1, "-r")
        bench.start("filter=plant/+/data", "filter=other/#", "version=5", "stop=2")
        bench.ready()
        bench.publish(["o"], "other/x")
        bench.finished()
        need(sorted(bench.rows()) == ["kept plant|1|data 1 retain", "o other|x 2"], str(bench.rows()))
        bench.start("filter=plant/+/data", "leave=other/#", "version=5", "stop=3")
        wait_for(lambda: "left 0: 0" in bench.said(), "the filter is left")
        bench.publish(["not this"], "other/x")
        bench.publish(["this"])
        bench.finished()
        need(bench.rows()[2:] == ["this plant|1|data 2"], str(bench.rows()))


def test_refusals_say_why(args):
    for version in ("3", "5"):
        with Bench(args, "allow_anonymous false\n") as bench:
            bench.start("filter=a", "version=" + version, "user=u", "password=p")
            wait_for(lambda: "refuses the connection" in bench.said(), "a refusal")
            need("not authorized (0x87)" in bench.said(), bench.said())
    with Bench(args, "allow_anonymous true\nacl_file /dev/null\n") as bench:
        bench.start("filter=secret/#", "version=5")
        bench.ready()
        need("subscribed 0:" in bench.said(), bench.said())


def test_two_with_one_client_id(args):
    """Each throws the other out; when the other is gone, messages come again."""
    with Bench(args) as bench:
        bench.start("filter=a", "version=5", "stop=1")
        bench.ready()
        other = subprocess.Popen(["mosquitto_sub", "-p", str(bench.port), "-t", "b", "-i", "tarn", "-V", "5"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: "lost" in bench.said(), "the other throws it out")
        finally:
            other.kill()
            other.wait()
        wait_for(lambda: bench.said().count("subscribed") > bench.said().count("lost"), "it is back")
        bench.publish(["still here"], "a")
        bench.finished()
        need(bench.rows() == ["still here a 2"], str(bench.rows()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--driver", default="build/host/tests/interop/mqtt_driver")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.driver = str(Path(args.driver).resolve())
    return runner.run_tests(runner.tests_of(globals()), args.names, lambda test: test(args))


if __name__ == "__main__":
    raise SystemExit(main())
