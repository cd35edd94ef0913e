#include "schema/options_private.h"

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

/* Paimon compares words of options in any case. */
bool tn_option_same_word(struct tn_bytes a, const char *b)
{
    for (size_t i = 0; i < a.size; i++) {
        if (b[i] == 0 || lower(a.data[i]) != lower((unsigned char)b[i])) {
            return false;
        }
    }
    return b[a.size] == 0;
}

bool tn_option_is(const char *value, const char *word)
{
    return tn_option_same_word(tn_bytes_of(value), word);
}

/* True when `value` is one of the words between bars. */
bool tn_option_one_of(const char *value, const char *words)
{
    for (const char *start = words; start;) {
        size_t size = strcspn(start, "|");
        char word[64] = {0};
        memcpy(word, start, size < sizeof(word) ? size : sizeof(word) - 1);
        if (tn_option_is(value, word)) {
            return true;
        }
        start = start[size] ? start + size + 1 : NULL;
    }
    return false;
}

static struct tn_bytes trim(struct tn_bytes text)
{
    while (text.size > 0 && text.data[0] <= ' ') {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && text.data[text.size - 1] <= ' ') {
        text.size--;
    }
    return text;
}

/* Takes the digits in front of `text`; false when there are none or too many. */
bool tn_option_digits(struct tn_bytes *text, int64_t *value)
{
    size_t count = 0;
    int64_t number = 0;
    for (; count < text->size && text->data[count] >= '0' && text->data[count] <= '9'; count++) {
        int64_t digit = text->data[count] - '0';
        if (number > (INT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    text->data += count;
    text->size -= count;
    *value = number;
    return count > 0;
}

struct unit {
    const char *name;
    int64_t scale; /* > 0: times; < 0: divided by */
};

/* Source: Paimon, MemorySize.MemoryUnit. */
static const struct unit size_units[] = {
    {"", 1},
    {"b", 1},
    {"bytes", 1},
    {"k", 1024},
    {"kb", 1024},
    {"kibibytes", 1024},
    {"m", 1024 * 1024},
    {"mb", 1024 * 1024},
    {"mebibytes", 1024 * 1024},
    {"g", 1024 * 1024 * 1024},
    {"gb", 1024 * 1024 * 1024},
    {"gibibytes", 1024 * 1024 * 1024},
    {"t", INT64_C(1) << 40},
    {"tb", INT64_C(1) << 40},
    {"tebibytes", INT64_C(1) << 40},
};

/* Source: Paimon, TimeUtils.TimeUnit. */
static const struct unit duration_units[] = {
    {"", 1},
    {"d", 86400000},
    {"day", 86400000},
    {"days", 86400000},
    {"h", 3600000},
    {"hour", 3600000},
    {"hours", 3600000},
    {"m", 60000},
    {"min", 60000},
    {"minute", 60000},
    {"minutes", 60000},
    {"s", 1000},
    {"sec", 1000},
    {"secs", 1000},
    {"second", 1000},
    {"seconds", 1000},
    {"ms", 1},
    {"milli", 1},
    {"millis", 1},
    {"millisecond", 1},
    {"milliseconds", 1},
    {"\xc2\xb5s", -1000},
    {"micro", -1000},
    {"micros", -1000},
    {"microsecond", -1000},
    {"microseconds", -1000},
    {"ns", -1000000},
    {"nano", -1000000},
    {"nanos", -1000000},
    {"nanosecond", -1000000},
    {"nanoseconds", -1000000},
};

static bool scale_number(int64_t number, int64_t scale, int64_t *value)
{
    if (scale < 0) {
        *value = number / -scale;
        return true;
    }
    if (scale == 0 || number > INT64_MAX / scale) {
        return false;
    }
    *value = number * scale;
    return true;
}

static bool parse_scaled(struct tn_bytes text, const struct unit *units, size_t count,
                         int64_t *value)
{
    int64_t number = 0;
    struct tn_bytes rest = trim(text);
    if (!tn_option_digits(&rest, &number)) {
        return false;
    }
    rest = trim(rest);
    for (size_t i = 0; i < count; i++) {
        if (tn_option_same_word(rest, units[i].name)) {
            return scale_number(number, units[i].scale, value);
        }
    }
    return false;
}

bool tn_parse_size(struct tn_bytes text, int64_t *bytes)
{
    return parse_scaled(text, size_units, TN_ENTRIES(size_units), bytes);
}

bool tn_parse_duration(struct tn_bytes text, int64_t *ms)
{
    return parse_scaled(text, duration_units, TN_ENTRIES(duration_units), ms);
}

bool tn_option_integer(const char *value, int64_t *number)
{
    struct tn_bytes rest = tn_bytes_of(value);
    bool negative = value[0] == '-';
    rest.data += negative;
    rest.size -= negative;
    if (!tn_option_digits(&rest, number) || rest.size > 0) {
        return false;
    }
    *number = negative ? -*number : *number;
    return true;
}
