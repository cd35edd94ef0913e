"""Scripts, driven as a person does: the examples in scripts/, and `tarn test`.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". Needs no package. usage: script_test.py [NAME...]
"""
import json
import re
import shlex
import sys
from pathlib import Path

import peer
import runner
from peer import ROOT, need, same

EXAMPLES = sorted(p for p in (ROOT / "scripts").glob("*.lua") if "m.test" in p.read_text())


def story(path):
    """The `tarn create` that an example's story shows, as words behind the verb; its script left out."""
    head = path.read_text().split("\n\n", 1)[0]
    text = re.sub(r"\\\n--\s+", " ", head)
    words = shlex.split(re.search(r"tarn create .*", text).group(0))[2:]
    at = words.index("tarn.script=" + path.name)
    return words[:at - 1] + words[at + 1:]


def script(tarn, text, name="t.lua"):
    path = Path(tarn.warehouse) / name
    path.write_text(text)
    return path


def run(tarn, path, *args, stdin=None):
    return tarn.run("test", path, *args, stdin=stdin)


SCHEMA = {"fields": [{"name": "dev", "type": "STRING"}, {"name": "ts", "type": "TIMESTAMP(3)"},
                     {"name": "n", "type": "BIGINT"}, {"name": "big", "type": "DECIMAL(20, 0)"}],
          "primaryKeys": ["dev"], "options": {"bucket": "1"}}


def schema(tarn):
    path = Path(tarn.warehouse) / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return path


def rows(tarn, path, records, *args):
    """What the script makes of the records: lines of the trial, without the cases before."""
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)
    result = run(tarn, path, "--schema", schema(tarn), "--rows", "-", *args, stdin=text)
    need(result.rc in (0, 1), result.err)
    at = next(i for i, line in enumerate(result.lines) if re.match(r"\d+ passed", line))
    return result.rc, result.lines[at + 1:]


def tables(lines):
    return [json.loads(line.split(" ", 6)[6]) for line in lines if re.match(r"    table: \+", line)]


def test_examples_pass_their_cases_with_and_without_columns(tarn):
    need(len(EXAMPLES) >= 7, "examples")
    for path in EXAMPLES:
        words = story(path)
        tarn.run("create", *words).ok("create of " + path.name)
        for args in ((), ("--table", words[0])):
            lines = run(tarn, path, *args).ok("%s %s" % (path.name, args))
            need(re.fullmatch(r"[1-9]\d* passed, 0 failed", lines[-1]), "%s: %s" % (path.name, lines[-1]))
            same(sum(line.startswith("  ok    ") for line in lines), int(lines[-1].split()[0]), path.name)


def test_a_failing_case_says_what_differs(tarn):
    path = script(tarn, "return {merge = function(now, row) return row end, test = {\n"
                        "{merge = {nil, {n = 1}}, gives = {n = 1}},\n"
                        "{merge = {nil, {n = 1}}, gives = {n = 2}, name = 'doubles'}}}")
    result = run(tarn, path)
    same(result.rc, 1, "exit code")
    same(result.lines[1:], ["  ok    1. merge", "  FAIL  2. merge: doubles", "        n: got 1, want 2",
                            "1 passed, 1 failed"], "lines")


def test_a_script_that_is_wrong_is_exit_code_2(tarn):
    for text, want in (("return {", "t.lua:1: unexpected symbol"), ("return 1", "returns a number"),
                       ("x = 1", "global 'x' can't be set"), ("while true do end", "t.lua:1: its budget"),
                       ("return {merge = {nn = function() end}}", "there is no column 'nn'")):
        result = run(tarn, script(tarn, text), "--schema", schema(tarn))
        same(result.rc, 2, text)
        need(want in result.err and len(result.err.splitlines()) == 1, "%s: %s" % (text, result.err))
    same(run(tarn, "absent.lua").rc, 2, "no such file")
    same(run(tarn, "/nowhere/absent.lua").rc, 2, "no such folder")
    same(run(tarn, script(tarn, "return {}"), "--rows", "-").rc, 2, "rows without columns")


def test_files_beside_the_script_are_required(tarn):
    script(tarn, "return {twice = function(n) return 2 * n end}", "units.lua")
    path = script(tarn, "local units = require('units')\nreturn {merge = function(now, row) row.n = units.twice(row.n) "
                        "return row end, test = {{merge = {nil, {n = 4}}, gives = {n = 8}}}}")
    run(tarn, path).ok("require")


def test_rows_go_through_merge_and_announce_in_order(tarn):
    path = script(tarn, "local m = {}\nfunction m.merge(now, row) row.n = (now and now.n or 0) + 1 return row end\n"
                        "function m.announce(row) if row.n % 2 == 0 then return {n = row.n} end end\nreturn m")
    rc, lines = rows(tarn, path, [{"dev": "a"}, {"dev": "b"}, {"dev": "a"}, {"dev": "a"}])
    same(rc, 0, "exit code")
    same([t["n"] for t in tables(lines)], [1, 1, 2, 3], "n")
    same([line.split()[1] for line in lines if line.startswith("    told:")], ["nothing", "nothing", "+I", "-D"], "told")
    need(lines[-4].startswith("4 records: 4 changes of the table, 2 told, 0 dead"), lines[-4])
    need(re.fullmatch(r"merge: 4 calls, \d+ ns and \d+ bytes of new memory a call", lines[-3]), lines[-3])


def test_deletes_are_retracted(tarn):
    path = script(tarn, "return {merge = function(now, row) return row end}")
    changes = [{"kind": k, "row": {"dev": "a", "n": n}} for k, n in (("+I", 1), ("-U", 1), ("+U", 2), ("-D", 2), ("+I", 3))]
    _, lines = rows(tarn, path, changes, "--input", "changes")
    same([line.split()[1] for line in lines if line.startswith("    table:")], ["+I", "+U", "-D", "+I"], "table")


# ---- inputs that broke others ----

def test_integers_keep_their_digits_through_a_script(tarn):
    record = ('{"dev":"a","n":2882429806056571124,"big":18446744073709551615}',
              '{"dev":"b","n":9223372036854775807,"big":0}')
    for text in ("function m.map(r) return r end", "function m.merge(now, row) row.n = row.n row.big = row.big return row end"):
        path = script(tarn, "local m = {}\n%s\nreturn m" % text)
        _, lines = rows(tarn, path, record)
        same([t["n"] for t in tables(lines)], [2882429806056571124, 9223372036854775807], text)
        need(any("table:" in line and "18446744073709551615" in line for line in lines), "big")


def test_a_script_that_changes_nothing_does_not_change_times(tarn):
    path = script(tarn, "return {map = function(r) return r end, merge = function(now, row) "
                        "assert(row.ts == 1582135200001) row.ts = row.ts return row end}")
    _, lines = rows(tarn, path, ['{"dev":"a","ts":1582135200001}'])
    same([t["ts"] for t in tables(lines)], ["2020-02-19T18:00:00.001000000"], "ts")


def test_an_error_on_one_record_is_one_dead_row(tarn):
    path = script(tarn, "local m = {}\n\nfunction m.map(r)\n    r.n = r.meta.x\n    r.meta = nil\n    return r\nend\nreturn m")
    rc, lines = rows(tarn, path, [{"dev": "1", "meta": {"x": 1}}, {"dev": "2"}, {"dev": "3", "meta": {"x": 3}}])
    same(rc, 1, "exit code")
    same([t["dev"] for t in tables(lines)], ["1", "3"], "rows")
    same([line.strip() for line in lines if "dead:" in line],
         ["dead:  t.lua:4: attempt to index a nil value (field 'meta')"], "dead")


def test_the_columns_type_decides_the_number_s(tarn):
    for text, want in (("row.n = row.n * 2", 24), ("row.n = 2^53", 2 ** 53), ("row.n = 24.0", 24),
                       ("row.n = 2.5", None), ("row.avg = row.n / 5", None)):
        path = script(tarn, "return {merge = function(now, row) %s return row end}" % text)
        rc, lines = rows(tarn, path, ['{"dev":"a","n":12}'])
        same(rc, 1 if want is None else 0, text)
        same([t["n"] for t in tables(lines)], [] if want is None else [want], text)


def test_a_table_with_a_script_takes_no_row_unresolved(tarn):
    result = tarn.run("create", "plant.x", "--field", "k INT", "--primary-key", "k", "--option", "bucket=1", "--option",
                      "tarn.script=fold.lua")
    same(result.rc, 0, "exit code of create: %s" % result.err)
    result = tarn.run("write", "plant.x", stdin=b'{"k":1}\n')
    need(result.rc != 0 and "resolved by its script ('tarn.script' = 'fold.lua')" in result.err, result.err)
    result = tarn.run("create", "plant.y", "--field", "k INT", "--primary-key", "k", "--option", "bucket=1", "--option",
                      "tarn.script=fold.lua", "--option", "sequence.field=k")
    same(result.rc, 2, "exit code")
    need("option 'sequence.field': 'k' does not go with 'tarn.script'" in result.err, result.err)


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
