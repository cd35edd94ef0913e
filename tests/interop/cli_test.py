"""The verbs that look and tidy up, driven as a person does: tag, rollback, expire, clean, ls, show, pools, help, --version.

Each test is a function `test_*`, whose name is a sentence and which gets an empty warehouse; the last line is "N passed, M
failed". Needs no package. usage: cli_test.py [NAME...]
"""
import json
import os
import re
import sys
from pathlib import Path

import peer
import runner
from peer import need, same
from verbs import TABLE, clean, create, files_of, refused, rows_of, sensors, snapshots_of, three_commits, write, writing


# ---- tag, rollback ----

def test_a_tag_keeps_its_snapshot_and_a_rollback_goes_back_to_it(tarn):
    three_commits(tarn)
    first = tarn.run("cat", TABLE, "--snapshot", 1).ok("cat")
    same(rows_of(tarn.run("tag", TABLE, "a", "--snapshot", 1, "--dry-run"), "tag"), [{"tag": "a", "snapshot": 1}], "dry run")
    refused(tarn.run("cat", TABLE, "--tag", "a"), 2, "there is no tag 'a'", "a tag of a dry run")
    tarn.run("tag", TABLE, "a", "--snapshot", 1).ok("tag")
    tarn.run("tag", TABLE, "newest", "--time-retained", "30 d").ok("tag")
    same([(r["tag_name"], r["snapshot_id"], r["time_retained"]) for r in rows_of(tarn.run("show", TABLE, "tags"), "show tags")],
         [("a", 1, None), ("newest", 3, "2592000 s")], "show tags")
    for args, text in [(["a"], "there is a tag 'a' already"), (["x/y"], "no tag's name"), (["7"], "taken for a snapshot"),
                       (["b", "--snapshot", 9], "no snapshot 9"), (["b", "--time-retained", "soon"], "no duration"),
                       (["b", "--delete"], "no tag 'b'"), (["a", "--delete", "--snapshot", 1], "--delete goes with neither")]:
        refused(tarn.run("tag", TABLE, *args), 2, text, "tag %s" % args)
    tarn.run("expire", TABLE, "--retain-max", 1, "--retain-min", 1, "--older-than", "0 s").ok("expire")
    for verb in (["cat"], ["ls"], ["show", "files"], ["show", "manifests"]):
        tarn.run(verb[0], TABLE, *verb[1:], "--tag", "a").ok(verb)
    same(tarn.run("cat", TABLE, "--tag", "a").ok("cat"), first, "the tag's rows")
    for args, text in [(["b"], "no tag 'b'"), (["2"], "no snapshot 2, nor a tag of it"), (["9"], "no snapshot 9")]:
        refused(tarn.run("rollback", TABLE, *args), 2, text, "rollback %s" % args)
    want = [{"snapshot": 1, "snapshots": 1, "tags": 1, "changelogs": 0}]
    same(rows_of(tarn.run("rollback", TABLE, "a", "--dry-run"), "rollback"), want, "dry run")
    same([r["snapshot_id"] for r in snapshots_of(tarn)], [3], "snapshots behind a dry run")
    same(rows_of(tarn.run("rollback", TABLE, "a"), "rollback"), want, "rollback")
    same(tarn.run("cat", TABLE).ok("cat"), first, "rows")
    clean(tarn)
    tarn.run("clean", TABLE, "--older-than", "0 s").ok("clean")
    tarn.run("fsck", TABLE, "--orphans").ok("fsck")
    tarn.run("tag", TABLE, "a", "--delete").ok("tag --delete")
    same(tarn.run("cat", TABLE).ok("cat"), first, "rows without the tag")


def test_a_rollback_takes_inputs_back_and_tells_of_consumers(tarn):
    create(tarn, ["k INT", "v INT"], "--primary-key", "k", "--option", "bucket=1")
    path = os.path.join(tarn.warehouse, "rows.json")
    for i in range(3):
        with open(path, "a", encoding="utf-8") as f:
            f.write('{"k":%d,"v":%d}\n' % (i, i))
        tarn.run("write", TABLE, path).ok("write")
    tarn.run("tail", TABLE, "--consumer", "c").ok("tail")
    result = tarn.run("rollback", TABLE, 1)
    result.ok("rollback")
    need("positions of inputs go back with snapshot 1" in result.err, result.err)
    need("consumer 'c' goes on at snapshot 4" in result.err and "tarn-" not in result.err, result.err)
    same(rows_of(tarn.run("cat", TABLE), "cat"), [{"k": 0, "v": 0}], "rows")
    tarn.run("tail", TABLE, "--consumer", "c", "--forget").ok("forget")
    clean(tarn)
    tarn.run("write", TABLE, path).ok("write")
    same([r["k"] for r in rows_of(tarn.run("cat", TABLE), "cat")], [0, 1, 2], "what came behind it is read again")
    clean(tarn)


def test_a_rollback_never_takes_back_what_a_lake_has(tarn):
    lake = tarn.warehouse + ".lake"
    three_commits(tarn)
    rows = {at: tarn.run("cat", TABLE, "--snapshot", at).ok("cat") for at in (1, 2, 3)}
    tarn.run("sync", TABLE, lake).ok("sync")
    said = tarn.run("rollback", TABLE, 2, "--dry-run")
    same(rows_of(said, "dry run")[0]["snapshot"], 4, "dry run")
    same(len(snapshots_of(tarn)), 3, "snapshots behind a dry run")
    for at, made in ((2, 4), (1, 5), (3, 6)):
        said = tarn.run("rollback", TABLE, at)
        same(rows_of(said, "rollback")[0], {"snapshot": made, "snapshots": 0, "tags": 0, "changelogs": 0}, "rollback to %d" % at)
        need("snapshot %d has the state of %d" % (made, at) in said.err, said.err)
        same(tarn.run("cat", TABLE).ok("cat"), rows[at], "rows of %d" % at)
        same(rows_of(tarn.run("rollback", TABLE, at), "rollback")[0]["snapshot"], made, "the same again")
    same([s["commit_kind"] for s in snapshots_of(tarn)][3:], ["OVERWRITE"] * 3, "kinds")
    write(tarn, [{"dev": "d0", "temp": 99.0}])
    tarn.run("sync", TABLE, lake).ok("sync")
    there = peer.Tarn(lake)
    for at in (4, 5, 6):
        same(there.run("cat", TABLE, "--snapshot", at).ok("cat"), rows[{4: 2, 5: 1, 6: 3}[at]], "snapshot %d in the lake" % at)
    same(there.run("cat", TABLE).ok("cat"), tarn.run("cat", TABLE).ok("cat"), "rows of the lake")
    for place in (tarn, there):
        place.run("expire", TABLE, "--retain-max", 1, "--retain-min", 1, "--older-than", "0 s").ok("expire")
        clean(place)


# ---- expire ----

def commits(tarn, count, *args):
    sensors(tarn, *args)
    for commit in range(count):
        write(tarn, [{"dev": "d%d" % i, "temp": float(commit)} for i in range(5)])


def test_expire_keeps_what_it_is_told_to(tarn):
    commits(tarn, 8, "--option", "write-only=true")
    same(rows_of(tarn.run("expire", TABLE), "expire")[0]["snapshots"], 0, "by the table's options")
    said = rows_of(tarn.run("expire", TABLE, "--retain-max", 3, "--dry-run"), "expire")[0]
    same((said["snapshots"], len(snapshots_of(tarn))), (5, 8), "dry run")
    same(rows_of(tarn.run("expire", TABLE, "--retain-max", 3), "expire")[0], said, "the same, done")
    same([s["snapshot_id"] for s in snapshots_of(tarn)], [6, 7, 8], "snapshots")
    clean(tarn)


def older_by_two_hours(tarn):
    """All snapshots, as they would be found then."""
    for path in (Path(tarn.warehouse) / "plant.db/readings/snapshot").glob("snapshot-*"):
        snapshot = json.loads(path.read_text())
        snapshot["timeMillis"] -= 2 * 3600 * 1000
        path.write_text(json.dumps(snapshot))


def test_expire_by_age_keeps_the_minimum(tarn):
    commits(tarn, 6, "--option", "write-only=true")
    same(rows_of(tarn.run("expire", TABLE, "--older-than", "1 h", "--retain-min", 1), "expire")[0]["snapshots"], 0, "an hour")
    same(rows_of(tarn.run("expire", TABLE, "--older-than", "2001-01-01"), "expire")[0]["snapshots"], 0, "long ago")
    older_by_two_hours(tarn)
    tarn.run("expire", TABLE, "--older-than", "1 h", "--retain-min", 2).ok("expire")
    same([s["snapshot_id"] for s in snapshots_of(tarn)], [5, 6], "snapshots")
    clean(tarn)


def test_expire_respects_consumers(tarn):
    commits(tarn, 5, "--option", "write-only=true")
    folder = Path(tarn.warehouse) / "plant.db/readings/consumer"
    folder.mkdir(exist_ok=True)
    (folder / "consumer-lake").write_text('{"nextSnapshot":3}')
    tarn.run("expire", TABLE, "--retain-max", 1).ok("expire")
    same([s["snapshot_id"] for s in snapshots_of(tarn)], [3, 4, 5], "snapshots")
    same(rows_of(tarn.run("show", TABLE, "consumers"), "consumers")[-1], {"consumer_id": "lake", "next_snapshot_id": 3},
         "consumers")


def test_write_says_that_a_damaged_tag_keeps_old_snapshots(tarn):
    commits(tarn, 2, "--option", "snapshot.num-retained.min=1", "--option", "snapshot.num-retained.max=1")
    tag = Path(tarn.warehouse) / "plant.db/readings/tag/tag-bad"
    tag.parent.mkdir()
    tag.write_text("x")
    for quiet in ([], ["--quiet"]):
        result = tarn.run("write", TABLE, "--commit-every", "1", *quiet, stdin='{"dev":"a"}\n' * 3)
        same((result.rc, result.err.count("old snapshots stay: "), result.err.count("tag-bad")), (0, 1, 1), result.err)
    tag.unlink()
    result = tarn.run("write", TABLE, stdin='{"dev":"a"}\n')
    need("stay" not in result.err and len(snapshots_of(tarn)) == 1, result.err)


def test_write_refuses_to_commit_every_nonsense(tarn):
    commits(tarn, 1)
    for every in ("0", "-5", "+5", "5 parsecs", "-5s", "0s", "soon", "99999999999999999999"):
        refused(tarn.run("write", TABLE, "--commit-every", every, stdin=""), 2, "--commit-every", every)


def test_expire_refuses_nonsense(tarn):
    commits(tarn, 1)
    refused(tarn.run("expire", TABLE, "--retain-max", 0), 2, "--retain-max", "none at all")
    refused(tarn.run("expire", TABLE, "--retain-max", 1, "--retain-min", 2), 2, "above", "min above max")
    refused(tarn.run("expire", TABLE, "--older-than", "soon"), 2, "--older-than", "soon")


# ---- clean ----

def test_clean_removes_old_files_that_nothing_reaches(tarn):
    commits(tarn, 3)
    root = Path(tarn.warehouse) / "plant.db/readings"
    reached = sorted(p for p in root.rglob("*") if p.is_file())
    left = [root / p for p in ("bucket-0/data-left.avro", "manifest/manifest-left", "snapshot/.snapshot-9.left.tmp", "bucket-5/data-x.avro")]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("left")
    same(rows_of(tarn.run("clean", TABLE), "young files"), [{"files": 0, "bytes": 0, "folders": 0}], "young files")
    for path in reached + left:
        os.utime(path, (0, 86400))
    said = tarn.run("clean", TABLE, "--dry-run", "-v")
    same(rows_of(said, "dry run"), [{"files": 4, "bytes": 16, "folders": 0}], "dry run")
    need(all(p.name in said.err for p in left) and all(p.exists() for p in left), "a dry run names them: %s" % said.err)
    same(rows_of(tarn.run("clean", TABLE, "--older-than", "1970-01-02"), "clean")[0]["files"], 0, "not older than that")
    same(rows_of(tarn.run("clean", TABLE), "clean"), [{"files": 4, "bytes": 16, "folders": 1}], "clean")
    same(sorted(p for p in root.rglob("*") if p.is_file()), reached, "what is left")
    tarn.run("fsck", TABLE, "--orphans").ok("fsck")
    refused(tarn.run("clean", TABLE, "--older-than", "soon"), 2, "--older-than", "soon")
    refused(tarn.run("clean", TABLE, "--older-than", "2100-01-01"), 2, "--older-than", "later")
    refused(tarn.run("clean", "plant.readigs"), 2, "readings", "another table")


# ---- ls and show ----

def test_ls_lists_tables_and_files(tarn):
    create(tarn, ["a INT"], table="zoo.empty")
    sensors(tarn)
    write(tarn, [{"dev": "a", "temp": 1.0}, {"dev": "b", "temp": 2.0}])
    tables = rows_of(tarn.run("ls"), "ls")
    same([(t["table"], t["snapshot"], t["rows"]) for t in tables], [(TABLE, 1, 2), ("zoo.empty", None, 0)], "tables")
    same([t["table"] for t in rows_of(tarn.run("ls", "zoo"), "ls zoo")], ["zoo.empty"], "tables of zoo")
    files = files_of(tarn)
    same(sum(f["rows"] for f in files), 2, "rows in files")
    for f in files:
        path = Path(tarn.warehouse) / ("plant.db/readings/bucket-%d" % f["bucket"]) / f["name"]
        same(f["bytes"], path.stat().st_size, "bytes of %s" % path)
    same(files_of(tarn, "zoo.empty"), [], "files of an empty table")
    same(tarn.run("ls", "--format", "csv").ok("csv")[0], "table,primary_key,snapshot,rows,last_commit", "csv")
    need(tarn.run("ls", "--format", "table").ok("table")[0].startswith("table "), "a table for people")


def test_a_broken_table_does_not_hide_the_others(tarn):
    create(tarn, ["a INT"], table="zoo.bad")
    create(tarn, ["a INT"], table="zoo.good")
    (Path(tarn.warehouse) / "zoo.db/bad/schema/schema-0").write_text("{")
    (Path(tarn.warehouse) / "zoo.db/no-table").mkdir()
    result = tarn.run("ls")
    same(result.rc, 3, "exit code")
    same([json.loads(x)["table"] for x in result.lines], ["zoo.good"], "tables")
    need("zoo.bad" in result.err, "said: %s" % result.err)


def test_show_prints_the_columns_of_system_tables(tarn):
    create(tarn, ["k INT", "p STRING", "v DOUBLE"], "--primary-key", "p,k", "--partition-by", "p", "--option", "bucket=2",
           "--comment", "of a test")
    for commit in range(3):
        write(tarn, [{"k": k, "p": "x%d" % (k % 2), "v": None if k == 3 else k + 0.5} for k in range(10)])
    columns = {
        "schema": "id name type key partition default description",
        "options": "key value",
        "schemas": "schema_id fields partition_keys primary_keys options comment update_time",
        "snapshots": "snapshot_id schema_id commit_user commit_identifier commit_kind commit_time base_manifest_list "
                     "delta_manifest_list changelog_manifest_list total_record_count delta_record_count "
                     "changelog_record_count watermark",
        "manifests": "file_name file_size num_added_files num_deleted_files schema_id min_partition_stats "
                     "max_partition_stats",
        "files": "partition bucket file_path file_format schema_id level record_count file_size_in_bytes min_key max_key "
                 "null_value_counts min_value_stats max_value_stats min_sequence_number max_sequence_number "
                 "creation_time deleteRowCount file_source",
        "partitions": "partition record_count file_size_in_bytes file_count last_update_time",
        "buckets": "partition bucket record_count file_size_in_bytes file_count last_update_time",
    }
    found = {}
    for what, names in columns.items():
        found[what] = rows_of(tarn.run("show", TABLE, what), what)
        same(" ".join(found[what][0]), names, "columns of %s" % what)
    same([r["partition"] for r in found["partitions"]], ["{x0}", "{x1}"], "partitions")
    same(sum(r["record_count"] for r in found["buckets"]), 30, "records")
    same(json.loads(found["schemas"][0]["fields"])[1], {"id": 1, "name": "p", "type": "STRING NOT NULL"}, "a field")
    same(found["schemas"][0]["comment"], "of a test", "comment")
    first = found["files"][0]
    need((Path(tarn.warehouse) / first["file_path"]).exists(), "the file is there")
    need(re.fullmatch(r"\{k=\d, p=x\d, v=\d\.5\}", first["min_value_stats"]), "stats: %s" % first["min_value_stats"])
    need(re.fullmatch(r"\[\d\]", first["min_key"]), "a key: %s" % first["min_key"])
    for what in ("tags", "branches"):
        same(tarn.run("show", TABLE, what).ok(what), [], what)
    branch = Path(tarn.warehouse) / "plant.db/readings/branch/branch-b"
    branch.mkdir(parents=True)
    os.utime(branch, (0, 86400))
    same(rows_of(tarn.run("show", TABLE, "branches"), "branches"), [{"branch_name": "b", "create_time": "1970-01-02T00:00:00.000000000Z"}],
         "branches")
    branch.rmdir()
    one = rows_of(tarn.run("show", TABLE, "files", "--snapshot", 1), "files at 1")
    need(len(one) < len(found["files"]), "files at snapshot 1")


def test_show_streams_thousands_of_snapshots_in_small_memory(tarn):
    sensors(tarn, buckets=1)
    write(tarn, [{"dev": "a", "temp": 1.0}])
    folder = Path(tarn.warehouse) / "plant.db/readings/snapshot"
    text = json.loads((folder / "snapshot-1").read_text())
    for i in range(2, 5001):
        (folder / ("snapshot-%d" % i)).write_text(json.dumps(dict(text, id=i)))
    (folder / "LATEST").write_text("5000")
    same([s["snapshot_id"] for s in rows_of(tarn.run("show", TABLE, "snapshots", "--memory", "6M"), "snapshots")],
         list(range(1, 5001)), "ids")


# ---- words that are nearly right, locks, help ----

def test_a_misspelt_name_is_answered_with_the_nearest(tarn):
    sensors(tarn)
    create(tarn, ["a INT"], table="zoo.animals")
    for verb, words in (("get", ["a"]), ("cat", []), ("ls", []), ("compact", []), ("expire", []), ("show", ["files"])):
        refused(tarn.run(verb, "plant.reading", *words), 2, "did you mean 'plant.readings'?", verb)
        refused(tarn.run(verb, "plan.readings", *words), 2, "there is no such database; did you mean 'plant'?", verb)
        refused(tarn.run(verb, "plant.xyzxyz", *words), 2, "there is no such table", verb)
    refused(tarn.run("write", "plant.reading", stdin=""), 2, "did you mean 'plant.readings'?", "write")
    refused(tarn.run("ls", "zooo"), 2, "did you mean 'zoo'?", "ls")
    refused(tarn.run("show", TABLE, "snapshot"), 2, "did you mean 'snapshots'?", "show")
    refused(tarn.run("get", TABLE, "a", "--columns", "tmp"), 2, "did you mean 'temp'?", "get --columns")


def test_a_name_that_is_none_is_refused_before_anything_is_made(tarn):
    for name, text in (("plant.a/b", "hold '/'"), ("../plant.t", "hold '/'"), ("a/plant.t", "hold '/'"), ("plant.a\tb", "control characters"),
                       ("plant.", "neither part may be empty"), ("plant." + "n" * 175, "181 bytes, 180 at the most")):
        refused(tarn.run("create", name, "--field", "k INT", "--option", "bucket=-1"), 2, text, name)
    same([p for p in Path(tarn.warehouse).rglob("*") if p.suffix in (".lock", ".db")], [], "what was made")
    longest = "plant." + "é" * 87
    tarn.run("create", longest, "--field", "k INT", "--primary-key", "k", "--option", "bucket=1").ok("create")
    tarn.run("write", longest, stdin='{"k":1}\n').ok("write")
    same(tarn.run("cat", longest).ok("cat"), ['{"k":1}'], "rows")


def test_one_process_at_a_time_writes_compacts_and_expires(tarn):
    sensors(tarn)
    with writing(tarn.warehouse, TABLE, "1", b'{"dev":"a","temp":1.0}\n{"dev":"b","temp":1.0}\n'):
        for verb in ("compact", "expire", "clean"):
            refused(tarn.run(verb, TABLE), 5, "tarn write", verb)
        same(tarn.run("get", TABLE, "a").rc, 0, "a reader needs no lock")


def test_help_works_without_a_warehouse(tarn):
    bare = peer.Tarn(Path(tarn.warehouse) / "nowhere")
    overview = "\n".join(bare.run("help").ok("help"))
    for word in ("get", "tail", "compact", "expire", "clean", "ls", "show", "pools"):
        need(re.search(r"^  %s\b" % word, overview, re.MULTILINE), "help names %s" % word)
    topics = re.findall(r"^  (\w+) ", overview[overview.index("Topics of") :], re.MULTILINE)
    files = {x.stem: x.read_text() for x in Path("engine/app/help").iterdir()}
    same(sorted(topics), sorted([*files, "options"]), "each text is a topic, and each topic has one")
    for topic, text in files.items():
        lines = bare.run("help", topic).ok("help %s" % topic)
        same(lines, text.splitlines(), "help %s" % topic)
        need(len(lines) > 5 and not any(x != x.rstrip() or len(x) > 80 for x in lines), "lines of %s" % topic)
    need(any("num-sorted-run.compaction-trigger" in x for x in bare.run("help", "options").lines), "options")
    need(any("--full" in x for x in bare.run("help", "compact").lines), "help of a verb")
    refused(bare.run("help", "startt"), 2, "did you mean 'start'?", "help startt")
    version = bare.run("cat", "--version").ok("version")
    same(version[0], "tarn 0.1.0", "version")
    need(any(x.startswith("zstd 1.") for x in version), "the libraries' versions")


def test_pools_add_up_to_the_memory_that_was_given(tarn):
    bare = peer.Tarn(Path(tarn.warehouse) / "nowhere")
    for args, most in (((), 16 << 20), (("--memory", "8M"), 8 << 20)):
        parts = {r["part"]: r for r in rows_of(bare.run("pools", *args), "pools")}
        need(parts["block"]["size"] + parts["other"]["size"] <= most, "they fit %d" % most)
        need(parts["block"]["size"] > most * 3 // 4, "and use it")
        for name in ("memtable", "long", "short", "levels", "table", "input", "long codec"):
            need(parts[name]["used"] <= parts[name]["peak"] <= parts[name]["size"], name)
    refused(bare.run("pools", "--memory", "1M"), 2, "", "pools of too little memory")


def main():
    return runner.run_tests(runner.tests_of(globals()), sys.argv[1:], runner.in_a_warehouse)


if __name__ == "__main__":
    sys.exit(main())
