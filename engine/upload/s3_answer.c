#include "schema/time_text.h"
#include "upload/s3_private.h"

enum { SECOND_MS = 1000, RETRY_AFTER_MAX_MS = 60 * 60 * 1000 };

/* ---- texts into fields ---- */

/* False when it doesn't fit; then the field is empty. */
static bool keep(char *field, size_t size, struct tn_bytes text)
{
    bool fits = text.size < size && !(text.size > 0 && memchr(text.data, 0, text.size));
    if (fits && text.size > 0) {
        memcpy(field, text.data, text.size);
    }
    field[fits ? text.size : 0] = 0;
    return fits;
}

/* As much as fits, without what would spoil a log. */
static void keep_start(char *field, size_t size, struct tn_bytes text)
{
    size_t length = text.size < size - 1 ? text.size : size - 1;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = text.data[i];
        field[i] = (char)(byte >= ' ' && byte < 0x7f ? byte : '?');
    }
    field[length] = 0;
}

static bool digits_at(struct tn_bytes text, size_t at, size_t size, uint64_t *value)
{
    return tn_http_number((struct tn_bytes){text.data + at, size}, value);
}

/* "2009-10-12T17:50:30.000Z"; the fraction may have any length. */
static int64_t read_iso(struct tn_bytes text)
{
    static const char shape[] = "####-##-##T##:##:##";
    uint64_t f[6] = {0};
    static const unsigned char places[6][2] = {{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}};
    if (text.size < sizeof shape || text.data[text.size - 1] != 'Z') {
        return 0;
    }
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        if (shape[i] != '#' && text.data[i] != (unsigned char)shape[i]) {
            return 0;
        }
    }
    for (size_t i = 0; i < 6; i++) {
        if (!digits_at(text, places[i][0], places[i][1], &f[i])) {
            return 0;
        }
    }
    struct tn_date date = {(int64_t)f[0], (uint32_t)f[1], (uint32_t)f[2]};
    if (f[1] < 1 || f[1] > 12 || f[2] < 1 || f[2] > tn_days_in_month(date.year, date.month) ||
        f[3] > 23 || f[4] > 59 || f[5] > 60) {
        return 0;
    }
    int64_t seconds = tn_days_of_date(&date) * 86400 + (int64_t)(f[3] * 3600 + f[4] * 60 + f[5]);
    return seconds * SECOND_MS;
}

/* ---- headers ---- */

static void take_retry_after(struct tn_s3_answer *answer, struct tn_bytes value)
{
    uint64_t seconds = 0;
    int64_t date_ms = 0;
    uint64_t wait_ms = 0;
    if (tn_http_number(value, &seconds)) {
        wait_ms = seconds < RETRY_AFTER_MAX_MS ? seconds * SECOND_MS : RETRY_AFTER_MAX_MS;
    } else if (tn_http_date(value, &date_ms) && answer->server_ms > 0 &&
               date_ms > answer->server_ms) {
        wait_ms = (uint64_t)(date_ms - answer->server_ms);
    }
    answer->retry_after_ms =
        wait_ms < RETRY_AFTER_MAX_MS ? (uint32_t)wait_ms : (uint32_t)RETRY_AFTER_MAX_MS;
}

/* "bytes 4-7/10": where it begins. */
static bool read_range(struct tn_bytes value, uint64_t *first)
{
    static const char unit[] = "bytes ";
    const size_t start = sizeof unit - 1;
    if (value.size < start || !tn_http_same((struct tn_bytes){value.data, start}, unit)) {
        return false;
    }
    const unsigned char *dash = memchr(value.data + start, '-', value.size - start);
    size_t size = dash ? (size_t)(dash - value.data) - start : 0;
    return digits_at(value, start, size, first);
}

void tn_s3_take_headers(struct tn_s3_exchange *exchange)
{
    struct tn_s3_answer *answer = &exchange->answer;
    const struct tn_http *http = exchange->http;
    struct tn_bytes value;
    answer->status = http->status;
    if (tn_http_header(http, "date", &value) && !tn_http_date(value, &answer->server_ms)) {
        answer->server_ms = 0;
    }
    if (tn_http_header(http, "last-modified", &value) &&
        !tn_http_date(value, &answer->modified_ms)) {
        answer->modified_ms = 0;
    }
    if (tn_http_header(http, "etag", &value)) {
        (void)keep(answer->etag, sizeof answer->etag, value);
    }
    if (tn_http_header(http, "x-amz-bucket-region", &value)) {
        (void)keep(answer->region, sizeof answer->region, value);
    }
    if (tn_http_header(http, "retry-after", &value)) {
        take_retry_after(answer, value);
    }
    if (tn_http_header(http, "content-range", &value)) {
        exchange->ranged = read_range(value, &exchange->range_first);
    }
    if (exchange->request->verb == TN_S3_HEAD && http->has_length && http->status / 100 == 2) {
        answer->size = http->length;
    }
}

bool tn_s3_is_object(const struct tn_s3_exchange *exchange)
{
    return exchange->request->verb == TN_S3_GET && exchange->answer.status / 100 == 2;
}

bool tn_s3_is_asked(const struct tn_s3_exchange *exchange)
{
    if (exchange->request->range_size == 0) {
        return exchange->answer.status == 200;
    }
    return exchange->answer.status == 206 && exchange->ranged &&
           exchange->range_first == exchange->request->range_first;
}

bool tn_s3_answers_xml(enum tn_s3_verb verb)
{
    return verb == TN_S3_LIST || verb == TN_S3_CREATE_UPLOAD || verb == TN_S3_COMPLETE_UPLOAD ||
           verb == TN_S3_LIST_PARTS || verb == TN_S3_LIST_UPLOADS;
}

/* ---- XML ---- */

typedef tn_rc take_fn(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err);

struct element {
    const char *path;
    take_fn *take;
};

static tn_rc take_code(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    (void)err;
    keep_start(exchange->answer.code, sizeof exchange->answer.code, text);
    return TN_OK;
}

static tn_rc take_message(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    (void)err;
    keep_start(exchange->answer.message, sizeof exchange->answer.message, text);
    return TN_OK;
}

static tn_rc take_region(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    (void)err;
    (void)keep(exchange->answer.region, sizeof exchange->answer.region, text);
    return TN_OK;
}

static tn_rc take_error(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    (void)text;
    (void)err;
    exchange->failed = true;
    return TN_OK;
}

static tn_rc take_root(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    (void)text;
    (void)err;
    exchange->root = true;
    return TN_OK;
}

static tn_rc too_long(struct tn_err *err, const char *what)
{
    return tn_err_set(err, TN_CORRUPT, 0, "%s is too long, or missing", what);
}

static tn_rc take_upload_id(struct tn_s3_exchange *exchange, struct tn_bytes text,
                            struct tn_err *err)
{
    char *field = exchange->answer.upload_id;
    return keep(field, sizeof exchange->answer.upload_id, text) && *field
               ? TN_OK
               : too_long(err, "the upload's id");
}

static tn_rc take_token(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    char *field = exchange->answer.token;
    return keep(field, sizeof exchange->answer.token, text) ? TN_OK
                                                            : too_long(err, "the token of a list");
}

static tn_rc take_etag(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    (void)err;
    (void)keep(exchange->answer.etag, sizeof exchange->answer.etag, text);
    return TN_OK;
}

static tn_rc take_more(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    exchange->answer.more = tn_http_same(text, "true");
    if (!exchange->answer.more && !tn_http_same(text, "false")) {
        return tn_err_set(err, TN_CORRUPT, 0, "IsTruncated is neither true nor false");
    }
    return TN_OK;
}

static tn_rc take_number(struct tn_bytes text, const char *what, uint64_t max, uint64_t *value,
                         struct tn_err *err)
{
    if (!tn_http_number(text, value) || *value > max) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s is no number, or too large", what);
    }
    return TN_OK;
}

static tn_rc take_marker(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    uint64_t value = 0;
    /* Some stores leave it empty on the last page. */
    tn_rc rc = text.size == 0
                   ? TN_OK
                   : take_number(text, "NextPartNumberMarker", TN_S3_PARTS_MAX, &value, err);
    exchange->answer.part = (uint32_t)value;
    return rc;
}

/* ---- rows ---- */

static tn_rc take_key(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    exchange->entry.name = exchange->entry_name;
    return keep(exchange->entry_name, sizeof exchange->entry_name, text) && text.size > 0
               ? TN_OK
               : too_long(err, "a key");
}

static tn_rc take_size(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    return take_number(text, "Size", INT64_MAX, &exchange->entry.size, err);
}

static tn_rc take_row_etag(struct tn_s3_exchange *exchange, struct tn_bytes text,
                           struct tn_err *err)
{
    (void)err;
    (void)keep(exchange->entry_etag, sizeof exchange->entry_etag, text);
    return TN_OK;
}

static tn_rc take_row_upload(struct tn_s3_exchange *exchange, struct tn_bytes text,
                             struct tn_err *err)
{
    return keep(exchange->entry_upload, sizeof exchange->entry_upload, text)
               ? TN_OK
               : too_long(err, "the upload's id");
}

static tn_rc take_modified(struct tn_s3_exchange *exchange, struct tn_bytes text,
                           struct tn_err *err)
{
    (void)err;
    exchange->entry.modified_ms = read_iso(text);
    return TN_OK;
}

static tn_rc take_part_number(struct tn_s3_exchange *exchange, struct tn_bytes text,
                              struct tn_err *err)
{
    uint64_t value = 0;
    tn_rc rc = take_number(text, "PartNumber", TN_S3_PARTS_MAX, &value, err);
    exchange->entry.part = (uint32_t)value;
    return rc;
}

static void begin_row(struct tn_s3_exchange *exchange)
{
    exchange->entry =
        (struct tn_s3_entry){.etag = exchange->entry_etag, .upload_id = exchange->entry_upload};
    exchange->entry_name[0] = 0;
    exchange->entry_etag[0] = 0;
    exchange->entry_upload[0] = 0;
}

static tn_rc end_row(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    (void)text;
    const struct tn_s3_request *request = exchange->request;
    bool part = request->verb == TN_S3_LIST_PARTS;
    if (part ? exchange->entry.part == 0 : !exchange->entry.name) {
        return tn_err_set(err, TN_CORRUPT, 0, "a row has no name");
    }
    tn_rc rc = request->each ? request->each(request->user, &exchange->entry, err) : TN_OK;
    begin_row(exchange);
    return rc;
}

static tn_rc end_folder(struct tn_s3_exchange *exchange, struct tn_bytes text, struct tn_err *err)
{
    exchange->entry.folder = true;
    return end_row(exchange, text, err);
}

static const struct element errors[] = {
    {"Error/Code", take_code},
    {"Error/Message", take_message},
    {"Error/Region", take_region},
    {"Error", take_error},
    {NULL, NULL},
};

static const struct element lists[] = {
    {"ListBucketResult/Contents/Key", take_key},
    {"ListBucketResult/Contents/Size", take_size},
    {"ListBucketResult/Contents/ETag", take_row_etag},
    {"ListBucketResult/Contents/LastModified", take_modified},
    {"ListBucketResult/Contents", end_row},
    {"ListBucketResult/CommonPrefixes/Prefix", take_key},
    {"ListBucketResult/CommonPrefixes", end_folder},
    {"ListBucketResult/IsTruncated", take_more},
    {"ListBucketResult/NextContinuationToken", take_token},
    {"ListBucketResult", take_root},
    {NULL, NULL},
};

static const struct element parts[] = {
    {"ListPartsResult/Part/PartNumber", take_part_number},
    {"ListPartsResult/Part/Size", take_size},
    {"ListPartsResult/Part/ETag", take_row_etag},
    {"ListPartsResult/Part/LastModified", take_modified},
    {"ListPartsResult/Part", end_row},
    {"ListPartsResult/IsTruncated", take_more},
    {"ListPartsResult/NextPartNumberMarker", take_marker},
    {"ListPartsResult", take_root},
    {NULL, NULL},
};

static const struct element uploads[] = {
    {"ListMultipartUploadsResult/Upload/Key", take_key},
    {"ListMultipartUploadsResult/Upload/UploadId", take_row_upload},
    {"ListMultipartUploadsResult/Upload", end_row},
    {"ListMultipartUploadsResult", take_root},
    {NULL, NULL},
};

static const struct element creates[] = {
    {"InitiateMultipartUploadResult/UploadId", take_upload_id},
    {"InitiateMultipartUploadResult", take_root},
    {NULL, NULL},
};

static const struct element completes[] = {
    {"CompleteMultipartUploadResult/ETag", take_etag},
    {"CompleteMultipartUploadResult", take_root},
    {NULL, NULL},
};

static const struct element *elements_of(enum tn_s3_verb verb)
{
    switch (verb) {
    case TN_S3_LIST:
        return lists;
    case TN_S3_LIST_PARTS:
        return parts;
    case TN_S3_LIST_UPLOADS:
        return uploads;
    case TN_S3_CREATE_UPLOAD:
        return creates;
    case TN_S3_COMPLETE_UPLOAD:
        return completes;
    case TN_S3_GET:
    case TN_S3_HEAD:
    case TN_S3_PUT:
    case TN_S3_DELETE:
    case TN_S3_UPLOAD_PART:
    case TN_S3_ABORT_UPLOAD:
        break;
    }
    return errors;
}

static const struct element *find(const struct element *elements, const char *path)
{
    for (; elements->path; elements++) {
        if (strcmp(elements->path, path) == 0) {
            return elements;
        }
    }
    return NULL;
}

/* An error may come with status 200, after a completion that took long. Rows may not come with
 * another status. */
tn_rc tn_s3_take_element(void *user, const char *path, struct tn_bytes text, struct tn_err *err)
{
    struct tn_s3_exchange *exchange = user;
    const struct element *element = find(errors, path);
    if (!element && exchange->answer.status / 100 == 2) {
        element = find(elements_of(exchange->request->verb), path);
    }
    return element ? element->take(exchange, text, err) : TN_OK;
}

void tn_s3_take_xml(struct tn_s3_exchange *exchange, struct tn_bytes bytes)
{
    if (exchange->xml_rc == TN_OK) {
        exchange->xml_rc = tn_xml_add(&exchange->xml, bytes, &exchange->xml_err);
    }
}

void tn_s3_end_xml(struct tn_s3_exchange *exchange)
{
    if (exchange->xml_rc == TN_OK) {
        exchange->xml_rc = tn_xml_finish(&exchange->xml, &exchange->xml_err);
    }
}
