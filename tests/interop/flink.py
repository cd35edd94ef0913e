"""Real Flink as a peer: one cluster for a program's tests, which starts with the first of them.

    at = flink.Catalog(where, options)
    at.rows("SELECT * FROM %s" % at.table)
"""
import atexit
import functools
import itertools
import json

import peer
from fixtures_test import by_key
from peer import same

FLINK = peer.ROOT / "tests/interop/flink/flink"
NAMES = itertools.count()


@functools.cache
def cluster():
    made = peer.CoProcess([str(FLINK)])
    atexit.register(made.close)
    return made


class Catalog:
    """A warehouse as Flink sees it: a folder, or `s3://...` with the words of store.options."""

    def __init__(self, where, options=()):
        self.name = "c%d" % next(NAMES)
        cluster().run("catalog", self.name, where, *options[1::2]).ok("catalog")

    @property
    def table(self):
        return "%s.%s" % (self.name, peer.TABLE)

    def run(self, statement):
        return cluster().run("sql", statement)

    def rows(self, statement):
        return self.run(statement).ok(statement)

    def read(self, **options):
        """All of the table, ordered; options as Paimon has them, with _ for - and __ for a dot."""
        return peer.ordered(self.rows("SELECT * FROM %s%s" % (self.table, hint(options))))

    def follow(self, first=1):
        """A stream of the changes from this snapshot on, which the caller ends by `followed`."""
        name = "f%d" % next(NAMES)
        statement = "SELECT * FROM %s%s" % (self.table, hint(
            {"scan.mode": "from-snapshot", "scan.snapshot-id": first, "continuous.discovery-interval": "100ms"}))
        cluster().run("follow", name, statement).ok("follow")
        return name


def followed(name, last):
    """Up to the change `last`, a line {"kind":...,"row":...}, behind which there is none."""
    return cluster().run("until", name, last).ok("changes up to %s" % last)


def hint(options):
    given = ",".join("'%s'='%s'" % (k.replace("__", ".").replace("_", "-"), v) for k, v in options.items())
    return " /*+ OPTIONS(%s) */" % given if given else ""


def changes_by_tarn(tarn, *words):
    """As Flink tells them."""
    out = []
    for line in tarn.run("tail", peer.TABLE, "--format", "json", *words).ok("tail"):
        values = dict(peer.members(line))
        out.append('{"kind":%s,"row":%s}' % (values["kind"], values["row"]))
    return out


def check_changes(got, want, key):
    """The same changes of each key, in their order."""
    same(by_key(got, key), by_key(want, key), "changes by Flink")


def folded(changes, key):
    """The rows that the changes lead to."""
    rows = {}
    for line in changes:
        values = dict(peer.members(line))
        at = peer.project(values["row"], key)
        rows.pop(at, None)
        if json.loads(values["kind"]) in ("+I", "+U"):
            rows[at] = values["row"]
    return peer.ordered(rows.values())
