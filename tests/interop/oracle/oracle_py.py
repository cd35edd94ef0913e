"""Canonical JSON of Paimon tables by pypaimon 2.1.0.

  oracle_py read WAREHOUSE DB.TABLE [--snapshot N] [--tag T] [--projection a,b] [--with-kind] [--option k=v ...]
  oracle_py newest WAREHOUSE DB.TABLE        (the id of the newest snapshot, 0 when there is none)
  oracle_py changelog WAREHOUSE DB.TABLE [--from N] [--to M] [--option k=v ...]
  oracle_py create WAREHOUSE DB.TABLE schema.json [--option k=v ...]
  oracle_py write WAREHOUSE DB.TABLE rows.jsonl [--overwrite] [--option k=v ...]
  oracle_py batch        (commands from stdin, a line each, shell quotes; after each a line "#rc CODE")

Options that begin with s3., s3a. or fs. go to the catalog, all others to the table.
"""
import datetime
import decimal
import json
import re
import shlex
import sys

import pyarrow as pa
from pypaimon import CatalogFactory, Schema


# ---------------------------------------------------------------- canonical JSON

def jstr(s):
    return json.dumps(s, ensure_ascii=False)


def number(v, single):
    if v != v:
        return '"NaN"'
    if v in (float("inf"), float("-inf")):
        return '"Infinity"' if v > 0 else '"-Infinity"'
    if not single or v == 0:
        return repr(v)
    import struct
    sign, v = ("-", -v) if v < 0 else ("", v)
    f32 = lambda d: struct.unpack("<f", struct.pack("<f", d))[0]

    def reads_back(d):
        try:
            return f32(float(d)) == v
        except OverflowError:
            return False
    exact = decimal.Decimal(v)
    for p in range(1, 18):
        ok = []
        for how in (decimal.ROUND_DOWN, decimal.ROUND_UP):
            d = decimal.Context(prec=p, rounding=how).create_decimal(exact)
            if reads_back(d):
                ok.append(d)
        if ok:
            # the nearer one; a tie goes to the even last digit
            best = min(ok, key=lambda d: (abs(decimal.Context(prec=200).subtract(d, exact)), d.as_tuple().digits[-1] % 2))
            break
    t = best.normalize().as_tuple()
    digits = "".join(map(str, t.digits))
    exp = len(digits) - 1 + t.exponent
    if exp < -4 or exp >= 16:
        return "%s%s%se%s%02d" % (sign, digits[0], "." + digits[1:] if len(digits) > 1 else "", "-" if exp < 0 else "+", abs(exp))
    if exp < 0:
        return sign + "0." + "0" * (-exp - 1) + digits
    if len(digits) <= exp + 1:
        return sign + digits + "0" * (exp + 1 - len(digits)) + ".0"
    return sign + digits[:exp + 1] + "." + digits[exp + 1:]


def civil(days):
    """Proleptic Gregorian year, month, day of a day count from 1970-01-01."""
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    d = doy - (153 * mp + 2) // 5 + 1
    m = mp + 3 if mp < 10 else mp - 9
    return yoe + era * 400 + (m <= 2), m, d


def date(days):
    y, m, d = civil(days)
    ys = "%04d" % y if 0 <= y <= 9999 else "%s%04d" % ("-" if y < 0 else "+", abs(y))
    return "%s-%02d-%02d" % (ys, m, d)


UNIT = {"s": 1, "ms": 1000, "us": 1000000, "ns": 1000000000}


def timestamp(v, unit):
    secs, frac = divmod(v, UNIT[unit])
    days, s = divmod(secs, 86400)
    return "%sT%02d:%02d:%02d.%09d" % (date(days), s // 3600, s // 60 % 60, s % 60, frac * (1000000000 // UNIT[unit]))


def column(a):
    """JSON texts of an Arrow array."""
    if isinstance(a, pa.ChunkedArray):
        r = []
        for c in a.chunks:
            r += column(c)
        return r
    t = a.type
    T = pa.types
    if T.is_dictionary(t):
        return column(a.dictionary_decode())
    if T.is_boolean(t):
        f = lambda v: "true" if v else "false"
    elif T.is_integer(t):
        f = str
    elif T.is_float32(t):
        f = lambda v: number(v, True)
    elif T.is_float64(t):
        f = lambda v: number(v, False)
    elif T.is_decimal(t):
        f = lambda v: jstr(format(v, "f"))
    elif T.is_string(t) or T.is_large_string(t):
        f = jstr
    elif T.is_binary(t) or T.is_large_binary(t) or T.is_fixed_size_binary(t):
        f = lambda v: jstr(v.hex())
    elif T.is_date32(t):
        a, f = a.cast(pa.int32()), lambda v: jstr(date(v))
    elif T.is_time(t):
        per = UNIT[t.unit]
        a = a.cast(pa.int32() if t.bit_width == 32 else pa.int64())

        def f(v):
            s, x = divmod(v, per)
            return '"%02d:%02d:%02d.%03d"' % (s // 3600, s // 60 % 60, s % 60, x * 1000 // per)
    elif T.is_timestamp(t):
        unit, z = t.unit, "Z" if t.tz else ""
        a, f = a.cast(pa.int64()), lambda v: jstr(timestamp(v, unit) + z)
    elif T.is_map(t):
        ks, vs, out = column(a.keys), column(a.items), []
        off = a.offsets.to_pylist()
        base = off[0] if off else 0
        for i in range(len(a)):
            if not a[i].is_valid:
                out.append("null")
            else:
                es = sorted(((ks[j - 0], vs[j - 0]) for j in range(off[i] - base, off[i + 1] - base)), key=lambda e: e[0].encode())
                out.append("[" + ",".join("[%s,%s]" % e for e in es) + "]")
        return out
    elif T.is_list(t) or T.is_large_list(t):
        out = []
        for i in range(len(a)):
            out.append("[" + ",".join(column(a[i].values)) + "]" if a[i].is_valid else "null")
        return out
    elif T.is_struct(t):
        names = [t.field(i).name for i in range(t.num_fields)]
        cols = [column(c) for c in a.flatten()]
        if names == ["value", "metadata"] and all(T.is_binary(t.field(i).type) for i in (0, 1)):  # a VARIANT
            names, cols = names[::-1], cols[::-1]
        return ["{" + ",".join("%s:%s" % (jstr(n), c[i]) for n, c in zip(names, cols)) + "}" if a[i].is_valid else "null" for i in range(len(a))]
    elif T.is_null(t):
        return ["null"] * len(a)
    else:
        raise TypeError("no canonical JSON for " + str(t))
    return ["null" if v is None else f(v) for v in a.to_pylist()]


def rows(table, kind=False):
    names = [n for n in table.column_names if n != "_row_kind"]
    cols = [column(table.column(n)) for n in names]
    kinds = table.column("_row_kind").to_pylist() if "_row_kind" in table.column_names else ["+I"] * table.num_rows
    heads = [jstr(n) for n in names]
    out = []
    for i in range(table.num_rows):
        body = "{" + ",".join("%s:%s" % (h, c[i]) for h, c in zip(heads, cols)) + "}"
        out.append((kinds[i], body, i))
    return out


# ---------------------------------------------------------------- commands

class Args:
    def __init__(self, argv):
        self.pos, self.opt, self.catalog, self.table = [], {}, {}, {}
        i = 0
        while i < len(argv):
            a = argv[i]
            if a == "--option":
                while i + 1 < len(argv) and re.match(r"[A-Za-z0-9_.-]+=", argv[i + 1]):
                    i += 1
                    k, v = argv[i].split("=", 1)
                    (self.catalog if k.startswith(("s3.", "s3a.", "fs.")) else self.table)[k] = v
            elif a in ("--with-kind", "--overwrite"):
                self.opt[a[2:]] = True
            elif a.startswith("--"):
                i += 1
                self.opt[a[2:]] = argv[i]
            else:
                self.pos.append(a)
            i += 1


def open_catalog(a):
    o = {"warehouse": a.pos[0]}
    o.update(a.catalog)
    return CatalogFactory.create(o)


def open_table(a, **extra):
    name = a.pos[1]
    if a.opt.get("branch", "main") != "main":
        name += "$branch_" + a.opt["branch"]
    t = open_catalog(a).get_table(name)
    o = dict(a.table)
    o.update(extra)
    return t.copy(o) if o else t


def read(a):
    extra = {}
    if "snapshot" in a.opt:
        extra["scan.snapshot-id"] = a.opt["snapshot"]
    if "tag" in a.opt:
        extra["scan.tag-name"] = a.opt["tag"]
    t = open_table(a, **extra)
    rb = t.new_read_builder()
    if "projection" in a.opt:
        rb = rb.with_projection(a.opt["projection"].split(","))
    out = rb.new_read().to_arrow(rb.new_scan().plan().splits())
    kind = "with-kind" in a.opt
    lines = ['{"kind":"%s","row":%s}' % r[:2] if kind else r[1] for r in rows(out)] if out is not None else []
    for l in sorted(lines, key=str.encode):
        print(l)


def newest(a):
    snapshot = open_table(a).snapshot_manager().get_latest_snapshot()
    print(snapshot.id if snapshot else 0)


def changelog(a):
    t = open_table(a)
    rb = t.new_stream_read_builder().with_include_row_kind(True)
    scan = rb.new_streaming_scan()
    sm = t.snapshot_manager()
    latest = sm.get_latest_snapshot()
    if latest is None:
        return
    keys = list(t.primary_keys or [])
    if keys:
        keys += [p for p in t.partition_keys if p not in keys]
    for sid in range(int(a.opt.get("from", 1)), int(a.opt.get("to", latest.id)) + 1):
        s = sm.get_snapshot_by_id(sid)
        if s is None or not scan.follow_up_scanner.should_scan(s):
            continue
        out = rb.new_read().to_arrow(scan._create_follow_up_plan(s).splits())
        if out is None:
            continue
        got = rows(out)
        if keys:
            ks = [r[1] for r in rows(out.select(keys))]
        else:
            ks = [r[1] for r in got]
        for k, (kind, body, _) in sorted(zip(ks, got), key=lambda e: e[0].encode()):
            print('{"snapshot":%d,"kind":"%s","row":%s}' % (sid, kind, body))


ATOM = {"BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
        "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "STRING": pa.string(), "BYTES": pa.binary(), "DATE": pa.date32()}


def split_types(s):
    out, depth, cur = [], 0, ""
    for c in s:
        depth += c in "<(" and 1 or c in ">)" and -1 or 0
        if c == "," and depth == 0:
            out.append(cur)
            cur = ""
        else:
            cur += c
    return out + [cur]


def arrow_type(s):
    s = s.strip()
    nn = s.upper().endswith(" NOT NULL")
    if nn:
        s = s[:-9].strip()
    if "<" in s:
        head, inner = s[:s.index("<")].upper(), split_types(s[s.index("<") + 1:s.rindex(">")])
        if head == "ARRAY":
            t = pa.list_(arrow_type(inner[0])[0])
        elif head == "MAP":
            t = pa.map_(arrow_type(inner[0])[0], arrow_type(inner[1])[0])
        else:
            t = pa.struct([pa.field(x.strip().split(" ", 1)[0], *arrow_type(x.strip().split(" ", 1)[1])) for x in inner])
    elif s.upper() in ATOM:
        t = ATOM[s.upper()]
    else:
        m = re.match(r"(\w+)\((\d+)(?:,\s*(\d+))?\)", s)
        n, p, q = m.group(1).upper(), int(m.group(2)), int(m.group(3) or 0)
        unit = "s" if p == 0 else "ms" if p <= 3 else "us" if p <= 6 else "ns"
        t = {"DECIMAL": lambda: pa.decimal128(p, q), "TIMESTAMP": lambda: pa.timestamp(unit), "TIMESTAMP_LTZ": lambda: pa.timestamp(unit, "UTC"),
             "VARCHAR": pa.string, "CHAR": pa.string, "VARBINARY": pa.binary, "BINARY": lambda: pa.binary(p), "TIME": lambda: pa.time32("ms")}[n]()
    return t, not nn


def parse(v, t):
    """A Python value that pyarrow turns into type t, from canonical JSON."""
    T = pa.types
    if v is None:
        return None
    if T.is_floating(t):
        return float(v)
    if T.is_decimal(t):
        return decimal.Decimal(v)
    if T.is_binary(t) or T.is_fixed_size_binary(t):
        return bytes.fromhex(v)
    if T.is_date(t):
        return datetime.date.fromisoformat(v)
    if T.is_time(t):
        return datetime.time.fromisoformat(v)
    if T.is_timestamp(t):
        d, s = v.rstrip("Z").split("T")
        hms, _, frac = s.partition(".")
        h, m, sec = hms.split(":")
        secs = (datetime.date.fromisoformat(d) - datetime.date(1970, 1, 1)).days * 86400 + int(h) * 3600 + int(m) * 60 + int(sec)
        return secs * UNIT[t.unit] + int((frac + "0" * 9)[:9]) * UNIT[t.unit] // 1000000000
    if T.is_map(t):
        return [(parse(k, t.key_type), parse(x, t.item_type)) for k, x in v]
    if T.is_list(t):
        return [parse(x, t.value_type) for x in v]
    if T.is_struct(t):
        return {t.field(i).name: parse(v.get(t.field(i).name), t.field(i).type) for i in range(t.num_fields)}
    return v


def create(a):
    with open(a.pos[2], encoding="utf-8") as f:
        s = json.load(f)
    c = open_catalog(a)
    c.create_database(a.pos[1].split(".")[0], True)
    fields = [pa.field(x["name"], *arrow_type(x["type"])) for x in s["fields"]]
    c.create_table(a.pos[1], Schema.from_pyarrow_schema(pa.schema(fields), partition_keys=s.get("partitionKeys", []),
                   primary_keys=s.get("primaryKeys", []), options={k: str(v) for k, v in s.get("options", {}).items()}), False)


def write(a):
    from pypaimon.schema.data_types import PyarrowFieldParser
    t = open_table(a)
    schema = PyarrowFieldParser.from_paimon_schema(t.fields)
    data = {f.name: [] for f in schema}
    kinds = []
    with open(a.pos[2], encoding="utf-8") as f:
        for line in f:
            if line.strip():
                r = json.loads(line)
                wrapped = isinstance(r.get("row"), dict)
                kinds.append(r.get("kind", "+I") if wrapped else "+I")
                r = r["row"] if wrapped else r
                for x in schema:
                    data[x.name].append(parse(r.get(x.name), x.type))
    cols = []
    for x in schema:
        raw = data[x.name]
        cols.append(pa.array(raw, pa.int64()).cast(x.type) if pa.types.is_timestamp(x.type) else pa.array(raw, x.type))
    table = pa.Table.from_arrays(cols, schema=schema)
    if any(k != "+I" for k in kinds):
        raise SystemExit("oracle_py: pypaimon writes +I rows only")
    wb = t.new_batch_write_builder()
    if a.opt.get("overwrite"):
        wb = wb.overwrite()
    w, c = wb.new_write(), wb.new_commit()
    w.write_arrow(table)
    c.commit(w.prepare_commit())
    w.close()
    c.close()


def batch():
    for line in sys.stdin:
        argv = shlex.split(line)
        if not argv:
            continue
        try:
            rc = main(argv)
        except BaseException as e:  # whatever pypaimon raises, the next command goes on
            sys.stderr.write("oracle_py: %s: %s\n" % (type(e).__name__, str(e).split("\n")[0]))
            rc = 3
        print("#rc %d" % rc, flush=True)
    return 0


def main(argv):
    if argv == ["batch"]:
        return batch()
    if not argv or argv[0] not in ("read", "newest", "changelog", "create", "write"):
        sys.stderr.write(__doc__)
        return 2
    a = Args(argv[1:])
    {"read": read, "newest": newest, "changelog": changelog, "create": create, "write": write}[argv[0]](a)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
