#include "base/hash.h"
#include "ingest/http_private.h"

enum { WORD_SIZE = 32 };

static int refuse(int status, struct tn_err *err, const char *what)
{
    (void)tn_err_set(err, TN_INVALID, 0, "%s", what);
    return status;
}

/* ---- the path ---- */

static bool take(struct tn_bytes *text, const char *begin)
{
    size_t size = strlen(begin);
    if (text->size < size || memcmp(text->data, begin, size) != 0) {
        return false;
    }
    text->data += size;
    text->size -= size;
    return true;
}

static bool take_end(struct tn_bytes *text, const char *end)
{
    size_t size = strlen(end);
    if (text->size < size || memcmp(text->data + text->size - size, end, size) != 0) {
        return false;
    }
    text->size -= size;
    return true;
}

/* The byte at `at`, which moves on, with "%2E" for what it stands for; -1: that isn't any. */
static int decode_byte(struct tn_bytes text, size_t *at)
{
    unsigned char byte = text.data[(*at)++];
    if (byte != '%') {
        return byte;
    }
    if (text.size - *at < 2) {
        return -1;
    }
    int high = tn_http_hex(text.data[*at]);
    int low = tn_http_hex(text.data[*at + 1]);
    *at += 2;
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* "/tables/D.T/rows" */
static bool names_table(struct tn_bytes path, char table[TN_HTTP_TABLE_SIZE])
{
    size_t size = 0;
    if (!take(&path, "/tables/") || !take_end(&path, "/rows")) {
        return false;
    }
    for (size_t at = 0; at < path.size;) {
        int byte = decode_byte(path, &at);
        if (byte < ' ' || byte == '/' || size == TN_HTTP_TABLE_SIZE - 1) {
            return false;
        }
        table[size++] = (char)byte;
    }
    table[size] = 0;
    return size > 0;
}

static bool is_method(const struct tn_http_reader *reader, const char *name)
{
    return tn_bytes_equal(reader->method, tn_bytes_of(name));
}

static bool fits(const struct tn_http_reader *reader, const struct tn_http_page *page)
{
    return !page || page->post ? is_method(reader, "POST")
                               : is_method(reader, "GET") || is_method(reader, "HEAD");
}

/* Of two pages with one path the one that the method is for, or the first. */
static int find(const struct tn_http_server_spec *spec, const struct tn_http_reader *reader,
                struct tn_http_asked *asked, struct tn_err *err)
{
    for (uint32_t i = 0; i < spec->page_count; i++) {
        const struct tn_http_page *page = &spec->pages[i];
        if (tn_bytes_equal(reader->path, tn_bytes_of(page->path)) &&
            (!asked->page || !fits(reader, asked->page))) {
            asked->page = fits(reader, page) || !asked->page ? page : asked->page;
        }
    }
    if (!asked->page && !names_table(reader->path, asked->table)) {
        return refuse(404, err, "there is no such page; rows go to /tables/DATABASE.TABLE/rows");
    }
    asked->allow = asked->page && !asked->page->post ? "GET, HEAD" : "POST";
    return fits(reader, asked->page)
               ? 200
               : refuse(405, err, "that isn't what can be done here: see Allow");
}

/* ---- who ---- */

static bool shows_token(const struct tn_http_reader *reader, const char *token)
{
    struct tn_bytes value;
    if (!tn_http_reader_field(reader, "authorization", &value) || value.size < 7 ||
        !tn_http_same((struct tn_bytes){value.data, 7}, "Bearer ")) {
        return false;
    }
    return tn_hash_is_secret(tn_http_trim((struct tn_bytes){value.data + 7, value.size - 7}),
                             tn_bytes_of(token));
}

static int check_right(const struct tn_http_server_spec *spec, const struct tn_http_reader *reader,
                       const struct tn_http_asked *asked, struct tn_err *err)
{
    struct tn_bytes origin;
    if (asked->page && asked->page->open) {
        return 200;
    }
    if (spec->token && !shows_token(reader, spec->token)) {
        return refuse(401, err, "it doesn't show the token: Authorization: Bearer TOKEN");
    }
    bool from_page = !tn_http_reader_field(reader, "origin", &origin) || origin.data;
    if (!spec->token && (!asked->page || asked->page->post) && from_page) {
        return refuse(403, err, "rows from a web page are taken only with a token");
    }
    return 200;
}

/* ---- what is in the body ---- */

static const struct {
    const char *type;
    enum tn_input input;
} types[] = {
    {"application/json", TN_INPUT_JSON},
    {"application/jsonl", TN_INPUT_JSON},
    {"application/x-ndjson", TN_INPUT_JSON},
    {"application/x-jsonlines", TN_INPUT_JSON},
    {"text/csv", TN_INPUT_CSV},
};

static int read_type(const struct tn_http_reader *reader, enum tn_input *input, struct tn_err *err)
{
    struct tn_bytes value;
    if (!tn_http_reader_field(reader, "content-type", &value)) {
        return refuse(400, err, "it has two Content-Types");
    }
    if (!value.data) {
        *input = TN_INPUT_JSON;
        return 200;
    }
    const unsigned char *more = memchr(value.data, ';', value.size);
    struct tn_bytes type = {value.data, more ? (size_t)(more - value.data) : value.size};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (tn_http_same(tn_http_trim(type), types[i].type)) {
            *input = types[i].input;
            return 200;
        }
    }
    return refuse(
        415, err,
        "its Content-Type is none of application/json, application/x-ndjson and text/csv; "
        "?input=... says it better");
}

static int read_query(const struct tn_http_reader *reader, enum tn_input *input, struct tn_err *err)
{
    char word[WORD_SIZE];
    struct tn_bytes query = reader->query;
    if (!take(&query, "input=") || query.size >= sizeof word) {
        return refuse(400, err, "behind ? stands something else than input=FORMAT");
    }
    memcpy(word, query.data, query.size);
    word[query.size] = 0;
    return tn_input_parse(word, input, err) == TN_OK ? 200 : 400;
}

static int read_coding(const struct tn_http_reader *reader, struct tn_err *err)
{
    struct tn_bytes value;
    bool once = tn_http_reader_field(reader, "content-encoding", &value);
    if (once && (!value.data || tn_http_same(value, "identity"))) {
        return 200;
    }
    return refuse(415, err, "its Content-Encoding isn't read: send it as it is");
}

/* ---- whether it was here before ---- */

static int read_sender(const struct tn_http_reader *reader, struct tn_http_asked *asked,
                       struct tn_err *err)
{
    static const char prefix[] = "http/"; /* others keep memos, too */
    struct tn_bytes sender;
    bool once = tn_http_reader_field(reader, "x-sender", &sender);
    bool wrong = sender.data && (sender.size == 0 || sender.size > TN_HTTP_SENDER_MAX ||
                                 !tn_http_all(sender, tn_http_is_visible));
    if (!once || wrong) {
        return refuse(400, err, "X-Sender isn't one name, of 1 to 200 visible ASCII characters");
    }
    memcpy(asked->sender, prefix, sizeof prefix);
    if (sender.data) {
        memcpy(asked->sender + sizeof prefix - 1, sender.data, sender.size);
        asked->sender[sizeof prefix - 1 + sender.size] = 0;
    }
    return 200;
}

static int read_mark(const struct tn_http_reader *reader, struct tn_http_asked *asked,
                     struct tn_err *err)
{
    struct tn_bytes sender;
    struct tn_bytes sequence;
    struct tn_bytes key;
    struct tn_http_mark *mark = &asked->mark;
    (void)tn_http_reader_field(reader, "x-sender", &sender);
    bool once = tn_http_reader_field(reader, "x-sequence", &sequence);
    if (!tn_http_reader_field(reader, "idempotency-key", &key) || !once ||
        (sequence.data && key.data)) {
        return refuse(400, err, "it has more than one of X-Sequence and Idempotency-Key");
    }
    if (sequence.data &&
        (!sender.data || !tn_http_number(sequence, &mark->sequence) || mark->sequence == 0)) {
        return refuse(400, err, "X-Sequence isn't a number from 1, beside an X-Sender");
    }
    if (sender.data && !sequence.data && !key.data) { /* it thinks that it is known */
        return refuse(400, err,
                      "it has an X-Sender, and neither an X-Sequence nor an Idempotency-Key by "
                      "which it could be known again");
    }
    if (key.data && (key.size == 0 || key.size > TN_HTTP_KEY_MAX)) {
        return refuse(400, err, "Idempotency-Key hasn't 1 to 256 bytes");
    }
    mark->key = key;
    return 200;
}

/* ---- */

static int check_rows(const struct tn_http_reader *reader, struct tn_http_asked *asked,
                      struct tn_err *err)
{
    int status = read_coding(reader, err);
    if (status == 200) {
        status = reader->query.size > 0 ? read_query(reader, &asked->input, err)
                                        : read_type(reader, &asked->input, err);
    }
    if (status == 200) {
        status = read_sender(reader, asked, err);
    }
    return status == 200 ? read_mark(reader, asked, err) : status;
}

int tn_http_route(const struct tn_http_server *server, const struct tn_http_reader *reader,
                  struct tn_http_asked *asked, struct tn_err *err)
{
    memset(asked, 0, sizeof *asked);
    int status = find(&server->spec, reader, asked, err);
    if (status == 200) {
        status = check_right(&server->spec, reader, asked, err);
    }
    return status == 200 && !asked->page ? check_rows(reader, asked, err) : status;
}
