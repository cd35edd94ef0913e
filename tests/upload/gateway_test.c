/* The requests of s3.h to a real server, versitygw on a folder, over plain blocking sockets: races
 * for a name, uploads by parts, lists of several pages, and what the server says when it refuses.
 *
 * VERSITYGW names the program (`make versitygw` installs it, `make peers` runs this); without it
 * nothing is tested here. */
#include <pthread.h>
#include <time.h>

#include "base/hash.h"
#include "gateway.h"
#include "given.h"
#include "upload/s3.h"

enum {
    WRITERS = 8,
    RACES = 16,
    OBJECTS = 23,
    PART_SIZE = 5 * 1024 * 1024,
    HEAP_SIZE = 256 * 1024,
    READ_SIZE = 16 * 1024,
};

static struct gateway server;
static struct tn_heap heap;

/* ---- a client ---- */

/* One connection and what its exchanges need. */
struct client {
    int socket; /* -1: none */
    struct tn_s3_store store;
    struct tn_http http;
    struct tn_s3_exchange exchange;
    struct tn_arena scratch;
    struct tn_err err;
    unsigned char head_memory[TN_HTTP_HEAD_SIZE];
    unsigned char scratch_memory[TN_S3_SCRATCH_SIZE];
    unsigned char request_memory[TN_S3_HEAD_SIZE];
    unsigned char input[READ_SIZE];
    unsigned char *got; /* of a GET: the object goes here */
    size_t got_size;
    uint32_t connects;
};

static int64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void client_init(struct client *client, const char *bucket, const char *secret)
{
    const struct tn_s3_options options = {
        .endpoint = server.endpoint, .access_key = GATEWAY_ACCESS_KEY, .secret_key = secret};
    memset(client, 0, sizeof *client);
    client->socket = -1;
    tn_http_init(&client->http, client->head_memory, sizeof client->head_memory);
    tn_arena_init(&client->scratch, client->scratch_memory, sizeof client->scratch_memory);
    tn_rc rc = tn_s3_store_init(&client->store, &options, bucket, &client->err);
    CHECK_OK(rc, client->err);
}

static void client_close(struct client *client)
{
    if (client->socket >= 0) {
        (void)close(client->socket);
    }
    client->socket = -1;
    tn_http_init(&client->http, client->head_memory, sizeof client->head_memory);
}

static bool send_all(struct client *client, struct tn_bytes bytes, bool body)
{
    for (size_t at = 0; at < bytes.size;) {
        ssize_t size = send(client->socket, bytes.data + at, bytes.size - at, MSG_NOSIGNAL);
        if (size <= 0) {
            return false;
        }
        at += (size_t)size;
        if (body) {
            tn_http_sent(&client->http, (uint64_t)size);
        }
    }
    return true;
}

static tn_rc read_input(struct client *client, size_t size)
{
    struct tn_bytes input = {client->input, size};
    tn_rc rc = TN_OK;
    while (rc == TN_OK && input.size > 0 && !client->exchange.done) {
        struct tn_bytes body;
        rc = tn_s3_read(&client->exchange, &input, &body, &client->err);
        if (rc == TN_OK && body.size > 0) {
            CHECK(client->got);
            memcpy(client->got + client->got_size, body.data, body.size);
            client->got_size += body.size;
        }
    }
    return rc;
}

static tn_rc read_answer(struct client *client)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !client->exchange.done) {
        ssize_t size = recv(client->socket, client->input, sizeof client->input, 0);
        rc = size > 0 ? read_input(client, (size_t)size)
                      : tn_s3_closed(&client->exchange, &client->err);
    }
    return rc == TN_OK ? tn_s3_finish(&client->exchange, &client->err) : rc;
}

/* One request and its answer, at a time that may be another than now. */
static tn_rc ask_at(struct client *client, const struct tn_s3_request *request,
                    struct tn_bytes body, int64_t now_ms)
{
    struct tn_buf head;
    if (client->socket < 0) {
        client->socket = gateway_connect(server.port);
        client->connects++;
        CHECK(client->socket >= 0);
    }
    tn_buf_init(&head, client->request_memory, sizeof client->request_memory);
    client->got_size = 0;
    tn_rc rc = tn_s3_start(&client->exchange, &client->store, request, &client->http, now_ms,
                           &client->scratch, &head, &client->err);
    CHECK_OK(rc, client->err);
    /* What can't be sent may have been answered already. */
    (void)(send_all(client, tn_buf_bytes(&head), false) && send_all(client, body, true));
    rc = read_answer(client);
    if (!tn_http_reusable(&client->http)) {
        client_close(client);
    }
    return rc;
}

static tn_rc ask(struct client *client, const struct tn_s3_request *request, struct tn_bytes body)
{
    return ask_at(client, request, body, wall_ms());
}

static tn_rc put(struct client *client, const char *key, struct tn_bytes body, bool if_absent,
                 const char *if_match)
{
    unsigned char digest[TN_SHA256_SIZE];
    tn_hash_sha256(body, digest);
    const struct tn_s3_request request = {.verb = TN_S3_PUT,
                                          .key = key,
                                          .body_size = body.size,
                                          .body_sha256 = digest,
                                          .if_absent = if_absent,
                                          .if_match = if_match};
    return ask(client, &request, body);
}

static tn_rc ask_plain(struct client *client, enum tn_s3_verb verb, const char *key)
{
    const struct tn_s3_request request = {.verb = verb, .key = key};
    return ask(client, &request, (struct tn_bytes){NULL, 0});
}

static void stop_server(void)
{
    gateway_stop(&server);
}

static struct client *new_client(void)
{
    struct client *client = malloc(sizeof *client);
    client_init(client, "bucket", GATEWAY_SECRET_KEY);
    return client;
}

static void drop_client(struct client *client)
{
    client_close(client);
    free(client);
}

/* ---- tests ---- */

/* Keys as Paimon makes them: with spaces, percent signs, and letters of anywhere. */
static void objects_are_put_read_and_deleted_over_one_connection(void)
{
    static const char *const keys[] = {
        "a", "t/s=a%2Fb%3Dc d/x", "t/\xc3\xa4\xe2\x82\xac+&?#", "t/~(x)!*'", "t/empty",
    };
    unsigned char got[64];
    struct client *client = new_client();
    client->got = got;
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct tn_bytes body = tn_bytes_of(i == 4 ? "" : "the bytes");
        CHECK(put(client, keys[i], body, true, NULL) == TN_OK);
        CHECK(ask_plain(client, TN_S3_HEAD, keys[i]) == TN_OK);
        CHECK(client->exchange.answer.size == body.size && client->exchange.answer.etag[0]);
        CHECK(client->exchange.answer.modified_ms > 0 && client->exchange.answer.server_ms > 0);
        CHECK(ask_plain(client, TN_S3_GET, keys[i]) == TN_OK);
        CHECK(tn_bytes_equal((struct tn_bytes){got, client->got_size}, body));
        const struct tn_s3_request range = {
            .verb = TN_S3_GET, .key = keys[i], .range_first = 4, .range_size = 99};
        tn_rc rc = ask(client, &range, (struct tn_bytes){NULL, 0});
        CHECK(body.size > 0 ? rc == TN_OK && client->got_size == 5 : rc != TN_OK);
        CHECK(ask_plain(client, TN_S3_DELETE, keys[i]) == TN_OK);
        CHECK(ask_plain(client, TN_S3_HEAD, keys[i]) == TN_ABSENT);
        CHECK(ask_plain(client, TN_S3_GET, keys[i]) == TN_ABSENT);
        CHECK(ask_plain(client, TN_S3_DELETE, keys[i]) == TN_OK);
    }
    CHECK(client->connects == 1);
    drop_client(client);
}

/* The same object by a request whose host is the bucket's. */
static void bucket_may_stand_in_the_host(void)
{
    static const struct tn_s3_options options = {.endpoint = "http://" GATEWAY_DOMAIN,
                                                 .access_key = GATEWAY_ACCESS_KEY,
                                                 .secret_key = GATEWAY_SECRET_KEY};
    struct client *client = new_client();
    CHECK(client->store.path_style);
    CHECK(put(client, "a/b c", tn_bytes_of("value"), false, NULL) == TN_OK);
    client_close(client);
    tn_rc rc = tn_s3_store_init(&client->store, &options, "bucket", &client->err);
    CHECK_OK(rc, client->err);
    CHECK(!client->store.path_style &&
          strcmp(client->store.authority, "bucket." GATEWAY_DOMAIN) == 0);
    CHECK(ask_plain(client, TN_S3_HEAD, "a/b c") == TN_OK);
    CHECK(client->exchange.answer.size == 5);
    CHECK(ask_plain(client, TN_S3_LIST, "a/") == TN_OK);
    drop_client(client);
}

struct racer {
    pthread_t thread;
    pthread_barrier_t *gate;
    struct client *client;
    char body[32];
    tn_rc rc[RACES];
};

static void *race(void *user)
{
    struct racer *racer = user;
    for (int i = 0; i < RACES; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "race/snapshot-%d", i);
        (void)pthread_barrier_wait(racer->gate);
        racer->rc[i] = put(racer->client, key, tn_bytes_of(racer->body), true, NULL);
    }
    return NULL;
}

static void check_race(struct racer racers[WRITERS], struct client *client, int i)
{
    unsigned char got[64];
    char key[32];
    const char *winner = NULL;
    for (int j = 0; j < WRITERS; j++) {
        CHECK(racers[j].rc[i] == TN_OK || racers[j].rc[i] == TN_CONFLICT);
        CHECK(racers[j].rc[i] != TN_OK || !winner);
        winner = racers[j].rc[i] == TN_OK ? racers[j].body : winner;
    }
    CHECK(winner);
    (void)snprintf(key, sizeof key, "race/snapshot-%d", i);
    client->got = got;
    CHECK(ask_plain(client, TN_S3_GET, key) == TN_OK);
    CHECK(tn_bytes_equal((struct tn_bytes){got, client->got_size}, tn_bytes_of(winner)));
}

static void of_many_who_put_one_name_exactly_one_wins(void)
{
    static struct racer racers[WRITERS];
    pthread_barrier_t gate;
    struct client *client = new_client();
    CHECK(pthread_barrier_init(&gate, NULL, WRITERS) == 0);
    for (int j = 0; j < WRITERS; j++) {
        racers[j].gate = &gate;
        racers[j].client = new_client();
        (void)snprintf(racers[j].body, sizeof racers[j].body, "writer %d", j);
        CHECK(pthread_create(&racers[j].thread, NULL, race, &racers[j]) == 0);
    }
    for (int j = 0; j < WRITERS; j++) {
        CHECK(pthread_join(racers[j].thread, NULL) == 0);
        drop_client(racers[j].client);
    }
    for (int i = 0; i < RACES; i++) {
        check_race(racers, client, i);
    }
    (void)pthread_barrier_destroy(&gate);
    drop_client(client);
}

static void object_is_replaced_only_by_who_knows_it(void)
{
    char etag[TN_S3_ETAG_SIZE];
    struct client *client = new_client();
    CHECK(put(client, "hint", tn_bytes_of("1"), false, NULL) == TN_OK);
    memcpy(etag, client->exchange.answer.etag, sizeof etag);
    CHECK(put(client, "hint", tn_bytes_of("2"), false, etag) == TN_OK);
    CHECK(put(client, "hint", tn_bytes_of("3"), false, etag) == TN_CONFLICT);
    CHECK(put(client, "none", tn_bytes_of("3"), false, etag) == TN_ABSENT);
    drop_client(client);
}

struct listed {
    uint32_t count;
    uint32_t folders;
    uint64_t size;
    char last[2][256]; /* key, folder */
};

static tn_rc add_listed(void *user, const struct tn_s3_entry *entry, struct tn_err *err)
{
    struct listed *listed = user;
    (void)err;
    char *last = listed->last[entry->folder];
    CHECK(strcmp(entry->name, last) > 0);
    (void)snprintf(last, sizeof listed->last[0], "%s", entry->name);
    CHECK(entry->folder || (entry->etag[0] && entry->modified_ms > 0));
    listed->count++;
    listed->folders += entry->folder;
    listed->size += entry->size;
    return TN_OK;
}

static void list_all(struct client *client, const char *prefix, const char *delimiter,
                     struct listed *listed)
{
    static char token[TN_S3_TOKEN_SIZE];
    struct tn_s3_request request = {.verb = TN_S3_LIST,
                                    .key = prefix,
                                    .delimiter = delimiter,
                                    .count_max = 5,
                                    .each = add_listed,
                                    .user = listed};
    memset(listed, 0, sizeof *listed);
    do {
        tn_rc rc = ask(client, &request, (struct tn_bytes){NULL, 0});
        CHECK_OK(rc, client->err);
        memcpy(token, client->exchange.answer.token, sizeof token);
        request.token = token;
    } while (client->exchange.answer.more);
}

static void lists_come_in_pages(void)
{
    struct listed listed;
    struct client *client = new_client();
    for (int i = 0; i < OBJECTS; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "list/p=%%2F<&> %d/file-%d", i % 3, i);
        CHECK(put(client, key, tn_bytes_of("12345"), false, NULL) == TN_OK);
    }
    CHECK(put(client, "list/z", tn_bytes_of("1"), false, NULL) == TN_OK);
    list_all(client, "list/", NULL, &listed);
    CHECK(listed.count == OBJECTS + 1 && listed.folders == 0 && listed.size == 5 * OBJECTS + 1);
    list_all(client, "list/", "/", &listed);
    CHECK(listed.count == 4 && listed.folders == 3);
    list_all(client, "list/nothing", NULL, &listed);
    CHECK(listed.count == 0);
    drop_client(client);
}

static void put_part(struct client *client, const char *id, uint32_t part, struct tn_bytes body,
                     char etag[TN_S3_ETAG_SIZE])
{
    unsigned char digest[TN_SHA256_SIZE];
    tn_hash_sha256(body, digest);
    const struct tn_s3_request request = {.verb = TN_S3_UPLOAD_PART,
                                          .key = "big",
                                          .upload_id = id,
                                          .part = part,
                                          .body_size = body.size,
                                          .body_sha256 = digest};
    tn_rc rc = ask(client, &request, body);
    CHECK_OK(rc, client->err);
    memcpy(etag, client->exchange.answer.etag, TN_S3_ETAG_SIZE);
}

static tn_rc complete(struct client *client, const char *id, const struct tn_s3_part *parts,
                      uint32_t count, bool if_absent)
{
    unsigned char memory[1024];
    unsigned char digest[TN_SHA256_SIZE];
    struct tn_buf text;
    tn_buf_init(&text, memory, sizeof memory);
    tn_s3_parts(&text, parts, count);
    CHECK(!text.overflow);
    tn_hash_sha256(tn_buf_bytes(&text), digest);
    const struct tn_s3_request request = {.verb = TN_S3_COMPLETE_UPLOAD,
                                          .key = "big",
                                          .upload_id = id,
                                          .body_size = text.size,
                                          .body_sha256 = digest,
                                          .if_absent = if_absent};
    return ask(client, &request, tn_buf_bytes(&text));
}

static void begin_upload(struct client *client, char id[TN_S3_UPLOAD_SIZE])
{
    tn_rc rc = ask_plain(client, TN_S3_CREATE_UPLOAD, "big");
    CHECK_OK(rc, client->err);
    memcpy(id, client->exchange.answer.upload_id, TN_S3_UPLOAD_SIZE);
    CHECK(id[0]);
}

static tn_rc add_part(void *user, const struct tn_s3_entry *entry, struct tn_err *err)
{
    uint64_t *sizes = user;
    (void)err;
    CHECK(entry->part >= 1 && entry->part <= 2 && !entry->name && entry->etag[0]);
    sizes[entry->part - 1] = entry->size;
    return TN_OK;
}

static void upload_by_parts_is_resumed_and_completed_once(void)
{
    static char etags[2][TN_S3_ETAG_SIZE];
    char id[TN_S3_UPLOAD_SIZE];
    uint64_t sizes[2] = {0};
    struct client *client = new_client();
    unsigned char *big = malloc(PART_SIZE);
    for (size_t i = 0; i < PART_SIZE; i++) {
        big[i] = (unsigned char)(i * 31 >> 3);
    }
    begin_upload(client, id);
    put_part(client, id, 1, (struct tn_bytes){big, PART_SIZE}, etags[0]);
    drop_client(client); /* and another process goes on */
    client = new_client();
    put_part(client, id, 2, tn_bytes_of("the rest"), etags[1]);
    struct tn_s3_request list = {.verb = TN_S3_LIST_PARTS,
                                 .key = "big",
                                 .upload_id = id,
                                 .count_max = 1,
                                 .each = add_part,
                                 .user = sizes};
    do {
        tn_rc rc = ask(client, &list, (struct tn_bytes){NULL, 0});
        CHECK_OK(rc, client->err);
        list.part = client->exchange.answer.part;
    } while (client->exchange.answer.more);
    CHECK(sizes[0] == PART_SIZE && sizes[1] == 8);
    const struct tn_s3_part parts[] = {{1, etags[0]}, {2, etags[1]}};
    tn_rc rc = complete(client, id, parts, 2, true);
    CHECK_OK(rc, client->err);
    CHECK(ask_plain(client, TN_S3_HEAD, "big") == TN_OK);
    CHECK(client->exchange.answer.size == PART_SIZE + 8);
    const struct tn_s3_request tail = {
        .verb = TN_S3_GET, .key = "big", .range_first = PART_SIZE - 4, .range_size = 100};
    client->got = big;
    CHECK(ask(client, &tail, (struct tn_bytes){NULL, 0}) == TN_OK && client->got_size == 12);
    CHECK(memcmp(big + 4, "the rest", 8) == 0);
    free(big);
    drop_client(client);
}

static void second_upload_of_a_name_is_refused_and_given_up(void)
{
    static char etag[TN_S3_ETAG_SIZE];
    char id[TN_S3_UPLOAD_SIZE];
    struct client *client = new_client();
    CHECK(put(client, "big", tn_bytes_of("there"), false, NULL) == TN_OK);
    begin_upload(client, id);
    put_part(client, id, 1, tn_bytes_of("late"), etag);
    const struct tn_s3_part part = {1, etag};
    CHECK(complete(client, id, &part, 1, true) == TN_CONFLICT);
    struct tn_s3_request request = {.verb = TN_S3_ABORT_UPLOAD, .key = "big", .upload_id = id};
    CHECK(ask(client, &request, (struct tn_bytes){NULL, 0}) == TN_OK);
    request.verb = TN_S3_LIST_PARTS;
    CHECK(ask(client, &request, (struct tn_bytes){NULL, 0}) == TN_ABSENT);
    /* versitygw calls it done for any upload of a name that has an object. It isn't: */
    (void)complete(client, id, &part, 1, true);
    CHECK(ask_plain(client, TN_S3_HEAD, "big") == TN_OK && client->exchange.answer.size == 5);
    drop_client(client);
}

static void refusals_are_told_in_words(void)
{
    struct client *client = new_client();
    CHECK(put(client, "k", tn_bytes_of("v"), false, NULL) == TN_OK);
    drop_client(client);
    client = malloc(sizeof *client);
    client_init(client, "bucket", "another secret");
    CHECK(ask_plain(client, TN_S3_GET, "k") == TN_IO);
    CHECK(client->exchange.answer.verdict == TN_S3_PERSON);
    CHECK(strstr(client->err.text, "the secret key is wrong"));
    client_close(client);
    client_init(client, "nobucket", GATEWAY_SECRET_KEY);
    CHECK(ask_plain(client, TN_S3_GET, "k") == TN_IO);
    CHECK(strstr(client->err.text, "there is no such bucket"));
    client_close(client);
    client_init(client, "bucket", GATEWAY_SECRET_KEY);
    client->store.access_key = "nobody";
    CHECK(ask_plain(client, TN_S3_GET, "k") == TN_IO);
    CHECK(strstr(client->err.text, "the access key is unknown"));
    drop_client(client);
}

/* A device whose clock stands in 1970, or runs ahead, signs by the store's after one refusal. */
static void wrong_clock_is_corrected_by_the_first_refusal(void)
{
    const int64_t clocks[] = {0, wall_ms() + INT64_C(7200000)};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        const struct tn_s3_request request = {.verb = TN_S3_HEAD, .key = "k"};
        struct client *client = new_client();
        tn_rc rc = ask_at(client, &request, (struct tn_bytes){NULL, 0}, clocks[i]);
        CHECK(rc == TN_AGAIN && client->exchange.answer.verdict == TN_S3_AGAIN);
        CHECK(strstr(client->err.text, i == 0 ? "s behind" : "s ahead of"));
        rc = ask_at(client, &request, (struct tn_bytes){NULL, 0}, clocks[i]);
        CHECK(rc == TN_OK || rc == TN_ABSENT);
        drop_client(client);
    }
}

static const struct test tests[] = {
    TEST(objects_are_put_read_and_deleted_over_one_connection),
    TEST(bucket_may_stand_in_the_host),
    TEST(of_many_who_put_one_name_exactly_one_wins),
    TEST(object_is_replaced_only_by_who_knows_it),
    TEST(lists_come_in_pages),
    TEST(upload_by_parts_is_resumed_and_completed_once),
    TEST(second_upload_of_a_name_is_refused_and_given_up),
    TEST(refusals_are_told_in_words),
    TEST(wrong_clock_is_corrected_by_the_first_refusal),
};

int main(int argc, char **argv)
{
    static unsigned char heap_memory[HEAP_SIZE];
    const char *program = getenv("VERSITYGW");
    if (!program || !*program) {
        (void)printf("VERSITYGW names no server\n0 passed, 0 failed\n");
        return 0;
    }
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, true);
    tn_xml_use_heap(&heap);
    gateway_start(&server, program, NULL, NULL);
    (void)atexit(stop_server);
    return run_tests(argc, argv, tests, COUNT(tests));
}
