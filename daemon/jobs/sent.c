// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/sent.h"

#include <math.h>

size_t ft_sent_add_up(struct ft_sent *sent, size_t max, const Fabrictrace__Collective *c)
{
    size_t n = 0, at;

    for (size_t i = 0; i < c->n_peers; i++) {
        const Fabrictrace__PeerTraffic *p = c->peers[i];

        if (!p->has_peer || p->peer == c->rank)
            continue;
        for (at = 0; at < n && sent[at].peer != p->peer; at++)
            ;
        if (at == max)
            continue;
        if (at == n)
            sent[n++] = (struct ft_sent){.peer = p->peer};
        if (p->has_sent_messages && p->has_received_messages)
            sent[at].mixed = true;
        if (!p->has_sent_messages || p->has_received_messages || !p->has_step_median_ns)
            continue;
        sent[at].messages += (double)p->sent_messages;
        sent[at].bytes += (double)p->sent_bytes;
        sent[at].ns += (double)p->step_median_ns * (double)p->sent_messages;
        sent[at].longest_ns = fmax(sent[at].longest_ns, (double)p->step_max_ns);
    }
    return n;
}
