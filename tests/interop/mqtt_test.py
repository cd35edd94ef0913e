"""The MQTT source (tests/interop/mqtt_driver.c) against a broker that others wrote: mosquitto, fed by mosquitto_pub.

    mqtt_test.py [--seed S] [--kills N] [--driver PROGRAM] [NAME...]

The broker is started by the test, on a free port of the loopback, with its state in a folder of the test.
"""
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import runner
from child import DEADLINE, Child, Mosquitto, free_port
from peer import need


class Bench:
    """A broker in a folder of its own."""

    def __init__(self, args, settings=""):
        self.args = args
        self.rng = random.Random(args.seed)
        self.folder = Path(tempfile.mkdtemp(prefix="tarn-mqtt-"))
        self.folder.chmod(0o777)  # the broker gives up its rights where it starts as root
        self.port = free_port()
        self.state = self.folder / "state"
        config = self.folder / "mosquitto.conf"
        config.write_text("listener %d 127.0.0.1\npersistence true\npersistence_location %s/\nmax_queued_messages 0\n%s\n" % (
            self.port, self.folder, settings or "allow_anonymous true"))
        self.config = config
        self.broker, self.driver = Mosquitto(self.folder), Child(self.folder / "driver.log")
        self.subscribed = 0  # times that `ready` waited for
        self.start_broker()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.driver.kill()
        self.broker.kill()
        if kind is None:
            shutil.rmtree(self.folder)

    def start_broker(self):
        self.broker.start(self.config)

    def start(self, *options):
        self.driver.start([self.args.driver, "port=%d" % self.port, "state=%s" % self.state, *options])

    def kill(self):
        self.driver.kill()

    def said(self):
        return self.driver.said

    def until(self, what, holds):
        """It says what it keeps, so that this is heard, too."""
        self.driver.until(what, holds)

    def publish(self, lines, topic="plant/1/data", qos=2, *options):
        """Each line a message; returns when the broker has them."""
        done = subprocess.run(["mosquitto_pub", "-p", str(self.port), "-t", topic, "-q", str(qos), "-l", *options],
                              input="".join(line + "\n" for line in lines), text=True, capture_output=True, timeout=DEADLINE)
        need(done.returncode == 0, "mosquitto_pub: " + done.stderr)

    def rows(self):
        lines = self.state.read_text().splitlines() if self.state.exists() else [""]
        return lines[3:]

    def ready(self):
        self.subscribed += 1
        self.until("the driver is subscribed", lambda: self.said().count("ready\n") >= self.subscribed)

    def finished(self):
        self.driver.finished()


def sent_and_kept(bench, count, qos, *options):
    lines = ["m%d" % i for i in range(count)]
    bench.start("filter=plant/+/data:%d" % qos, "stop=%d" % count, *options)
    bench.ready()
    bench.publish(lines, qos=qos)
    bench.finished()
    need(bench.rows() == ["%s plant|1|data d.t0" % line for line in lines], "%d rows, sent %d" % (len(bench.rows()), count))


def test_each_version_and_qos_in_order(args):
    for version, spoken in (("3", "version=3"), ("5", "version=5"), ("any", "version=5")):
        for qos in (0, 1, 2):
            with Bench(args) as bench:
                sent_and_kept(bench, 500, qos, "version=" + version)
                need("%s session=new" % spoken in bench.said(), bench.said())


def test_killed_and_started_again(args):
    """QoS 2 exactly once and QoS 1 at least once, with kill -9 at random instants while messages come."""
    for version in ("3", "5"):
        with Bench(args) as bench:
            options = ["filter=exact/#:2", "filter=least/#:1", "version=" + version, "commit=7"]
            bench.start(*options)
            bench.ready()
            sent = Counter()
            for i in range(args.kills):
                time.sleep(bench.rng.random() * 0.05)  # the instant of a kill is what is drawn
                for topic, qos in (("exact/a", 2), ("least/a", 1)):
                    lines = ["%s-%d-%d" % (topic, i, n) for n in range(bench.rng.randrange(120))]
                    bench.publish(lines, topic, qos)
                    sent.update(lines)
                if bench.rng.random() < 0.7:
                    bench.kill()
                    bench.start(*options)
            bench.until("all messages are kept", lambda: set(sent) <= {row.split()[0] for row in bench.rows()})
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
        bench.until("%d messages are kept" % count, lambda: len(bench.rows()) >= count)
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
                bench.broker.stop()  # in order: it writes down what it knows
                bench.start_broker()
            bench.until("all messages are kept", lambda: set(lines) <= {row.split()[0] for row in bench.rows()})
            need({row.split()[0] for row in bench.rows()} == set(lines), "rows that nobody sent")
            need("session=old" in bench.said(), bench.said())
            need("no answer" not in bench.said(), bench.said())


def test_a_broker_that_forgets(args):
    """Its state is deleted: the session is a new one, and ids begin at 1 again."""
    with Bench(args) as bench:
        bench.start("filter=plant/+/data", "stop=90", "commit=15")
        bench.ready()
        for part in range(3):
            lines = ["p%d-%d" % (part, i) for i in range(30)]
            bench.publish(lines)
            bench.until("the part is kept", lambda: len(bench.rows()) == part * 30 + 30)
            if part < 2:
                bench.broker.kill()
                for path in bench.folder.glob("mosquitto.db*"):
                    path.unlink()
                bench.start_broker()
                bench.ready()
        bench.finished()
        need(bench.said().count("session=new") == 3, bench.said())


def test_a_slow_subscriber(args):
    """Rows are taken slower than they come: the broker keeps the rest. mosquitto 2.0.11 has more in flight than it is asked to; what is
    too much comes again on further connections, in order."""
    for version in ("3", "5"):
        with Bench(args) as bench:
            sent_and_kept(bench, 600, 2, "take=300", "keepalive=1", "version=" + version)
            need("no answer" not in bench.said(), bench.said())


def test_long_messages(args):
    """What doesn't fit the buffer is cut and said, what the hub doesn't take, too; and what follows isn't harmed."""
    for version in ("3", "5"):
        with Bench(args) as bench:
            sizes = [10, 1000, 1001, 1002, 1003, 1004, 1024, 5000, 100000, 1025, 1]
            head = 16 if version == "3" else 17  # topic with its size, packet id, properties
            want = ["x" * size if size + head + (2 if size + head < 128 else 3) <= 1024 else "cut:%d" % size for size in sizes]
            bench.start("filter=plant/+/data", "version=" + version, "input=1024", "stop=%d" % len(sizes))
            bench.ready()
            for size in sizes:
                bench.publish(["x" * size])
            bench.finished()
            need([row.split()[0] for row in bench.rows()] == want, str([row[-40:] for row in bench.rows()]))
            need("too_long=1 topic=\"plant/1/data\"" in bench.said(), bench.said())
    with Bench(args) as bench:
        bench.start("filter=plant/+/data", "stop=3")
        bench.ready()
        bench.publish(["x" * 8192, "y" * 8193, "z"])
        bench.finished()
        need([row.split()[0] for row in bench.rows()] == ["x" * 8192, "cut:8193", "z"], "the hub's bound")


def test_the_filter_says_where_to(args):
    with Bench(args) as bench:
        bench.start("filter=plant/+/alarm:1", "filter=plant/+/data:2", "filter=x/#", "version=5", "stop=3")
        bench.ready()
        for topic in ("plant/1/alarm", "plant/1/data", "x"):
            bench.publish(["m"], topic)
        bench.finished()
        need(bench.rows() == ["m plant|1|alarm d.t0", "m plant|1|data d.t1", "m x d.t2"], str(bench.rows()))


def test_retained_messages_and_leaving(args):
    with Bench(args) as bench:
        bench.publish(["kept"], "plant/1/data", 1, "-r")
        bench.start("filter=plant/+/data", "filter=other/#", "version=5", "stop=2")
        bench.ready()
        bench.publish(["o"], "other/x")
        bench.finished()
        need(sorted(bench.rows()) == ["kept plant|1|data d.t0", "o other|x d.t1"], str(bench.rows()))
        bench.start("filter=plant/+/data", "version=5", "stop=3")
        bench.until("the filter is left", lambda: 'left="other/#" text="success"' in bench.said())
        bench.publish(["not this"], "other/x")
        bench.publish(["this"])
        bench.finished()
        need(bench.rows()[2:] == ["this plant|1|data d.t0"], str(bench.rows()))


def test_refusals_say_why(args):
    for version in ("3", "5"):
        with Bench(args, "allow_anonymous false\n") as bench:
            bench.start("filter=a", "version=" + version, "user=u", "password=p")
            bench.until("a refusal", lambda: "refuses the connection" in bench.said())
            need("not authorized (0x87)" in bench.said(), bench.said())
    with Bench(args, "allow_anonymous true\nacl_file /dev/null\n") as bench:
        bench.start("filter=secret/#", "version=5")
        bench.ready()


def test_two_with_one_client_id(args):
    """Each throws the other out; when the other is gone, messages come again."""
    with Bench(args) as bench:
        bench.start("filter=a", "version=5", "stop=1")
        bench.ready()
        other = subprocess.Popen(["mosquitto_sub", "-p", str(bench.port), "-t", "b", "-i", "tarn", "-V", "5"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            bench.until("the other throws it out", lambda: "lost" in bench.said())
        finally:
            other.kill()
            other.wait()
        bench.until("it is back", lambda: bench.said().count("ready") > bench.said().count("lost"))
        bench.publish(["still here"], "a")
        bench.finished()
        need(bench.rows() == ["still here a d.t0"], str(bench.rows()))


def certificates(folder):
    """An authority, a broker's and a client's certificate, and an authority that nobody asked."""
    def openssl(*options):
        done = subprocess.run(["openssl", *options], cwd=folder, text=True, capture_output=True)
        need(done.returncode == 0, "openssl: " + done.stderr)

    folder.mkdir()
    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for name in ("ca", "other"):
        openssl(*new, "-x509", "-days", "30", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    for name in ("broker", "client"):
        openssl(*new, "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
        openssl("x509", "-req", "-days", "30", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-extfile", "names", "-out", name + ".pem")
    for path in folder.iterdir():
        path.chmod(0o644)  # for the broker's user


class SecureBench(Bench):
    """It has a second listener, with TLS."""

    def __init__(self, args, settings=""):
        self.tls_port = free_port()
        self.certificates = Path(tempfile.mkdtemp(prefix="tarn-mqtt-"))
        self.certificates.chmod(0o755)
        certificates(self.certificates / "c")
        super().__init__(args, "allow_anonymous true\nlistener %d 127.0.0.1\nallow_anonymous true\ncertfile %s\nkeyfile %s\n%s" % (
            self.tls_port, self.pem("broker"), self.pem("broker", "key"), settings.replace("CA", str(self.pem("ca")))))

    def __exit__(self, kind, *rest):
        super().__exit__(kind, *rest)
        shutil.rmtree(self.certificates)

    def pem(self, name, kind="pem"):
        return self.certificates / "c" / ("%s.%s" % (name, kind))

    def start(self, *options):
        return super().start("port=%d" % self.tls_port, *options)


def test_killed_over_tls(args):
    """As without TLS, with the broker's certificate checked by its authority, or pinned."""
    for trust in ("ca", "pinned"):
        with SecureBench(args) as bench:
            options = ["filter=exact/#:2", "commit=7", "%s=%s" % (trust, bench.pem("ca" if trust == "ca" else "broker"))]
            bench.start(*options)
            bench.ready()
            sent = []
            for i in range(args.kills // 2):
                time.sleep(bench.rng.random() * 0.1)  # the instant of a kill is what is drawn
                lines = ["%d-%d" % (i, n) for n in range(bench.rng.randrange(120))]
                bench.publish(lines, "exact/a")
                sent += lines
                if bench.rng.random() < 0.5:
                    bench.kill()
                    bench.start(*options)
            bench.until("all messages are kept", lambda: len(bench.rows()) >= len(sent))
            bench.kill()
            bench.start("stop=%d" % len(sent), *options)
            bench.finished()
            need([row.split()[0] for row in bench.rows()] == sent, "%d rows, sent %d" % (len(bench.rows()), len(sent)))


def test_tls_is_refused_with_a_reason(args):
    with SecureBench(args, "cafile CA\nrequire_certificate true\n") as bench:
        bench.start("filter=a", "ca=%s" % bench.pem("other"))
        bench.until("an error that somebody must see", lambda: "error mqtt" in bench.said())
        need("is signed by 'CN=ca', which is not in the CA file" in bench.said(), bench.said())
        bench.kill()
        bench.start("filter=a", "ca=%s" % bench.pem("ca"))  # shows no certificate
        bench.until("the broker refuses", lambda: bench.said().count("warn mqtt") > 1)
        need("ready" not in bench.said(), bench.said())
        bench.kill()
        bench.start("filter=a", "ca=%s" % bench.pem("ca"), "certificate=%s" % bench.pem("client"), "key=%s" % bench.pem("client", "key"),
                    "stop=1")
        bench.ready()
        bench.publish(["in"], "a")
        bench.finished()
        need(bench.rows() == ["in a d.t0"], str(bench.rows()))

if __name__ == "__main__":
    raise SystemExit(runner.run_given(globals(), kills=20, driver="build/host/tests/interop/mqtt_driver"))
