#include "sim/traffic.h"

#include "check.h"
#include "random.h"

enum {
    WRITE_MAX = 40000,
    READ_MAX = 3000,
    PARTIES_MAX = 2 * TRAFFIC_CLIENTS_MAX,
    TURNS_MAX = 400000
};

struct run;

struct party {
    struct run *run;
    bool server;
    uint64_t seed; /* of a client's bytes */
    struct tn_stream *stream;
    struct tn_request open;
    struct tn_request secure;
    struct tn_request read;
    struct tn_request write;
    struct tn_request close;
    uint32_t pending; /* requests under way, as we count them */
    bool closing;
    bool over;
    bool finished;
    bool ended;
    bool lost;      /* something failed: the rest may be missing */
    uint64_t total; /* client: bytes to send */
    uint64_t written;
    uint64_t received;
    unsigned char *borrowed; /* server: a buffer of the door that is being sent back */
    unsigned char in[READ_MAX];
    unsigned char out[WRITE_MAX];
};

struct run {
    struct traffic *spec;
    uint64_t random;
    struct tn_listener *listener;
    struct tn_request accept;
    bool accepting;
    uint32_t served;
    struct party parties[PARTIES_MAX];
    uint32_t count;
};

static struct run run;

static uint32_t draw(uint32_t count)
{
    return random_below(&run.random, count);
}

static unsigned char byte_at(uint64_t seed, uint64_t at)
{
    uint64_t state = seed + at / 8;
    return (unsigned char)(random_next(&state) >> (at % 8 * 8));
}

static void go_on(struct party *party);

static void begin(struct party *party, struct tn_request *request, tn_request_fn *done)
{
    request->done = done;
    request->user = party;
    request->timeout_ms = run.spec->timeout_ms;
    party->pending++;
}

static struct party *done_of(struct tn_request *request)
{
    struct party *party = request->user;
    CHECK(party->pending > 0); /* else it was done twice */
    CHECK(!party->over);
    CHECK(!tn_request_under_way(request));
    CHECK((request->rc == TN_OK) || (request->err.code == request->rc && request->err.text[0]));
    party->pending--;
    return party;
}

/* ---- the end of one ---- */

static void give_borrowed(struct party *party, struct tn_net *net)
{
    if (party->borrowed) {
        tn_net_give(net, party->borrowed);
        party->borrowed = NULL;
    }
}

static void on_closed(struct tn_request *request)
{
    struct party *party = done_of(request);
    CHECK(party->pending == 0); /* all others come before it */
    party->stream = NULL;
    party->over = true;
}

static void close_party(struct party *party)
{
    if (party->closing) {
        return;
    }
    party->closing = true;
    begin(party, &party->close, on_closed);
    party->close.timeout_ms = 0;
    tn_stream_close(party->stream, &party->close);
}

static void lose(struct party *party)
{
    party->lost = true;
    close_party(party);
}

/* ---- reading ---- */

static void check_bytes(struct party *party, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        CHECK(data[i] == byte_at(party->seed, party->received + i));
    }
}

static void on_written(struct tn_request *request);

static void send_back(struct party *party, const unsigned char *data, size_t size)
{
    begin(party, &party->write, on_written);
    tn_stream_write(party->stream, (struct tn_bytes){data, size}, &party->write);
}

static void on_read(struct tn_request *request)
{
    struct party *party = done_of(request);
    bool borrowed = request->rc == TN_OK && request->moved > 0 && request->data != party->in;
    if (!party->server && request->rc == TN_OK) {
        check_bytes(party, request->data, request->moved);
        CHECK(party->received + request->moved <= party->written + WRITE_MAX);
    }
    party->received += request->moved;
    if (party->closing) {
        if (borrowed) {
            tn_net_give(request->net, request->data);
        }
        return;
    }
    if (request->rc != TN_OK && request->rc != TN_CANCELED) {
        lose(party);
        return;
    }
    party->ended = request->rc == TN_OK && request->moved == 0;
    if (party->server && request->moved > 0) {
        party->borrowed = borrowed ? request->data : NULL;
        send_back(party, request->data, request->moved);
    } else if (borrowed) {
        tn_net_give(request->net, request->data);
    }
    go_on(party);
}

static void start_read(struct party *party)
{
    begin(party, &party->read, on_read);
    if (draw(2)) {
        tn_stream_read(party->stream, NULL, 0, &party->read);
    } else {
        tn_stream_read(party->stream, party->in, 1 + draw(draw(3) ? READ_MAX : 20), &party->read);
    }
}

/* ---- writing ---- */

static void on_written(struct tn_request *request)
{
    struct party *party = done_of(request);
    give_borrowed(party, request->net);
    party->written += party->server ? 0 : request->moved;
    if (party->closing) {
        return;
    }
    if (request->rc != TN_OK) {
        lose(party);
        return;
    }
    go_on(party);
}

static void on_finished(struct tn_request *request)
{
    struct party *party = done_of(request);
    if (request->rc != TN_OK && !party->closing) {
        lose(party);
        return;
    }
    if (!party->closing) {
        go_on(party);
    }
}

static void finish(struct party *party)
{
    party->finished = true;
    begin(party, &party->write, on_finished);
    tn_stream_finish(party->stream, &party->write);
}

static void write_more(struct party *party)
{
    uint64_t left = party->total - party->written;
    uint32_t most = run.spec->write_max < WRITE_MAX ? run.spec->write_max : WRITE_MAX;
    uint32_t size = draw(most + 1);
    size = size > left ? (uint32_t)left : size;
    for (uint32_t i = 0; i < size; i++) {
        party->out[i] = byte_at(party->seed, party->written + i);
    }
    begin(party, &party->write, on_written);
    tn_stream_write(party->stream, (struct tn_bytes){party->out, size}, &party->write);
}

/* ---- both ---- */

static void go_on(struct party *party)
{
    bool writes = tn_request_under_way(&party->write);
    if (!party->server && !writes && !party->finished) {
        if (party->written == party->total) {
            finish(party);
        } else {
            write_more(party);
        }
    }
    if (party->server && party->ended && !writes && !party->finished) {
        finish(party);
    }
    writes = tn_request_under_way(&party->write);
    bool reads = tn_request_under_way(&party->read);
    if (party->ended && party->finished && !writes) {
        close_party(party);
    } else if (!party->ended && !reads && !(party->server && writes)) {
        start_read(party);
    }
}

static void on_secure(struct tn_request *request)
{
    struct party *party = done_of(request);
    CHECK((request->rc == TN_OK) == (request->stream != NULL));
    party->stream = request->stream;
    if (request->rc != TN_OK) {
        party->lost = true;
        party->over = true;
        return;
    }
    go_on(party);
}

static void begin_party(struct party *party, struct tn_stream *stream)
{
    struct traffic *spec = run.spec;
    if (!spec->client_tls) {
        party->stream = stream;
        go_on(party);
        return;
    }
    begin(party, &party->secure, on_secure);
    tn_tls_open(party->server ? spec->server_tls : spec->client_tls, spec->exec, stream,
                party->server ? NULL : spec->tls_host, &party->secure);
}

static void on_connected(struct tn_request *request)
{
    struct party *party = done_of(request);
    CHECK((request->rc == TN_OK) == (request->stream != NULL));
    if (request->rc != TN_OK) {
        party->lost = true;
        party->over = true;
        return;
    }
    begin_party(party, request->stream);
}

static void accept_one(void);

static void on_accepted(struct tn_request *request)
{
    run.accepting = false;
    if (request->rc == TN_OK) {
        CHECK(run.count < PARTIES_MAX);
        struct party *party = &run.parties[run.count++];
        *party = (struct party){.run = &run, .server = true};
        run.served++;
        begin_party(party, request->stream);
    }
    if (request->rc != TN_CANCELED && run.served < run.spec->clients) {
        accept_one();
    }
}

static void accept_one(void)
{
    run.accepting = true;
    run.accept.done = on_accepted;
    tn_net_accept(run.listener, &run.accept);
}

/* ---- trouble ---- */

static void make_trouble(void)
{
    struct party *party = &run.parties[draw(run.count)];
    if (party->over) {
        return;
    }
    struct tn_request *const requests[] = {&party->open, &party->secure, &party->read,
                                           &party->write};
    uint32_t at = draw(5);
    if (at < 4) {
        tn_request_cancel(requests[at]);
    } else if (party->stream && !party->closing) {
        lose(party);
    }
}

static bool all_over(void)
{
    for (uint32_t i = 0; i < run.count; i++) {
        if (!run.parties[i].over) {
            return false;
        }
    }
    return true;
}

static void check_end(struct traffic *spec)
{
    for (uint32_t i = 0; i < run.count; i++) {
        struct party *party = &run.parties[i];
        if (party->server) {
            continue;
        }
        bool whole = party->received == party->total && party->ended;
        CHECK(party->ended || party->lost); /* a server that closes early ends it, too */
        CHECK(!spec->fine || (whole && !party->lost));
        spec->whole += whole;
        spec->bytes += party->received;
    }
    struct tn_net *const nets[] = {spec->client, spec->server};
    for (int i = 0; i < 2; i++) {
        CHECK(nets[i]->under_way == 0);
        CHECK(nets[i]->streams == 0);
        CHECK(nets[i]->buffers->used == 0);
        CHECK(!nets[i]->hungry_first && !nets[i]->soonest);
    }
}

static void start(struct traffic *spec)
{
    struct tn_err err;
    run.spec = spec;
    run.random = spec->seed;
    run.count = 0;
    run.served = 0;
    run.accept = (struct tn_request){0};
    CHECK_OK(tn_net_listen(spec->server, &spec->listen, 4, &run.listener, &err), err);
    accept_one();
    struct tn_endpoint to = {.host = spec->connect_host ? spec->connect_host : spec->listen.host,
                             .port = run.listener->port};
    for (uint32_t i = 0; i < spec->clients; i++) {
        struct party *party = &run.parties[run.count++];
        *party = (struct party){.run = &run, .seed = spec->seed * 31 + i};
        party->total = draw(spec->bytes_max + 1);
        begin(party, &party->open, on_connected);
        tn_net_connect(spec->client, &to, &party->open);
        CHECK(party->pending == 1); /* not done inside the call */
    }
}

static bool is_busy(const struct tn_net *net)
{
    return net->under_way > 0 || net->streams > 0;
}

void traffic_run(struct traffic *spec)
{
    start(spec);
    uint32_t turns = 0;
    while (!all_over()) {
        int done = spec->turn(spec->user);
        CHECK(done >= 0);
        CHECK(turns++ < TURNS_MAX);
        if (draw(1000) < spec->cancel_in_a_thousand) {
            make_trouble();
        }
    }
    tn_request_cancel(&run.accept);
    while (run.accepting) {
        CHECK(spec->turn(spec->user) >= 0);
    }
    /* Connections that nobody accepted go with the listener; a TLS stream that was given up goes
     * when its handshake's task is back, without a request. */
    tn_net_close_listener(run.listener);
    while (is_busy(spec->client) || is_busy(spec->server)) {
        CHECK(spec->turn(spec->user) >= 0);
        CHECK(turns++ < 2 * TURNS_MAX);
    }
    check_end(spec);
}
