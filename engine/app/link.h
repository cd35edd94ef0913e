/* link: over what the internet is reached: the interface of the default route, by the kernel's
 * tables (Linux: /proc/net/route, ipv6_route).
 */
#pragma once

#include "app/config.h"

enum { TN_LINK_NAME_SIZE = 16 }; /* Linux: IFNAMSIZ */

struct tn_link {
    char name[TN_LINK_NAME_SIZE]; /* "wwan0"; "": none, or it isn't known */
    bool up;                      /* there is a way out */
    bool metered;
};

/* Of what the tables say; texts NULL: they can't be read, and then a link is taken to be there. Of
 * several routes the one with the smallest metric counts, of 4 before 6. An interface is metered
 * when it is on the list, whose names may end in '*'. */
void tn_link_judge(const char *route, const char *ipv6_route,
                   const struct tn_text_list_item *metered, struct tn_link *link);

/* Reads the tables: blocking I/O. */
void tn_link_look(const struct tn_text_list_item *metered, struct tn_link *link);
