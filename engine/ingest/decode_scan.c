#include "ingest/decode_scan.h"

static const unsigned char *pass_digits(const unsigned char *at)
{
    unsigned count;
    const unsigned char *first = at;
    do {
        count = tn_scan_digit_run(tn_scan_values(at));
        at += count;
    } while (count == 8);
    return at > first ? at : NULL;
}

const unsigned char *tn_scan_number(const unsigned char *at)
{
    at += *at == '-';
    bool zero = *at == '0';
    at = zero ? at + 1 : pass_digits(at);
    if (!at || (zero && tn_scan_digit(*at))) {
        return NULL;
    }
    if (*at == '.') {
        at = pass_digits(at + 1);
    }
    if (at && (*at | 0x20) == 'e') {
        at++;
        at = pass_digits(at + (*at == '+' || *at == '-'));
    }
    return at;
}

bool tn_scan_hex4(const unsigned char *at, uint32_t *code)
{
    uint32_t n = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = at[i];
        unsigned char lower = c | 0x20;
        if (tn_scan_digit(c)) {
            n = n << 4 | (uint32_t)(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            n = n << 4 | (uint32_t)(lower - 'a' + 10);
        } else {
            return false;
        }
    }
    *code = n;
    return true;
}

const unsigned char *tn_scan_escaped(const unsigned char *at)
{
    uint64_t beyond_ascii = 0;
    for (;;) {
        at = tn_scan_plain(at, &beyond_ascii);
        if (*at == '"') {
            return at + 1;
        }
        if (*at != '\\') {
            return NULL;
        }
        uint32_t code;
        if (at[1] == 'u' && tn_scan_hex4(at + 2, &code)) {
            at += 6;
        } else if (at[1] >= 0x20 && at[1] != 'u' && strchr("\"\\/bfnrt", at[1])) {
            at += 2;
        } else {
            return NULL;
        }
    }
}
