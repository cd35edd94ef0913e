"""`tarn check`: what is wrong with a configuration, and what it needs and promises when nothing is.

tests/app/config_test.c has each mistake's text; here is the verb. Needs no package. usage: check_test.py [NAME...]
"""
import json
import os
import sys
from pathlib import Path

import peer
import runner
from peer import need, same

EXAMPLE = peer.ROOT / "scripts/gateway.lua"
FIELDS = "fields = { 'k INT', 'n INT' }, "


def check(tarn, text, *args):
    path = Path(tarn.warehouse) / "c.lua"
    path.write_text(text)
    return tarn.run("check", path, *args)


def config(tables, rest="", warehouse="w"):
    return "return { warehouse = '%s', tables = { %s }, %s }" % (
        warehouse, ", ".join("['%s'] = { %s }" % t for t in tables.items()), rest)


def rows_of(result):
    rows = [json.loads(line) for line in result.ok("check")]
    return {r["part"]: r for r in rows if "part" in r}, {r["table"]: r for r in rows if "table" in r}


def test_the_example_is_accepted(tarn):
    parts, tables = rows_of(tarn.run("check", EXAMPLE))
    same(parts["all"]["size"] <= 32 << 20, True, "it fits the memory that it names")
    same(tables["plant.levels"]["commit"], "30s or 5000 rows or 1M", "commit")
    same(tables["plant.levels"]["repeats_show"], False, "a state shows no repeats")
    same(tables["plant.events"]["repeats_show"], True, "a log does")
    lines = [line for line in EXAMPLE.read_text().splitlines() if not line.startswith("--")]
    need(len(lines) < 45, "it is short")


def test_all_mistakes_come_on_stderr_and_nothing_else_happens(tarn):
    result = check(tarn, config({"d.t": "fields = { 'k INTT' }", "d.u": "comit = 1"}, "memroy = '1M'"))
    same((result.rc, result.lines), (2, []), "exit code and stdout")
    same(result.err.splitlines()[:-1], [
        "tarn: tables['d.u'].comit: is unknown; did you mean 'commit'?",
        "tarn: memroy: is unknown; did you mean 'memory'?",
        "tarn: tables['d.t'].fields[1]: field 'k': type 'INTT' is unknown; did you mean 'INT'?",
        "tarn: tables['d.u']: 'fields' or 'schema' is missing, and there is no such table in %s/w" % tarn.warehouse,
    ], "mistakes")
    need(result.err.splitlines()[-1].endswith("c.lua: 4 things are wrong"), result.err)
    same(sorted(p.name for p in Path(tarn.warehouse).iterdir()), ["c.lua"], "files")


def test_a_table_that_is_there_needs_no_fields(tarn):
    tarn.run("create", "d.t", "--field", "k INT", "--option", "bucket=-1").ok("create")
    text = config({"d.t": "commit = '1s'"}, "sources = { { kind = 'stdin', table = 'd.t' } }", warehouse=".")
    _, tables = rows_of(check(tarn, text))
    same(tables["d.t"], {"table": "d.t", "commit": "1s", "delivery": "at least once", "repeats_show": True,
                         "because_of": "stdin: can't be read again"}, "d.t")


def test_a_table_knows_who_may_repeat(tarn):
    keyed = FIELDS + "primary_key = 'k', options = { bucket = 1 }"
    sums = FIELDS + "primary_key = 'k', options = { bucket = 1, ['merge-engine'] = 'aggregation', " \
        "['fields.n.aggregate-function'] = 'sum' }"
    logs = FIELDS + "options = { bucket = -1 }"
    sources = """sources = {
        { kind = 'mqtt', url = 'mqtt://h', subscribe = {
            { filter = 'a', table = 'd.once', qos = 2 }, { filter = 'b', table = 'd.keyed', qos = 1 },
            { filter = 'c', table = 'd.sums', qos = 0 } } },
        { kind = 'file', path = 'x', table = 'd.once' },
        { kind = 'socket', listen = 'unix:s', table = 'd.log' } }"""
    _, tables = rows_of(check(tarn, config({"d.once": logs, "d.keyed": keyed, "d.sums": sums, "d.log": logs}, sources)))
    got = {name: (t["delivery"], t["repeats_show"], t["because_of"]) for name, t in tables.items()}
    same(got, {
        "d.once": ("exactly once", False, None),
        "d.keyed": ("at least once", False, "mqtt: b has QoS 1"),
        "d.sums": ("at least once", True, "mqtt: c has QoS 0, which may lose, too"),
        "d.log": ("at least once", True, "socket: who gives no sender"),
    }, "promises")


def test_memory_that_is_too_small_names_the_part(tarn):
    many = config({"d.t": FIELDS + "primary_key = 'k', options = { bucket = 1000 }"})
    result = check(tarn, many)
    same(result.rc, 2, "exit code")
    need("tarn: memory: part 'memtable' needs 16547840 bytes, and has " in result.err, result.err)
    parts, _ = rows_of(check(tarn, many, "--memory", "64M"))
    same(parts["memtable"]["needs"], 16384000 + parts["net"]["size"], "pages, and the network for the daemon's socket")
    need(sum(p["size"] for n, p in parts.items() if p["kind"] in ("pool", "arena", "heap", "process") and n != "all")
         == parts["all"]["size"], "the parts are all of it")
    result = check(tarn, config({"d.t": FIELDS + "options = { bucket = -1 }"}, "memory = '2M'"))
    same(result.rc, 2, "exit code")
    need("needs at least" in result.err, result.err)


def test_a_daemon_starts_with_the_least_memory_that_is_accepted(tarn):
    plain = FIELDS + "primary_key = 'k', options = { bucket = 1 }"
    scripted = plain + ", script = 's.lua'"
    (Path(tarn.warehouse) / "s.lua").write_text("return { map = function(row) return row end }")
    stdin = "sources = { { kind = 'stdin', table = 'd.t0' } }"
    doors = ", ".join("{ kind = 'socket', listen = 'unix:s%d', table = 'd.t0', connections = 9 }" % i for i in range(7))
    cases = {
        "one": config({"d.t0": plain}, stdin),
        "a few of each": config({"d.t%d" % i: scripted if i > 20 else plain for i in range(24)}, stdin),
        "doors": config({"d.t0": plain}, stdin.replace("{ {", "{ %s, {" % doors)),
    }
    for name, text in cases.items():
        least, most = 4 << 10, 64 << 10  # KiB
        while most - least > 32:
            middle = (least + most) // 2
            rc = check(tarn, text, "--memory", "%dK" % middle).rc
            least, most = (least, middle) if rc == 0 else (middle, most)
        path = Path(tarn.warehouse) / "c.lua"
        for memory, want in ((most, 0), (least, 2)):
            result = tarn.run("run", path, "--once", "--memory", "%dK" % memory)
            same(result.rc, want, "%s, with %d KiB: %s" % (name, memory, result.err[-300:]))


def test_secrets_of_the_environment_are_not_printed(tarn):
    os.environ["TARN_TEST_SECRET"] = "hunter2-hunter2"
    tables = {"d.t": FIELDS + "options = { bucket = -1 }"}
    good = check(tarn, config(tables, "listen = '0.0.0.0:1', token = env('TARN_TEST_SECRET')"))
    bad = check(tarn, config(tables, "listen = env('TARN_TEST_SECRET'), memory = env('TARN_TEST_SECRET')"))
    same((good.rc, bad.rc), (0, 2), "exit codes")
    for result in (good, bad):
        need("hunter2" not in result.err + "".join(result.lines), result.err)


def test_a_file_that_is_not_there_is_said(tarn):
    result = tarn.run("check", Path(tarn.warehouse) / "none.lua")
    same((result.rc, len(result.err.splitlines())), (2, 1), result.err)
    need("none.lua" in result.err and "No such file" in result.err, result.err)
    same(tarn.run("check").rc, 2, "no file")


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
