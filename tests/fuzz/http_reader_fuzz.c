/* Any bytes as what clients ask, on one connection: requests, or a refusal; and cut in any pieces
 * (the first byte) they are the same requests. What is read fits the limits and lies in its memory,
 * and what a request is after is one of what there is, or a refusal with a text.
 */
#include "ingest/http_private.h"

#include "base/hash.h"
#include "check.h"
#include "fuzz/fuzz.h"

enum { HEAD_SIZE = 400 /* small, so that its end is met */ };

struct seen {
    tn_rc rc;
    int status;
    uint32_t heads;
    uint32_t ends;
    bool keep_alive;
    uint64_t told; /* a hash of all that was told, in its order */
    uint64_t body_size;
    uint64_t last_body; /* bytes of the body that is coming */
};

static unsigned char head_memory[HEAD_SIZE];

static void tell(struct seen *seen, struct tn_bytes bytes)
{
    seen->told = tn_hash_64(bytes, seen->told + bytes.size);
}

static void check_inside(struct tn_bytes view)
{
    CHECK(view.size == 0 || (view.data >= head_memory && view.size <= HEAD_SIZE &&
                             view.data + view.size <= head_memory + HEAD_SIZE));
}

static void route(const struct tn_http_reader *reader, const char *token)
{
    static const struct tn_http_page page = {.path = "/health", .open = true};
    static struct tn_http_server server;
    static struct tn_http_asked asked;
    struct tn_err err = {0};
    server.spec = (struct tn_http_server_spec){.token = token, .pages = &page, .page_count = 1};
    int status = tn_http_route(&server, reader, &asked, &err);
    if (status != 200) {
        CHECK(status >= 400 && status < 500 && err.text[0]);
        CHECK(status != 405 || asked.allow);
    } else if (asked.page) {
        CHECK(tn_bytes_equal(reader->path, tn_bytes_of(page.path)));
    } else {
        CHECK(asked.table[0] && memchr(asked.table, 0, sizeof asked.table));
        CHECK(!strchr(asked.table, '/') && tn_input_name(asked.input));
        CHECK(strncmp(asked.sender, "http/", 5) == 0);
        CHECK(memchr(asked.sender, 0, sizeof asked.sender));
        CHECK(asked.mark.sequence == 0 || (asked.mark.key.size == 0 && asked.sender[5]));
        check_inside(asked.mark.key);
    }
}

static void on_head(const struct tn_http_reader *reader, struct seen *seen)
{
    static const char *const names[] = {"content-length", "host", "x-sender", "expect"};
    unsigned char flags[] = {reader->old, reader->keep_alive, reader->expects, reader->has_body};
    const struct tn_bytes views[] = {reader->method, reader->path, reader->query, reader->fields};
    for (size_t i = 0; i < COUNT(views); i++) {
        check_inside(views[i]);
        tell(seen, views[i]);
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        struct tn_bytes value;
        (void)tn_http_reader_field(reader, names[i], &value);
        check_inside(value);
        CHECK(tn_http_all(value, tn_http_is_value));
    }
    CHECK(reader->path.size > 0 && reader->path.data[0] == '/');
    CHECK(tn_http_field_count(reader->fields) <= TN_HTTP_FIELDS_MAX);
    CHECK(!(reader->has_length && reader->frame.state == TN_HTTP_FRAME_SIZE));
    tell(seen, (struct tn_bytes){flags, sizeof flags});
    route(reader, NULL);
    route(reader, "x");
    seen->heads++;
    seen->last_body = 0;
}

static void on_end(const struct tn_http_reader *reader, struct seen *seen)
{
    CHECK(!reader->has_length || seen->last_body == reader->length);
    CHECK(reader->has_body || seen->last_body == 0);
    seen->ends++;
    CHECK(seen->ends == seen->heads);
}

static void read_piece(struct tn_http_reader *reader, struct tn_bytes input, struct seen *seen)
{
    enum tn_http_reader_event event = TN_HTTP_READER_HEAD;
    while (event != TN_HTTP_READER_MORE) {
        struct tn_err err;
        struct tn_bytes body;
        seen->rc = tn_http_reader_next(reader, &input, &event, &body, &err);
        if (seen->rc != TN_OK) {
            CHECK(seen->rc == TN_INVALID && reader->status >= 400 && reader->status < 600);
            CHECK(!reader->keep_alive && err.text[0]);
            return;
        }
        CHECK((event == TN_HTTP_READER_BODY) == (body.size > 0));
        seen->body_size += body.size;
        seen->last_body += body.size;
        for (size_t i = 0; i < body.size; i++) {
            tell(seen, (struct tn_bytes){body.data + i, 1});
        }
        if (event == TN_HTTP_READER_HEAD) {
            on_head(reader, seen);
        } else if (event == TN_HTTP_READER_END) {
            on_end(reader, seen);
        }
    }
    CHECK(input.size == 0);
}

static void read_in(struct tn_bytes all, size_t piece, struct seen *seen)
{
    struct tn_http_reader reader;
    memset(seen, 0, sizeof *seen);
    tn_http_reader_init(&reader, head_memory, sizeof head_memory);
    for (size_t at = 0; at < all.size && seen->rc == TN_OK; at += piece) {
        size_t size = piece < all.size - at ? piece : all.size - at;
        read_piece(&reader, (struct tn_bytes){all.data + at, size}, seen);
    }
    seen->status = reader.status;
    seen->keep_alive = reader.keep_alive;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct seen whole;
    static struct seen pieces;
    if (size < 2) {
        return 0;
    }
    struct tn_bytes all = {data + 1, size - 1};
    read_in(all, all.size, &whole);
    read_in(all, 1 + data[0] % 64, &pieces);
    CHECK(whole.rc == pieces.rc && whole.status == pieces.status);
    CHECK(whole.heads == pieces.heads && whole.ends == pieces.ends);
    CHECK(whole.keep_alive == pieces.keep_alive && whole.body_size == pieces.body_size);
    CHECK(whole.told == pieces.told);
    return 0;
}
