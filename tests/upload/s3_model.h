/* s3_model: an object store in memory, on bytes: the request that a client wrote goes in, the
 * answer comes out, in any of HTTP's framings. Refuses what a plain store refuses: chunked bodies,
 * Expect, checksums that aren't the signature's, a body that isn't the one that was signed. */
#pragma once

#include <ctype.h>
#include <inttypes.h>

#include "base/hash.h"
#include "check.h"
#include "random.h"
#include "upload/s3.h"
#include "upload/sigv4.h"

#ifndef MODEL_OBJECTS /* a test of a larger store says its numbers before */
#define MODEL_OBJECTS 40
#define MODEL_UPLOADS 6
#define MODEL_PARTS   4
#define MODEL_BODY    4096
#endif

enum {
    MODEL_TEXT = 4096,
    MODEL_PART_MIN = 16, /* bytes of a part that isn't the last */
};

/* What the caller may not do. Who may not list is not told what isn't there either (S3). */
enum {
    MODEL_NO_LIST = 1,
    MODEL_NO_GET = 2, /* HEAD, too */
    MODEL_NO_PUT = 4, /* uploads by parts, too */
    MODEL_NO_DELETE = 8,
    MODEL_NO_LIST_PARTS = 16, /* and uploads */
    MODEL_NO_ABORT = 32,
    MODEL_PUT_AND_GET = MODEL_NO_LIST | MODEL_NO_DELETE | MODEL_NO_LIST_PARTS | MODEL_NO_ABORT,
};

struct model_bytes {
    unsigned char data[MODEL_BODY];
    size_t size;
};

struct model_object {
    char key[128];  /* "": a free slot */
    uint64_t first; /* hash of the bytes that it had first; 0: nobody has put any */
    struct model_bytes bytes;
};

struct model_upload {
    int id; /* 0: a free slot */
    char key[128];
    struct model_bytes parts[MODEL_PARTS];
    bool have[MODEL_PARTS];
};

struct model {
    struct model_object objects[MODEL_OBJECTS];
    struct model_upload uploads[MODEL_UPLOADS];
    int ids;
    int slots; /* of objects, that were ever taken: those behind are free */
    uint64_t random;
    const char *bucket;
    int fail_before;     /* status of an error instead of doing it; 0: none */
    int fail_after;      /* the same, having done it */
    uint32_t page;       /* rows */
    uint32_t denied;     /* MODEL_NO_...; 0: all is allowed */
    const char *refusal; /* code of a 403 that answers everything; NULL: none */
    bool unsorted;       /* rows come in an order that nobody knows */
    int lists;           /* that were asked for */
    bool closes;         /* the answer that was made ends by closing it */
    bool lasts;          /* no answer ends by closing the connection */
    int answers;
    void (*asked)(struct model *m);  /* a request is read, and is not done yet; or NULL */
    void (*failed)(struct model *m); /* it fails before it is done; or NULL */
    void (*changed)(struct model *m, struct model_object *object); /* it was put; or NULL */
    void *user;
    /* of the request */
    char method[8];
    char path[MODEL_TEXT];
    char query[MODEL_TEXT];
    char headers[MODEL_TEXT];
    struct model_bytes body;
    /* of the answer */
    int status;
    char etag[40];
    struct tn_buf xml;
    unsigned char xml_memory[64 * 1024];
    struct model_bytes object;
    bool has_object;
    unsigned long first; /* of a part of an object */
};

static inline uint64_t model_hash(const struct model_bytes *bytes)
{
    return tn_hash_64((struct tn_bytes){bytes->data, bytes->size}, 1);
}

static inline void model_etag(const struct model_bytes *bytes, char etag[40])
{
    (void)snprintf(etag, 40, "\"%016" PRIx64 "\"", model_hash(bytes));
}

static inline struct model_object *model_find(struct model *m, const char *key)
{
    for (int i = 0; i < m->slots; i++) {
        if (strcmp(m->objects[i].key, key) == 0) {
            return &m->objects[i];
        }
    }
    return NULL;
}

static inline struct model_object *model_make(struct model *m, const char *key)
{
    struct model_object *object = model_find(m, key);
    if (!object) {
        object = model_find(m, "");
        if (!object && m->slots < MODEL_OBJECTS) {
            object = &m->objects[m->slots++];
        }
        CHECK(object && strlen(key) < sizeof object->key);
        (void)snprintf(object->key, sizeof object->key, "%s", key);
        object->first = 0;
    }
    return object;
}

static inline void model_fill(struct model *m, const char *key, const struct model_bytes *bytes)
{
    struct model_object *object = model_make(m, key);
    object->bytes.size = bytes->size;
    memcpy(object->bytes.data, bytes->data, bytes->size);
    object->first = object->first ? object->first : model_hash(bytes);
    if (m->changed) {
        m->changed(m, object);
    }
}

static inline void model_decode(const char *from, size_t size, char *to)
{
    for (size_t i = 0; i < size; i++) {
        unsigned value = (unsigned char)from[i];
        if (from[i] == '%') {
            CHECK(i + 2 < size);
            CHECK(sscanf(from + i + 1, "%2X", &value) == 1);
            i += 2;
        }
        *to++ = (char)value;
    }
    *to = 0;
}

/* A parameter of the query; false: it isn't there. */
static inline bool model_query(const struct model *m, const char *name, char *value)
{
    size_t size = strlen(name);
    for (const char *at = m->query; *at;) {
        size_t length = strcspn(at, "&");
        if (strncmp(at, name, size) == 0 && at[size] == '=') {
            model_decode(at + size + 1, length - size - 1, value);
            return true;
        }
        at += length + (at[length] == '&');
    }
    return false;
}

static inline bool model_header(const struct model *m, const char *name, char *value)
{
    char start[64];
    (void)snprintf(start, sizeof start, "\n%s: ", name);
    const char *at = strstr(m->headers, start);
    if (at) {
        at += strlen(start);
        size_t size = strcspn(at, "\r");
        memcpy(value, at, size);
        value[size] = 0;
    }
    return at != NULL;
}

/* Splits "PUT /b/k?q HTTP/1.1 ..." and checks what every request has. */
static inline void model_parse(struct model *m, struct tn_bytes head, struct tn_bytes body)
{
    static char text[MODEL_TEXT];
    static char value[MODEL_TEXT];
    static char target[MODEL_TEXT];
    CHECK(head.size < sizeof text && body.size <= sizeof m->body.data);
    memcpy(text, head.data, head.size);
    text[head.size] = 0;
    CHECK(sscanf(text, "%7s %4000s HTTP/1.1", m->method, target) == 2);
    char *question = strchr(target, '?');
    (void)snprintf(m->query, sizeof m->query, "%s", question ? question + 1 : "");
    *(question ? question : target + strlen(target)) = 0;
    model_decode(target, strlen(target), m->path);
    (void)snprintf(m->headers, sizeof m->headers, "%s", strchr(text, '\n'));
    CHECK(head.size > 4 && strcmp(text + head.size - 4, "\r\n\r\n") == 0);
    m->body.size = body.size;
    if (body.size > 0) {
        memcpy(m->body.data, body.data, body.size);
    }
    CHECK(!strstr(text, "ransfer-encoding") && !strstr(text, "expect") && !strstr(text, "trailer"));
    CHECK(!strstr(text, "x-amz-checksum") && !strstr(text, "x-amz-sdk"));
    CHECK(model_header(m, "authorization", value) && model_header(m, "host", value));
    bool sends = strcmp(m->method, "PUT") == 0 || strcmp(m->method, "POST") == 0;
    CHECK(model_header(m, "content-length", value) == sends);
    CHECK(!sends || strtoul(value, NULL, 10) == body.size);
    unsigned char digest[32];
    char hex[TN_SIGV4_HASH_SIZE];
    tn_hash_sha256(body, digest);
    tn_sigv4_hex(digest, hex);
    CHECK(model_header(m, "x-amz-content-sha256", value) && strcmp(value, hex) == 0);
}

static inline void model_quote(struct tn_buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("<>&\"'\r\n\t", *text)) {
            tn_buf_format(out, "&#%d;", *text);
        } else {
            tn_buf_byte(out, (unsigned char)*text);
        }
    }
}

static inline void model_error(struct model *m, int status, const char *code)
{
    m->status = status;
    m->etag[0] = 0;
    m->has_object = false;
    tn_buf_init(&m->xml, m->xml_memory, sizeof m->xml_memory);
    tn_buf_format(&m->xml,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code>"
                  "<Message>model &amp; words</Message><RequestId>1</RequestId></Error>",
                  code);
}

static inline bool model_condition_fails(struct model *m, struct model_object *object)
{
    char value[128];
    char etag[40] = "";
    if (object) {
        model_etag(&object->bytes, etag);
    }
    if (model_header(m, "if-none-match", value) && object) {
        model_error(m, 412, "PreconditionFailed");
        return true;
    }
    if (model_header(m, "if-match", value) && strcmp(value, etag) != 0) {
        model_error(m, object ? 412 : 404, object ? "PreconditionFailed" : "NoSuchKey");
        return true;
    }
    return false;
}

static inline void model_get(struct model *m, const char *key)
{
    struct model_object *object = model_find(m, key);
    char value[128];
    unsigned long last = 0;
    if (!object || (m->denied & MODEL_NO_GET)) {
        bool hidden = m->denied & (MODEL_NO_LIST | MODEL_NO_GET);
        model_error(m, hidden ? 403 : 404, hidden ? "AccessDenied" : "NoSuchKey");
        return;
    }
    if (model_condition_fails(m, object)) {
        return;
    }
    m->object = object->bytes;
    m->has_object = true;
    m->status = 200;
    model_etag(&object->bytes, m->etag);
    if (model_header(m, "range", value) && sscanf(value, "bytes=%lu-%lu", &m->first, &last) == 2) {
        if (m->first >= object->bytes.size) {
            model_error(m, 416, "InvalidRange");
            return;
        }
        last = last < object->bytes.size ? last : object->bytes.size - 1;
        memmove(m->object.data, m->object.data + m->first, last - m->first + 1);
        m->object.size = last - m->first + 1;
        m->status = 206;
    }
}

static inline void model_put(struct model *m, const char *key)
{
    if (!model_condition_fails(m, model_find(m, key))) {
        m->status = 200;
        model_etag(&m->body, m->etag);
        model_fill(m, key, &m->body);
    }
}

static inline int model_by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void model_row(struct model *m, const char *key)
{
    struct model_object *object = model_find(m, key);
    char etag[40];
    CHECK(object);
    model_etag(&object->bytes, etag);
    tn_buf_text(&m->xml, "<Contents><Key>");
    model_quote(&m->xml, key);
    tn_buf_text(&m->xml, "</Key><LastModified>2024-02-29T23:59:59.123Z</LastModified><ETag>");
    model_quote(&m->xml, etag);
    tn_buf_format(&m->xml,
                  "</ETag><Owner><ID>o</ID></Owner><Size>%zu</Size>"
                  "<StorageClass>STANDARD</StorageClass></Contents>\n",
                  object->bytes.size);
}

struct model_rows {
    char names[MODEL_OBJECTS][256]; /* folders end in the delimiter */
    bool folders[MODEL_OBJECTS];
    uint32_t count;
    bool more;
};

/* A page: behind a folder comes what is not in it. */
static inline void model_rows(struct model *m, const char *prefix, const char *delimiter,
                              const char *after, struct model_rows *rows)
{
    static const char *keys[MODEL_OBJECTS];
    size_t count = 0;
    rows->count = 0;
    rows->more = false;
    for (int i = 0; i < m->slots; i++) {
        keys[count] = m->objects[i].key;
        count += *m->objects[i].key != 0;
    }
    qsort(keys, count, sizeof keys[0], model_by_key);
    for (size_t i = 0; i < count; i++) {
        const char *key = keys[i];
        if (strncmp(key, prefix, strlen(prefix)) != 0 || strcmp(key, after) <= 0) {
            continue;
        }
        const char *slash = delimiter[0] ? strstr(key + strlen(prefix), delimiter) : NULL;
        const char *last = rows->count > 0 ? rows->names[rows->count - 1] : "";
        char folder[256];
        (void)snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - key) : 0, key);
        if (slash && (strcmp(folder, last) == 0 || strncmp(after, folder, strlen(folder)) == 0)) {
            continue;
        }
        if (rows->count == m->page) {
            rows->more = true;
            return;
        }
        rows->folders[rows->count] = slash != NULL;
        (void)snprintf(rows->names[rows->count++], 256, "%s", slash ? folder : key);
    }
}

static inline void model_list(struct model *m)
{
    static struct model_rows rows;
    static char prefix[MODEL_TEXT];
    static char after[MODEL_TEXT];
    static char delimiter[MODEL_TEXT];
    m->lists++;
    if (m->denied & MODEL_NO_LIST) {
        model_error(m, 403, "AccessDenied");
        return;
    }
    CHECK(model_query(m, "prefix", prefix));
    bool later = model_query(m, "continuation-token", after);
    /* S3's directory buckets, which don't sort, know no start-after either. */
    if (!later && (m->unsorted || !model_query(m, "start-after", after))) {
        after[0] = 0;
    }
    delimiter[0] = 0;
    (void)model_query(m, "delimiter", delimiter);
    model_rows(m, prefix, delimiter, after, &rows);
    m->status = 200;
    tn_buf_text(&m->xml,
                "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3/\"><Prefix>");
    model_quote(&m->xml, prefix);
    tn_buf_text(&m->xml, "</Prefix>");
    for (uint32_t i = 0; i < rows.count; i++) {
        uint32_t at = m->unsorted ? rows.count - 1 - i : i;
        if (rows.folders[at]) {
            tn_buf_text(&m->xml, "<CommonPrefixes><Prefix>");
            model_quote(&m->xml, rows.names[at]);
            tn_buf_text(&m->xml, "</Prefix></CommonPrefixes>");
        } else {
            model_row(m, rows.names[at]);
        }
    }
    tn_buf_format(&m->xml, "<IsTruncated>%s</IsTruncated>", rows.more ? "true" : "false");
    if (rows.more) {
        tn_buf_text(&m->xml, "<NextContinuationToken>");
        model_quote(&m->xml, rows.names[rows.count - 1]);
        tn_buf_text(&m->xml, "</NextContinuationToken>");
    }
    tn_buf_text(&m->xml, "</ListBucketResult>");
}

/* ---- uploads by parts ---- */

static inline struct model_upload *model_upload(struct model *m, const char *key)
{
    static char id[MODEL_TEXT];
    CHECK(model_query(m, "uploadId", id));
    for (int i = 0; i < MODEL_UPLOADS; i++) {
        char mine[32];
        (void)snprintf(mine, sizeof mine, "id/%d+=", m->uploads[i].id);
        if (m->uploads[i].id && strcmp(id, mine) == 0 && strcmp(m->uploads[i].key, key) == 0) {
            return &m->uploads[i];
        }
    }
    model_error(m, 404, "NoSuchUpload");
    return NULL;
}

/* Of all keys that begin so. */
static inline void model_list_uploads(struct model *m)
{
    static char prefix[MODEL_TEXT];
    m->lists++;
    if (m->denied & MODEL_NO_LIST_PARTS) {
        model_error(m, 403, "AccessDenied");
        return;
    }
    CHECK(model_query(m, "prefix", prefix));
    m->status = 200;
    tn_buf_text(&m->xml, "<ListMultipartUploadsResult xmlns=\"http://s3/\">");
    for (int i = 0; i < MODEL_UPLOADS; i++) {
        const struct model_upload *upload = &m->uploads[i];
        if (upload->id && strncmp(upload->key, prefix, strlen(prefix)) == 0) {
            tn_buf_text(&m->xml, "<Upload><Key>");
            model_quote(&m->xml, upload->key);
            tn_buf_format(&m->xml, "</Key><UploadId>id/%d+=</UploadId></Upload>", upload->id);
        }
    }
    tn_buf_text(&m->xml, "<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>");
}

static inline void model_create(struct model *m, const char *key)
{
    struct model_upload *upload = &m->uploads[++m->ids % MODEL_UPLOADS];
    memset(upload, 0, sizeof *upload);
    upload->id = m->ids;
    (void)snprintf(upload->key, sizeof upload->key, "%s", key);
    m->status = 200;
    tn_buf_format(&m->xml,
                  "<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>id/%d+=</UploadId>"
                  "</InitiateMultipartUploadResult>",
                  upload->id);
}

static inline void model_put_part(struct model *m, struct model_upload *upload)
{
    static char number[MODEL_TEXT];
    CHECK(model_query(m, "partNumber", number));
    int part = atoi(number) - 1;
    CHECK(part >= 0 && part < MODEL_PARTS);
    upload->parts[part] = m->body;
    upload->have[part] = true;
    m->status = 200;
    model_etag(&m->body, m->etag);
}

static inline void model_list_parts(struct model *m, struct model_upload *upload)
{
    static char marker[MODEL_TEXT];
    int after = model_query(m, "part-number-marker", marker) ? atoi(marker) : 0;
    uint32_t rows = 0;
    int last = 0;
    bool more = false;
    m->status = 200;
    tn_buf_text(&m->xml, "<a:ListPartsResult xmlns:a=\"x\">");
    for (int i = after; i < MODEL_PARTS && !more; i++) {
        char etag[40];
        if (!upload->have[i]) {
            continue;
        }
        more = rows++ == m->page;
        if (!more) {
            model_etag(&upload->parts[i], etag);
            tn_buf_format(&m->xml,
                          "<a:Part><a:PartNumber>%d</a:PartNumber><a:ETag><![CDATA[%s]]>"
                          "</a:ETag><a:Size>%zu</a:Size></a:Part>",
                          i + 1, etag, upload->parts[i].size);
            last = i + 1;
        }
    }
    tn_buf_format(&m->xml,
                  "<a:NextPartNumberMarker>%d</a:NextPartNumberMarker>"
                  "<a:IsTruncated>%s</a:IsTruncated></a:ListPartsResult>",
                  last, more ? "true" : "false");
}

/* The parts that the request names, in its order. */
static inline void model_complete(struct model *m, struct model_upload *upload)
{
    static struct model_bytes whole;
    static char text[MODEL_BODY + 1];
    int before = 0;
    whole.size = 0;
    memcpy(text, m->body.data, m->body.size);
    text[m->body.size] = 0;
    for (char *at = text; (at = strstr(at, "<PartNumber>"));) {
        char etag[40];
        char expected[80];
        int part = atoi(at += strlen("<PartNumber>"));
        CHECK(part > before && part <= MODEL_PARTS);
        before = part;
        struct model_bytes *bytes = &upload->parts[part - 1];
        model_etag(bytes, etag);
        (void)snprintf(expected, sizeof expected, "%d</PartNumber><ETag>&quot;%.16s&quot;</ETag>",
                       part, etag + 1);
        if (!upload->have[part - 1] || strncmp(at, expected, strlen(expected)) != 0) {
            model_error(m, 400, "InvalidPart");
            return;
        }
        CHECK(whole.size + bytes->size <= sizeof whole.data);
        memcpy(whole.data + whole.size, bytes->data, bytes->size);
        whole.size += bytes->size;
    }
    CHECK(before > 0);
    if (model_condition_fails(m, model_find(m, upload->key))) {
        return;
    }
    char etag[40];
    model_fill(m, upload->key, &whole);
    upload->id = 0;
    model_etag(&whole, etag);
    m->status = 200;
    tn_buf_text(&m->xml, " \n  <?xml version=\"1.0\"?><CompleteMultipartUploadResult><ETag>");
    model_quote(&m->xml, etag);
    tn_buf_text(&m->xml, "</ETag></CompleteMultipartUploadResult>");
}

/* What the policy says of a verb on a key, but for GET and HEAD. */
static inline bool model_is_denied(const struct model *m, bool upload)
{
    uint32_t right = m->method[0] == 'P'   ? MODEL_NO_PUT
                     : m->method[0] == 'D' ? (upload ? MODEL_NO_ABORT : MODEL_NO_DELETE)
                     : upload              ? MODEL_NO_LIST_PARTS
                                           : 0;
    return m->denied & right;
}

static inline void model_upload_verbs(struct model *m, const char *key)
{
    static char value[MODEL_TEXT];
    if (model_query(m, "uploads", value)) {
        model_create(m, key);
        return;
    }
    struct model_upload *upload = model_upload(m, key);
    if (!upload) {
        return;
    }
    switch (m->method[0] == 'P' ? m->method[1] : m->method[0]) {
    case 'U':
        model_put_part(m, upload);
        break;
    case 'O':
        model_complete(m, upload);
        break;
    case 'D':
        upload->id = 0;
        m->status = 204;
        break;
    default:
        model_list_parts(m, upload);
    }
}

/* ---- any request ---- */

static inline void model_do(struct model *m)
{
    static char value[MODEL_TEXT];
    size_t size = strlen(m->bucket);
    CHECK(m->path[0] == '/' && strncmp(m->path + 1, m->bucket, size) == 0);
    const char *key = m->path + 1 + size;
    if (*key == 0 && model_query(m, "uploads", value)) {
        model_list_uploads(m);
        return;
    }
    if (*key == 0) {
        CHECK(model_query(m, "list-type", value) && strcmp(value, "2") == 0);
        model_list(m);
        return;
    }
    key++;
    bool upload = model_query(m, "uploads", value) || model_query(m, "uploadId", value);
    if (model_is_denied(m, upload)) {
        model_error(m, 403, "AccessDenied");
    } else if (upload) {
        model_upload_verbs(m, key);
    } else if (strcmp(m->method, "PUT") == 0) {
        model_put(m, key);
    } else if (strcmp(m->method, "DELETE") == 0) {
        struct model_object *object = model_find(m, key);
        if (object) {
            object->key[0] = 0;
        }
        m->status = 204;
    } else {
        model_get(m, key);
    }
}

/* The answer, framed at random. */
static inline void model_frame(struct model *m, struct tn_buf *out)
{
    bool head = strcmp(m->method, "HEAD") == 0;
    struct tn_bytes body =
        m->has_object ? (struct tn_bytes){m->object.data, m->object.size} : tn_buf_bytes(&m->xml);
    uint32_t framing =
        head || m->status == 204 ? 0 : random_below(&m->random, m->lasts || m->has_object ? 2 : 3);
    m->closes = framing == 2;
    CHECK(!m->xml.overflow);
    if (random_below(&m->random, 8) == 0) {
        tn_buf_text(out, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    tn_buf_format(out, "HTTP/1.1 %d X\r\nDate: Fri, 24 May 2013 00:00:01 GMT\r\n", m->status);
    tn_buf_format(out, "x-amz-request-id: R%d\r\n", ++m->answers);
    if (m->etag[0]) {
        tn_buf_format(out, "ETag: %s\r\nLast-Modified: Thu, 29 Feb 2024 23:59:59 GMT\r\n", m->etag);
    }
    if (m->status == 206) {
        tn_buf_format(out, "Content-Range: bytes %lu-%lu/*\r\n", m->first,
                      m->first + (unsigned long)m->object.size - 1);
    }
    if (framing == 0) {
        tn_buf_format(out, "Content-Length: %zu\r\n\r\n", m->status == 204 ? 0 : body.size);
    } else if (framing == 1) {
        tn_buf_text(out, "Transfer-Encoding: chunked\r\n\r\n");
        for (size_t at = 0; at < body.size;) {
            size_t size = 1 + random_below(&m->random, 300);
            size = size < body.size - at ? size : body.size - at;
            tn_buf_format(out, "%zx\r\n", size);
            tn_buf_append(out, body.data + at, size);
            tn_buf_text(out, "\r\n");
            at += size;
        }
        tn_buf_text(out, "0\r\n\r\n");
    } else {
        tn_buf_text(out, "Connection: close\r\n\r\n");
    }
    if (framing != 1 && !head && m->status != 204) {
        tn_buf_append(out, body.data, body.size);
    }
    CHECK(!out->overflow);
}

/* One request, whole. */
static inline void model_serve(struct model *m, struct tn_bytes head, struct tn_bytes body,
                               struct tn_buf *out)
{
    tn_buf_init(&m->xml, m->xml_memory, sizeof m->xml_memory);
    m->has_object = false;
    m->etag[0] = 0;
    model_parse(m, head, body);
    if (m->refusal) {
        model_error(m, 403, m->refusal);
    } else if (m->fail_before) {
        if (m->failed) {
            m->failed(m);
        }
        model_error(m, m->fail_before,
                    m->fail_before == 503   ? "SlowDown"
                    : m->fail_before == 403 ? "AccessDenied"
                                            : "InternalError");
    } else {
        if (m->asked) {
            m->asked(m);
        }
        model_do(m);
        if (m->fail_after) {
            model_error(m, m->fail_after, "InternalError");
        }
    }
    model_frame(m, out);
}
