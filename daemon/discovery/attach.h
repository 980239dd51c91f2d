// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_ATTACH_H
#define FT_DAEMON_DISCOVERY_ATTACH_H
/*
 * The switch ports of hosts, learnt from samples: packets whose source is the host's address enter
 * the fabric by them.
 *
 * An attachment is accepted once it has been seen in several seconds, and kept until samples show
 * the address at another port and no longer at this one. At most two attachments, on two switches
 * (dual ToR); an address seen at more ports, or whose packets enter the fabric twice on one path,
 * has no attachment. The caller offers only ports without a switch at the other end. Capped: when
 * the table is full, addresses not seen for an hour are removed, and names that no host reported
 * for ten minutes; what does not fit then is refused. Pure; times come with the samples, in Unix
 * milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/fabric/topology.h"

#define FT_ATTACHMENTS_MAX 4

struct ft_attachment {
    struct ft_ip agent; /* sFlow agent address of the switch */
    uint32_t ifindex;
    uint32_t seen; /* observations, saturating */
    int64_t first_ms;
    int64_t last_ms;
    bool believed;
    bool steady; /* ft_attachment_is_steady() when it was last looked at */
};

struct ft_attached {
    struct ft_ip address;
    const char *host; /* as its agent calls itself; NULL: not known */
    struct ft_attachment attachments[FT_ATTACHMENTS_MAX];
    uint32_t attachment_count;
    int64_t uncertain_ms; /* last seen to enter twice, or at too many ports; 0: never */
};

struct ft_attach;

/* Whether it was seen several times, over a while. */
bool ft_attachment_is_steady(const struct ft_attachment *attachment);

/* NULL without memory. */
struct ft_attach *ft_attach_new(size_t cap);
void ft_attach_free(struct ft_attach *attach);

/* A packet with this source came in by a port. twice: the same flow was just seen to come in
 * at a port of another switch too. */
void ft_attach_entered(struct ft_attach *attach, const struct ft_ip *address,
                       const struct ft_ip *agent, uint32_t ifindex, int64_t ms, bool twice);

/* A host reports that it has an address, before samples show the address or after. */
void ft_attach_named(struct ft_attach *attach, const struct ft_ip *address, const char *host,
                     int64_t now_ms);

/* Whether an attachment was accepted, dropped or became steady since the last call; other than
 * where the file says that the address is. */
bool ft_attach_take_news(struct ft_attach *attach);

/* The file, while nothing but it and samples is known: borrowed. NULL: each attachment is news. */
void ft_attach_see(struct ft_attach *attach, const struct ft_topology *file);

/* Whether an attachment was left out of the news for that, ever. */
bool ft_attach_withheld(const struct ft_attach *attach);

/* Iterates in the order of first sightings, from *index 0; NULL at the end. Use only the
 * attachments that are accepted. */
const struct ft_attached *ft_attach_next(const struct ft_attach *attach, uint32_t *index);
/* The host names reported, once for each address; likewise. */
const char *ft_attach_next_name(const struct ft_attach *attach, uint32_t *index);

/* The clock was set back: nothing was seen later than this. In steps of so many addresses, from
 * *index 0 on; true: there is more. */
bool ft_attach_set_back(struct ft_attach *attach, int64_t now_ms, uint32_t *index,
                        uint32_t addresses);

/* Forgets what was seen at ports where no host can be, and with it the uncertainty that came of it.
 */
void ft_attach_forget(struct ft_attach *attach,
                      bool (*drop)(void *arg, const struct ft_ip *agent, uint32_t ifindex),
                      void *arg);

#endif
