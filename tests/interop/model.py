"""What a table must hold: an independent, small model of deduplicate and append tables.

A Table is a random schema with options; a Model is the state after some records. Rows are lists of canonical values in
schema order. Source of the rules: Paimon's deduplicate merge engine, RowKindFilter, default values.
"""
import json

import values

RETRACT = ("-U", "-D")


class Table:
    """A schema and its options, with what the model must know of them."""

    def __init__(self):
        self.names, self.types, self.not_null, self.defaults = [], [], [], []
        self.primary, self.partition, self.options = [], [], {}
        self.wide = False  # holds years that pypaimon can't
        self.altered = set()  # names of columns that got another type

    def add(self, name, t, not_null=False, default=None):
        self.names.append(name)
        self.types.append(t)
        self.not_null.append(not_null)
        self.defaults.append(default)

    def index(self, name):
        return self.names.index(name)

    @property
    def sequence(self):
        text = self.options.get("sequence.field", "")
        return [self.index(c) for c in text.split(",") if c]

    @property
    def descending(self):
        return self.options.get("sequence.field.sort-order") == "descending"

    def flag(self, option):
        return self.options.get(option) == "true"

    def json(self):
        fields = []
        for i, name in enumerate(self.names):
            field = {"name": name, "type": self.types[i].text + (" NOT NULL" if self.not_null[i] else "")}
            if self.defaults[i] is not None:
                field["defaultValue"] = values.plain_form(self.defaults[i])
            fields.append(field)
        return json.dumps({"fields": fields, "primaryKeys": self.primary, "partitionKeys": self.partition,
                           "options": self.options}, ensure_ascii=False, indent=1)

    def line(self, row):
        return "{%s}" % ",".join("%s:%s" % (json.dumps(n, ensure_ascii=False), v) for n, v in zip(self.names, row))


class Model:
    """The state of a table: for each key the winning version, deletes too; for append tables a list."""

    def __init__(self, table):
        self.table, self.keys, self.rows = table, {}, []

    def copy(self):
        other = Model(self.table)
        other.keys, other.rows = dict(self.keys), list(self.rows)
        return other

    def key(self, row):
        return tuple(row[self.table.index(c)] for c in self.table.primary)

    def rank(self, row):
        """What decides between two versions of a key; NULL loses in both orders."""
        out = []
        for i in self.table.sequence:
            if row[i] == values.NULL:
                out.append((0, 0))
            else:
                at = values.order(self.table.types[i], row[i])
                out.append((1, -at if self.table.descending else at))
        return out

    def has_rows(self):
        return bool(self.keys or self.rows)

    def _every(self):
        return [row for _, row in self.keys.values()] + self.rows

    def values_of(self, at):
        return {row[at] for row in self._every()} - {values.NULL}

    def change(self, at, becomes):
        """Each value of a column becomes another."""
        def changed(row):
            return [becomes.get(v, v) if i == at else v for i, v in enumerate(row)]
        self.keys = {key: (kind, changed(row)) for key, (kind, row) in self.keys.items()}
        self.rows = [changed(row) for row in self.rows]

    def apply(self, kind, row):
        """Takes one row. Returns False for one that is a dead letter."""
        table = self.table
        if any(v == values.NULL and (table.not_null[i] or table.names[i] in table.primary) for i, v in enumerate(row)):
            return False
        row = [table.defaults[i] if v == values.NULL and table.defaults[i] is not None else v for i, v in enumerate(row)]
        if "rowkind.field" in table.options:
            kind = values.plain_form(row[table.index(table.options["rowkind.field"])])
            if kind not in ("+I", "-U", "+U", "-D"):
                return False
        if kind in RETRACT and table.flag("ignore-delete") or kind == "-U" and table.flag("ignore-update-before"):
            return True
        if not table.primary:
            if kind in RETRACT:
                return False
            self.rows.append(row)
            return True
        key = self.key(row)
        if key not in self.keys or self.rank(row) >= self.rank(self.keys[key][1]):
            self.keys[key] = (kind, row)
        return True

    def visible(self):
        if not self.table.primary:
            return self.rows
        return [row for kind, row in self.keys.values() if kind not in RETRACT]

    def lines(self):
        return [self.table.line(row) for row in self.visible()]


# ---------------------------------------------------------------- --where

class Where:
    """A random predicate: its text for the command line, and SQL's answer (True, False or None) for a row."""

    def __init__(self, rng, model, depth=2):
        self.table = model.table
        self.text, self.holds = self._tree(rng, model, depth)

    def _tree(self, rng, model, depth):
        if depth == 0 or rng.random() < 0.35:
            return self._leaf(rng, model)
        a, b = self._tree(rng, model, depth - 1), self._tree(rng, model, depth - 1)
        how = rng.choice(["and", "or", "not"])
        if how == "not":
            return "not (%s)" % a[0], lambda row: _not(a[1](row))
        if how == "and":
            return "(%s) and (%s)" % (a[0], b[0]), lambda row: _and(a[1](row), b[1](row))
        return "(%s) or (%s)" % (a[0], b[0]), lambda row: _or(a[1](row), b[1](row))

    def _leaf(self, rng, model):
        i = rng.randrange(len(self.table.names))
        t, name = self.table.types[i], self.table.names[i]
        seen = [row[i] for row in model.visible()]
        # NaN has no place in SQL's order, and zero has two signs: only NULL is asked of such columns.
        if rng.random() < 0.2 or any(v in ('"NaN"', "0.0", "-0.0") for v in seen):
            wanted = rng.random() < 0.5
            return name + (" is null" if wanted else " is not null"), lambda row: (row[i] == values.NULL) == wanted
        pool = [v for v in seen if v != values.NULL and "\\u0000" not in v] or [values.random_value(rng, t)]
        if t.floating:
            pool = [v for v in pool if v[0] != '"'] or ["1.5"]
        if rng.random() < 0.2:
            some = [rng.choice(pool) for _ in range(rng.randint(1, 4))]
            orders = [values.order(t, v) for v in some]
            return ("%s in (%s)" % (name, ", ".join(values.literal(rng, t, v) for v in some)),
                    lambda row: None if row[i] == values.NULL else values.order(t, row[i]) in orders)
        sign, test = rng.choice([("=", lambda a, b: a == b), ("!=", lambda a, b: a != b), ("<", lambda a, b: a < b),
                                 ("<=", lambda a, b: a <= b), (">", lambda a, b: a > b), (">=", lambda a, b: a >= b)])
        value = rng.choice(pool)
        at = values.order(t, value)
        return ("%s %s %s" % (name, sign, values.literal(rng, t, value)),
                lambda row: None if row[i] == values.NULL else test(values.order(t, row[i]), at))


def _not(a):
    return None if a is None else not a


def _and(a, b):
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a, b):
    if a is True or b is True:
        return True
    return None if a is None or b is None else False
