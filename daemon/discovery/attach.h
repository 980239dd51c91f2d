// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_ATTACH_H
#define FT_DAEMON_DISCOVERY_ATTACH_H
/*
 * Where hosts hang, learnt from samples: the port by which packets with an address as their source
 * enter the fabric.
 *
 * An attachment is accepted once it has been seen in several seconds, and kept until the address is
 * seen elsewhere and there no more. At most two attachments, on two switches (dual ToR); an address
 * seen at more of them, or whose packets enter twice on one way, hangs nowhere that samples can
 * show. The caller offers only ports without a switch at the other end. Capped: when it is full,
 * addresses that were not seen for an hour give way, and names that no host said for ten minutes;
 * what finds no room all the same is counted. Pure; times come with the samples, in Unix
 * milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

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

/* The host at an address says its name, before samples have shown the address or after. */
void ft_attach_named(struct ft_attach *attach, const struct ft_ip *address, const char *host,
                     int64_t now_ms);

/* Whether what is believed has changed since the last call, or what is steady. */
bool ft_attach_take_news(struct ft_attach *attach);

/* Iterates in the order of first sightings, from *index 0; NULL at the end. Use only the
 * attachments that are accepted. */
const struct ft_attached *ft_attach_next(const struct ft_attach *attach, uint32_t *index);
/* The names that hosts said, each once for every address; likewise. */
const char *ft_attach_next_name(const struct ft_attach *attach, uint32_t *index);

/* Forgets what was seen at ports where no host can be, and with it the uncertainty that came of it.
 */
void ft_attach_forget(struct ft_attach *attach,
                      bool (*drop)(void *arg, const struct ft_ip *agent, uint32_t ifindex),
                      void *arg);

#endif
