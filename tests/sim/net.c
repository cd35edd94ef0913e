#include "sim/net.h"

#include <errno.h>

#include "check.h"
#include "random.h"
#include "sim/mallocs.h"

#define NEVER INT64_MAX

enum { SEGMENTS_MAX = 64, BACKLOG_MAX = 16, NS_PER_MS = 1000000 };

/* Bytes on their way to one end. Those up to `sent` were written, up to `taken` read. */
struct pipe {
    unsigned char data[SIM_WINDOW];
    uint64_t sent;
    uint64_t taken;
    struct {
        uint64_t upto;
        int64_t at_ms;
    } segments[SEGMENTS_MAX]; /* on their way, the next to arrive first */
    uint32_t segment_count;
    uint64_t arrived;
    int64_t last_ms;  /* nothing overtakes what was sent before */
    int64_t end_ms;   /* of all bytes; NEVER: not finished */
    int64_t reset_ms; /* NEVER: none */
};

struct end {
    struct tn_stream stream; /* first */
    struct sim_host *host;   /* NULL: not accepted yet, or gone */
    struct sim_link *link;
    struct pipe in;
    bool open;
    bool read_failed;
    bool write_failed;
    bool torn; /* half of a write was given up */
    struct tn_request *connecting;
    struct tn_request *reading;
    struct tn_request *writing;
    struct tn_hungry hungry;
    struct sim_ear *ear;
};

struct sim_link {
    struct sim_net *world;
    uint64_t number;
    enum sim_link_fault fault;
    uint64_t fault_at;
    uint64_t bytes;
    bool gone;          /* nothing arrives any more */
    int64_t connect_ms; /* when the connect is decided */
    char host[TN_HOST_SIZE];
    uint16_t port;
    struct sim_ear *waits_at; /* connected, not accepted */
    struct end ends[2];       /* who asked, who listened */
};

struct sim_ear {
    struct tn_listener listener; /* first */
    struct sim_host *host;
    char path[TN_HOST_SIZE]; /* of a Unix socket, or "" */
    uint32_t open;
    uint32_t streams_max;
    struct tn_request *accepting;
    struct sim_link *backlog[BACKLOG_MAX];
    uint32_t backlog_count;
};

static struct sim_host *host_of(struct tn_net *net)
{
    return (struct sim_host *)(void *)net;
}

static struct end *end_of(struct tn_stream *stream)
{
    return (struct end *)(void *)stream;
}

static struct end *other_end(struct end *end)
{
    return &end->link->ends[end == &end->link->ends[0]];
}

static int64_t now_of(const struct sim_net *world)
{
    return world->clock->passed_ns / NS_PER_MS;
}

static uint32_t draw(struct sim_net *world, uint32_t count)
{
    return random_below(&world->random, count);
}

static int64_t later(struct sim_net *world)
{
    return now_of(world) + draw(world, world->delay_ms_max + 1);
}

static void fail(struct tn_request *request, tn_rc rc, const char *text)
{
    (void)tn_err_set(&request->err, rc, ECONNRESET, "%s %s: %s", request->what,
                     request->stream ? request->stream->peer : "", text);
    tn_request_end(request, rc);
}

/* ---- links ---- */

static void free_if_over(struct sim_link *link)
{
    for (int i = 0; i < 2; i++) {
        if (link->ends[i].open || link->ends[i].connecting) {
            return;
        }
    }
    if (link->waits_at) {
        return;
    }
    struct sim_net *world = link->world;
    for (int i = 0; i < SIM_LINKS_MAX; i++) {
        if (world->links[i] == link) {
            world->links[i] = NULL;
        }
    }
    free(link);
}

static void reset_end(struct end *end, int64_t at_ms)
{
    if (end->in.reset_ms > at_ms) {
        end->in.reset_ms = at_ms;
    }
}

/* What is written until an end has heard of it goes nowhere. */
static void cut(struct sim_link *link)
{
    link->gone = true;
    reset_end(&link->ends[0], later(link->world));
    reset_end(&link->ends[1], later(link->world));
}

static void give_fault(struct sim_link *link)
{
    struct sim_net *world = link->world;
    for (uint32_t i = 0; i < world->plan_count; i++) {
        if (world->plans[i].link == link->number) {
            link->fault = world->plans[i].fault;
            link->fault_at = world->plans[i].at;
            return;
        }
    }
    if (draw(world, 100) < world->fault_percent) {
        link->fault = (enum sim_link_fault)(SIM_LINK_REFUSED + draw(world, 4));
        link->fault_at = draw(world, world->fault_at_max + 1);
    }
}

static const struct tn_stream_vtable stream_vtable;
static void feed(struct tn_hungry *hungry)
{
    (void)hungry; /* each step looks at each end anyway */
}

static struct sim_link *new_link(struct sim_net *world, const struct tn_endpoint *to)
{
    int at = 0;
    while (at < SIM_LINKS_MAX && world->links[at]) {
        at++;
    }
    CHECK(at < SIM_LINKS_MAX);
    sim_mallocs++;
    struct sim_link *link = calloc(1, sizeof *link);
    CHECK(link);
    world->links[at] = link;
    link->world = world;
    link->number = ++world->links_asked;
    link->port = to->port;
    (void)snprintf(link->host, sizeof link->host, "%s", to->host);
    for (int i = 0; i < 2; i++) {
        struct end *end = &link->ends[i];
        end->link = link;
        end->stream.vtable = &stream_vtable;
        end->in.end_ms = NEVER;
        end->in.reset_ms = NEVER;
        end->hungry.feed = feed;
    }
    give_fault(link);
    link->connect_ms = link->fault == SIM_LINK_LOST ? NEVER : later(world);
    return link;
}

static void open_end(struct end *end, struct sim_host *host)
{
    end->open = true;
    end->host = host;
    end->stream.net = &host->net;
    host->net.streams++;
}

/* ---- connect ---- */

static bool is_own_name(const char *name)
{
    return strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0;
}

static bool is_known(const struct sim_link *link)
{
    if (strncmp(link->host, "unix:", 5) == 0 || is_own_name(link->host)) {
        return true;
    }
    for (uint32_t i = 0; i < link->world->host_count; i++) {
        if (strcmp(link->world->hosts[i].name, link->host) == 0) {
            return true;
        }
    }
    return false;
}

static struct sim_ear *find_ear(const struct sim_link *link)
{
    bool own = is_own_name(link->host);
    bool local = strncmp(link->host, "unix:", 5) == 0;
    for (int i = 0; i < SIM_EARS_MAX; i++) {
        struct sim_ear *ear = link->world->ears[i];
        if (!ear) {
            continue;
        }
        bool here = ear->host == link->ends[0].host;
        if (local ? here && strcmp(ear->path, link->host) == 0
                  : ear->listener.port == link->port &&
                        (own ? here : strcmp(ear->host->name, link->host) == 0)) {
            return ear;
        }
    }
    return NULL;
}

static void end_connect(struct sim_link *link, const char *trouble)
{
    struct end *end = &link->ends[0];
    struct tn_request *request = end->connecting;
    end->connecting = NULL;
    if (trouble) {
        (void)tn_err_set(&request->err, TN_IO, ECONNREFUSED, "connect to %s: %s", end->stream.peer,
                         trouble);
        request->stream = NULL;
        tn_request_end(request, TN_IO);
        free_if_over(link);
        return;
    }
    open_end(end, end->host);
    end->host->net.counts.connects++;
    tn_request_end(request, TN_OK);
}

static void decide_connect(struct sim_link *link)
{
    struct sim_ear *ear = find_ear(link);
    link->connect_ms = NEVER;
    if (!is_known(link)) {
        end_connect(link, "there is no such name");
    } else if (!ear || ear->backlog_count == BACKLOG_MAX || link->fault == SIM_LINK_REFUSED) {
        end_connect(link, "connection refused");
    } else {
        ear->backlog[ear->backlog_count++] = link;
        link->waits_at = ear;
        end_connect(link, NULL);
    }
}

static void stop_connect(struct tn_request *request)
{
    struct end *end = request->owner;
    end->connecting = NULL;
    request->stream = NULL;
    free_if_over(end->link);
}

static void start_connect(struct tn_net *net, const struct tn_endpoint *to,
                          struct tn_request *request)
{
    struct sim_link *link = new_link(host_of(net)->world, to);
    struct end *end = &link->ends[0];
    end->host = host_of(net);
    end->stream.local = strncmp(to->host, "unix:", 5) == 0 || is_own_name(to->host);
    (void)snprintf(end->stream.peer, TN_PEER_SIZE, "%.60s:%u", to->host, to->port);
    end->connecting = request;
    request->stream = &end->stream;
    tn_request_begin(request, net, end, stop_connect, "connect to", TN_IO);
}

/* ---- listeners ---- */

static struct sim_link *pop_link(struct sim_ear *ear)
{
    struct sim_link *link = ear->backlog[0];
    ear->backlog_count--;
    for (uint32_t i = 0; i < ear->backlog_count; i++) {
        ear->backlog[i] = ear->backlog[i + 1];
    }
    link->waits_at = NULL;
    return link;
}

static bool step_ear(struct sim_ear *ear)
{
    if (!ear->accepting || ear->backlog_count == 0 || ear->open == ear->streams_max) {
        return false;
    }
    struct sim_link *link = pop_link(ear);
    struct end *end = &link->ends[1];
    struct tn_request *request = ear->accepting;
    ear->accepting = NULL;
    ear->open++;
    end->ear = ear;
    open_end(end, ear->host);
    ear->host->net.counts.accepts++;
    (void)snprintf(end->stream.peer, TN_PEER_SIZE, "link-%u", (unsigned)link->number);
    end->stream.local = link->ends[0].stream.local;
    request->stream = &end->stream;
    tn_request_end(request, TN_OK);
    return true;
}

static void stop_accept(struct tn_request *request)
{
    ((struct sim_ear *)request->owner)->accepting = NULL;
}

static void start_accept(struct tn_listener *listener, struct tn_request *request)
{
    struct sim_ear *ear = (struct sim_ear *)(void *)listener;
    CHECK(!ear->accepting);
    request->stream = NULL;
    tn_request_begin(request, listener->net, ear, stop_accept, "accept", TN_AGAIN);
    ear->accepting = request;
}

static bool port_taken(const struct sim_host *host, uint16_t port)
{
    for (int i = 0; i < SIM_EARS_MAX; i++) {
        const struct sim_ear *ear = host->world->ears[i];
        if (ear && ear->host == host && ear->listener.port == port && !ear->path[0]) {
            return true;
        }
    }
    return false;
}

static tn_rc start_listen(struct tn_net *net, const struct tn_endpoint *at, uint32_t streams_max,
                          struct tn_listener **listener, struct tn_err *err)
{
    struct sim_host *host = host_of(net);
    bool local = strncmp(at->host, "unix:", 5) == 0;
    uint16_t port = at->port;
    while (!local && port == 0) {
        uint16_t free_port = (uint16_t)(20000 + draw(host->world, 20000));
        port = port_taken(host, free_port) ? 0 : free_port;
    }
    if (!local && port_taken(host, port)) {
        return tn_err_set(err, TN_EXISTS, EADDRINUSE, "listen at %s:%u: somebody else does",
                          at->host, port);
    }
    int place = 0;
    while (place < SIM_EARS_MAX && host->world->ears[place]) {
        place++;
    }
    CHECK(place < SIM_EARS_MAX);
    sim_mallocs++;
    struct sim_ear *ear = calloc(1, sizeof *ear);
    CHECK(ear);
    ear->listener = (struct tn_listener){.net = net, .port = local ? 0 : port};
    ear->host = host;
    ear->streams_max = streams_max;
    if (local) {
        (void)snprintf(ear->path, sizeof ear->path, "%s", at->host);
    }
    host->world->ears[place] = ear;
    *listener = &ear->listener;
    return TN_OK;
}

static void free_ear(struct sim_ear *ear)
{
    struct sim_net *world = ear->host->world;
    while (ear->backlog_count > 0) {
        struct sim_link *link = pop_link(ear);
        reset_end(&link->ends[0], later(world));
        free_if_over(link);
    }
    for (int i = 0; i < SIM_LINKS_MAX; i++) {
        if (world->links[i] && world->links[i]->ends[1].ear == ear) {
            world->links[i]->ends[1].ear = NULL;
        }
    }
    for (int i = 0; i < SIM_EARS_MAX; i++) {
        if (world->ears[i] == ear) {
            world->ears[i] = NULL;
        }
    }
    free(ear);
}

static void close_ear(struct tn_listener *listener)
{
    struct sim_ear *ear = (struct sim_ear *)(void *)listener;
    if (ear->accepting) {
        tn_request_cancel(ear->accepting);
    }
    free_ear(ear);
}

/* ---- bytes ---- */

static void arrive(struct pipe *in, int64_t now_ms)
{
    uint32_t count = 0;
    while (count < in->segment_count && in->segments[count].at_ms <= now_ms) {
        in->arrived = in->segments[count].upto;
        count++;
    }
    in->segment_count -= count;
    memmove(in->segments, in->segments + count, in->segment_count * sizeof in->segments[0]);
}

static size_t part_of(struct sim_net *world, size_t size)
{
    size_t most = size < world->fragment_max ? size : world->fragment_max;
    return draw(world, 3) == 0 ? most : 1 + draw(world, (uint32_t)most);
}

static void put_bytes(struct pipe *in, const unsigned char *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        in->data[(in->sent + i) % SIM_WINDOW] = from[i];
    }
    in->sent += size;
}

static void send_part(struct end *end, const unsigned char *from, size_t size)
{
    struct sim_link *link = end->link;
    struct sim_net *world = link->world;
    struct pipe *in = &other_end(end)->in;
    put_bytes(in, from, size);
    link->bytes += size;
    if (link->gone) {
        return;
    }
    int64_t rate_ms = world->bytes_a_ms > 0 ? (int64_t)(size / world->bytes_a_ms) : 0;
    int64_t at_ms = later(world) + rate_ms;
    in->last_ms = at_ms > in->last_ms ? at_ms : in->last_ms;
    CHECK(in->segment_count < SEGMENTS_MAX);
    in->segments[in->segment_count].upto = in->sent;
    in->segments[in->segment_count].at_ms = in->last_ms;
    in->segment_count++;
}

static bool fault_due(const struct sim_link *link)
{
    bool at_byte = link->fault == SIM_LINK_CUT || link->fault == SIM_LINK_GONE;
    return at_byte && link->bytes >= link->fault_at;
}

/* The fault comes when the byte before it was sent, and once. */
static void meet_fault(struct sim_link *link)
{
    if (!fault_due(link)) {
        return;
    }
    if (link->fault == SIM_LINK_CUT) {
        cut(link);
    } else {
        link->gone = true;
    }
    link->fault = SIM_LINK_FINE;
}

static size_t room_of(struct end *end)
{
    struct pipe *in = &other_end(end)->in;
    size_t room = (size_t)(SIM_WINDOW - (in->sent - in->taken));
    if (in->segment_count == SEGMENTS_MAX) {
        room = 0;
    }
    struct sim_link *link = end->link;
    bool at_byte = link->fault == SIM_LINK_CUT || link->fault == SIM_LINK_GONE;
    if (at_byte && link->fault_at - link->bytes < room) {
        room = (size_t)(link->fault_at - link->bytes);
    }
    return room;
}

static bool step_write(struct end *end)
{
    struct tn_request *request = end->writing;
    if (!request) {
        return false;
    }
    meet_fault(end->link);
    if (end->in.reset_ms <= now_of(end->link->world) || end->write_failed) {
        end->writing = NULL;
        end->write_failed = true;
        fail(request, TN_IO, "the peer cut the connection");
        return true;
    }
    size_t room = request->size > 0 ? room_of(end) : 0;
    if (request->size > 0 && room == 0) {
        return false;
    }
    if (room > 0) {
        size_t size = part_of(end->link->world, room < request->size ? room : request->size);
        send_part(end, request->from, size);
        end->host->net.counts.bytes_written += size;
        request->from += size;
        request->size -= size;
        request->moved += size;
        meet_fault(end->link);
    }
    if (request->size == 0) {
        end->writing = NULL;
        tn_request_end(request, TN_OK);
    }
    return true;
}

static void take_bytes(struct end *end, unsigned char *to, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = end->in.data[(end->in.taken + i) % SIM_WINDOW];
    }
    end->in.taken += size;
    end->host->net.counts.bytes_read += size;
}

static void read_part(struct end *end, unsigned char *to, size_t size)
{
    struct tn_request *request = end->reading;
    size_t there = (size_t)(end->in.arrived - end->in.taken);
    size = part_of(end->link->world, there < size ? there : size);
    take_bytes(end, to, size);
    end->reading = NULL;
    request->data = to;
    request->moved = size;
    tn_request_end(request, TN_OK);
}

/* A reset may come before bytes that have arrived, and then they are lost. */
static bool step_read(struct end *end)
{
    struct tn_request *request = end->reading;
    int64_t now = now_of(end->link->world);
    arrive(&end->in, now);
    if (!request || end->hungry.waits) {
        return false;
    }
    bool there = end->in.arrived > end->in.taken;
    bool reset = end->in.reset_ms <= now || end->read_failed;
    if (there && (!reset || draw(end->link->world, 2))) {
        struct tn_net *net = end->stream.net;
        unsigned char *to = request->data ? request->data : tn_net_take(net, &end->hungry);
        if (to) {
            read_part(end, to, request->data ? request->size : net->buffers->block_size);
        }
        return to != NULL;
    }
    if (reset) {
        end->read_failed = true;
        end->in.taken = end->in.arrived;
        end->reading = NULL;
        fail(request, TN_IO, "the peer cut the connection");
        return true;
    }
    if (end->in.end_ms <= now && end->in.taken == end->in.sent) {
        end->reading = NULL;
        request->data = NULL;
        tn_request_end(request, TN_OK);
        return true;
    }
    return false;
}

/* ---- what a stream is asked for ---- */

static void stop_read(struct tn_request *request)
{
    struct end *end = request->owner;
    end->reading = NULL;
    tn_net_forget(end->stream.net, &end->hungry);
}

static void start_read(struct tn_stream *stream, struct tn_request *request)
{
    struct end *end = end_of(stream);
    CHECK(end->open && !end->reading);
    CHECK(!request->data || request->size > 0);
    request->stream = stream;
    tn_request_begin(request, stream->net, end, stop_read, "read", TN_AGAIN);
    end->reading = request;
}

static void stop_write(struct tn_request *request)
{
    struct end *end = request->owner;
    end->writing = NULL;
    end->write_failed = true;
    end->torn = true;
}

static void start_write(struct tn_stream *stream, struct tn_request *request)
{
    struct end *end = end_of(stream);
    CHECK(end->open && !end->writing);
    request->stream = stream;
    tn_request_begin(request, stream->net, end, stop_write, "write", TN_IO);
    end->writing = request;
}

static void finish_end(struct end *end)
{
    struct pipe *in = &other_end(end)->in;
    int64_t at_ms = later(end->link->world);
    if (in->end_ms == NEVER && !end->link->gone) {
        in->end_ms = at_ms > in->last_ms ? at_ms : in->last_ms;
    }
}

static void start_finish(struct tn_stream *stream, struct tn_request *request)
{
    struct end *end = end_of(stream);
    CHECK(end->open && !end->writing);
    request->stream = stream;
    tn_request_begin(request, stream->net, end, stop_write, "finish", TN_IO);
    if (end->write_failed) {
        fail(request, TN_IO, "the peer cut the connection");
        return;
    }
    finish_end(end);
    tn_request_end(request, TN_OK);
}

static void close_end(struct end *end)
{
    struct sim_link *link = end->link;
    arrive(&end->in, now_of(link->world));
    if (end->torn || end->in.arrived > end->in.taken) {
        if (!link->gone) {
            reset_end(other_end(end), later(link->world));
        }
    } else {
        finish_end(end);
    }
    end->open = false;
    end->host->net.streams--;
    if (end->ear) {
        end->ear->open--;
        end->ear = NULL;
    }
    free_if_over(link);
}

static void nothing_to_stop(struct tn_request *request)
{
    (void)request;
}

static void start_close(struct tn_stream *stream, struct tn_request *request)
{
    struct end *end = end_of(stream);
    CHECK(end->open);
    if (end->reading) {
        tn_request_cancel(end->reading);
    }
    if (end->writing) {
        tn_request_cancel(end->writing);
    }
    if (request) {
        request->stream = stream;
        tn_request_begin(request, stream->net, end, nothing_to_stop, "close", TN_IO);
        tn_request_end(request, TN_OK);
    }
    close_end(end);
}

static const struct tn_stream_vtable stream_vtable = {
    .read = start_read,
    .write = start_write,
    .finish = start_finish,
    .close = start_close,
};

/* ---- turns ---- */

static bool step_link(struct sim_link *link)
{
    bool moved = false;
    if (link->ends[0].connecting) {
        if (link->connect_ms <= now_of(link->world)) {
            decide_connect(link);
            return true;
        }
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (link->ends[i].open && draw(link->world, 4) > 0) {
            moved |= step_read(&link->ends[i]);
            moved |= step_write(&link->ends[i]);
        }
    }
    return moved;
}

static void step(struct sim_net *world)
{
    uint32_t from = draw(world, SIM_LINKS_MAX);
    for (uint32_t i = 0; i < SIM_LINKS_MAX; i++) {
        struct sim_link *link = world->links[(from + i) % SIM_LINKS_MAX];
        if (link) {
            (void)step_link(link);
        }
    }
    for (int i = 0; i < SIM_EARS_MAX; i++) {
        if (world->ears[i]) {
            (void)step_ear(world->ears[i]);
        }
    }
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something may happen at an end; now, when it could happen already. */
static int64_t end_next(struct end *end)
{
    int64_t now = now_of(end->link->world);
    int64_t next = NEVER;
    if (!end->open) {
        return next;
    }
    if (end->reading && !end->hungry.waits) {
        next = end->in.arrived > end->in.taken || end->read_failed ? now : next;
        next = end->in.segment_count > 0 ? sooner(next, end->in.segments[0].at_ms) : next;
        next = end->in.taken == end->in.sent ? sooner(next, end->in.end_ms) : next;
        next = sooner(next, end->in.reset_ms);
    }
    if (end->writing) {
        bool moves = end->write_failed || end->writing->size == 0 || room_of(end) > 0 ||
                     fault_due(end->link);
        next = moves ? now : sooner(next, end->in.reset_ms);
    }
    return next;
}

static int64_t host_next(const struct sim_host *host)
{
    int64_t now = now_of(host->world);
    if (host->net.ready_first || (host->net.hungry_first && tn_pool_free(host->net.buffers) > 0)) {
        return now;
    }
    return host->net.soonest ? (host->net.soonest->deadline_ns + NS_PER_MS - 1) / NS_PER_MS : NEVER;
}

static int64_t next_of(struct sim_net *world)
{
    int64_t next = NEVER;
    for (int i = 0; i < SIM_LINKS_MAX; i++) {
        struct sim_link *link = world->links[i];
        if (link) {
            next = sooner(next, link->ends[0].connecting ? link->connect_ms : NEVER);
            next = sooner(next, sooner(end_next(&link->ends[0]), end_next(&link->ends[1])));
        }
    }
    for (uint32_t i = 0; i < world->host_count; i++) {
        next = sooner(next, host_next(&world->hosts[i]));
    }
    for (int i = 0; i < SIM_EARS_MAX; i++) {
        const struct sim_ear *ear = world->ears[i];
        if (ear && ear->accepting && ear->backlog_count > 0 && ear->open < ear->streams_max) {
            next = now_of(world);
        }
    }
    return next;
}

static void move_time(struct sim_net *world, int64_t to_ms)
{
    int64_t now = now_of(world);
    if (to_ms > now) {
        sim_clock_advance_ms(world->clock, to_ms - now);
    }
}

static void append(struct tn_net *net, struct tn_request *request)
{
    request->next = NULL;
    if (net->ready_last) {
        net->ready_last->next = request;
    } else {
        net->ready_first = request;
    }
    net->ready_last = request;
}

static void prepend(struct tn_net *net, struct tn_request *request)
{
    request->next = net->ready_first;
    net->ready_first = request;
    net->ready_last = net->ready_last ? net->ready_last : request;
}

/* What has ended is told in any order, but a close is a stream's last. */
static void shuffle(struct sim_host *host)
{
    struct tn_net *net = &host->net;
    struct tn_request *left = net->ready_first;
    struct tn_request *closes = NULL;
    net->ready_first = NULL;
    net->ready_last = NULL;
    while (left) {
        struct tn_request *request = left;
        left = left->next;
        if (strcmp(request->what, "close") == 0) {
            request->next = closes;
            closes = request;
        } else if (draw(host->world, 2)) {
            prepend(net, request);
        } else {
            append(net, request);
        }
    }
    while (closes) {
        struct tn_request *request = closes;
        closes = closes->next;
        append(net, request);
    }
}

static int turn_now(struct sim_host *host)
{
    tn_net_expire(&host->net);
    tn_net_feed(&host->net);
    step(host->world);
    tn_net_expire(&host->net);
    shuffle(host);
    return tn_net_deliver(&host->net);
}

static int turn(struct tn_net *net, uint32_t wait_ms)
{
    struct sim_host *host = host_of(net);
    int64_t until = now_of(host->world) + wait_ms;
    int done = turn_now(host);
    while (done == 0 && now_of(host->world) < until) {
        int64_t before = host->world->clock->passed_ns;
        move_time(host->world, sooner(next_of(host->world), until));
        net->counts.waited_ns += (uint64_t)(host->world->clock->passed_ns - before);
        done = turn_now(host);
    }
    return done;
}

static void wake(struct tn_net *net)
{
    (void)net;
}

static void close_host(struct tn_net *net)
{
    (void)net;
}

static const struct tn_net_vtable vtable = {
    .connect = start_connect,
    .listen = start_listen,
    .accept = start_accept,
    .close_listener = close_ear,
    .turn = turn,
    .wake = wake,
    .close = close_host,
};

int sim_net_wait(struct sim_net *world, int64_t ms_max)
{
    int done = 0;
    uint32_t from = world->host_count > 0 ? draw(world, world->host_count) : 0;
    for (uint32_t i = 0; i < world->host_count; i++) {
        done += turn_now(&world->hosts[(from + i) % world->host_count]);
    }
    if (done > 0) {
        return done;
    }
    int64_t next = next_of(world);
    if (next == NEVER && ms_max == NEVER) {
        return -1;
    }
    move_time(world, ms_max == NEVER ? next : sooner(next, now_of(world) + ms_max));
    return 0;
}

int sim_net_turn(struct sim_net *world)
{
    return sim_net_wait(world, NEVER);
}

/* ---- the world ---- */

void sim_net_init(struct sim_net *world, struct sim_clock *clock, uint64_t seed)
{
    *world = (struct sim_net){
        .clock = clock,
        .random = seed,
        .delay_ms_max = 20,
        .fragment_max = SIM_WINDOW,
        .fault_at_max = 2000,
    };
}

void sim_net_deinit(struct sim_net *world)
{
    for (int i = 0; i < SIM_EARS_MAX; i++) {
        free(world->ears[i]);
    }
    for (int i = 0; i < SIM_LINKS_MAX; i++) {
        free(world->links[i]);
    }
    *world = (struct sim_net){0};
}

struct tn_net *sim_net_host(struct sim_net *world, const char *name, struct tn_pool *buffers)
{
    CHECK(world->host_count < SIM_HOSTS_MAX);
    struct sim_host *host = &world->hosts[world->host_count++];
    *host = (struct sim_host){.world = world};
    (void)snprintf(host->name, sizeof host->name, "%s", name);
    tn_net_init(&host->net, &vtable, &world->clock->clock, buffers);
    return &host->net;
}

void sim_net_fault(struct sim_net *world, uint64_t link, enum sim_link_fault fault, uint64_t at)
{
    CHECK(world->plan_count < SIM_PLANS_MAX);
    world->plans[world->plan_count++] = (struct sim_plan){.link = link, .fault = fault, .at = at};
}

static void kill_end(struct end *end, bool silent)
{
    struct sim_link *link = end->link;
    end->connecting = NULL;
    end->reading = NULL;
    end->writing = NULL;
    end->open = false;
    end->ear = NULL;
    if (silent) {
        link->gone = true;
    } else {
        reset_end(other_end(end), later(link->world));
    }
    free_if_over(link);
}

void sim_net_kill(struct sim_net *world, struct tn_net *net, bool silent)
{
    struct sim_host *host = host_of(net);
    for (int i = 0; i < SIM_EARS_MAX; i++) {
        if (world->ears[i] && world->ears[i]->host == host) {
            free_ear(world->ears[i]);
        }
    }
    for (int i = 0; i < SIM_LINKS_MAX; i++) {
        for (int side = 0; side < 2; side++) {
            struct sim_link *link = world->links[i];
            if (link && link->ends[side].host == host &&
                (link->ends[side].open || link->ends[side].connecting)) {
                kill_end(&link->ends[side], silent);
            }
        }
    }
    tn_net_init(&host->net, &vtable, &world->clock->clock, net->buffers);
}
