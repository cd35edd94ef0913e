/* net: a network behind net.h, whose links are slow, cut and lie, as a seed decides.
 *
 * A network has hosts; each is a door of its own (`sim_net_host`), so that the engine on one and
 * the test's far end on another meet as they would. Connections are numbered from 1 as they are
 * asked for, and a test may fix what happens to one of them; all others take what the chances give.
 *
 *     a read and a write move any part of what could be moved, and end in any order
 *     bytes arrive after a delay, at a rate, at most a window ahead of the reader
 *     SIM_LINK_REFUSED    nobody listens            SIM_LINK_CUT    reset at that byte, both ways
 *     SIM_LINK_LOST       connect never answers     SIM_LINK_GONE   from that byte on nothing
 * arrives, and nobody is told
 *
 * Time is the clock's and stands still while anything can happen now; sim_net_turn moves it to the
 * next thing that can.
 */
#pragma once

#include "io/net.h"
#include "sim/clock.h"

enum sim_link_fault {
    SIM_LINK_FINE,
    SIM_LINK_REFUSED,
    SIM_LINK_LOST,
    SIM_LINK_CUT,
    SIM_LINK_GONE,
};

enum {
    SIM_HOSTS_MAX = 8,
    SIM_LINKS_MAX = 64,
    SIM_EARS_MAX = 16,
    SIM_PLANS_MAX = 16,
    SIM_WINDOW = 8192, /* bytes under way in one direction */
};

struct sim_link;
struct sim_ear;

struct sim_plan {
    uint64_t link;
    enum sim_link_fault fault;
    uint64_t at;
};

struct sim_host {
    struct tn_net net; /* first: &host.net is what the engine gets */
    struct sim_net *world;
    char name[32];
};

struct sim_net {
    struct sim_clock *clock;
    uint64_t random;
    uint64_t links_asked; /* since init */

    /* Chances and sizes; the test may change them at any time. */
    uint32_t delay_ms_max;
    uint32_t bytes_a_ms;    /* 0: no limit */
    uint32_t fragment_max;  /* bytes that one read or write moves at most */
    uint32_t fault_percent; /* connections that get a fault of any kind */
    uint32_t fault_at_max;  /* bytes */

    struct sim_plan plans[SIM_PLANS_MAX];
    uint32_t plan_count;
    struct sim_host hosts[SIM_HOSTS_MAX];
    uint32_t host_count;
    struct sim_link *links[SIM_LINKS_MAX]; /* or NULL */
    struct sim_ear *ears[SIM_EARS_MAX];    /* or NULL */
};

/* Fine links, delays up to 20 ms. The clock is the test's. */
void sim_net_init(struct sim_net *world, struct sim_clock *clock, uint64_t seed);
void sim_net_deinit(struct sim_net *world);

/* A machine of that name, and its door. `buffers` is the host's own. */
struct tn_net *sim_net_host(struct sim_net *world, const char *name, struct tn_pool *buffers);

/* What happens to connection number `link` of the world; `at`: after so many bytes, both directions
 * together. */
void sim_net_fault(struct sim_net *world, uint64_t link, enum sim_link_fault fault, uint64_t at);

/* One turn of every host. Returns how many requests were done; with none done, time has moved on.
 * -1: nothing will ever happen any more. */
int sim_net_turn(struct sim_net *world);
/* The same, and time moves on by so much at most; and by all of it where nothing will happen. */
int sim_net_wait(struct sim_net *world, int64_t ms_max);

/* The process on that host ends: its requests are forgotten, never done, its streams and listeners
 * are gone. Its peers see a reset, or nothing at all when `silent`. The door may be used again. */
void sim_net_kill(struct sim_net *world, struct tn_net *net, bool silent);
