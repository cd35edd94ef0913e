/* The words of a predicate's text. Private to predicate_parse.c. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

enum tn_token_kind {
    TN_TOKEN_END,
    TN_TOKEN_NAME,   /* `quoted` ones are never keywords */
    TN_TOKEN_STRING, /* text without the outer quotes, doubled ones still doubled */
    TN_TOKEN_NUMBER,
    TN_TOKEN_COMPARE,
    TN_TOKEN_OPEN,
    TN_TOKEN_CLOSE,
    TN_TOKEN_COMMA,
    TN_TOKEN_BAD,
};

struct tn_token {
    enum tn_token_kind kind;
    bool quoted;
    char quote;
    struct tn_bytes text;
    size_t at; /* byte of the whole text */
};

/* Zero but for `text`, and advanced once, it stands at the first token. */
struct tn_lexer {
    struct tn_bytes text;
    size_t at;
    struct tn_token token; /* the next one */
};

void tn_lexer_advance(struct tn_lexer *lexer);

bool tn_lexer_at_keyword(const struct tn_lexer *lexer, const char *word);
bool tn_lexer_take_keyword(struct tn_lexer *lexer, const char *word);

/* INVALID, "at byte 7: WHAT belongs here, not 'xyz'". */
tn_rc tn_lexer_expected(const struct tn_lexer *lexer, const char *what, struct tn_err *err);
