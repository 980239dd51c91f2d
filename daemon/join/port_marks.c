// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/port_marks.h"

void ft_port_marks_add(struct ft_port_marks *m, uint32_t window, uint64_t samples,
                       uint64_t ce_samples, int64_t last_ms)
{
    unsigned slot = window & 1;

    if (window > m->window) {
        m->samples[slot] = m->ce_samples[slot] = 0;
        if (window > m->window + 1)
            m->samples[!slot] = m->ce_samples[!slot] = 0;
        m->window = window;
    }
    m->samples[slot] += samples;
    m->ce_samples[slot] += ce_samples;
    if (last_ms > m->last_ms)
        m->last_ms = last_ms;
}

static void clear_depths(struct ft_port_depths *d, unsigned slot)
{
    d->has_queue[slot] = d->has_transit[slot] = false;
    d->queue_max_bytes[slot] = d->transit_max_ns[slot] = 0;
}

void ft_port_depths_add(struct ft_port_depths *d, uint32_t window,
                        const struct ft_observed_rest *rest)
{
    unsigned slot = window & 1;

    if (window > d->window) {
        clear_depths(d, slot);
        if (window > d->window + 1)
            clear_depths(d, !slot);
        d->window = window;
    }
    d->has_queue[slot] |= rest->has_queue;
    d->has_transit[slot] |= rest->has_transit;
    if (rest->has_queue && rest->queue_max_bytes > d->queue_max_bytes[slot])
        d->queue_max_bytes[slot] = rest->queue_max_bytes;
    if (rest->has_transit && rest->transit_max_ns > d->transit_max_ns[slot])
        d->transit_max_ns[slot] = rest->transit_max_ns;
}
