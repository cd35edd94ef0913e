/* pattern: Lua's patterns, matched in a bounded number of steps.
 *
 * Lua's own matcher backtracks as long as it likes, inside one C call, where no instruction budget
 * sees it: "(.-)(.-)(.-)x" over a few thousand bytes takes minutes. This one takes the same
 * patterns and gives the same captures, counts its steps, and keeps what is left to try in a stack
 * of fixed size. Source: Lua 5.4 manual, 6.4.1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    TN_PATTERN_CAPTURES_MAX = 32,
    TN_PATTERN_CHOICES_MAX = 200
}; /* Lua: LUA_MAXCAPTURES,
      MAXCCALLS */

enum tn_pattern_result {
    TN_PATTERN_NO,
    TN_PATTERN_YES,
    TN_PATTERN_WRONG, /* `reason` says what is wrong with the pattern */
    TN_PATTERN_SPENT, /* the steps are used up */
};

enum { TN_CAPTURE_OPEN = -1, TN_CAPTURE_POSITION = -2 };

struct tn_capture {
    const unsigned char *at;
    ptrdiff_t size; /* bytes, or one of the above */
};

struct tn_pattern_choice {
    int kind; /* pattern.c */
    uint32_t capture;
    const unsigned char *low; /* in the subject */
    const unsigned char *at;
    const unsigned char *item; /* in the pattern */
    const unsigned char *rest;
};

struct tn_matcher {
    struct tn_bytes subject;
    struct tn_bytes pattern; /* without its '^' */
    uint64_t steps_left;
    const char *reason;
    const unsigned char *end; /* of the match */
    uint32_t capture_count;
    struct tn_capture captures[TN_PATTERN_CAPTURES_MAX];
    uint32_t choice_count;
    struct tn_pattern_choice choices[TN_PATTERN_CHOICES_MAX];
};

/* Matches the whole pattern at `at`, a place in the subject. The caller has set subject, pattern
 * and steps_left, which goes down. YES: `end` and the captures are set; one is still open where
 * the pattern has no ')' for it. */
enum tn_pattern_result tn_pattern_match(struct tn_matcher *matcher, const unsigned char *at);

/* Whether a pattern means something else than its own bytes. */
bool tn_pattern_special(struct tn_bytes pattern);
