#include "read/predicate_tokens.h"

#include <string.h>

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_part(unsigned char c)
{
    return is_letter(c) || is_digit(c) || c == '.' || c == '$';
}

/* From `at` on, how many bytes are of a kind. */
static size_t span(struct tn_bytes text, size_t at, bool (*of_kind)(unsigned char))
{
    size_t end = at;
    while (end < text.size && of_kind(text.data[end])) {
        end++;
    }
    return end - at;
}

/* '...', "..." and `...`; the quote itself stands there doubled. Returns the size with both quotes,
 * or 0. */
static size_t quoted_size(struct tn_bytes text, size_t at)
{
    unsigned char quote = text.data[at];
    for (size_t i = at + 1; i < text.size; i++) {
        if (text.data[i] != quote) {
            continue;
        }
        if (i + 1 < text.size && text.data[i + 1] == quote) {
            i++;
            continue;
        }
        return i + 1 - at;
    }
    return 0;
}

static size_t number_size(struct tn_bytes text, size_t at)
{
    size_t end = at;
    end += text.data[end] == '-' || text.data[end] == '+';
    end += span(text, end, is_digit);
    if (end < text.size && text.data[end] == '.') {
        end++;
        end += span(text, end, is_digit);
    }
    if (end < text.size && (text.data[end] | 0x20) == 'e') {
        end++;
        end += end < text.size && (text.data[end] == '-' || text.data[end] == '+');
        end += span(text, end, is_digit);
    }
    return end - at;
}

static size_t compare_size(struct tn_bytes text, size_t at)
{
    static const char *const two[] = {"==", "!=", "<>", "<=", ">="};
    for (size_t i = 0; at + 1 < text.size && i < sizeof two / sizeof two[0]; i++) {
        if (memcmp(text.data + at, two[i], 2) == 0) {
            return 2;
        }
    }
    unsigned char c = text.data[at];
    return c == '=' || c == '<' || c == '>';
}

static struct tn_token scan(const struct tn_lexer *lexer, size_t at)
{
    struct tn_bytes text = lexer->text;
    struct tn_token token = {.kind = TN_TOKEN_END, .at = at};
    if (at == text.size) {
        return token;
    }
    unsigned char c = text.data[at];
    size_t size = 1;
    token.kind = TN_TOKEN_BAD;
    if (c == '(' || c == ')' || c == ',') {
        token.kind = c == '(' ? TN_TOKEN_OPEN : c == ')' ? TN_TOKEN_CLOSE : TN_TOKEN_COMMA;
    } else if (is_letter(c)) {
        token.kind = TN_TOKEN_NAME;
        size = span(text, at, is_name_part);
    } else if (is_digit(c) || c == '-' || c == '+') {
        token.kind = TN_TOKEN_NUMBER;
        size = number_size(text, at);
    } else if (c == '\'' || c == '"' || c == '`') {
        size = quoted_size(text, at);
        token.kind = size == 0 ? TN_TOKEN_BAD : c == '`' ? TN_TOKEN_NAME : TN_TOKEN_STRING;
        token.quoted = size > 0;
        token.quote = (char)c;
    } else if (compare_size(text, at) > 0) {
        token.kind = TN_TOKEN_COMPARE;
        size = compare_size(text, at);
    }
    size = size > 0 ? size : text.size - at;
    token.text = (struct tn_bytes){text.data + at + token.quoted, size - (token.quoted ? 2 : 0)};
    return token;
}

void tn_lexer_advance(struct tn_lexer *lexer)
{
    lexer->at = lexer->token.at + lexer->token.text.size + (lexer->token.quoted ? 2 : 0);
    while (lexer->at < lexer->text.size && strchr(" \t\r\n", lexer->text.data[lexer->at])) {
        lexer->at++;
    }
    lexer->token = scan(lexer, lexer->at);
}

bool tn_lexer_at_keyword(const struct tn_lexer *lexer, const char *word)
{
    struct tn_bytes text = lexer->token.text;
    if (lexer->token.kind != TN_TOKEN_NAME || lexer->token.quoted || text.size != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if ((text.data[i] | 0x20) != word[i]) {
            return false;
        }
    }
    return true;
}

bool tn_lexer_take_keyword(struct tn_lexer *lexer, const char *word)
{
    bool taken = tn_lexer_at_keyword(lexer, word);
    if (taken) {
        tn_lexer_advance(lexer);
    }
    return taken;
}

tn_rc tn_lexer_expected(const struct tn_lexer *lexer, const char *what, struct tn_err *err)
{
    struct tn_bytes text = lexer->token.text;
    int shown = (int)(text.size < 40 ? text.size : 40);
    if (lexer->token.kind == TN_TOKEN_END) {
        return tn_err_set(err, TN_INVALID, 0, "at byte %zu: %s belongs at the end", lexer->token.at,
                          what);
    }
    if (lexer->token.kind == TN_TOKEN_BAD && strchr("'\"`", text.data[0])) {
        return tn_err_set(err, TN_INVALID, 0, "at byte %zu: the %c is never closed",
                          lexer->token.at, text.data[0]);
    }
    return tn_err_set(err, TN_INVALID, 0, "at byte %zu: %s belongs here, not '%.*s'",
                      lexer->token.at, what, shown, (const char *)text.data);
}
