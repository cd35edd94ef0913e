"""Programs that run beside a test, and how it waits for them: a line that one says, its end, its next answer. Nobody sleeps and
looks again; what doesn't happen within DEADLINE is a Failure that says what the program said.

    daemon = Child(folder / "log")
    daemon.start([...])
    daemon.until("it is ready", lambda: "ready" in daemon.said)
"""
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import peer
from peer import Failure, need, same

DEADLINE = 60  # seconds until something that has to happen counts as not happening


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def asked_until(what, holds):
    """Asks until it holds, where no line tells when: each answer is what the next question waits for."""
    end = time.monotonic() + DEADLINE
    while not holds():
        need(time.monotonic() < end, "%s: not within %d s" % (what, DEADLINE))


class Child:
    """A program that is started as often as the test likes. What it says on stdout and stderr is in `said`, over all starts, and in a file."""

    def __init__(self, path):
        self.path = path
        self.process = None
        self.heard = []  # put together only when it is asked for: who talks much would wait for its listener else
        self.begin = 0  # of what the process says that runs now
        self.listening = False
        self.changed = threading.Condition()
        self.listener = None

    def start(self, argv, stdin=subprocess.DEVNULL, env=None):
        self.join()
        self.process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
        self.begin, self.listening = len(self.said), True
        self.listener = threading.Thread(target=self.listen, args=(self.process.stdout,), daemon=True)
        self.listener.start()

    def listen(self, pipe):
        with pipe, open(self.path, "ab") as file:
            for line in pipe:
                file.write(line)
                file.flush()
                with self.changed:
                    self.heard.append(line.decode(errors="replace"))
                    self.changed.notify_all()
        with self.changed:
            self.listening = False
            self.changed.notify_all()

    def join(self):
        """Until all that it said before its end is heard."""
        if self.process:
            self.process.wait(timeout=DEADLINE)
            self.listener.join(timeout=DEADLINE)
            need(not self.listener.is_alive(), "its end was not heard after %d s" % DEADLINE)

    def runs(self):
        return self.process is not None and self.process.poll() is None

    @property
    def said(self):
        with self.changed:
            self.heard = ["".join(self.heard)]
            return self.heard[0]

    def says(self):
        """What this process has said since it was started."""
        return self.said[self.begin:]

    def log(self):
        return self.said[-3000:]

    def until(self, what, holds, ends=True):
        """Waits for the line with which it holds. Where the program `ends` before, it never will; else it may be started again meanwhile."""
        with self.changed:
            self.changed.wait_for(lambda: holds() or (ends and not self.listening), DEADLINE)
            need(holds(), "%s: not %s; it said %s" % (
                what, "before its end" if ends and not self.listening else "within %d s" % DEADLINE, self.log()))

    def asked_until(self, what, holds):
        """As above, while it runs."""
        def one():
            need(self.runs(), "%s: not before its end; it said %s" % (what, self.log()))
            return holds()
        try:
            asked_until(what, one)
        except OSError as e:  # it has gone
            raise Failure("%s: %s; it said %s" % (what, e, self.log())) from e

    def kill(self):
        if self.runs():
            self.process.kill()
        self.join()

    def stop(self):
        """In order, by SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        self.finished("SIGTERM")

    def finished(self, what="its work"):
        """It ends by itself, and well."""
        try:
            self.join()
        except subprocess.TimeoutExpired as e:
            raise Failure("no end after %s; it said %s" % (what, self.log())) from e
        same(self.process.returncode, 0, "exit code after %s; it said %s" % (what, self.log()))


class Driver(Child, peer.Folder):
    """One of tests/interop/*_driver.c whose clients send, with its state in a folder of its own, which stays when a test fails."""

    def __init__(self, args, prefix, *options):
        self.args = args
        self.rng = random.Random(args.seed)
        peer.Folder.__init__(self, prefix)
        self.state = self.folder / "state"
        self.options = options
        self.port = 0
        Child.__init__(self, self.folder / "log")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *how):
        self.kill()
        peer.Folder.__exit__(self, *how)

    def starts(self):
        return self.said.count("port ")

    def kill_while(self, senders, seconds):
        """Threads send meanwhile; each kill -9 comes at some instant within so many seconds of the start before."""
        for sender in senders:
            sender.start()
        for _ in range(self.args.kills):
            time.sleep(self.rng.random() * seconds)  # the instant of a kill is what is drawn
            self.kill()
            self.start()
        for sender in senders:
            sender.join()
            need(not sender.error, str(sender.error))

    def start(self):
        super().start([self.args.driver, "state=%s" % self.state, "port=%d" % self.port, *self.options])
        self.until("it listens", lambda: self.says().startswith("port "))
        self.port = int(self.says().split()[1])

    def stop(self):
        super().stop()
        need(self.said.endswith("\nstopped\n"), "it didn't say that it stopped: %s" % self.log())

    def rows(self):
        text = self.state.read_text() if self.state.exists() else "\n\n"
        return text.split("\n\n", 1)[1].splitlines()


class Mosquitto(Child):
    """A broker, with its state in a folder of the test."""

    def __init__(self, folder):
        super().__init__(folder / "broker.log")

    def start(self, config):
        program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
        need(program, "mosquitto is not installed: scripts/deps/debian test")
        super().start([program, "-c", str(config), "-v"])
        self.until("the broker listens", lambda: "running\n" in self.says())


class Broker(Mosquitto):
    """One that is there, in a folder of its own, and a publisher at QoS 2."""

    def __init__(self):
        self.port, self.folder = free_port(), Path(tempfile.mkdtemp(prefix="tarn-broker-"))
        super().__init__(self.folder)
        config = self.folder / "conf"
        config.write_text("listener %d 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 20\n" % self.port)
        self.publisher = None
        self.start(config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.publisher and self.publisher.poll() is None:
            self.publisher.kill()
            self.publisher.wait()
        self.kill()
        shutil.rmtree(self.folder)

    def publish(self, topic, texts):
        if not self.publisher:
            self.until("the daemon subscribes", lambda: "Sending SUBACK to " in self.said)
            self.publisher = subprocess.Popen(
                ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(self.port), "-q", "2", "-l", "-t", topic], stdin=subprocess.PIPE)
        self.publisher.stdin.write("".join(text + "\n" for text in texts).encode())
        self.publisher.stdin.flush()

    def end(self):
        """All that was published is the broker's."""
        self.publisher.stdin.close()
        same(self.publisher.wait(timeout=DEADLINE), 0, "exit code of mosquitto_pub")


class TarnRun(Child, peer.Folder):
    """`tarn run` in a folder of its own, which stays when a test fails."""

    def __init__(self, prefix, warehouse="warehouse"):
        peer.Folder.__init__(self, prefix)
        self.config = self.folder / "config.lua"
        self.warehouse = self.folder / warehouse
        Child.__init__(self, self.folder / "log")

    def __exit__(self, *how):
        self.kill()
        peer.Folder.__exit__(self, *how)

    def argv(self, *options):
        return [str(peer.TARN), "run", str(self.config), *options]

    def start(self, stdin=subprocess.DEVNULL, env=None):
        super().start(self.argv(), stdin, env)

    def once(self, data=b"", code=0):
        """`tarn run --once` on what is there, and `data` on standard input; gives what it says."""
        done = subprocess.run(self.argv("--once"), input=data, capture_output=True, timeout=2 * DEADLINE, check=False)
        said = done.stderr.decode(errors="replace")
        same(done.returncode, code, "exit code with --once; it said %s" % said[-3000:])
        return said

    def is_ready(self):
        """Of starts and reloads, as it says them."""
        said = self.says()
        return said.rfind('text="ready"') > max(said.rfind("begins: "), said.rfind("no rows are taken until"))

    def wait_until_ready(self):
        self.until("it is ready", self.is_ready)

    def get_ready(self):
        """Starts, until it takes rows."""
        self.start()
        self.wait_until_ready()
