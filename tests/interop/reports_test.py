"""What users of Paimon reported, as cases: tarn's table must be right where theirs was not, or do exactly what Paimon does.

Each case names the public report. Its steps are commits (`+I`, `-U`, `-D` with the row's values), `full` and `compact`, and
what must be read in between; a case that says so runs twice, the second time with a full compaction behind each commit.
Needs no package. usage: reports_test.py [NAME...]
"""
import json
import sys
import tempfile

import peer
from peer import Failure

WRITE_ONLY = {"write-only": "true"}
PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}
SUM = dict(AGGREGATION, **{"fields.v.aggregate-function": "sum"})
LOOKUP = {"changelog-producer": "lookup"}
LONG_MAX = 9223372036854775806


def I(*values):  # noqa: E743
    return "+I", values


def U(*values):
    return "-U", values


def D(*values):
    return "-D", values


CASES = [
    # a late row comes back once the delete that was newer is gone; a sequence group remembers no delete at all
    ("apache/paimon#5387", True, "k BIGINT,v BIGINT,seq BIGINT", "k",
     dict(PARTIAL, **WRITE_ONLY, **{"fields.seq.sequence-group": "v", "partial-update.remove-record-on-sequence-group": "seq"}),
     [[I(1, 2, 2)], [D(1, None, LONG_MAX)], {"read": []}, [I(1, 1, 1)], {"read": [(1, 1, 1)]}]),
    # what becomes of retracts depends on how they were batched, and on compaction
    ("apache/paimon#4670 i", False, "k INT,v INT", "k", AGGREGATION, [[I(1, 5)], [D(1, 5)], {"read": [(1, None)]}]),
    ("apache/paimon#4670 ii", False, "k INT,v INT", "k", AGGREGATION, [[I(1, 5)], [D(1, 5), U(1, 5)], {"read": [(1, 5)]}]),
    ("apache/paimon#4670 iii", False, "k INT,v INT", "k", SUM, [[I(1, 10)], [U(1, 5), U(1, 3)], {"read": [(1, 2)]}, "full", {"read": [(1, 2)]}]),
    ("apache/paimon#4670 iv", False, "k INT,v INT", "k", dict(SUM, **WRITE_ONLY), [[U(1, 5)], {"read": []}, [I(1, 10)], {"read": [(1, 5)]}]),
    ("apache/paimon#4670 v", False, "k INT,v INT", "k", SUM, [[U(1, 5)], "full", [I(1, 10)], {"read": [(1, 10)]}]),
    # a filter of a column that is merged runs behind the merge
    ("apache/paimon#4065", True, "k INT,v INT,d INT", "k,d", dict(SUM, partition="d"),
     [[I(1, 1, 1), I(2, 1, 1)], [I(1, 2, 1)], {"read": [(1, 3, 1)], "where": "v=3"}, {"read": [(2, 1, 1)], "where": "v=1"}]),
    # listagg as Paimon 1.3: distinct has no effect, a blank text is one
    ("apache/paimon#7652 distinct", True, "k INT,s STRING", "k",
     dict(AGGREGATION, **{"fields.s.aggregate-function": "listagg", "fields.s.distinct": "true"}),
     [[I(1, "abc,def")], [I(1, "ab,abc")], {"read": [(1, "abc,def,ab,abc")]}]),
    ("apache/paimon#7652 blank", True, "k INT,s STRING", "k", dict(AGGREGATION, **{"fields.s.aggregate-function": "listagg"}),
     [[I(1, "abc,def,asd")], [I(1, "ab,xy")], {"read": [(1, "abc,def,asd,ab,xy")]}, [I(1, "")], {"read": [(1, "abc,def,asd,ab,xy,")]}]),
    # deletes of a sequence group are taken also where no column of it is read
    ("apache/paimon#2794", False, "k INT,a INT,g INT", "k", dict(PARTIAL, **{"fields.g.sequence-group": "a"}),
     [[I(1, 10, 1)], [D(1, 10, 2)], {"read": [(1, None, 2)]}, {"read": [(1,)], "columns": "k"}, "full", {"read": [(1, None, 2)]}]),
    ("apache/paimon#2794 first", False, "k INT,a INT,g INT", "k", dict(PARTIAL, **{"fields.g.sequence-group": "a"}),
     [[D(1, 10, 2)], {"read": []}, [I(1, 11, 1)], {"read": [(1, None, 2)]}]),
    # a delete wins by its sequence, until a compaction forgets it
    ("apache/paimon#4767", False, "req STRING,ad STRING,info STRING,dt BIGINT", "req,ad", {"sequence.field": "dt"},
     [[I("a", "b", "i1", 100)], [D("a", "b", "i1", 100)], [I("a", "b", "i1", 50)], {"read": []}]),
    ("apache/paimon#4767 full", False, "req STRING,ad STRING,info STRING,dt BIGINT", "req,ad", {"sequence.field": "dt"},
     [[I("a", "b", "i1", 100)], [D("a", "b", "i1", 100)], "full", [I("a", "b", "i1", 50)], {"read": [("a", "b", "i1", 50)]}]),
    # first-row refuses deletes, or passes them over when told to
    ("apache/paimon#6718", True, "a INT,b INT", "a", {"merge-engine": "first-row"},
     [[I(1, 1), I(2, 2)], {"refused": [D(1, 1)], "words": ("first-row", "ignore-delete")}, {"read": [(1, 1), (2, 2)]}]),
    ("apache/paimon#6718 ignored", True, "a INT,b INT", "a", {"merge-engine": "first-row", "ignore-delete": "true"},
     [[I(1, 1), I(2, 2)], [D(1, 1), I(1, 9)], {"read": [(1, 1), (2, 2)]}]),
    ("apache/paimon#6718 told", False, "a INT,b INT", "a", dict(LOOKUP, **{"merge-engine": "first-row"}),
     [[I(1, 1)], [I(1, 2), I(2, 9)], {"told": [I(1, 1), I(2, 9)]}]),
    # what comes again behind its delete is told, be it the same
    ("apache/paimon#8204", True, "k INT,v STRING", "k", dict(LOOKUP, **{"changelog-producer.row-deduplicate": "true"}),
     [[I(1, "a"), I(2, "z")], [D(1, "a")], [I(1, "a")], {"read": [(1, "a"), (2, "z")]},
      {"told": [I(1, "a"), I(2, "z"), D(1, "a"), I(1, "a")]}]),
    # no small file is left behind
    ("apache/paimon#5130", False, "id INT,v STRING", "", {"target-file-size": "1 mb", "compaction.min.file-num": "5"},
     [*[[I(i, "abcdefg"[i - 1])] for i in range(1, 8)], "full", {"files": 1, "rows": 7},
      *[[I(i, "x")] for i in range(8, 11)], "full", {"files": 1, "rows": 10}]),
    # a delete survives while an older level holds its key
    ("tarantool/tarantool#10895", False, "k INT,v INT", "k", {"num-sorted-run.compaction-trigger": "2"},
     [[I(1, 1), I(2, 2), I(3, 3)], "full", [D(1, 1)], {"read": [(2, 2), (3, 3)]}, [I(4, 4)], {"read": [(2, 2), (3, 3), (4, 4)]}, [I(5, 5)],
      {"read": [(2, 2), (3, 3), (4, 4), (5, 5)]}, "full", {"read": [(2, 2), (3, 3), (4, 4), (5, 5)]}, {"files": 1, "rows": 4}]),
]

REFUSED = [  # by `create`, which names why
    ("apache/paimon#8204 deletion vectors", dict(LOOKUP, **{"deletion-vectors.enabled": "true"}), ("deletion-vectors.enabled",)),
    ("apache/paimon#7052", dict(PARTIAL, **{"fields.g.sequence-group": "a,k"}), ("fields.g.sequence-group", "'k'")),
]


class Case:
    def __init__(self, tarn, columns, key, options, full):
        self.tarn, self.full, self.buckets = tarn, full, "1" if key else "-1"
        self.names = [c.split()[0] for c in columns.split(",")]
        options = dict(options)
        flags = ["--partition-by", options.pop("partition")] if "partition" in options else []
        flags += ["--primary-key", key] if key else []
        for column in columns.split(","):
            flags += ["--field", column]
        for name, value in {"bucket": self.buckets, **options}.items():
            flags += ["--option", "%s=%s" % (name, value)]
        tarn.run("create", peer.TABLE, *flags).ok("create")

    def commit(self, rows):
        lines = (json.dumps({"kind": kind, "row": dict(zip(self.names, values))}) + "\n" for kind, values in rows)
        return self.tarn.run("write", peer.TABLE, "--input", "changes", stdin="".join(lines))

    def compact(self):
        self.tarn.run("compact", peer.TABLE, "--full").ok("compact")

    def values(self, row):
        return tuple(row[n] for n in self.names if n in row)

    def read(self, step):
        args = [x for name in ("where", "columns") if name in step for x in ("--" + name, step[name])]
        rows = sorted(self.values(json.loads(x)) for x in self.tarn.cat(*args).ok("cat"))
        return rows, sorted(step["read"])

    def refused(self, step):
        result = self.commit(step["refused"])
        return (result.rc, [w for w in step["words"] if w not in result.err]), (1, [])

    def told(self, step):
        lines = [json.loads(x) for x in self.tarn.run("tail", peer.TABLE, "--format", "json").ok("tail")]
        return [(x["kind"], self.values(x["row"])) for x in lines], step["told"]

    def files(self, step):
        files = [json.loads(x) for x in self.tarn.run("ls", peer.TABLE, "--format", "json").ok("ls")]
        return (len(files), sum(f["rows"] for f in files)), (step["files"], step["rows"])

    def step(self, step):
        if step == "full":
            self.compact()
        elif isinstance(step, list):
            self.commit(step).ok("write")
            if self.full:
                self.compact()
        else:
            name = next(n for n in ("read", "refused", "told", "files") if n in step)
            got, want = getattr(self, name)(step)
            if got != want:
                raise Failure("%s: %r, not %r" % (name, got, want))

    def run(self, steps):
        for number, step in enumerate(steps, 1):
            try:
                self.step(step)
            except Failure as e:
                raise Failure("step %d%s: %s" % (number, ", compacted" if self.full else "", e)) from e
        self.tarn.run("fsck", peer.TABLE).ok("fsck")


def refuse(tarn, options, words):
    flags = [x for name, value in options.items() for x in ("--option", "%s=%s" % (name, value))]
    result = tarn.run("create", peer.TABLE, "--field", "k INT", "--field", "a INT", "--field", "g INT", "--primary-key", "k",
                      "--option", "bucket=1", *flags)
    if result.rc != 2 or any(w not in result.err for w in words):
        raise Failure("create: %d, %s" % (result.rc, result.err))


def run(name, body, failed):
    with tempfile.TemporaryDirectory() as folder:
        try:
            body(peer.Tarn(folder))
        except Failure as e:
            failed.append(name)
            print("%s: %s" % (name, e))


def main():
    wanted, failed, count = sys.argv[1:], [], 0
    for name, twice, columns, key, options, steps in CASES:
        for full in (False, True) if twice else (False,):
            if not wanted or name in wanted:
                count += 1
                run(name, lambda tarn: Case(tarn, columns, key, options, full).run(steps), failed)
    for name, options, words in REFUSED:
        if not wanted or name in wanted:
            count += 1
            run(name, lambda tarn: refuse(tarn, options, words), failed)
    print("%d passed, %d failed" % (count - len(failed), len(failed)))
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
