#include "app/tee.h"

#include "io/packet.h"

enum {
    BUFFER_SIZE = 1 << 20, /* what is wished for: the system gives what it allows */
    VERSION = 1,
    HEAD_SIZE = 16, /* version, input, 2 free, sizes of table, source, topic, each with a zero */
    TEXTS = 3,
    TEXTS_AT = 4,
};

tn_rc tn_tee_path(const char *warehouse, struct tn_buf *path, struct tn_err *err)
{
    tn_buf_format(path, "%s%s", warehouse, TN_TEE_SOCKET);
    tn_buf_byte(path, 0);
    return path->overflow
               ? tn_err_set(err, TN_INVALID, 0,
                            "warehouse %s: its path is too long for a socket in it", warehouse)
               : TN_OK;
}

tn_rc tn_tee_open(struct tn_tee *tee, const char *warehouse, struct tn_err *err)
{
    char text[TN_PACKET_PATH_SIZE];
    struct tn_buf path;
    int file;
    tn_buf_init(&path, text, sizeof text);
    tn_rc rc = tn_tee_path(warehouse, &path, err);
    if (rc == TN_OK) {
        rc = tn_packet_connect(text, BUFFER_SIZE, &file, err);
    }
    if (rc == TN_OK) {
        tn_tee_close(tee);
        *tee = (struct tn_tee){.open = true, .fd = file};
    }
    return rc;
}

void tn_tee_put(struct tn_tee *tee, const struct tn_message *message)
{
    static const unsigned char zero;
    const struct tn_bytes source = tn_bytes_of(message->source ? message->source : "");
    const struct tn_bytes table = tn_bytes_of(message->table ? message->table : "");
    const struct tn_bytes texts[TEXTS] = {table, source, message->topic};
    unsigned char head[HEAD_SIZE] = {VERSION, (unsigned char)message->input};
    struct tn_bytes pieces[1 + 2 * TEXTS + 1];
    uint32_t count = 0;
    if (!tee->open || table.size == 0 || message->cut_size > 0) {
        return;
    }
    pieces[count++] = (struct tn_bytes){head, sizeof head};
    for (int i = 0; i < TEXTS; i++) {
        tn_store_u32(head + TEXTS_AT + 4 * i, (uint32_t)texts[i].size + 1);
        pieces[count++] = texts[i];
        pieces[count++] = (struct tn_bytes){&zero, 1};
    }
    pieces[count++] = message->bytes;
    tn_rc rc = tn_packet_send(tee->fd, pieces, count);
    if (rc == TN_ABSENT) {
        tn_tee_close(tee);
    } else {
        tee->sent += rc == TN_OK;
        tee->left_out += rc != TN_OK;
        tee->left_out_rows += rc != TN_OK ? message->rows : 0;
    }
}

void tn_tee_close(struct tn_tee *tee)
{
    if (tee->open) {
        tn_packet_close(tee->fd);
    }
    tee->open = false;
}

tn_rc tn_tee_read(struct tn_bytes packet, struct tn_message *message, struct tn_err *err)
{
    struct tn_bytes texts[TEXTS] = {{0}};
    struct tn_bytes rest = packet;
    bool good =
        packet.size >= HEAD_SIZE && packet.data[0] == VERSION && packet.data[1] < TN_INPUT_COUNT;
    rest.data += good ? HEAD_SIZE : 0;
    rest.size -= good ? HEAD_SIZE : 0;
    for (int i = 0; good && i < TEXTS; i++) {
        uint32_t size = tn_load_u32(packet.data + TEXTS_AT + 4 * i);
        good = size > 0 && size <= rest.size && rest.data[size - 1] == 0;
        texts[i] = (struct tn_bytes){rest.data, good ? size - 1 : 0};
        rest.data += good ? size : 0;
        rest.size -= good ? size : 0;
    }
    if (!good) {
        return tn_err_set(err, TN_CORRUPT, 0, "a packet of %zu bytes is none of this tarn's",
                          packet.size);
    }
    *message = (struct tn_message){.table = (const char *)texts[0].data,
                                   .source = (const char *)texts[1].data,
                                   .topic = texts[2],
                                   .input = (enum tn_input)packet.data[1],
                                   .bytes = rest};
    return TN_OK;
}
