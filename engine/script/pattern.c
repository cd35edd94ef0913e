#include "script/pattern.h"

#include <ctype.h>

/* What to do when the match has come to nothing: undo a capture and look further down, or go on
 * from here. */
enum { UNDO_OPEN, UNDO_CLOSE, OTHERWISE, FEWER, MORE };

typedef const unsigned char *tn_at;

static tn_at pattern_end(const struct tn_matcher *m)
{
    return m->pattern.data + m->pattern.size;
}

static tn_at subject_end(const struct tn_matcher *m)
{
    return m->subject.data + m->subject.size;
}

static bool step(struct tn_matcher *m, uint64_t count)
{
    bool enough = m->steps_left >= count;
    m->steps_left = enough ? m->steps_left - count : 0;
    return enough;
}

static tn_at wrong(struct tn_matcher *m, const char *reason)
{
    m->reason = reason;
    return NULL;
}

/* ---- one character against one item ---- */

static tn_at set_end(struct tn_matcher *m, tn_at p)
{
    tn_at end = pattern_end(m);
    p += p < end && *p == '^';
    do { /* a ']' that comes first stands for itself */
        if (p >= end) {
            return wrong(m, "malformed pattern (missing ']')");
        }
        p += *p == '%' && p + 1 < end ? 2 : 1;
    } while (p >= end || *p != ']');
    return p + 1;
}

/* Behind the item at `p`, NULL when it is none. */
static tn_at item_end(struct tn_matcher *m, tn_at p)
{
    if (*p == '%') {
        return p + 1 < pattern_end(m) ? p + 2 : wrong(m, "malformed pattern (ends with '%')");
    }
    return *p == '[' ? set_end(m, p + 1) : p + 1;
}

static bool in_class(int c, int name)
{
    static const struct {
        char name;
        int (*is)(int);
    } classes[] = {{'a', isalpha}, {'c', iscntrl}, {'d', isdigit}, {'g', isgraph}, {'l', islower},
                   {'p', ispunct}, {'s', isspace}, {'u', isupper}, {'w', isalnum}, {'x', isxdigit}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (classes[i].name == tolower(name)) {
            return (classes[i].is(c) != 0) == (islower(name) != 0);
        }
    }
    return name == c;
}

/* `p` is at the '[', `end` at the ']'. */
static bool in_set(int c, tn_at p, tn_at end)
{
    bool negated = p[1] == '^';
    for (p += 1 + negated; p < end; p++) {
        if (*p == '%') {
            p++;
            if (in_class(c, *p)) {
                return !negated;
            }
        } else if (p[1] == '-' && p + 2 < end) {
            p += 2;
            if (p[-2] <= c && c <= *p) {
                return !negated;
            }
        } else if (*p == c) {
            return !negated;
        }
    }
    return negated;
}

static bool matches(const struct tn_matcher *m, tn_at s, tn_at p, tn_at end)
{
    if (s >= subject_end(m)) {
        return false;
    }
    switch (*p) {
    case '.':
        return true;
    case '%':
        return in_class(*s, p[1]);
    case '[':
        return in_set(*s, p, end - 1);
    default:
        return *p == *s;
    }
}

/* ---- what is left to try ---- */

static bool push(struct tn_matcher *m, struct tn_pattern_choice choice)
{
    if (m->choice_count == TN_PATTERN_CHOICES_MAX) {
        m->reason = "pattern too complex";
        return false;
    }
    m->choices[m->choice_count++] = choice;
    return true;
}

/* One more or one fewer of a repeated item; false when there are no more. */
static bool retry(const struct tn_matcher *m, struct tn_pattern_choice *c)
{
    if (c->kind == FEWER) {
        c->at--;
        return c->at >= c->low;
    }
    if (c->kind == MORE) {
        bool more = matches(m, c->at, c->item, c->rest - 1);
        c->at += more;
        return more;
    }
    return true;
}

/* False when nothing is left. */
static bool back(struct tn_matcher *m, tn_at *s, tn_at *p)
{
    while (m->choice_count > 0) {
        struct tn_pattern_choice *c = &m->choices[m->choice_count - 1];
        if (c->kind == UNDO_OPEN) {
            m->capture_count--;
        } else if (c->kind == UNDO_CLOSE) {
            m->captures[c->capture].size = TN_CAPTURE_OPEN;
        } else if (retry(m, c)) {
            *s = c->at;
            *p = c->rest;
            m->choice_count -= c->kind == OTHERWISE;
            return true;
        }
        m->choice_count--;
    }
    return false;
}

/* ---- the items; each moves s and p on. NO means that this way leads nowhere ---- */

static enum tn_pattern_result open_capture(struct tn_matcher *m, tn_at s, tn_at *p)
{
    bool position = *p + 1 < pattern_end(m) && (*p)[1] == ')';
    if (m->capture_count == TN_PATTERN_CAPTURES_MAX) {
        m->reason = "too many captures";
        return TN_PATTERN_WRONG;
    }
    m->captures[m->capture_count++] =
        (struct tn_capture){s, position ? TN_CAPTURE_POSITION : TN_CAPTURE_OPEN};
    *p += position ? 2 : 1;
    return push(m, (struct tn_pattern_choice){.kind = UNDO_OPEN}) ? TN_PATTERN_YES
                                                                  : TN_PATTERN_WRONG;
}

static enum tn_pattern_result close_capture(struct tn_matcher *m, tn_at s, tn_at *p)
{
    for (uint32_t i = m->capture_count; i-- > 0;) {
        if (m->captures[i].size == TN_CAPTURE_OPEN) {
            m->captures[i].size = s - m->captures[i].at;
            (*p)++;
            return push(m, (struct tn_pattern_choice){.kind = UNDO_CLOSE, .capture = i})
                       ? TN_PATTERN_YES
                       : TN_PATTERN_WRONG;
        }
    }
    m->reason = "invalid pattern capture";
    return TN_PATTERN_WRONG;
}

static enum tn_pattern_result balance(struct tn_matcher *m, tn_at *s, tn_at *p)
{
    if (*p + 3 >= pattern_end(m)) {
        m->reason = "malformed pattern (missing arguments to '%b')";
        return TN_PATTERN_WRONG;
    }
    unsigned char open = (*p)[2];
    unsigned char close = (*p)[3];
    tn_at at = *s;
    if (at >= subject_end(m) || *at != open) {
        return TN_PATTERN_NO;
    }
    uint64_t depth = 1;
    for (at++; at < subject_end(m); at++) {
        if (!step(m, 1)) {
            return TN_PATTERN_SPENT;
        }
        if (*at == close && --depth == 0) {
            *s = at + 1;
            *p += 4;
            return TN_PATTERN_YES;
        }
        depth += *at == open && open != close;
    }
    return TN_PATTERN_NO;
}

static enum tn_pattern_result frontier(struct tn_matcher *m, tn_at s, tn_at *p)
{
    tn_at set = *p + 2;
    if (set >= pattern_end(m) || *set != '[') {
        m->reason = "missing '[' after '%f' in pattern";
        return TN_PATTERN_WRONG;
    }
    tn_at end = item_end(m, set);
    if (!end) {
        return TN_PATTERN_WRONG;
    }
    int before = s == m->subject.data ? 0 : s[-1];
    int here = s == subject_end(m) ? 0 : *s;
    *p = end;
    return !in_set(before, set, end - 1) && in_set(here, set, end - 1) ? TN_PATTERN_YES
                                                                       : TN_PATTERN_NO;
}

static enum tn_pattern_result again(struct tn_matcher *m, tn_at *s, tn_at *p)
{
    uint32_t index = (uint32_t)((*p)[1] - '1');
    if (index < m->capture_count && m->captures[index].size == TN_CAPTURE_POSITION) {
        return TN_PATTERN_NO;
    }
    if (index >= m->capture_count || m->captures[index].size < 0) {
        m->reason = "invalid capture index in pattern";
        return TN_PATTERN_WRONG;
    }
    size_t size = (size_t)m->captures[index].size;
    if (!step(m, size)) {
        return TN_PATTERN_SPENT;
    }
    if ((size_t)(subject_end(m) - *s) < size || memcmp(m->captures[index].at, *s, size) != 0) {
        return TN_PATTERN_NO;
    }
    *s += size;
    *p += 2;
    return TN_PATTERN_YES;
}

static enum tn_pattern_result repeat(struct tn_matcher *m, tn_at *s, tn_at *p, tn_at end)
{
    struct tn_pattern_choice choice = {FEWER, 0, *s, *s, *p, end + 1};
    choice.low += *end == '+';
    while (matches(m, choice.at, *p, end)) {
        choice.at++;
        if (!step(m, 1)) {
            return TN_PATTERN_SPENT;
        }
    }
    if (choice.at < choice.low) {
        return TN_PATTERN_NO;
    }
    *s = choice.at;
    *p = choice.rest;
    return choice.at == choice.low || push(m, choice) ? TN_PATTERN_YES : TN_PATTERN_WRONG;
}

static enum tn_pattern_result single(struct tn_matcher *m, tn_at *s, tn_at *p)
{
    tn_at end = item_end(m, *p);
    if (!end) {
        return TN_PATTERN_WRONG;
    }
    int suffix = end < pattern_end(m) ? *end : 0;
    if (suffix == '*' || suffix == '+') {
        return repeat(m, s, p, end);
    }
    bool met = matches(m, *s, *p, end);
    if (suffix == '-' || (suffix == '?' && met)) {
        int kind = suffix == '-' ? MORE : OTHERWISE;
        if (!push(m, (struct tn_pattern_choice){kind, 0, *s, *s, *p, end + 1})) {
            return TN_PATTERN_WRONG;
        }
    }
    *s += suffix != '-' && met;
    *p = end + (suffix == '-' || suffix == '?');
    return met || suffix == '-' || suffix == '?' ? TN_PATTERN_YES : TN_PATTERN_NO;
}

static enum tn_pattern_result next(struct tn_matcher *m, tn_at *s, tn_at *p)
{
    int c = **p;
    int name = c == '%' && *p + 1 < pattern_end(m) ? (*p)[1] : 0;
    if (c == '(') {
        return open_capture(m, *s, p);
    }
    if (c == ')') {
        return close_capture(m, *s, p);
    }
    if (c == '$' && *p + 1 == pattern_end(m)) {
        (*p)++;
        return *s == subject_end(m) ? TN_PATTERN_YES : TN_PATTERN_NO;
    }
    if (name == 'b') {
        return balance(m, s, p);
    }
    if (name == 'f') {
        return frontier(m, *s, p);
    }
    return isdigit(name) ? again(m, s, p) : single(m, s, p);
}

enum tn_pattern_result tn_pattern_match(struct tn_matcher *m, const unsigned char *at)
{
    tn_at s = at;
    tn_at p = m->pattern.data;
    m->capture_count = 0;
    m->choice_count = 0;
    while (p != pattern_end(m)) {
        enum tn_pattern_result result = step(m, 1) ? next(m, &s, &p) : TN_PATTERN_SPENT;
        if (result == TN_PATTERN_NO && !back(m, &s, &p)) {
            return TN_PATTERN_NO;
        }
        if (result == TN_PATTERN_WRONG || result == TN_PATTERN_SPENT) {
            return result;
        }
    }
    m->end = s;
    return TN_PATTERN_YES;
}

bool tn_pattern_special(struct tn_bytes pattern)
{
    for (size_t i = 0; i < pattern.size; i++) {
        if (memchr("^$*+?.([%-", pattern.data[i], 10)) {
            return true;
        }
    }
    return false;
}
