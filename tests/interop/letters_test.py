"""Dead letters, driven as a person does: in a file, in a table, and what becomes of them when their records come again.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". usage: letters_test.py [NAME...]
"""
import json
import random
import subprocess
import sys
from pathlib import Path

import peer
import runner
from peer import need, same

TABLE = "plant.r"
LETTERS = "plant.dead"
GOOD, BAD = {"dev": "a", "n": 1}, {"dev": "b", "n": "x"}
COLUMNS = ["source", "position", "part", "table", "line", "input", "header", "reason", "record", "bytes", "retry"]


def create(tarn, *fields, table=TABLE, option="file.format=avro"):
    flags = [x for f in fields or ("dev STRING", "n INT") for x in ("--field", f)]
    tarn.run("create", table, *flags, "--primary-key", "dev", "--option", "bucket=1", "--option", option).ok("create")


def lines(*records):
    return b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)


def file_of(tarn, name, *records):
    path = Path(tarn.warehouse) / name
    path.write_bytes(lines(*records))
    return path


def write(tarn, *args, stdin=None, rc=1, letters=LETTERS):
    result = tarn.run("write", TABLE, *args, "--dead-letters", letters, stdin=stdin)
    same(result.rc, rc, "exit code of write: %s" % result.err)
    return result


def rows(tarn, table=TABLE):
    return [json.loads(line) for line in tarn.run("cat", table, "--format", "json").ok("cat")]


def keys(letters):
    return [(letter["position"], letter["part"]) for letter in letters]


def test_a_letter_in_a_file_says_where_its_record_came_from(tarn):
    create(tarn)
    path = Path(tarn.warehouse) / "dead.jsonl"
    write(tarn, file_of(tarn, "in.json", GOOD, BAD, b"\xff{"), letters=path)
    first, second = [json.loads(line) for line in path.read_bytes().decode().splitlines()]
    same([first[x] for x in ("line", "position", "part", "table", "input")], [2, len(lines(GOOD)), 0, TABLE, "json"], "where")
    same(json.loads(first["record"]), BAD, "record")
    need("is no INT" in first["reason"], first["reason"])
    need(first["source"].startswith("file.in.json:"), first["source"])
    same(second["position"], len(lines(GOOD, BAD)), "position")
    same([first.get("bytes"), second.get("record"), second["bytes"]], [None, None, "ff7b"], "bytes")


def test_a_line_that_was_cut_short_is_not_gone_on_with(tarn):
    create(tarn)
    path = Path(tarn.warehouse) / "dead.jsonl"
    path.write_text('{"line":1,"rea')
    write(tarn, stdin=lines(BAD), letters=path)
    same(len([x for x in path.read_text().splitlines() if x.endswith('}')]), 1, "whole lines")


def test_letters_in_a_table_are_what_pypaimon_reads(tarn):
    create(tarn)
    write(tarn, file_of(tarn, "in.json", GOOD, BAD, b"\xff{"))
    got = rows(tarn, LETTERS)
    same(list(got[0]), COLUMNS, "columns")
    same(keys(got), [(len(lines(GOOD)), 0), (len(lines(GOOD, BAD)), 0)], "keys")
    same([json.loads(got[0]["record"]), got[0]["bytes"], got[1]["record"], got[1]["bytes"]], [BAD, None, None, "ff7b"], "records")
    with peer.pypaimon() as python:
        seen = python.run("read", tarn.warehouse, LETTERS).ok("pypaimon read")
    same(peer.ordered(tarn.run("cat", LETTERS, "--format", "json").ok("cat")), peer.ordered(seen), "letters")
    tarn.run("fsck", LETTERS).ok("fsck")


def test_the_table_is_made_with_the_first_letter(tarn):
    create(tarn)
    write(tarn, stdin=lines(GOOD), rc=0)
    need(not any(LETTERS.split(".")[1] in line for line in tarn.run("ls", "plant").lines), "the table is there")
    write(tarn, stdin=lines(BAD))
    same(len(rows(tarn, LETTERS)), 1, "letters")


def test_a_csv_letter_has_its_header(tarn):
    create(tarn)
    path = Path(tarn.warehouse) / "in.csv"
    path.write_bytes(b"\xef\xbb\xbfdev,n\r\na,1\r\nb,zz\r\n")
    write(tarn, path, "--input", "csv")
    letter = rows(tarn, LETTERS)[0]
    same([letter["header"], letter["record"], letter["line"]], ["dev,n", "b,zz", 3], "letter")
    with path.open("ab") as to:
        to.write(b"c,yy\n")
    write(tarn, path, "--input", "csv")
    same([x["header"] for x in rows(tarn, LETTERS)], ["dev,n"] * 2, "headers")


def test_each_run_of_standard_input_has_its_own_letters(tarn):
    create(tarn)
    for _ in range(3):
        write(tarn, stdin=lines(BAD))
    got = rows(tarn, LETTERS)
    same(keys(got), [(0, 0)] * 3, "keys")
    same(len({letter["source"] for letter in got}), 3, "sources")


def test_a_record_that_succeeds_when_it_comes_again_has_no_letter(tarn):
    create(tarn, "dev STRING", "ts TIMESTAMP(3)")
    late, never, early = {"dev": "a", "ts": 5}, {"dev": "b", "ts": "x"}, {"dev": "c", "ts": 6}
    path = file_of(tarn, "in.json", early, late, never)
    other = file_of(tarn, "other.json", late)
    write(tarn, path, other)
    same(len(rows(tarn, LETTERS)), 4, "letters")
    offset = len(lines(early))
    write(tarn, path, "--from", offset, "--time", "ts=ms")
    same(sorted(keys(rows(tarn, LETTERS))), [(0, 0), (0, 0), (len(lines(early, late)), 0)], "letters that are left")
    same([row["dev"] for row in rows(tarn)], ["a"], "rows")


def test_a_repeat_of_a_named_commit_leaves_letters_as_they_are(tarn):
    create(tarn)
    name = ["--user", "me", "--commit-id", "7"]
    for data in (None, lines(GOOD, BAD)):
        args = [file_of(tarn, "in.json", GOOD, BAD)] if data is None else []
        letters = "plant.l%d" % len(args)
        write(tarn, *args, *name, stdin=data, letters=letters)
        before = rows(tarn, letters)
        same(len(before), 1, "letters")
        write(tarn, *args, *name, "--unknown-columns", "drop", stdin=data, rc=0, letters=letters)
        same(rows(tarn, letters), before, "letters")
        name[3] = "8"
    need(":me:8" in before[0]["source"], before[0]["source"])


def test_tables_that_share_a_file_share_no_letter(tarn):
    create(tarn)
    create(tarn, "dev STRING", "n STRING", table="plant.q")
    path = file_of(tarn, "in.json", BAD, b"{")
    write(tarn, path)
    tarn.run("write", "plant.q", path, "--dead-letters", LETTERS)
    same(sorted((x["table"], x["position"]) for x in rows(tarn, LETTERS)),
         [("plant.q", len(lines(BAD))), (TABLE, 0), (TABLE, len(lines(BAD)))], "letters")


def test_a_file_that_grew_before_its_first_position_is_the_same(tarn):
    create(tarn)
    path = file_of(tarn, "it's.json", GOOD, BAD)
    write(tarn, path, "--user", "me", "--commit-id", "1")  # which notes no position
    with path.open("ab") as to:
        to.write(lines(BAD))
    write(tarn, path)
    got = rows(tarn, LETTERS)
    same(keys(got), [(len(lines(GOOD)), 0), (len(lines(GOOD, BAD)), 0)], "letters")
    same(len({x["source"] for x in got}), 1, "sources")
    path.write_bytes(lines(BAD, GOOD))  # the same inode, another file
    write(tarn, path, "--user", "me", "--commit-id", "2")
    same(len({x["source"] for x in rows(tarn, LETTERS)}), 2, "sources")


def test_a_name_is_a_table_where_there_is_its_database(tarn):
    create(tarn)
    here = Path.cwd() / "plant2.dead"
    try:
        write(tarn, stdin=lines(BAD), letters="plant2.dead")
        same(len(here.read_text().splitlines()), 1, "lines")
    finally:
        here.unlink(missing_ok=True)


def test_what_is_no_table_of_letters_is_refused(tarn):
    create(tarn)
    create(tarn, table="plant.other")
    for name, text in ((TABLE, "can't keep its own dead letters"), ("plant.other", "want a column 'source' of type STRING")):
        result = write(tarn, stdin=lines(GOOD), rc=2, letters=name)
        need(text in result.err, result.err)
    types = "source STRING,position BIGINT,part INT,table STRING,line BIGINT,input STRING,header STRING,reason STRING,record STRING,bytes BYTES,retry BIGINT"
    for extra, option, rc in (([], "file.format=avro", 1), (["more INT"], "file.format=avro", 1), (["more INT NOT NULL"], "file.format=avro", 2),
                              (["more INT"], "sequence.field=more", 2), ([], "merge-engine=first-row", 2)):
        name = "plant.t%d" % len(list((Path(tarn.warehouse) / "plant.db").iterdir()))
        flags = [x for f in types.split(",") + extra for x in ("--field", f)]
        tarn.run("create", name, *flags, "--primary-key", "source,position,part", "--option", "bucket=2", "--option", option).ok("create")
        result = write(tarn, stdin=lines(BAD), rc=rc, letters=name)
        need(rc == 1 or "no table of dead letters" in result.err, result.err)
        same(len(rows(tarn, name)), rc == 1, "letters")


def test_letters_that_find_no_memory_end_the_write_and_nothing_is_lost(tarn):
    create(tarn)
    long = {"dev": "x" * 200000, "n": "bad"}
    result = write(tarn, stdin=lines(GOOD, long), rc=2)
    need("is larger than the" in result.err and "no INT" in result.err, result.err)
    same(rows(tarn), [], "rows")
    result = write(tarn, "--memory", "7M", stdin=lines(GOOD), rc=2)
    need("a file needs none" in result.err, result.err)
    write(tarn, stdin=lines(GOOD, long), letters=Path(tarn.warehouse) / "dead.jsonl")


def test_any_number_of_letters_fits_the_memory(tarn):
    create(tarn)
    count = 60000
    data = lines(GOOD) + lines(BAD) * count
    result = write(tarn, "--memory", "12M", stdin=data)
    need("%d records went to the dead letters: %s" % (count, LETTERS) in result.err, result.err)
    same(len(rows(tarn, LETTERS)), count, "letters")
    same(sorted((Path(tarn.warehouse) / ".tarn/scratch").iterdir()), [], "scratch files")


SCRIPT = """
local m = {}
function m.map(row, meta)
    if row.n == 7 then error("seven") end
    if row.n >= 100 then
        return { { dev = row.dev, n = 1 }, { dev = row.dev, n = row.n - 100 }, { dev = row.dev, n = 2 } }
    end
    return row
end
function m.merge(now, row, ctx)
    if row.n == 13 then error("thirteen") end
    return { dev = row.dev, n = row.n, sum = (now and now.sum or 0) + row.n }
end
return m
"""


def create_scripted(tarn, text=SCRIPT, new=True):
    path = Path(tarn.warehouse) / "s.lua"
    path.write_text(text)
    if new:
        create(tarn, "dev STRING", "n INT", "sum INT", option="tarn.script=%s" % path)


def test_rows_that_a_script_fails_on_have_letters_of_their_own(tarn):
    create_scripted(tarn)
    records = [{"dev": "a", "n": 1}, {"dev": "b", "n": 13}, {"dev": "c", "n": 7}, {"dev": 'q"\u00e9', "n": 113}]
    at = [len(lines(*records[:i])) for i in range(len(records))]
    path = file_of(tarn, "in.json", *records)
    result = write(tarn, path)
    need("1 records and 2 rows went to the dead letters" in result.err, result.err)
    got = rows(tarn, LETTERS)
    same([(x["position"], x["part"], x["input"]) for x in got], [(at[1], 0, "row"), (at[2], 0, "json"), (at[3], 1, "row")], "letters")
    same(json.loads(got[2]["record"]), {"kind": "+I", "row": {"dev": 'q"\u00e9', "n": 13, "sum": None}}, "row")
    need(all("s.lua:" in x["reason"] and (x["line"] is None) == (x["input"] == "row") for x in got), got)
    same({row["dev"]: row["sum"] for row in rows(tarn)}, {"a": 1, 'q"\u00e9': 3}, "sums")
    write(tarn, path, letters=Path(tarn.warehouse) / "dead.jsonl", rc=0)
    more = file_of(tarn, "more.json", records[3])
    write(tarn, more, letters=Path(tarn.warehouse) / "dead.jsonl")
    same(len((Path(tarn.warehouse) / "dead.jsonl").read_text().splitlines()), 1, "lines")
    result = tarn.run("write", TABLE, stdin=lines(records[1]))
    need("row 1 of the record at byte 0: s.lua:" in result.err and "1 rows went to" in result.err, result.err)


def test_many_rows_die_in_many_flushes_and_each_has_one_letter(tarn):
    create_scripted(tarn)
    count = 30000
    data = b"".join(lines({"dev": "d%d" % (i % 977), "n": 13 if i % 3 else 1}) for i in range(count))
    write(tarn, "--commit-every", "7000", "--memory", "12M", stdin=data)
    same(len(rows(tarn, LETTERS)), count * 2 // 3, "letters")
    same(sum(row["sum"] for row in rows(tarn)), count // 3, "sum")


def retry(tarn, *args, rc=0, letters=LETTERS, sent=None, left=0):
    result = tarn.run("retry", TABLE, *args, "--dead-letters", letters)
    same(result.rc, rc, "exit code of retry: %s" % result.err)
    if sent is not None:
        need("tarn: %d letters were sent again, %d are left" % (sent, left) in result.err, result.err)
    return result


def test_letters_are_sent_again_until_they_are_taken(tarn):
    create_scripted(tarn)
    records = [{"dev": "a", "n": 1}, {"dev": "b", "n": 13}, {"dev": "c", "n": 7}, {"dev": "d", "n": 113}, b"{"]
    write(tarn, file_of(tarn, "in.json", *records))
    before = rows(tarn, LETTERS)
    retry(tarn, rc=1, sent=4, left=4)
    same(rows(tarn, LETTERS), before, "letters that failed again")
    sums = {"a": 1, "d": 3}
    same({row["dev"]: row["sum"] for row in rows(tarn)}, sums, "sums")
    create_scripted(tarn, SCRIPT.replace("13", "-1").replace("n == 7", "n == -7"), new=False)
    retry(tarn, "--commit-every", "1", rc=1, sent=4, left=1)
    same({row["dev"]: row["sum"] for row in rows(tarn)}, {"a": 1, "b": 13, "c": 7, "d": 16}, "sums")
    same([x["record"] for x in rows(tarn, LETTERS)], ["{"], "letters")
    retry(tarn, rc=1, sent=1, left=1)
    for table in (TABLE, LETTERS):
        tarn.run("fsck", table).ok("fsck")


def test_letters_of_every_form_are_sent_as_they_came(tarn):
    create(tarn, "dev STRING", "ts TIMESTAMP(3)")
    path = Path(tarn.warehouse) / "in.csv"
    path.write_bytes(b'dev,ts\n"a\nb",5\nc,x\n')
    write(tarn, path, "--input", "csv")
    write(tarn, "--input", "changes", stdin=lines({"kind": "+U", "row": {"dev": "d", "ts": 6}}))
    write(tarn, "--input", "debezium-json", stdin=lines({"before": None, "after": {"dev": "e", "ts": 7}, "op": "c"}))
    write(tarn, stdin=lines({"dev": "f", "ts": 8}), letters="plant.more")
    result = retry(tarn, "--time", "ts=ms", rc=1, sent=4, left=1)
    same([row["dev"] for row in rows(tarn)], ["a\nb", "d", "e"], "rows")
    same([x["line"] for x in rows(tarn, LETTERS)], [4], "line of the letter that is left")
    need("committed snapshot=" in result.err, result.err)


def test_letters_in_a_file_move_to_a_table_and_are_sent(tarn):
    create_scripted(tarn)
    path = Path(tarn.warehouse) / "dead.jsonl"
    write(tarn, stdin=lines({"dev": "b", "n": 13}, {"dev": 'c"', "n": 7}), letters=path)
    result = tarn.run("retry", TABLE, "--dead-letters", path)
    same(result.rc, 2, "exit code")
    need("FILE --dead-letters D.L" in result.err, result.err)
    create_scripted(tarn, SCRIPT.replace("13", "-1"), new=False)
    retry(tarn, path, rc=1, sent=2, left=1)
    need(not path.exists(), "the file is there")
    same([x["record"] for x in rows(tarn, LETTERS)], [json.dumps({"dev": 'c"', "n": 7})], "letters")
    path.write_text('{"reason":"of another time"}\n')
    retry(tarn, path, rc=2)
    need(path.exists(), "the file is gone")


def test_letters_that_are_no_text_move_and_are_kept(tarn):
    create(tarn)
    path = Path(tarn.warehouse) / "dead.jsonl"
    names = {"in.json": b"in.json", "u" * 115 + "\u00e4" * 9: b"u" * 115 + "\u00e4".encode() * 2 + b"?", "n\udcffme": b"n?me"}
    records = [b'{"dev":"a","n":"\xff"}', b"x" * 255 + "\u00e4".encode() + b"y" * 300, b"x" * 255 + b"\xc3", b"x" * 300 + b"\xc3("]
    for name in names:
        write(tarn, file_of(tarn, name, *records), letters=path)
    made = [json.loads(line) for line in path.read_bytes().decode().splitlines()]
    same([x.get("bytes", x.get("record")) for x in made],
         [r.decode() if i == 1 else r.hex() for i, r in enumerate(records)] * len(names), "records")
    retry(tarn, path, rc=1, sent=len(made), left=len(made))
    need(not path.exists(), "the file is there")
    got = rows(tarn, LETTERS)
    same(sorted(x["bytes"] or x["record"] for x in got), sorted(x.get("bytes", x.get("record")) for x in made), "letters")
    same({x["source"].split(":")[0] for x in got}, {"file." + n.decode() for n in names.values()}, "sources")
    user = tarn.run("write", TABLE, "--user", "n\udcffme", "--commit-id", "1", stdin=b"")
    need(user.rc == 2 and "--user is no UTF-8" in user.err, user.err)
    made = tarn.run("create", "plant.u", "--field", "k INT", "--primary-key", "k", "--option", "bucket=1", "--comment", "\udcff")
    need(made.rc == 2 and "no UTF-8" in made.err, made.err)
    for snapshot in (Path(tarn.warehouse) / "plant.db").glob("*/snapshot/snapshot-*"):
        json.loads(snapshot.read_bytes().decode())


def test_only_the_letters_of_the_table_are_sent(tarn):
    create(tarn)
    create(tarn, table="plant.q")
    tarn.run("write", "plant.q", "--dead-letters", LETTERS, stdin=lines(BAD, BAD))
    write(tarn, stdin=lines(BAD))
    retry(tarn, rc=1, sent=1, left=1)
    same(len(rows(tarn, LETTERS)), 3, "letters")
    for args, text in (((), "--dead-letters D.L says where"), (("--dead-letters", "plant.daed"), "did you mean 'plant.dead'?")):
        result = tarn.run("retry", TABLE, *args)
        same(result.rc, 2, "exit code")
        need(text in result.err, result.err)


def test_a_retry_that_is_killed_folds_no_row_twice(tarn):
    create_scripted(tarn)
    count = 40
    path = file_of(tarn, "in.json", *[{"dev": "d%d" % i, "n": 13 if i % 2 else 113} for i in range(count)])
    write(tarn, path)
    same(len(rows(tarn, LETTERS)), count, "letters")
    create_scripted(tarn, SCRIPT.replace("13", "-1"), new=False)
    rng, killed = random.Random(5), 0
    argv = [str(peer.TARN), "retry", TABLE, "--warehouse", tarn.warehouse, "--dead-letters", LETTERS, "--commit-every", "1"]
    for _ in range(60):
        process = subprocess.Popen(argv, stderr=subprocess.PIPE)
        for _ in range(rng.randrange(12)):
            process.stderr.readline()
        process.kill()
        process.communicate()
        killed += process.returncode < 0
    retry(tarn)
    need(killed > 0, "none was killed")
    want = {"d%d" % i: 13 if i % 2 else 16 for i in range(count)}
    same({row["dev"]: row["sum"] for row in rows(tarn)}, want, "sums after %d kills" % killed)
    same(rows(tarn, LETTERS), [], "letters")


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
