"""Random scripts: what one does with a table's rows, written in Lua and computed here.

A Fold is one random description of `merge`, `retract` and `announce` for the columns of a Table, a Map one of `map`. Each says
the same twice: `lua()` is a script for tarn, the methods are the model. Rows are {column: value}, values are what a script has in
its hands: integers, floats, texts and bytes; a DECIMAL is its unscaled integer; None is NULL.
"""
import json
import math

import values
from model import Table

CONTROL = "c"  # an INT that decides what becomes of a row
CONTROLS = 16
LOCAL = "local fold, deadband = tarn.fold, tarn.deadband\nlocal NOTHING = {}\nlocal m = {}\n"


class Dead(Exception):
    """The row is a dead letter; the text is a part of the reason."""


# ---------------------------------------------------------------- values

def native(t, text):
    """The value of a canonical JSON text."""
    if text == values.NULL:
        return None
    plain = json.loads(text) if text[0] == '"' else text
    if t.name == "BOOLEAN":
        return plain == "true"
    if t.name in values.INTEGER_BITS:
        return int(plain)
    if t.floating:
        return values.narrow(float(plain)) if t.name == "FLOAT" else float(plain)
    if t.name == "DECIMAL":
        return int(plain.replace(".", ""))
    if t.textual:
        return plain
    if t.binary:
        return bytes.fromhex(plain)
    if t.name == "DATE":
        return values.days_in(plain)
    if t.name == "TIME":
        h, m, s = plain.split(":")
        return int(h) * 3600000 + int(m) * 60000 + int(s.replace(".", ""))
    return values.nanos_in(plain) // nanos_of(t)


def canonical(t, value):
    """The canonical JSON text of a value."""
    if value is None:
        return values.NULL
    if t.name == "BOOLEAN":
        return "true" if value else "false"
    if t.name in values.INTEGER_BITS:
        return str(value)
    if t.floating:
        return values.floating_text(value, t.name == "FLOAT")
    if t.textual:
        return json.dumps(value, ensure_ascii=False)
    if t.binary:
        return '"%s"' % value.hex()
    return '"%s"' % {"DECIMAL": lambda: values.decimal_text(value, t.b), "DATE": lambda: values.date_text(value),
                     "TIME": lambda: values.time_text(value)}.get(
        t.name, lambda: values.timestamp_text(value * nanos_of(t), t.name == "TIMESTAMP_LTZ"))()


def nanos_of(t):
    """Of the unit in which a script sees a TIMESTAMP."""
    return 10 ** (9 - (3 if t.a <= 3 else 6 if t.a <= 6 else 9))


def fitting(t, value):
    """What a script has computed, as its column keeps it; Dead when it can't."""
    if value is None:
        return None
    if t.name in values.INTEGER_BITS:
        value, top = wrapped(value), 2 ** (values.INTEGER_BITS[t.name] - 1)
        if not -top <= value < top:
            raise Dead("fit")
    if t.name == "DECIMAL" and abs(value) >= 10 ** t.a:
        raise Dead("fit")
    if t.name == "VARCHAR" and len(value) > t.a:
        raise Dead("fit")
    if t.name == "FLOAT" and math.isfinite(value):
        narrow = values.narrow(value)
        if not math.isfinite(narrow):
            raise Dead("fit")
        return narrow
    return value


def wrapped(value):
    """A 64-bit integer that went round."""
    return (value + 2 ** 63) % 2 ** 64 - 2 ** 63


# ---------------------------------------------------------------- rules of a column

def larger(now, new):
    return new if now is None else now if new is None else new if ordered(new) > ordered(now) else now


def smaller(now, new):
    return new if now is None else now if new is None else new if ordered(new) < ordered(now) else now


def ordered(value):
    return value.encode() if isinstance(value, str) else value


def added(now, new):
    if now is None or new is None:
        return now if new is None else new
    return now + new


def exactly_added(now, new):
    if now is None or new is None:
        return now if new is None else new
    if wrapped(now + new) != now + new:
        raise Dead("doesn't fit 64 bits")
    return now + new


JOINED_MAX = 30


def joined(now, new):
    """Texts one behind the other; begins again when they are too long."""
    if now is None or new is None:
        return now if new is None else new
    return now + "," + new if len((now + "," + new).encode()) <= JOINED_MAX else new


class Rule:
    """`lua` is a function of (now, new), `step` is what it does."""

    def __init__(self, lua, step):
        self.lua, self.step = lua, step


RULES = {
    "newest": Rule("function(_, new) return new end", lambda now, new: new),
    "max": Rule("fold.max", larger),
    "min": Rule("function(now, new) return fold.min(now, new) end", smaller),
    "sum": Rule("function(now, new) return now and new and now + new or now or new end", added),
    "exact": Rule("fold.sum", exactly_added),
    "last": Rule("fold.last", lambda now, new: now if new is None else new),
    "first": Rule("fold.first", lambda now, new: new if now is None else now),
    "count": Rule("fold.count", lambda now, new: (now or 0) + 1),
    "join": Rule("function(now, new)\n    if not (now and new) then return now or new end\n"
                 "    return #now + 1 + #new <= %d and now .. ',' .. new or new\nend" % JOINED_MAX, joined),
}


def rules_for(t):
    if t.name in values.INTEGER_BITS:
        return ["newest", "max", "min", "sum", "sum", "exact", "last", "first", "count", "count"]
    if t.floating or t.name == "DECIMAL":
        return ["newest", "max", "min", "sum", "sum", "last", "first"]
    if t.name == "STRING" or t.name == "VARCHAR":
        return ["newest", "max", "min", "last", "first", "join", "join"]
    if t.name == "BOOLEAN" or t.binary:
        return ["newest", "last", "first"]
    return ["newest", "max", "min", "last", "first"]


# ---------------------------------------------------------------- tables

def random_columns(rng, textual=False):
    """A Table of random keys and of columns that folds know; `textual`: its values can stand in any JSON, as `map` sees it."""
    table = Table()

    def a_type(key=False):
        while True:
            t = values.random_type(rng)
            if not (textual and (t.binary or t.floating) or key and t.floating):
                return t
    names = ["p0"] * (rng.random() < 0.3) + ["k%d" % i for i in range(rng.choice([1, 1, 2]))]
    columns = [(n, values.Type(rng.choice(["INT", "STRING"])) if n == "p0" else a_type(True), True) for n in names]
    columns.append((CONTROL, values.Type("INT"), False))
    columns.append(("n", values.Type(rng.choice(["BIGINT", "INT"])), False))  # counts, most of the time
    for i in range(rng.randint(1, 5)):
        t = rng.choice([a_type(), values.Type("INT"), values.Type("BIGINT"), values.Type("STRING"), values.Type("DECIMAL", 10, 2)])
        columns.append(("v%d" % i, t, rng.random() < 0.15))
    if rng.random() < 0.5:
        columns.append(("s", rng.choice([values.Type("BIGINT"), values.Type("INT"), values.Type("TIMESTAMP", 3)]), False))
    if rng.random() < 0.4:
        columns += [("x", values.Type(rng.choice(["DOUBLE", "INT", "SMALLINT"])), False), ("x_mean", values.Type("DOUBLE"), False),
                    ("x_count", values.Type("BIGINT"), False)]
    if rng.random() < 0.4:
        columns += [("d", values.Type("DOUBLE"), False), ("d_told", values.Type("DOUBLE"), False)]
    rng.shuffle(columns)
    for column in columns:
        table.add(*column)
    table.partition = [n for n in names if n == "p0"]
    table.primary = list(names)
    rng.shuffle(table.primary)
    return table


def row_of(table, line):
    """A list of canonical texts as a row."""
    return {n: native(t, v) for n, t, v in zip(table.names, table.types, line)}


def line_of(table, row):
    return table.line([canonical(t, row[n]) for n, t in zip(table.names, table.types)])


def key_of(table, row):
    return tuple(canonical(t, row[n]) for n, t in zip(table.names, table.types) if n in table.primary)


# ---------------------------------------------------------------- map

class RecordMap:
    """A `map` that takes rows out of records: {"how": "drop" | "bad" | "one" | "list", "rows": [...]}."""

    input = "json"

    def __init__(self, rng, table):
        names = [n for n, t in zip(table.names, table.types) if t.name in ("INT", "BIGINT") and n not in table.primary and n != CONTROL]
        self.halved = rng.choice([None, *names])

    def lua(self):
        half = self.halved and "if row.%s then row.%s = row.%s // 2 end" % (self.halved, self.halved, self.halved)
        return """function m.map(record, meta)
    if record.how == "drop" then return nil end
    if record.how == "bad" then error("nothing to see", 0) end
    for _, row in ipairs(record.rows) do
        %s
    end
    return record.how == "one" and record.rows[1] or record.rows
end
""" % (half or "row.nothing = nil")

    def rows(self, how, rows):
        """Those that are made of a record."""
        if how == "bad":
            raise Dead("nothing to see")
        if how == "drop":
            return []
        return [{**row, self.halved: row[self.halved] // 2} if self.halved and row[self.halved] is not None else row for row in rows]


class RowMap:
    """A `map` of rows that were decoded: it drops some, fails on some, makes two of some."""

    input = "changes"

    def __init__(self, rng, table):
        self.dropped, self.bad, self.doubled = rng.sample(range(CONTROLS), 3)

    def lua(self):
        return """function m.map(row, meta)
    if row.%s == %d then return nil end
    if row.%s == %d then error("not this one", 0) end
    if row.%s ~= %d then return row end
    local other = row:copy()
    other.%s, other.n = nil, 7
    return { row, other }
end
""" % (CONTROL, self.dropped, CONTROL, self.bad, CONTROL, self.doubled, CONTROL)

    def rows(self, row):
        if row[CONTROL] == self.bad:
            raise Dead("not this one")
        if row[CONTROL] == self.dropped:
            return []
        return [row] if row[CONTROL] != self.doubled else [row, {**row, CONTROL: None, "n": 7}]


# ---------------------------------------------------------------- folds

# What a function does with a row, and what is said of it where that is wrong.
ACTIONS = {"error": ("error('refused', 0)", "refused"), "number": ("return 7", "returned a number"),
           "unknown": ("return { nosuch = 1 }", "no column 'nosuch'"), "fraction": ("row.n = 0.5 return row", "is no integer"),
           "key": ("return { %s = false }", ""), "loop": ("while true do end", "budget"),
           "keep": ("return tarn.KEEP", None), "delete": ("return tarn.DELETE", None)}
CHANCES = ["error", "number", "unknown", "fraction", "key", "keep", "keep", "delete", "delete", "loop"]
BAND = 2.5


class Fold:
    """One random script of a table."""

    def __init__(self, rng, table, sequence=None):
        self.table, self.sequence = table, sequence
        self.types = dict(zip(table.names, table.types))
        self.plain = [n for n in table.names if n not in table.primary]
        self.by_column = rng.random() < 0.3
        self.rules = {n: rng.choice(rules_for(self.types[n])) for n in self.plain}
        self.rules[CONTROL] = "newest"
        self.rules["n"] = "count" if rng.random() < 0.8 else "sum"
        for name in ("s", "x", "d"):
            if name in self.rules:
                self.rules[name] = "newest"
        self.by_two = [] if self.by_column else [n for n in ("x_mean", "d_told") if n in self.types]
        controls = rng.sample(range(CONTROLS), 9)
        self.actions = {controls.pop(): rng.choice(["error"] if self.by_column else CHANCES) for _ in range(rng.randint(0, 4))}
        self.late = "s" in self.types and not self.by_column and rng.choice([None, "own"] + ["ctx", "ctx"] * bool(sequence))
        self.full = rng.choice([None, None, 4, 9])  # this many rows are enough: the row goes
        self.style = rng.choice(["row", "now", "table"])
        self.retracts = rng.choice([None, None, "keep", "undo", "undo", "mark"])
        self.stays = controls.pop() if rng.random() < 0.3 else None  # of a delete: an error
        self.shows = rng.choice([None, None, "same", "some", "some"])
        self.hidden = controls.pop() if rng.random() < 0.35 else None
        self.unseen = controls.pop() if rng.random() < 0.2 else None  # can't be announced: an error
        self.image = [n for i, n in enumerate(table.names) if table.not_null[i] or rng.random() < 0.6]
        self.tells = "d_told" in self.types and rng.random() < 0.7

    # ---- what it does

    def merge(self, now, row, late=False):
        """What is true when `row` comes: a row, `now` itself, or None."""
        if self.by_column:
            return self.merge_columns(now, row)
        if self.late == "ctx" and late or self.late == "own" and now and is_less(row["s"], now["s"]):
            return now
        action = self.actions.get(row[CONTROL])
        if action == "keep":
            return now
        if action == "delete":
            return None
        if action:
            raise Dead(ACTIONS[action][1])
        was = now or dict.fromkeys(self.plain)
        if self.full and (was["n"] or 0) >= self.full:
            return None
        out = {n: fitting(self.types[n], RULES[self.rules[n]].step(was[n], row[n])) for n in self.plain if n not in self.twos()}
        if "x_mean" in self.by_two:
            out["x_mean"], out["x_count"] = mean(was["x_mean"], row["x"], was["x_count"])
        if "d_told" in self.by_two:
            out["d_told"] = told(was["d_told"], row["d"])
        return self.checked({**row, **out})

    def is_late(self, now, row):
        """By tarn.sequence.field; NULL is the oldest."""
        if not self.sequence or now is None:
            return False
        a, b = row[self.sequence], now[self.sequence]
        return b is not None and (a is None or a < b)

    def merge_columns(self, now, row):
        was, out = now or dict.fromkeys(self.plain), dict(row)
        for name in self.plain:  # in their order, which decides of two errors
            if name == CONTROL and row[CONTROL] in self.actions:
                raise Dead("refused")
            out[name] = fitting(self.types[name], RULES[self.rules[name]].step(was[name], row[name]))
        return self.checked(out)

    def twos(self):
        return {n for one in self.by_two for n in {"x_mean": ("x_mean", "x_count"), "d_told": ("d_told",)}[one]}

    def checked(self, row):
        for i, name in enumerate(self.table.names):
            if self.table.not_null[i] and row[name] is None:
                raise Dead("NOT NULL")
        return row

    def retract(self, now, row):
        if not self.retracts:
            return None
        if self.stays is not None and row[CONTROL] == self.stays:
            raise Dead("it stays")
        if self.retracts == "keep":
            return now
        if self.retracts == "mark":
            return {**(now or row), CONTROL: -1}
        return self.undo(now, row)

    def undo(self, now, row):
        if now is None or now["n"] is None or now["n"] <= 1:
            return None
        out = {**now, "n": now["n"] - 1}
        for name in self.summed():
            if now[name] is not None and row[name] is not None:
                out[name] = fitting(self.types[name], now[name] - row[name])
        return self.checked(out)

    def summed(self):
        return [n for n in self.plain if n != "n" and self.rules[n] in ("sum", "exact") and n not in self.twos()]

    def step(self, now, kind, row, late=False):
        """What is true when a change comes."""
        if kind == "-U":
            return now
        return self.retract(now, row) if kind == "-D" else self.merge(now, row, late)

    def announce_as(self, other):
        for name in ("shows", "hidden", "unseen", "image", "tells"):
            setattr(self, name, getattr(other, name))

    def announce(self, row):
        """The image, or None."""
        if row is not None and self.unseen is not None and row[CONTROL] == self.unseen:
            raise Dead("not to be told")
        if row is None or self.hidden is not None and row[CONTROL] == self.hidden:
            return None
        if self.shows != "some":
            return row
        image = {n: row[n] if n in self.image or n in self.table.primary else None for n in self.table.names}
        if self.tells:
            image["d"] = row["d_told"]
        return image

    # ---- in Lua

    def lua(self, mapping=None):
        out = [LOCAL] + ([mapping.lua()] if mapping else [])
        out += ["local function fold_%s(now, new)\n    return (%s)(now, new)\nend\n" % (n, RULES[r].lua) for n, r in self.rules.items() if n not in self.twos()]
        out += [self.lua_columns() if self.by_column else self.lua_merge()]
        if self.retracts:
            out.append(self.lua_retract())
        if self.shows or self.hidden is not None or self.unseen is not None:
            out.append(self.lua_announce())
        return "\n".join([*out, "return m\n"])

    def lua_columns(self):
        errors = " or ".join("new == %d" % c for c in self.actions) or "false"
        out = ["m.merge = {"] + ["    %s = fold_%s," % (n, n) for n in self.plain if n != CONTROL and self.rules[n] != "newest"]
        return "\n".join(out + ["    %s = function(_, new)\n        if %s then error('refused', 0) end\n        return new\n    end,\n}\n" % (CONTROL, errors)])

    def lua_merge(self):
        out = ["function m.merge(now, row, ctx)"]
        if self.late == "ctx":
            out.append("if ctx.late then return tarn.KEEP end")
        if self.late == "own":
            out.append("if now and row.s and now.s and row.s < now.s then return tarn.KEEP end")
        for control, action in self.actions.items():
            how = ACTIONS[action][0]
            out.append("if row.%s == %d then %s end" % (CONTROL, control, how % self.a_key() if "%" in how else how))
        out += ["local was = now or NOTHING"]
        if self.full:
            out.append("if (was.n or 0) >= %d then return tarn.DELETE end" % self.full)
        out += ["local out = %s" % {"row": "row", "now": "now or row", "table": "{}"}[self.style]]
        if "x_mean" in self.by_two:
            out.append("out.x_mean, out.x_count = fold.mean(was.x_mean, row.x, was.x_count)")
        if "d_told" in self.by_two:
            out.append("out.d_told = deadband(was.d_told, row.d, %s)" % BAND)
        out += ["out.%s = fold_%s(was.%s, row.%s)" % (n, n, n, n) for n in self.plain
                if n not in self.twos() and not (self.style == "row" and self.rules[n] == "newest")]
        return "\n    ".join([*out, "return out"]) + "\nend\n"

    def a_key(self):
        """A column of the key that can't be false."""
        return next((n for n in self.table.primary if self.types[n].name != "BOOLEAN"), "nosuch")

    def lua_retract(self):
        out = ["function m.retract(now, row, ctx)", "assert(ctx.kind == '-D')"]
        if self.stays is not None:
            out.append("if row.%s == %d then error('it stays', 0) end" % (CONTROL, self.stays))
        if self.retracts == "keep":
            out.append("return tarn.KEEP")
        elif self.retracts == "mark":
            out += ["local out = now or row", "out.%s = -1" % CONTROL, "return out"]
        else:
            out += ["if not now or not now.n or now.n <= 1 then return tarn.DELETE end", "now.n = now.n - 1"]
            out += ["if now.%s and row.%s then now.%s = now.%s - row.%s end" % (n, n, n, n, n) for n in self.summed()]
            out += ["return now"]
        return "\n    ".join(out) + "\nend\n"

    def lua_announce(self):
        out = ["function m.announce(row)"]
        if self.unseen is not None:
            out.append("if row.%s == %d then error('not to be told', 0) end" % (CONTROL, self.unseen))
        if self.hidden is not None:
            out.append("if row.%s == %d then return nil end" % (CONTROL, self.hidden))
        if self.shows == "some":
            image = {n: "row." + n for n in self.image}
            if self.tells:
                image["d"] = "row.d_told"
            out.append("return { %s }" % ", ".join("%s = %s" % x for x in image.items()))
        else:
            out.append("return row")
        return "\n    ".join(out) + "\nend\n"


def is_less(a, b):
    return a is not None and b is not None and a < b


def mean(now, new, count):
    count = count or 0 if now is not None else 0
    if new is None:
        return now, count
    count = wrapped(count + 1)
    return (now + divided(new - now, count) if now is not None else new + 0.0), count


def divided(a, b):
    """As IEEE 754 has it."""
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a)
    return a / b


def told(was, value):
    if was is None or value is None or value != value:
        return value
    return was if abs(value - was) < BAND else value
