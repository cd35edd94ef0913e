"""Values of every type that tarn creates: random ones, how they compare, and the forms in which people send them.

A value is its canonical JSON text ("null" for NULL), the form in which engines are compared.
"""
import base64
import json
import math
import re
import struct
from decimal import Decimal

NULL = "null"
TIME_OF_DAY = re.compile(r'"([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}"')
TEXTS = ["", " ", "a", "b", "gw-01", "Ünïcödé", "中文", "😀", "\uffee", 'say "hi"', "back\\slash", "tab\there", "line\nbreak",
         "comma,semi;", "a/b=c:d%e f", "\u0001\u001f", "\u007f", "'quoted'", "null", "+I", "0", "x" * 70]


class Type:
    """One column type: `name`, its text in a schema, and its parameters."""

    def __init__(self, name, a=None, b=None):
        self.name, self.a, self.b = name, a, b

    @property
    def text(self):
        if self.name == "TIMESTAMP_LTZ":
            return "TIMESTAMP(%d) WITH LOCAL TIME ZONE" % self.a
        if self.a is None:
            return self.name
        return "%s(%d)" % (self.name, self.a) if self.b is None else "%s(%d, %d)" % (self.name, self.a, self.b)

    @property
    def textual(self):
        return self.name in ("CHAR", "VARCHAR", "STRING")

    @property
    def binary(self):
        return self.name in ("BINARY", "VARBINARY", "BYTES")

    @property
    def floating(self):
        return self.name in ("FLOAT", "DOUBLE")


NO_KEYS = ('"NaN"', "-0.0")  # Paimon before 2.0 takes them for other keys
INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def random_type(rng, floats=True):
    name = rng.choice(["BOOLEAN", "TINYINT", "SMALLINT", "INT", "INT", "BIGINT", "DECIMAL", "CHAR", "VARCHAR", "STRING", "STRING",
                       "BINARY", "VARBINARY", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"]
                      + (["FLOAT", "DOUBLE", "DOUBLE"] if floats else []))
    if name == "DECIMAL":
        precision = rng.choice([1, 5, 9, 10, 18, 19, 27, 38])
        return Type(name, precision, rng.randint(0, min(precision, 12)))
    if name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        return Type(name, rng.choice([1, 4, 20, 80]))
    if name == "TIME":
        return Type(name, rng.choice([0, 3]))
    if name.startswith("TIMESTAMP"):
        return Type(name, rng.choice([0, 3, 6]))
    return Type(name)


# ---------------------------------------------------------------- random values

def random_value(rng, t, few=0, wide=False):
    """A value that fits; of `few` different ones when few > 0. `wide`: years that Python and Arrow can't hold, too."""
    if few:
        rng = rng.__class__("%s/%d" % (t.text, rng.randrange(few)))
    if t.name == "BOOLEAN":
        return rng.choice(["true", "false"])
    if t.name in INTEGER_BITS:
        return str(_integer(rng, INTEGER_BITS[t.name]))
    if t.floating:
        return _floating(rng, t.name == "FLOAT")
    if t.name == "DECIMAL":
        top = 10 ** rng.randint(1, t.a) - 1
        return '"%s"' % decimal_text(rng.choice([0, 1, -1, top, -top, rng.randint(-top, top)]), t.b)
    if t.textual:
        return json.dumps(_text(rng, t), ensure_ascii=False)
    if t.binary:
        size = t.a if t.name == "BINARY" else rng.choice([0, 1, 3, 16, 40])
        return '"%s"' % rng.randbytes(min(size, t.a or size)).hex()
    if t.name == "DATE":
        return '"%s"' % date_text(_day(rng, wide))
    if t.name == "TIME":
        unit = 1000 // 10 ** t.a
        return '"%s"' % time_text(rng.choice([0, 86399999, rng.randrange(86400000)]) // unit * unit)
    return '"%s"' % timestamp_text(_instant(rng, t.a, wide), t.name == "TIMESTAMP_LTZ")


def _integer(rng, bits):
    top = 2 ** (bits - 1)
    return rng.choice([0, 1, -1, top - 1, -top, rng.randrange(-top, top), rng.randint(-100, 100), rng.randint(-100, 100)])


def _floating(rng, single):
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(['"NaN"', '"Infinity"', '"-Infinity"', "0.0", "-0.0", "1e+22", "5e-324" if not single else "1e-45"])
    if kind < 4:
        return floating_text(round(rng.uniform(-1000, 1000), rng.randint(0, 4)), single)
    raw = rng.randbytes(4 if single else 8)
    value = struct.unpack("<f" if single else "<d", raw)[0]
    return floating_text(value if math.isfinite(value) else 1.5, single)


def _text(rng, t):
    if t.name == "CHAR":
        return "".join(rng.choice("abcXYZ0é中") for _ in range(t.a))
    if rng.random() < 0.4:
        text = rng.choice(TEXTS)
    else:
        text = "".join(rng.choice("abcdefghij0123456789 -_/é中😀") for _ in range(rng.choice([1, 3, 8, 20, 60])))
    return text[:t.a] if t.a else text


def _day(rng, wide):
    low, high = (-5000000, 5000000) if wide else (-719162, 2932896)  # 0001-01-01 .. 9999-12-31
    return rng.choice([0, -1, 19000, 20000 + rng.randrange(1000), 20000 + rng.randrange(1000), rng.randint(low, high)])


def _instant(rng, precision, wide):
    """Nanoseconds since 1970, whole units of the precision; without `wide` in the years 1678..2261."""
    unit = 10 ** (9 - precision)
    day = _day(rng, True) if wide else rng.choice([0, -1, 19000, 20000 + rng.randrange(1000), rng.randint(-106000, 106000)])
    return (day * 86400 * 10 ** 9 + rng.choice([0, rng.randrange(86400 * 10 ** 9), 12 * 3600 * 10 ** 9])) // unit * unit


# ---------------------------------------------------------------- texts

def decimal_text(unscaled, scale):
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = digits if scale == 0 else digits[:-scale] + "." + digits[-scale:]
    return ("-" if unscaled < 0 else "") + text


def floating_text(value, single):
    """The shortest digits that read back, laid out as tarn writes them."""
    if value != value:
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value) if not single or value == 0 else _single_text(value)


def narrow(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.inf


def _single_text(value):
    value = narrow(value)
    sign, magnitude = ("-" if value < 0 else ""), abs(value)
    for digits in range(1, 10):
        mantissa, exponent = ("%.*e" % (digits - 1, magnitude)).split("e")
        middle = int(mantissa.replace(".", ""))
        # printf rounds to nearest; a neighbour may read back where the nearest does not
        good = [m for m in (middle, middle - 1, middle + 1) if m > 0 and narrow(float("%de%d" % (m, int(exponent) - digits + 1))) == magnitude]
        if good:
            return sign + repr(float("%de%d" % (good[0], int(exponent) - digits + 1)))
    raise AssertionError(value)


def civil(days):
    """Proleptic Gregorian year, month, day of a day count from 1970-01-01."""
    z = days + 719468
    era, doe = divmod(z, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


def days_of(year, month, day):
    year -= month <= 2
    era, yoe = divmod(year, 400)
    doy = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


def date_text(days):
    year, month, day = civil(days)
    head = "%04d" % year if 0 <= year <= 9999 else "%s%04d" % ("-" if year < 0 else "+", abs(year))
    return "%s-%02d-%02d" % (head, month, day)


def time_text(ms):
    s, ms = divmod(ms, 1000)
    return "%02d:%02d:%02d.%03d" % (s // 3600, s // 60 % 60, s % 60, ms)


def timestamp_text(nanos, zoned):
    seconds, frac = divmod(nanos, 10 ** 9)
    days, s = divmod(seconds, 86400)
    return "%sT%02d:%02d:%02d.%09d%s" % (date_text(days), s // 3600, s // 60 % 60, s % 60, frac, "Z" if zoned else "")


def days_in(text):
    sign = -1 if text[0] == "-" else 1
    year, month, day = text.lstrip("+-").split("-")
    return days_of(sign * int(year), int(month), int(day))


def nanos_in(text):
    date, time = text.rstrip("Z").split("T")
    h, m, s = time.split(":")
    return (days_in(date) * 86400 + int(h) * 3600 + int(m) * 60) * 10 ** 9 + int(s.replace(".", ""))


# ---------------------------------------------------------------- order

def order(t, value):
    """What values of one type compare by; numbers for all that may be a sequence."""
    plain = json.loads(value) if value[0] == '"' else value
    if t.name == "BOOLEAN":
        return int(plain == "true")
    if t.name in INTEGER_BITS:
        return int(plain)
    if t.floating:
        return float(plain)
    if t.name == "DECIMAL":
        return Decimal(plain)
    if t.textual:
        return plain.encode()
    if t.binary:
        return bytes.fromhex(plain)
    if t.name == "DATE":
        return days_in(plain)
    if t.name == "TIME":
        return int(plain.replace(":", "").replace(".", ""))
    return nanos_in(plain)


# ---------------------------------------------------------------- forms of input

def json_form(rng, t, value):
    """A JSON text that a sender may use for the value."""
    if value == NULL or rng.random() < 0.7:
        return value
    plain = json.loads(value) if value[0] == '"' else value
    if t.name in INTEGER_BITS or (t.floating and value[0] != '"'):
        return '"%s"' % value
    if t.name == "DECIMAL":
        return plain
    if t.name == "DATE" or t.textual or t.binary or t.name == "BOOLEAN":
        return value
    return '"%s"' % time_form(rng, t, plain)


def database_form(rng, t, value):
    """The same as Debezium's and Maxwell's: bytes are base64."""
    if t.binary and value != NULL:
        return json.dumps(base64.b64encode(bytes.fromhex(json.loads(value))).decode())
    return json_form(rng, t, value)


def canal_form(rng, t, value):
    """The same as canal's: all is text, and a character of it a byte where those are meant."""
    if value == NULL:
        return value
    if t.binary:
        return json.dumps(bytes.fromhex(json.loads(value)).decode("latin-1"), ensure_ascii=rng.random() < 0.3)
    return json.dumps(plain_form(json_form(rng, t, value)))


def time_form(rng, t, plain):
    """Fewer digits, a blank for the T, an offset."""
    zoned = plain.endswith("Z")
    if zoned and plain[0] not in "+-" and rng.random() < 0.3:
        hours = rng.choice([-5, 2, 9])
        plain = timestamp_text(nanos_in(plain) + hours * 3600 * 10 ** 9, False)
        return _short(plain) + "%s%02d:00" % ("-" if hours < 0 else "+", abs(hours))
    text = _short(plain.rstrip("Z"))
    if t.name == "TIMESTAMP" and rng.random() < 0.5:
        text = text.replace("T", " ")
    return text + ("Z" if zoned else "")


def _short(text):
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain_form(value):
    """The value without JSON's quotes: csv, keys of `get`."""
    return json.loads(value) if value[0] == '"' else value


def csv_form(value):
    if value == NULL:
        return ""
    plain = plain_form(value)
    if plain == "" or any(c in plain for c in ',"\r\n') or plain != plain.strip():
        return '"%s"' % plain.replace('"', '""')
    return plain


def literal(rng, t, value):
    """The value in a --where text."""
    if value[0] != '"':
        return value
    plain = json.loads(value)
    if t.name == "DECIMAL" and rng.random() < 0.5:
        return plain
    mark = rng.choice("'\"")
    return mark + plain.replace(mark, mark * 2) + mark
