"""Drives the three engines that must agree on a table: tarn, Java Paimon and pypaimon.

    tarn       build/host/tarn, one process a command
    Java       tests/interop/oracle, a co-process; one for each table, since official Paimon 1.3.1 caches
               compiled comparators by column types only, and then compares another table wrongly
    pypaimon   oracle_py.py in build/venv, a co-process for everything

Each answers a command with a Result. Rows are canonical JSON (see oracle/README.md), one text a row.
"""
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TARN = Path(os.environ.get("TARN", ROOT / "build/host/tarn"))
ORACLE = ROOT / "tests/interop/oracle/oracle"
ORACLE_PY = ROOT / "tests/interop/oracle/oracle_py.py"
VENV_PYTHON = ROOT / "build/venv/bin/python3"
TABLE = "db.t"
SECONDS_MAX = 300


class Failure(Exception):
    """Something that must hold does not; the text says what, for a person."""


def need(condition, what):
    if not condition:
        raise Failure(what)


def same(got, want, what):
    if got != want:
        raise Failure("%s: got %r, want %r" % (what, got, want))


class Result(NamedTuple):
    rc: int
    lines: list
    err: str

    def ok(self, what):
        """The lines; a Failure when the command did not end with 0."""
        if self.rc != 0:
            raise Failure("%s: exit code %d: %s%s" % (what, self.rc, self.err.strip(), "".join(
                "\n    " + line for line in self.lines[:10])))
        return self.lines


class Tarn:
    """The program under test."""

    def __init__(self, warehouse):
        self.warehouse = str(warehouse)

    def run(self, verb, *args, stdin=None, errors="strict"):
        """One command to its end. What it says of rows is UTF-8; `errors` is for tables whose bytes a test has changed."""
        argv = [str(TARN), verb, "--warehouse", self.warehouse, *map(str, args)]
        data = stdin.encode() if isinstance(stdin, str) else stdin
        try:
            done = subprocess.run(argv, input=data, stdin=None if data is not None else subprocess.DEVNULL,
                                  capture_output=True, timeout=SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired as e:
            raise Failure("tarn %s: no end after %d s" % (verb, SECONDS_MAX)) from e
        err = done.stderr.decode(errors="replace")
        if done.returncode < 0:
            raise Failure("%s: ended by signal %d: %s" % (shlex.join(argv), -done.returncode, err[-2000:]))
        if "Sanitizer" in err:
            raise Failure("%s: %s" % (shlex.join(argv), err[-4000:]))
        return Result(done.returncode, text_lines(done.stdout, errors), err)

    def cat(self, *args):
        return self.run("cat", TABLE, "--format", "json", *args)


class Folder:
    """A folder of its own, which stays when a test fails."""

    def __init__(self, prefix, folder=None):
        self.folder = Path(folder or tempfile.mkdtemp(prefix=prefix))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            shutil.rmtree(self.folder)


class CoProcess:
    """A peer that reads commands from a pipe and ends each answer with `#rc CODE ...`."""

    def __init__(self, argv, environment=None):
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err,
                                        env=dict(os.environ, **(environment or {})))

    def run(self, *words):
        start = self.err.seek(0, os.SEEK_END)
        watchdog = threading.Timer(SECONDS_MAX, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write((" ".join(map(quote, words)) + "\n").encode())
            self.process.stdin.flush()
            lines = []
            while True:
                line = self.process.stdout.readline()
                if not line:
                    raise Failure("peer ended in the middle of: %s\n%s" % (" ".join(map(str, words)), self.said(start)))
                if line.startswith(b"#rc "):
                    return Result(int(line.split()[1]), lines, self.said(start))
                lines.append(line.decode().rstrip("\n"))
        except BrokenPipeError as e:
            raise Failure("peer is gone: %s" % self.said(start)) from e
        finally:
            watchdog.cancel()

    def said(self, start):
        self.err.seek(start)
        return self.err.read().decode(errors="replace")

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
        self.err.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def java():
    return CoProcess([str(ORACLE), "batch", "-"], {"ORACLE_XMX": "512m"})


def pypaimon():
    return CoProcess([str(VENV_PYTHON), str(ORACLE_PY), "batch"], {"PYTHONUTF8": "1"})


def quote(word):
    """One word for both shells: Java's reads a backslash in "..." only."""
    return '"' + str(word).replace("\\", "\\\\").replace('"', '\\"') + '"'


def text_lines(data, errors="strict"):
    """Lines of UTF-8 text; only a line feed ends one."""
    text = data.decode(errors=errors)
    return text.split("\n")[:-1] if text.endswith("\n") else [x for x in text.split("\n") if x]


def ordered(lines):
    """Canonical order of rows: by their bytes."""
    return sorted(lines, key=str.encode)


def difference(want, got, name="row"):
    """What differs between two lists of lines, for people; empty when they are the same multiset."""
    missing, extra = _subtract(want, got), _subtract(got, want)
    if not missing and not extra:
        return ""
    out = ["%d %ss expected, %d came" % (len(want), name, len(got))]
    out += ["  missing " + x for x in missing[:5]] + ["  extra   " + x for x in extra[:5]]
    return "\n".join(out)


def _subtract(a, b):
    count = {}
    for x in b:
        count[x] = count.get(x, 0) + 1
    out = []
    for x in ordered(a):
        if count.get(x, 0) > 0:
            count[x] -= 1
        else:
            out.append(x)
    return out


def members(line):
    """A canonical JSON object as [(name, text of the value)], the texts untouched."""
    decode = json.JSONDecoder().raw_decode
    out, at = [], 1
    while line[at] != "}":
        if line[at] == ",":
            at += 1
        name, at = decode(line, at)
        end = decode(line, at + 1)[1]
        out.append((name, line[at + 1:end]))
        at = end
    return out


def project(line, columns):
    """The row with these columns only, in this order."""
    value = dict(members(line))
    return "{%s}" % ",".join("%s:%s" % (json.dumps(c, ensure_ascii=False), value[c]) for c in columns)
