// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_PORT_WORDS_H
#define FT_DAEMON_DISCOVERY_PORT_WORDS_H
/*
 * Ports that are down according to sFlow's interface counters.
 *
 * Some exporters leave the state out, which reads as down. So an agent's state is used once it
 * has said of any port that it is up; and of a port once it was up before, or twice down while its
 * counters stood still. A port that carries bytes while it is said to be down is not. Words are
 * forgotten after ten minutes. Capped; what is over it is refused. Pure; times come with the
 * records, in Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_port_words;

/* A port that is down, and when that was said, by the clock of the poller. */
struct ft_port_word {
    struct ft_ip agent;
    uint32_t ifindex;
    int64_t time_ms;
};

/* NULL without memory. */
struct ft_port_words *ft_port_words_new(size_t cap);
void ft_port_words_free(struct ft_port_words *words);

/* Counters of a port; those that say nothing of its state, or are SNMP's, are passed over. *changed
 * when a port went down or is not any more. -ENOSPC over the cap. */
int ft_port_words_take(struct ft_port_words *words, const Fabrictrace__PortCounters *poll,
                       int64_t now_ms, bool *changed);

/* Forgets what was said long ago; whether a port is not down any more by that. */
bool ft_port_words_age(struct ft_port_words *words, int64_t now_ms);

/* The ports that are down, from *index 0; false at the end. */
bool ft_port_words_next(const struct ft_port_words *words, uint32_t *index,
                        struct ft_port_word *out);

#endif
