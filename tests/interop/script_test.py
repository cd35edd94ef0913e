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
    at = words.index("tarn.script=scripts/" + path.name)
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


def test_a_change_that_can_t_be_told_is_none(tarn):
    path = script(tarn, "local m = {}\nfunction m.announce(row) if row.n == 2 then error('not that', 0) end return row end\nreturn m")
    rc, lines = rows(tarn, path, [{"dev": "a", "n": n} for n in (1, 2, 3)])
    same(rc, 1, "exit code")
    same([t["n"] for t in tables(lines)], [1, 3], "table")
    same([line.split()[1] for line in lines if line.startswith("    told:")], ["+I", "-U", "+U"], "told")


def test_deletes_are_retracted(tarn):
    path = script(tarn, "return {merge = function(now, row) return row end}")
    changes = [{"kind": k, "row": {"dev": "a", "n": n}} for k, n in (("+I", 1), ("-U", 1), ("+U", 2), ("-D", 2), ("+I", 3))]
    _, lines = rows(tarn, path, changes, "--input", "changes")
    same([line.split()[1] for line in lines if line.startswith("    table:")], ["+I", "+U", "-D", "+I"], "table")


def test_a_trial_is_told_of_late_rows_as_a_table_is(tarn):
    table(tarn, "return {merge = function(now, row) return row end}", "--option", "tarn.sequence.field=n")
    path = script(tarn, "return {merge = function(now, row, ctx) if ctx.late then return tarn.KEEP end return row end}", "late.lua")
    records = Path(tarn.warehouse) / "rows.json"
    records.write_text(lines_of([{"k": "a", "n": n} for n in (3, 2, 4)]))
    lines = tarn.run("test", path, "--table", TABLE, "--rows", records).ok("test")
    same([line.split()[1] for line in lines if line.startswith("    table:")], ["+I", "as", "+U"], "table")


def test_a_trial_maps_rows_of_other_inputs_and_keeps_their_kind(tarn):
    path = script(tarn, "return {map = function(r) r.dev = r.dev:upper() return r end}")
    changes = [{"kind": k, "row": {"dev": "a", "n": n}} for k, n in (("+I", 1), ("-U", 1), ("+U", 2), ("-D", 2))]
    rc, lines = rows(tarn, path, changes, "--input", "changes")
    same(rc, 0, "exit code")
    same([line.split()[1] for line in lines if line.startswith("    table:")], ["+I", "+U", "-D"], "table")
    need(any(line.startswith("map: 3 calls") for line in lines), lines)


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


# ---- tables ----

KV = ("--field", "k STRING", "--field", "n BIGINT", "--field", "s STRING", "--primary-key", "k", "--option", "bucket=1")
TABLE = "plant.t"


def table(tarn, text, *more, columns=KV):
    """A table with a script, which lies in the warehouse."""
    path = script(tarn, text)
    tarn.run("create", TABLE, *columns, "--option", "tarn.script=%s" % path, *more).ok("create")
    return path


def lines_of(records):
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def write(tarn, records, *args):
    return tarn.run("write", TABLE, *args, stdin=lines_of(records))


def cat(tarn, name=TABLE):
    return [json.loads(line) for line in tarn.run("cat", name).ok("cat")]


def properties(tarn, number):
    text = (Path(tarn.warehouse) / "plant.db/t/snapshot" / ("snapshot-%d" % number)).read_text()
    return json.loads(text)["properties"]


SUM = """local m = {}
function m.merge(now, row)
    row.n = row.n + (now and now.n or 0)
    return row
end
return m
"""


def test_the_first_example_makes_a_row_a_minute(tarn):
    path = ROOT / "scripts/minmax.lua"
    words = story(path)
    tarn.run("create", *words, "--option", "tarn.script=%s" % path).ok("create")
    readings = [{"dev": "boiler", "ts": 1767225600000 + 1000 * i, "temp": 20 + i % 7} for i in range(120)]
    tarn.run("write", words[0], stdin=lines_of(readings[:50])).ok("write")
    tarn.run("write", words[0], stdin=lines_of(readings[50:])).ok("write")
    got = cat(tarn, words[0])
    same([(r["minute"][11:19], r["samples"], r["temp_min"], r["temp_max"]) for r in got],
         [("00:00:00", 60, 20.0, 26.0), ("00:01:00", 60, 20.0, 26.0)], "rows")
    same(got[1]["temp_last"], 20.0 + 119 % 7, "last")


def test_every_example_writes(tarn):
    for path in EXAMPLES:
        words = story(path)
        tarn.run("create", *words, "--option", "tarn.script=%s" % path).ok("create of " + path.name)
        tarn.run("write", words[0], stdin="").ok("write of " + path.name)
        same(cat(tarn, words[0]), [], path.name)


def test_rows_are_folded_over_commits_and_digests_are_kept(tarn):
    path = table(tarn, SUM)
    write(tarn, [{"k": "a", "n": i} for i in range(10)], "--commit-every", "3").ok("write")
    same([(r["k"], r["n"]) for r in cat(tarn)], [("a", 45)], "rows")
    old = properties(tarn, 1)["tarn.script.merge"]
    need(re.fullmatch("[0-9a-f]{64}", old), old)
    path.write_text(SUM.replace("+ (now", "* 2 + (now"))
    write(tarn, [{"k": "a", "n": 1}]).ok("write with another script")
    same([r["n"] for r in cat(tarn)], [47], "rows that were merged stay as they were")
    newest = max(int(p.name.split("-")[1]) for p in (Path(tarn.warehouse) / "plant.db/t/snapshot").glob("snapshot-*"))
    need(properties(tarn, newest)["tarn.script.merge"] != old, "another digest")
    same(sorted(k for k in properties(tarn, newest) if "script" in k), ["tarn.script.merge"], "handlers")


def test_mapped_rows_get_the_defaults_that_records_get(tarn):
    fields = [{"name": "k", "type": "STRING"}, {"name": "unit", "type": "STRING", "defaultValue": "degC"},
              {"name": "n", "type": "INT", "defaultValue": "-7"}, {"name": "x", "type": "INT"}]
    described = Path(tarn.warehouse) / "schema.json"
    described.write_text(json.dumps({"fields": fields, "primaryKeys": ["k"], "options": {"bucket": "1"}}))
    path = script(tarn, "return {map = function(r) return {k = r.k, n = r.n, x = r.x} end}")
    tarn.run("create", "plant.plain", "--schema", described).ok("create")
    tarn.run("create", "plant.mapped", "--schema", described, "--option", "tarn.script=%s" % path).ok("create")
    records = lines_of([{"k": "a"}, {"k": "b", "n": 1, "x": 2}, {"k": "c", "n": None}])
    for name in ("plant.plain", "plant.mapped"):
        tarn.run("write", name, stdin=records).ok("write")
    same(cat(tarn, "plant.mapped"), cat(tarn, "plant.plain"), "rows")
    same([(r["unit"], r["n"]) for r in cat(tarn, "plant.plain")], [("degC", -7), ("degC", 1), ("degC", -7)], "defaults")
    tried = run(tarn, path, "--table", "plant.mapped", "--rows", "-", stdin=records)
    same([r["n"] for r in tables(tried.lines)], [-7, 1, -7], "of the trial")


def test_the_least_memory_is_enough_for_wide_tables_too(tarn):
    path = script(tarn, SUM)
    for count in (3, 100, 110, 250, 350):
        name = "plant.w%d" % count
        fields = [word for i in range(count) for word in ("--field", "c%d %s" % (i, ("DOUBLE", "STRING")[i % 2]))]
        tarn.run("create", name, "--field", "k STRING", "--field", "n INT", *fields, "--primary-key", "k", "--option", "bucket=1",
                 "--option", "changelog-producer=input", "--option", "tarn.script=%s" % path).ok("create")
        records = lines_of([{"k": "k%d" % (i % 7), "n": 1, "c1": "x" * 1000} for i in range(100)])
        tarn.run("write", name, "--memory", "8M", "--dead-letters", "plant.dead", stdin=records).ok("write of %s" % name)
        same(sorted(r["n"] for r in cat(tarn, name)), [14] * 5 + [15] * 2, name)


def test_a_clock_behind_the_newest_snapshot_is_unset(tarn):
    path = script(tarn, "return {map = function(r, meta) return {k = meta.clock, n = r.n} end}")
    tarn.run("create", "plant.c", "--field", "k STRING", "--field", "n INT", "--primary-key", "k", "--option", "bucket=1",
             "--option", "tarn.script=%s" % path).ok("create")
    tarn.run("write", "plant.c", stdin=lines_of([{"n": 1}])).ok("write")
    same([r["k"] for r in cat(tarn, "plant.c")], ["synced"], "at first")
    newest = Path(tarn.warehouse) / "plant.db/c/snapshot/snapshot-1"
    snapshot = json.loads(newest.read_text())
    snapshot["timeMillis"] += 3600 * 1000
    newest.write_text(json.dumps(snapshot))
    tarn.run("write", "plant.c", stdin=lines_of([{"n": 2}])).ok("write of an hour before")
    same(sorted(r["k"] for r in cat(tarn, "plant.c")), ["synced", "unset"], "then")


def test_explain_says_where_rows_were_resolved(tarn):
    table(tarn, SUM, "--option", "num-sorted-run.compaction-trigger=20")
    for _ in range(3):
        write(tarn, [{"k": "a", "n": 1}]).ok("write")
    lines = [json.loads(line) for line in tarn.run("explain", TABLE, "a").ok("explain")]
    same([line["did"] for line in lines], ["begins the row"] + ["later by its sequence number: replaces the row"] * 2
         + ["a reader sees this row; tarn.script resolved what came before it was written"], "did")
    same([line["row"]["n"] for line in lines], [1, 2, 3, 3], "what each flush made")


def test_only_write_needs_the_script(tarn):
    path = table(tarn, SUM)
    write(tarn, [{"k": "a", "n": 1}], "--commit-every", "1").ok("write")
    path.unlink()
    result = write(tarn, [{"k": "a", "n": 1}])
    same(result.rc, 2, "exit code of write")
    need("script %s: " % path in result.err and "No such file" in result.err, result.err)
    for verb, *args in (("cat",), ("get", "a"), ("tail", "--to", "1"), ("fsck",), ("compact", "--full"), ("expire",),
                        ("clean", "--dry-run"), ("sync", Path(tarn.warehouse) / "lake"), ("ls",), ("explain", "a")):
        words = (TABLE,) if verb != "ls" else (TABLE,)
        tarn.run(verb, *words, *args).ok(verb)


def test_create_refuses_a_script_that_can_t_be_used(tarn):
    path = script(tarn, SUM)
    cases = [("\x1bLua", (), "t.lua: "), ("return {", (), "t.lua:1: unexpected symbol"), ("return {merge = {nn = function() end}}", (), "there is no column 'nn'"),
             ("return {merge = {k = function() end}}", (), "is of the key"),
             ("return {merge = function(now, row) return row end, test = {{merge = {nil, {n = 1}}, gives = {n = 2}}}}", (),
              "its case 1 fails"),
             (SUM, ("--option", "sequence.field=n"), "does not go with 'tarn.script'"),
             (SUM, ("--option", "merge-engine=aggregation"), "does not go with 'tarn.script'"),
             (SUM, ("--option", "changelog-producer=lookup"), "'tarn.script'"),
             (SUM, ("--option", "tarn.sequence.field=nn"), "nn")]
    for text, more, want in cases:
        path.write_text(text)
        result = tarn.run("create", TABLE, *KV, "--option", "tarn.script=%s" % path, *more)
        same(result.rc, 2, text)
        need(want in result.err and len(result.err.splitlines()) == 1, "%s: %s" % (want, result.err))
        need(not (Path(tarn.warehouse) / "plant.db/t").exists(), "no table is made")


def test_a_relative_path_begins_where_the_warehouse_lies(tarn):
    folder = Path(tarn.warehouse)
    inner = peer.Tarn(folder / "lake")
    result = inner.run("create", TABLE, *KV, "--option", "tarn.script=lua/t.lua")
    same(result.rc, 2, "exit code")
    need("script %s/lua/t.lua: there is no such file" % folder.resolve() in result.err, result.err)
    (folder / "lua").mkdir()
    (folder / "lua/t.lua").write_text("local units = require('units')\n" + SUM.replace("row.n +", "units.twice(row.n) +"))
    (folder / "lua/units.lua").write_text("return {twice = function(n) return 2 * n end}")
    inner.run("create", TABLE, *KV, "--option", "tarn.script=lua/t.lua").ok("create")
    inner.run("write", TABLE, stdin='{"k":"a","n":4}\n').ok("write")
    same([r["n"] for r in cat(inner)], [8], "rows")
    options = inner.run("show", TABLE, "options").ok("show")
    need(any("tarn.script" in line and '"lua/t.lua"' in line for line in options), "the path is kept as it was given: %s" % options)


# influxdata/telegraf#7555: integers of 64 bits lost digits in JSON's numbers, or in the script's.
WIDE = ("--field", "id BIGINT", "--field", "ns BIGINT", "--field", "u DECIMAL(20,0)", "--field", "copy BIGINT",
        "--field", "copied DECIMAL(20,0)", "--primary-key", "id", "--option", "bucket=1")
EXACT = ('{"id":2882429806056571124,"ns":9223372036854775807,"u":18446744073709551615}',
         '{"id":-9223372036854775808,"ns":-9007199254740993,"u":"18446744073709551614"}',
         '{"id":3,"ns":9007199254740993,"u":99999999999999999999}', '{"id":1e3,"ns":2}')
TOO_MUCH = ('{"id":9223372036854775808,"ns":1}', '{"id":1.5,"ns":3}', '{"id":2,"ns":-9223372036854775809}', '{"id":1e19}',
            '{"id":4,"u":100000000000000000000}', '{"id":5,"u":0.5}', '{"id":6,"ns":1e400}')


def check_digits(tarn, copies, *more):
    tarn.run("create", TABLE, *WIDE, *more).ok("create")
    same(write(tarn, EXACT + TOO_MUCH, "--dead-letters", "plant.dead").rc, 1, "exit code")
    want = []
    for text in EXACT:
        row = {"ns": None, "u": None, **json.loads(text)}
        row = {"id": int(row["id"]), "ns": row["ns"], "u": row["u"] and str(row["u"])}
        want.append({**row, "copy": row["id"] if copies else None, "copied": row["u"] if copies else None})
    same(cat(tarn), sorted(want, key=lambda row: row["id"]), "rows")
    same(sorted(r["record"] for r in cat(tarn, "plant.dead")), sorted(TOO_MUCH), "dead letters")


def test_integers_keep_their_digits_from_json_to_the_table(tarn):
    check_digits(tarn, False)


def test_integers_keep_their_digits_through_map(tarn):
    check_digits(tarn, False, "--option", "tarn.script=%s" % script(tarn, "return {map = function(r) return r end}"))


def test_integers_keep_their_digits_when_map_copies_them(tarn):
    path = script(tarn, "return {map = function(r) return {id = r.id, ns = r.ns, u = r.u, copy = r.id, copied = r.u} end}")
    check_digits(tarn, True, "--option", "tarn.script=%s" % path)


def test_integers_keep_their_digits_when_merge_copies_them(tarn):
    path = script(tarn, "return {merge = function(now, row) row.copy, row.copied = row.id, row.u return row end}")
    check_digits(tarn, True, "--option", "tarn.script=%s" % path)


def test_map_makes_any_number_of_rows_of_a_record(tarn):
    table(tarn, "local m = {}\nfunction m.map(r, meta)\nassert(meta.source and meta.position >= 0 and meta.clock)\n"
                "local rows = {}\nfor i = 1, r.times do rows[i] = {k = r.name .. i, n = i, s = tostring(meta.position)} end\n"
                "return rows\nend\nreturn m")
    result = write(tarn, [{"name": "x", "times": 3}, {"name": "y", "times": 0}, "", {"name": "z", "times": 1, "more": [{}]}])
    result.ok("write")
    need("dropped 1 records" in result.err and "rows=3" in result.err, result.err)
    same([(r["k"], r["n"], r["s"]) for r in cat(tarn)], [("x1", 1, "0"), ("x2", 2, "0"), ("x3", 3, "0"), ("z1", 1, "53")], "rows")


def test_announced_changes_are_no_hazard(tarn):
    """The warning of changelog-producer = input is about rows that nobody resolves."""
    path = script(tarn, "return {merge = function(now, row) return row end}")
    result = tarn.run("create", TABLE, *KV, "--option", "changelog-producer=input", "--option", f"tarn.script={path}")
    result.ok("create")
    need("-U" not in result.err, result.err)


def test_map_sees_rows_of_other_inputs_and_keeps_their_kind(tarn):
    table(tarn, "return {map = function(r) if r.n == 7 then return nil end r.k = r.k:upper() return r end}",
          "--option", "changelog-producer=input")
    write(tarn, [{"kind": k, "row": {"k": "a", "n": n}} for k, n in (("+I", 1), ("-U", 1), ("+U", 2), ("+I", 7))] +
          [{"kind": "+I", "row": {"k": "b", "n": 3}}], "--input", "changes").ok("write")
    same([(r["k"], r["n"]) for r in cat(tarn)], [("A", 2), ("B", 3)], "rows")
    write(tarn, [{"kind": "-D", "row": {"k": "a", "n": 2}}], "--input", "changes").ok("write")
    same([(r["k"], r["n"]) for r in cat(tarn)], [("B", 3)], "rows")
    tarn.run("write", TABLE, "--input", "csv", stdin="k,n\nc,5\n").ok("write csv")
    same([(r["k"], r["n"]) for r in cat(tarn)], [("B", 3), ("C", 5)], "rows")


def test_a_file_goes_on_where_it_was(tarn):
    """What map drops moves the place, too."""
    table(tarn, "return {map = function(r) if r.n > 5 then return nil end return {{k = 'a', n = r.n}, {k = 'b', n = r.n}} end,\n"
                "merge = function(now, row) row.n = row.n + (now and now.n or 0) return row end}")
    path = Path(tarn.warehouse) / "in.json"
    path.write_text(lines_of([{"n": i} for i in range(4)]))
    tarn.run("write", TABLE, path).ok("write")
    with path.open("a") as f:
        f.write(lines_of([{"n": i} for i in range(4, 9)]))
    tarn.run("write", TABLE, path).ok("write of more")
    same([(r["k"], r["n"]) for r in cat(tarn)], [("a", 15), ("b", 15)], "rows")
    result = tarn.run("write", TABLE, path)
    need("goes on at byte %d" % path.stat().st_size in result.ok("write of nothing") or "goes on at byte" in result.err, result.err)
    same([(r["k"], r["n"]) for r in cat(tarn)], [("a", 15), ("b", 15)], "rows")


def test_rows_that_come_late_are_told_by_the_ordering_column(tarn):
    table(tarn, "return {merge = function(now, row, ctx) if ctx.late then return tarn.KEEP end return row end}",
          "--option", "tarn.sequence.field=n")
    write(tarn, [{"k": "a", "n": n, "s": s} for n, s in ((3, "x"), (2, "y"), (None, "z"))], "--commit-every", "1").ok("write")
    same([r["s"] for r in cat(tarn)], ["x"], "rows")


def parts(tarn, *args):
    return {r["part"]: r for r in map(json.loads, tarn.run("pools", *args).ok("pools"))}


def test_pools_show_lua_s_parts(tarn):
    path = table(tarn, SUM)
    refused = tarn.run("pools", TABLE + "s")
    need(refused.rc == 2 and "there is no such table" in refused.err and not refused.lines, refused.err)
    without, having = parts(tarn), parts(tarn, TABLE)
    for name in ("lua_map", "lua_merge"):
        same(without[name]["used"], 0, name)
    need(0 < having["lua_merge"]["used"] <= having["lua_merge"]["peak"] <= having["lua_merge"]["size"], "merge's part")
    same(having["memtable"]["size"] + having["lua_merge"]["size"], without["memtable"]["size"], "it is of the memtable's part")
    same(having["lua_map"]["used"], 0, "there is no map")
    same(having["block"]["size"], without["block"]["size"], "and the block stays as it is")
    path.write_text(SUM.replace("return m\n", "function m.map(r) return r end\nreturn m\n"))
    mapping = parts(tarn, TABLE)
    need(0 < mapping["lua_map"]["used"] <= mapping["lua_map"]["peak"] <= mapping["lua_map"]["size"], "map's part")
    same(mapping["memtable"]["size"] + mapping["lua_map"]["size"], having["memtable"]["size"], "map's is there with a map")


HOARD = """local all = {}
for i = 1, %d do all[i] = ("x"):rep(1000) .. i end
return {map = function(r) return r end, merge = function(now, row) row.n = #all return row end}
"""


def test_what_a_script_holds_is_in_its_parts_and_nowhere_else(tarn):
    path = table(tarn, HOARD % 0)
    empty = parts(tarn, TABLE)
    for count in (100, 500):
        path.write_text(HOARD % count)
        full = parts(tarn, TABLE)
        for name in ("lua_map", "lua_merge"):
            need(1000 * count <= full[name]["used"] - empty[name]["used"] < 1100 * count, "%s with %d texts: %s" % (name, count, full[name]))
            need(full[name]["used"] <= full[name]["peak"] <= full[name]["size"], "%s: %s" % (name, full[name]))
        for name in set(full) - {"lua_map", "lua_merge", "block"}:
            same(full[name], empty[name], "another part")
    path.write_text(HOARD % 700)
    for verb in ("pools", "write"):
        result = tarn.run(verb, TABLE, stdin="")
        same(result.rc, 2, "exit code of %s: %s" % (verb, result.err))
        need("t.lua:2: not enough memory: a state has %d bytes" % empty["lua_merge"]["size"] in result.err, result.err)


# ---- what a script can't do to others ----

def letters(tarn):
    path = Path(tarn.warehouse) / "dead.json"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_dead(tarn, records, *args):
    """Writes with a file for dead letters: the result, and the letters' reasons in their order."""
    result = write(tarn, records, "--dead-letters", Path(tarn.warehouse) / "dead.json", "--stats", *args)
    return result, [letter["reason"] for letter in letters(tarn)]


# What a handler does to the row whose n is 13, and the reason why it is a dead letter.
CRIMES = (
    ("error('I will not', 0)", "t.lua:3: I will not"),
    ("error({})", "t.lua:3: the error is a table, not a text"),
    ("local x = nil; x = x.y", "t.lua:3: attempt to index a nil value"),
    ("while true do end", "t.lua:3: its budget of instructions is used up"),
    ("while true do pcall(function() while true do end end) end", "t.lua:3: its budget of instructions is used up"),
    ("local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x", "t.lua:3: its budget"),
    ("table.sort({3, 1, 2}, function() while true do end end)", "t.lua:3: its budget of instructions is used up"),
    ("local s = ('a'):rep(5000); s:find('.-.-.-.-b')", "t.lua:3: "),
    ("local s = ('x'):rep(1 << 30)", "t.lua:3: "),
    ("local t = {} for i = 1, 1 << 30 do t[i] = ('x'):rep(1000) .. i end", "t.lua:3: "),
    ("local function f() return 1 + f() end f()", "t.lua:3: "),
    ("local function f() return pcall(f) end error(f() and 'deep')", "t.lua:3: "),
    ("surprise = 1", "t.lua:3: global 'surprise' can't be set"),
    ("string.rep = nil", "t.lua:3: "),
    ("io.open('/etc/passwd')", "t.lua:3: there is no global 'io'"),
    ("os.execute('true')", "t.lua:3: there is no global 'os'"),
    ("debug.getinfo(1)", "t.lua:3: there is no global 'debug'"),
    ("load('return 1')", "t.lua:3: there is no global 'load'"),
    ("string.dump(function() end)", "t.lua:3: "),
    ("require('nothing')", "t.lua:3: "),
    ("row.nn = 1", "t.lua:3: there is no column 'nn'"),
    ("row.n = 2.5", "t.lua:3: column 'n' (BIGINT): 2.5"),
    ("row.n = 'x'", "t.lua:3: column 'n' (BIGINT)"),
    ("row.s = {}", "t.lua:3: column 's'"),
    ("row.must = nil", "t.lua:2: merge returned a row whose column 'must' is NULL, but it is NOT NULL"),
    ("row.k = 'other'", "t.lua:2: merge returned a row with another key: column 'k' has changed"),
    ("return 7", "t.lua:2: merge returned a number; want a row, tarn.KEEP or tarn.DELETE"),
    ("return nil", "t.lua:2: merge returned nil; want a row, tarn.KEEP or tarn.DELETE"),
    ("return {n = 1, nn = 2}", "t.lua:2: there is no column 'nn'"),
)

STRICT = ("--field", "k STRING", "--field", "n BIGINT", "--field", "s STRING", "--field", "must INT NOT NULL", "--primary-key", "k",
          "--option", "bucket=1")


def test_whatever_merge_does_is_one_dead_letter(tarn):
    """Another table, written by the same kind of process, has its rows; this one has those that were good."""
    path = table(tarn, SUM, columns=STRICT)
    n = 0
    for crime, want in CRIMES:
        path.write_text("local m = {}\nfunction m.merge(now, row)\nif row.n == 13 then %s end\nrow.n = (now and now.n or 0) + 1 "
                        "return row\nend\nreturn m\n" % crime)
        (Path(tarn.warehouse) / "dead.json").unlink(missing_ok=True)
        result, reasons = write_dead(tarn, [{"k": "a", "n": i, "must": 1} for i in (1, 13, 2)])
        n += 2
        same(result.rc, 1, "%s: %s" % (crime, result.err))
        same(len(reasons), 1, crime)
        need(reasons[0].startswith(want), "%s: %s" % (crime, reasons[0]))
        need("dead=1 " in result.err and "%s failed on 1 rows" % path in result.err, "%s: %s" % (crime, result.err))
        same([(r["k"], r["n"]) for r in cat(tarn)], [("a", n)], crime)
        record = json.loads(letters(tarn)[0]["record"])
        same(record["row"]["n"], 13, "the row that came")


def test_an_error_in_each_handler_is_a_dead_letter(tarn):
    cases = (("map", "function m.map(r) if r.n == 13 then error('no map') end return r end", "t.lua:2: no map"),
             ("announce", "function m.announce(row) if row.n == 13 then error('no announce') end return row end", "t.lua:2: no announce"),
             ("retract", "function m.retract(now, row) error('no retract') end", "t.lua:2: no retract"))
    path = table(tarn, SUM, "--option", "changelog-producer=input")
    for name, text, want in cases:
        path.write_text("local m = {}\n%s\nreturn m\n" % text)
        (Path(tarn.warehouse) / "dead.json").unlink(missing_ok=True)
        kind = "-D" if name == "retract" else "+U"
        records = [{"kind": "+I", "row": {"k": "a", "n": 1}}, {"kind": kind, "row": {"k": "a", "n": 13}},
                   {"kind": "+I", "row": {"k": "b", "n": 2}}]
        result, reasons = write_dead(tarn, records, "--input", "changes")
        same((result.rc, len(reasons)), (1, 1), "%s: %s" % (name, result.err))
        need(reasons[0].startswith(want), "%s: %s" % (name, reasons[0]))
        same([(r["k"], r["n"]) for r in cat(tarn)], [("a", 1), ("b", 2)], name)


def test_map_that_returns_nonsense_is_a_dead_letter(tarn):
    path = table(tarn, SUM, columns=STRICT)
    for text, want in (("return 7", "map returned a number"), ("return {{k = 'a', must = 1}, 7}", "map returned a number"),
                       ("return {k = 'a', nn = 1}", "there is no column 'nn'"), ("return {k = 'a'}", "column 'must' is NULL"),
                       ("return {n = 1, must = 1}", "column 'k' is NULL"), ("return {k = 'a', n = 'x', must = 1}", "column 'n' (BIGINT)"),
                       ("while true do end", "its budget of instructions"), ("return ('x'):rep(1 << 30)", "t.lua:2: ")):
        path.write_text("local m = {}\nfunction m.map(r) if r.n == 13 then %s end return r end\nreturn m\n" % text)
        (Path(tarn.warehouse) / "dead.json").unlink(missing_ok=True)
        result, reasons = write_dead(tarn, [{"k": "a", "n": n, "must": 1} for n in (1, 13, 2)] + ["{", '{"k":"a","k":"b"}'])
        same((result.rc, len(reasons)), (1, 3), "%s: %s" % (text, result.err))
        need(want in reasons[0] and reasons[0].startswith("t.lua:"), "%s: %s" % (text, reasons[0]))
        same([(r["k"], r["n"]) for r in cat(tarn)], [("a", 2)], text)


def test_a_hundred_failures_in_a_row_park_the_script(tarn):
    """What was committed stays, what was not waits in its file, and is in it once when the script is mended."""
    for handler in ("map", "merge"):
        name = "plant.%s" % handler
        bad = "local m = {}\nfunction m.map(r) %s return r end\nfunction m.merge(now, row) %s row.n = row.n + (now and now.n or 0) " \
              "return row end\nreturn m\n" % tuple("if %s.n >= 1000 then error('too much') end" % v if handler == h else ""
                                                   for h, v in (("map", "r"), ("merge", "row")))
        path = script(tarn, bad, handler + ".lua")
        tarn.run("create", name, *KV, "--option", "tarn.script=%s" % path).ok("create")
        source = Path(tarn.warehouse) / (handler + ".json")
        source.write_text(lines_of({"k": "a", "n": n} for n in [1] * 50 + [1000] * 150))
        dead = Path(tarn.warehouse) / (handler + ".dead")
        result = tarn.run("write", name, source, "--commit-every", "50", "--dead-letters", dead)
        same(result.rc, 4, "%s: exit code, since something was committed: %s" % (handler, result.err))
        need("%s.lua is parked after 100 failures in a row: %s.lua:" % (handler, handler) in result.err, result.err)
        need("correct %s, then write again" % path in result.err, result.err)
        need(cat(tarn, name)[0]["n"] >= 50, "what was committed")
        path.write_text(bad.replace("if ", "if false and "))
        before = cat(tarn, name)[0]["n"]
        tarn.run("write", name, source, "--dead-letters", dead).ok("write with the mended script")
        after = cat(tarn, name)[0]["n"]
        committed = len(dead.read_text().splitlines()) if dead.exists() else 0
        taken, odd = divmod(after - 50, 1000)
        need(before == 50 and odd == 0 and 150 - committed <= taken <= 150, "%s: %d, %d, %d dead" % (handler, before, after, committed))
        again = tarn.run("write", name, source)
        again.ok("write of nothing")
        same(cat(tarn, name)[0]["n"], after, "%s: nothing comes twice" % handler)


def test_a_script_that_hoards_is_stopped_at_its_part(tarn):
    """It is as large as its part says; rows that need no memory go on."""
    table(tarn, "local hoard = {}\nlocal m = {}\nfunction m.merge(now, row)\nif row.n % 2 == 1 then for i = 1, 200 do "
                "hoard[#hoard + 1] = ('x'):rep(400) .. #hoard end end\nreturn row\nend\nreturn m")
    size = parts(tarn, TABLE)["lua_merge"]["size"]
    result, reasons = write_dead(tarn, [{"k": "a%d" % i, "n": i} for i in range(60)])
    same(result.rc, 1, result.err)
    need(reasons and all("t.lua:4: not enough memory: a state has %d bytes" % size in r for r in reasons), reasons[:3])
    taken = 200 * 400 * (30 - len(reasons))
    need(size // 2 < taken < size, "odd rows were refused at %d of %d bytes" % (taken, size))
    rows_in = {r["n"] for r in cat(tarn)}
    need(set(range(0, 60, 2)) <= rows_in and len(rows_in) + len(reasons) == 60, "even rows need nothing: %s" % sorted(rows_in))


def test_a_cut_between_the_rows_of_a_record_folds_none_twice(tarn):
    """A record makes more rows than a commit has files for: whichever of its snapshots is the last that was kept."""
    columns = ("--field", "p INT", "--field", "k STRING", "--field", "n BIGINT", "--primary-key", "p,k", "--partition-by", "p",
               "--option", "bucket=1")
    table(tarn, "local m = {}\nfunction m.map(r) local rows = {} for i = 1, 1200 do rows[i] = {p = i, k = 'a', n = r.n} end "
                "return rows end\nfunction m.merge(now, row) row.n = row.n + (now and now.n or 0) return row end\nreturn m",
          columns=columns)
    path = Path(tarn.warehouse) / "in.json"
    path.write_text(lines_of([{"n": 1}, {"n": 2}]))
    tarn.run("write", TABLE, path).ok("write")
    places = [properties(tarn, n)["tarn.position.file.in.json"] for n in range(1, 5)]
    need(any(place.count(":") == 3 for place in places), "no cut came between rows: %s" % places)
    for kept in (4, 3, 2, 1):
        tarn.run("rollback", TABLE, kept).ok("rollback to %d" % kept)
        tarn.run("write", TABLE, path).ok("write after %d" % kept)
        rows_now = cat(tarn)
        same((len(rows_now), {r["n"] for r in rows_now}), (1200, {3}), "rows after snapshot %d was the last" % kept)


# ---- of tarn run ----

def test_a_table_of_many_has_the_memory_that_its_script_needs(tarn):
    """It was made before, and the configuration says nothing but its name."""
    path = script(tarn, "return {merge = function(now, row) return row end}")
    tarn.run("create", "db.s", "--field", "k INT", "--primary-key", "k", "--option", "bucket=1", "--option", "tarn.script=%s" % path).ok("create")
    config = Path(tarn.warehouse) / "config.lua"
    for count in (199, 190):
        others = "".join('["db.t%d"] = { fields = { "k INT" }, primary_key = "k", options = { bucket = 1 } }, ' % i for i in range(count))
        config.write_text('return { warehouse = "%s", memory = "32M", tables = { %s ["db.s"] = {} }, sources = { { kind = "stdin", table = "db.s" } } }'
                          % (tarn.warehouse, others))
        result = tarn.run("run", config, "--once", stdin='{"k":%d}\n' % count)
        need(result.rc == 0 or "give it more memory" in result.err, "%d others: %s" % (count, result.err[-400:]))
    same([json.loads(line)["k"] for line in tarn.run("cat", "db.s").ok("cat")][:1], [190], "rows")


ONCE = """local seen = tarn.state("seen")
return {map = function(r)
    if r.id <= (seen.last or 0) then return nil end
    seen.last = r.id
    local made = {}
    for part = 1, r.parts do made[part] = {id = r.id, part = part, text = ("x"):rep(r.size)} end
    return made
end}
"""


def test_each_record_is_mapped_once_however_little_room_there_is(tarn):
    """It would give nothing when it is asked again: as it goes into the journal, as it is taken in pieces, and both."""
    for source in ('kind = "stdin"', 'kind = "file", path = "in.json"'):
        for count, parts, size in ((20000, 1, 10), (3000, 20, 30), (400, 3, 3000)):
            folder = Path(tarn.warehouse) / ("%d-%d-%s" % (count, parts, source.split('"')[1]))
            folder.mkdir()
            (folder / "once.lua").write_text(ONCE)
            text = "".join('{"id":%d,"parts":%d,"size":%d}\n' % (i, parts, size) for i in range(1, count + 1))
            (folder / "in.json").write_text(text)
            (folder / "config.lua").write_text(
                'return { warehouse = "wh", memory = "32M", tables = { ["db.t"] = { fields = { "id BIGINT", "part INT", "text STRING" }, '
                'primary_key = { "id", "part" }, options = { bucket = 1 }, script = "once.lua" } }, sources = { { table = "db.t", %s } } }' % source)
            tarn.run("run", folder / "config.lua", "--once", stdin=text).ok("run")
            seen = peer.Tarn(folder / "wh").run("cat", "db.t", "--columns", "id,part", "--format", "csv").ok("cat")[1:]
            want = {"%d,%d" % (i, p) for i in range(1, count + 1) for p in range(1, parts + 1)}
            same((len(seen), len(want - set(seen))), (len(want), 0), "rows, and of them missing: %s" % folder.name)


# ---- inputs that broke others, through a table ----

def test_digits_and_times_go_through_a_table_s_script(tarn):
    columns = ("--field", "id BIGINT", "--field", "ns BIGINT", "--field", "u DECIMAL(20,0)", "--field", "ts TIMESTAMP(3)", "--field",
               "us TIMESTAMP(6)", "--field", "d DOUBLE", "--primary-key", "id", "--option", "bucket=1")
    table(tarn, "local m = {}\nfunction m.map(r) return r end\nfunction m.merge(now, row)\nrow.ns = row.ns row.u = row.u row.ts = row.ts "
                "row.us = row.us row.d = row.d return row end\nreturn m", columns=columns)
    result, reasons = write_dead(tarn, ['{"id":2882429806056571124,"ns":9223372036854775807,"u":18446744073709551615,'
                                        '"ts":1582135200001,"us":1598924503057155,"d":1.0}', '{"id":9223372036854775808}', '{"id":1.5}'])
    same((result.rc, len(reasons)), (1, 2), result.err)
    same(cat(tarn), [{"id": 2882429806056571124, "ns": 9223372036854775807, "u": "18446744073709551615",
                      "ts": "2020-02-19T18:00:00.001000000", "us": "2020-09-01T01:41:43.057155000", "d": 1.0}], "rows")


def test_an_index_of_nil_takes_one_record(tarn):
    """The process goes on, and says where."""
    table(tarn, "local m = {}\nfunction m.map(row)\nlocal r = {k = row.k}\nr.s = row.meta.x\nreturn r\nend\nreturn m")
    result, reasons = write_dead(tarn, [{"k": "1", "meta": {"x": "a"}}, {"k": "2"}, {"k": "3", "meta": {"x": "b"}}])
    same((result.rc, reasons), (1, ["t.lua:4: attempt to index a nil value (field 'meta')"]), "letters")
    same([r["k"] for r in cat(tarn)], ["1", "3"], "rows")


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
