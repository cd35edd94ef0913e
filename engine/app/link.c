#include "app/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLE_SIZE = 4096, /* of each table that is read: the default routes come first */
    FIELDS_MAX = 11,
    ROUTE_UP = 1,          /* Linux: RTF_UP */
    ROUTE_REJECT = 0x0200, /* Linux: RTF_REJECT */
};

/* Fields of a line, which is cut up; returns what comes behind it, or NULL. */
static char *split(char *line, char *fields[FIELDS_MAX], int *count)
{
    char *end = strchr(line, '\n');
    char *rest = NULL;
    if (end) {
        *end = 0;
    }
    *count = 0;
    for (char *field = strtok_r(line, " \t", &rest); field && *count < FIELDS_MAX;
         field = strtok_r(NULL, " \t", &rest)) {
        fields[(*count)++] = field;
    }
    return end ? end + 1 : NULL;
}

struct best {
    char name[TN_LINK_NAME_SIZE];
    uint64_t metric;
};

static void take(struct best *best, const char *name, const char *flags, uint64_t metric)
{
    unsigned long bits = strtoul(flags, NULL, 16);
    bool is = (bits & ROUTE_UP) && !(bits & ROUTE_REJECT) && strlen(name) < TN_LINK_NAME_SIZE &&
              strcmp(name, "lo") != 0;
    if (is && (!best->name[0] || metric < best->metric)) {
        (void)snprintf(best->name, sizeof best->name, "%s", name);
        best->metric = metric;
    }
}

static bool all_zero(const char *hex)
{
    return hex[strspn(hex, "0")] == 0;
}

/* Iface Destination Gateway Flags RefCnt Use Metric Mask ... */
static void look_at_4(char *line, struct best *best)
{
    enum { IFACE, DESTINATION, GATEWAY, FLAGS, REFERENCES, USE, METRIC, MASK, NEEDED };
    while (line && *line) {
        char *fields[FIELDS_MAX];
        int count;
        line = split(line, fields, &count);
        if (count >= NEEDED && all_zero(fields[DESTINATION]) && all_zero(fields[MASK])) {
            take(best, fields[IFACE], fields[FLAGS], strtoull(fields[METRIC], NULL, 10));
        }
    }
}

/* destination its-size source its-size next-hop metric references use flags iface */
static void look_at_6(char *line, struct best *best)
{
    enum { DESTINATION, SIZE, SOURCE, SOURCE_SIZE, HOP, METRIC, REFERENCES, USE, FLAGS, IFACE };
    while (line && *line) {
        char *fields[FIELDS_MAX];
        int count;
        line = split(line, fields, &count);
        if (count > IFACE && all_zero(fields[DESTINATION]) && all_zero(fields[SIZE])) {
            take(best, fields[IFACE], fields[FLAGS], strtoull(fields[METRIC], NULL, 16));
        }
    }
}

static bool is_metered(const struct tn_text_list_item *metered, const char *name)
{
    for (const struct tn_text_list_item *m = metered; m; m = m->next) {
        size_t size = strlen(m->text);
        bool begins = size > 0 && m->text[size - 1] == '*';
        if (begins ? strncmp(m->text, name, size - 1) == 0 : strcmp(m->text, name) == 0) {
            return true;
        }
    }
    return false;
}

void tn_link_judge(const char *route, const char *ipv6_route,
                   const struct tn_text_list_item *metered, struct tn_link *link)
{
    static char line[TABLE_SIZE]; /* one thread looks at a time */
    struct best best = {.name = ""};
    if (route) {
        (void)snprintf(line, sizeof line, "%s", route);
        look_at_4(line, &best);
    }
    if (ipv6_route && !best.name[0]) {
        (void)snprintf(line, sizeof line, "%s", ipv6_route);
        look_at_6(line, &best);
    }
    *link = (struct tn_link){.up = best.name[0] || !route};
    memcpy(link->name, best.name, sizeof link->name);
    link->metered = link->name[0] && is_metered(metered, link->name);
}

/* What the kernel makes as it is read has no size. */
static const char *read_table(struct tn_io *io, const char *name, char text[TABLE_SIZE])
{
    struct tn_err ignored;
    uint64_t size;
    size_t got = 0;
    size_t all = 0;
    int file;
    tn_rc rc = io->vtable->open(io, name, &file, &size, &ignored);
    if (rc != TN_OK) {
        return NULL;
    }
    do {
        rc = io->vtable->read(io, file, all, text + all, TABLE_SIZE - 1 - all, &got, &ignored);
        all += rc == TN_OK ? got : 0;
    } while (rc == TN_OK && got > 0 && all < TABLE_SIZE - 1);
    io->vtable->close(io, file);
    text[all] = 0;
    return rc == TN_OK ? text : NULL;
}

void tn_link_look(const struct tn_text_list_item *metered, struct tn_link *link)
{
    static char tables[2][TABLE_SIZE];
    struct tn_io_posix net;
    struct tn_err ignored;
    if (tn_io_posix_open(&net, "/proc/net", &ignored) != TN_OK) {
        *link = (struct tn_link){.up = true};
        return;
    }
    const char *route = read_table(&net.io, "route", tables[0]);
    const char *ipv6_route = read_table(&net.io, "ipv6_route", tables[1]);
    tn_link_judge(route, ipv6_route, metered, link);
    tn_io_posix_close(&net);
}
