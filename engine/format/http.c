#include "format/http.h"

/* ---- words ---- */

static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte + 'a' - 'A') : byte;
}

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_blank(unsigned char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Source: RFC 9110, 5.6.2 */
bool tn_http_is_token(unsigned char byte)
{
    unsigned char small = lower(byte);
    return (small >= 'a' && small <= 'z') || is_digit(byte) ||
           (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

bool tn_http_is_value(unsigned char byte)
{
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
}

bool tn_http_is_visible(unsigned char byte)
{
    return byte > ' ' && byte < 0x7f;
}

bool tn_http_all(struct tn_bytes text, bool (*is)(unsigned char))
{
    for (size_t i = 0; i < text.size; i++) {
        if (!is(text.data[i])) {
            return false;
        }
    }
    return true;
}

struct tn_bytes tn_http_trim(struct tn_bytes text)
{
    while (text.size > 0 && is_blank(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && is_blank(text.data[text.size - 1])) {
        text.size--;
    }
    return text;
}

bool tn_http_same(struct tn_bytes text, const char *word)
{
    size_t size = strlen(word);
    if (text.size != size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (lower(text.data[i]) != lower((unsigned char)word[i])) {
            return false;
        }
    }
    return true;
}

bool tn_http_names(struct tn_bytes list, const char *word)
{
    while (list.size > 0) {
        struct tn_bytes item = {list.data, 0};
        while (item.size < list.size && item.data[item.size] != ',') {
            item.size++;
        }
        if (tn_http_same(tn_http_trim(item), word)) {
            return true;
        }
        size_t size = item.size < list.size ? item.size + 1 : item.size;
        list.data += size;
        list.size -= size;
    }
    return false;
}

bool tn_http_number(struct tn_bytes text, uint64_t *value)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint64_t digit = (uint64_t)text.data[i] - '0';
        if (!is_digit(text.data[i]) || number > (INT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    if (text.size == 0) {
        return false;
    }
    *value = number;
    return true;
}

int tn_http_hex(unsigned char byte)
{
    unsigned char small = lower(byte);
    if (small >= 'a' && small <= 'f') {
        return small - 'a' + 10;
    }
    return is_digit(byte) ? byte - '0' : -1;
}

/* ---- a head ---- */

static bool head_ends(const struct tn_buf *head)
{
    return head->size >= 4 && memcmp(head->data + head->size - 4, "\r\n\r\n", 4) == 0;
}

/* A line feed comes after a carriage return, and the other way round. */
static bool fits_head(const struct tn_buf *head, unsigned char byte)
{
    bool after_return = head->size > 0 && head->data[head->size - 1] == '\r';
    return (byte == '\n') == after_return &&
           (byte == '\n' || byte == '\r' || tn_http_is_value(byte));
}

enum tn_http_taken tn_http_head_take(struct tn_buf *head, struct tn_bytes *input)
{
    while (input->size > 0 && !head_ends(head)) {
        if (!fits_head(head, input->data[0])) {
            return TN_HTTP_TAKEN_WRONG;
        }
        if (head->size == head->capacity) {
            return TN_HTTP_TAKEN_FULL;
        }
        tn_buf_byte(head, input->data[0]);
        input->data++;
        input->size--;
    }
    return head_ends(head) ? TN_HTTP_TAKEN_WHOLE : TN_HTTP_TAKEN_PART;
}

struct tn_bytes tn_http_line(struct tn_bytes *rest)
{
    struct tn_bytes line = {rest->data, 0};
    while (line.size < rest->size && rest->data[line.size] != '\r') {
        line.size++;
    }
    size_t size = line.size + 2 < rest->size ? line.size + 2 : rest->size;
    rest->data += size;
    rest->size -= size;
    return line;
}

bool tn_http_split(struct tn_bytes line, struct tn_bytes *name, struct tn_bytes *value)
{
    const unsigned char *colon = line.size > 0 ? memchr(line.data, ':', line.size) : NULL;
    if (!colon) {
        return false;
    }
    *name = (struct tn_bytes){line.data, (size_t)(colon - line.data)};
    *value = tn_http_trim((struct tn_bytes){colon + 1, line.size - name->size - 1});
    return name->size > 0 && tn_http_all(*name, tn_http_is_token) &&
           tn_http_all(*value, tn_http_is_value);
}

int tn_http_field_count(struct tn_bytes fields)
{
    int count = 0;
    while (fields.size > 2) { /* the empty line */
        struct tn_bytes name;
        struct tn_bytes value;
        if (!tn_http_split(tn_http_line(&fields), &name, &value)) {
            return -1;
        }
        count++;
    }
    return count;
}

bool tn_http_field(struct tn_bytes fields, const char *name, uint32_t nth, struct tn_bytes *value)
{
    while (fields.size > 0) {
        struct tn_bytes its_name;
        struct tn_bytes its_value;
        if (tn_http_split(tn_http_line(&fields), &its_name, &its_value) &&
            tn_http_same(its_name, name) && nth-- == 0) {
            *value = its_value;
            return true;
        }
    }
    return false;
}

/* ---- a body ---- */

void tn_http_frame_length(struct tn_http_frame *frame, uint64_t length)
{
    *frame = (struct tn_http_frame){.state = length > 0 ? TN_HTTP_FRAME_LENGTH : TN_HTTP_FRAME_END,
                                    .left = length};
}

void tn_http_frame_chunks(struct tn_http_frame *frame)
{
    *frame = (struct tn_http_frame){.state = TN_HTTP_FRAME_SIZE};
}

static void take_piece(struct tn_http_frame *frame, struct tn_bytes *input, struct tn_bytes *piece)
{
    size_t size = (uint64_t)input->size < frame->left ? input->size : (size_t)frame->left;
    *piece = (struct tn_bytes){input->data, size};
    input->data += size;
    input->size -= size;
    frame->left -= size;
    if (frame->left == 0) {
        frame->state =
            frame->state == TN_HTTP_FRAME_LENGTH ? TN_HTTP_FRAME_END : TN_HTTP_FRAME_CHUNK_CR;
    }
}

/* What may stand behind a chunk's size: blanks, then a note that begins with a semicolon. */
static const char *take_blank(struct tn_http_frame *frame, unsigned char byte)
{
    if (byte == '\r') {
        frame->state = TN_HTTP_FRAME_SIZE_LF;
    } else if (byte == ';') {
        frame->state = TN_HTTP_FRAME_NOTE;
    } else if (is_blank(byte)) {
        frame->state = TN_HTTP_FRAME_BLANK;
    } else {
        return "a chunk's size is no number";
    }
    return NULL;
}

static const char *take_size(struct tn_http_frame *frame, unsigned char byte)
{
    int digit = tn_http_hex(byte);
    if (digit < 0) {
        return frame->line_size > 0 ? take_blank(frame, byte) : "a chunk's size is no number";
    }
    if (frame->left > INT64_MAX >> 4) {
        return "a chunk is too large";
    }
    frame->left = frame->left << 4 | (uint64_t)digit;
    return NULL;
}

static const char *take_note(struct tn_http_frame *frame, unsigned char byte)
{
    if (byte == '\r') {
        frame->state = TN_HTTP_FRAME_SIZE_LF;
        return NULL;
    }
    return tn_http_is_value(byte) ? NULL : "a chunk's line doesn't end in CR LF";
}

static const char *take_line(struct tn_http_frame *frame, unsigned char byte)
{
    const char *wrong = frame->state == TN_HTTP_FRAME_SIZE    ? take_size(frame, byte)
                        : frame->state == TN_HTTP_FRAME_BLANK ? take_blank(frame, byte)
                                                              : take_note(frame, byte);
    return ++frame->line_size > TN_HTTP_CHUNK_LINE_MAX ? "a chunk's line is too long" : wrong;
}

static const char *end_line(struct tn_http_frame *frame, unsigned char byte)
{
    if (byte != '\n') {
        return "a chunk's line doesn't end in CR LF";
    }
    frame->state = frame->left > 0 ? TN_HTTP_FRAME_CHUNK : TN_HTTP_FRAME_TRAILER;
    frame->line_size = 0;
    return NULL;
}

static const char *end_chunk(struct tn_http_frame *frame, unsigned char byte)
{
    bool first = frame->state == TN_HTTP_FRAME_CHUNK_CR;
    if (byte != (first ? '\r' : '\n')) {
        return "a chunk is longer than it says";
    }
    frame->state = first ? TN_HTTP_FRAME_CHUNK_LF : TN_HTTP_FRAME_SIZE;
    return NULL;
}

/* Lines that nobody asked for, up to the empty one. */
static const char *take_trailer(struct tn_http_frame *frame, unsigned char byte)
{
    if (++frame->trailer_size > TN_HTTP_TRAILER_MAX) {
        return "its trailer is too long";
    }
    if (byte == '\r') {
        frame->state = TN_HTTP_FRAME_TRAILER_LF;
        return NULL;
    }
    frame->line_size++;
    return tn_http_is_value(byte) ? NULL : "its trailer isn't text";
}

static const char *end_trailer(struct tn_http_frame *frame, unsigned char byte)
{
    if (byte != '\n') {
        return "its trailer has a line that doesn't end in CR LF";
    }
    frame->trailer_size++;
    frame->state = frame->line_size == 0 ? TN_HTTP_FRAME_END : TN_HTTP_FRAME_TRAILER;
    frame->line_size = 0;
    return NULL;
}

static const char *take_byte(struct tn_http_frame *frame, unsigned char byte)
{
    static const char *(*const takes[])(struct tn_http_frame *, unsigned char) = {
        [TN_HTTP_FRAME_SIZE] = take_line,       [TN_HTTP_FRAME_BLANK] = take_line,
        [TN_HTTP_FRAME_NOTE] = take_line,       [TN_HTTP_FRAME_SIZE_LF] = end_line,
        [TN_HTTP_FRAME_CHUNK_CR] = end_chunk,   [TN_HTTP_FRAME_CHUNK_LF] = end_chunk,
        [TN_HTTP_FRAME_TRAILER] = take_trailer, [TN_HTTP_FRAME_TRAILER_LF] = end_trailer,
    };
    return takes[frame->state](frame, byte);
}

const char *tn_http_frame_take(struct tn_http_frame *frame, struct tn_bytes *input,
                               struct tn_bytes *piece)
{
    *piece = (struct tn_bytes){NULL, 0};
    while (input->size > 0 && frame->state != TN_HTTP_FRAME_END && piece->size == 0) {
        if (frame->state == TN_HTTP_FRAME_LENGTH || frame->state == TN_HTTP_FRAME_CHUNK) {
            take_piece(frame, input, piece);
            continue;
        }
        const char *wrong = take_byte(frame, input->data[0]);
        if (wrong) {
            return wrong;
        }
        input->data++;
        input->size--;
    }
    return NULL;
}
