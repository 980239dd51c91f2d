// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/sampled.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Of what a source had, after a window. */
#define FADE 0.9

struct sum {
    uint64_t samples;
    double bytes;
};

/* What one source sampled, by parity of the window, and in windows before, fading. */
struct source {
    uint32_t id;
    double past;
    struct sum sum[2];
};

struct point {
    uint32_t window; /* the newest */
    uint32_t count;
    struct source sources[FT_SAMPLED_SOURCES];
    uint64_t strays[2]; /* of a switch: samples that came in by a port without link or NIC */
};

struct ft_sampled {
    const struct ft_topology *t;
    struct point *switches; /* by switch id */
    struct point **in;      /* by port id; NULL: nothing, or its switch has one source */
    struct point **out;
};

static int make(const struct ft_topology *t, struct ft_sampled *s)
{
    size_t ports = (size_t)ft_topology_ports(t) + 1;

    s->t = t;
    s->switches = calloc((size_t)ft_topology_switches(t) + 1, sizeof(*s->switches));
    s->in = calloc(ports, sizeof(*s->in));
    s->out = calloc(ports, sizeof(*s->out));
    return s->switches && s->in && s->out ? 0 : -ENOMEM;
}

static void release(struct ft_sampled *s)
{
    for (uint32_t i = 0; s->in && s->out && i < ft_topology_ports(s->t); i++) {
        free(s->in[i]);
        free(s->out[i]);
    }
    free(s->switches);
    free(s->in);
    free(s->out);
}

struct ft_sampled *ft_sampled_new(const struct ft_topology *t)
{
    struct ft_sampled *s = calloc(1, sizeof(*s));

    if (s && make(t, s)) {
        ft_sampled_free(s);
        return NULL;
    }
    return s;
}

void ft_sampled_free(struct ft_sampled *s)
{
    if (!s)
        return;
    release(s);
    free(s);
}

int ft_sampled_follow(struct ft_sampled *s, const struct ft_topology *t)
{
    struct ft_sampled now = {.t = NULL};

    if (make(t, &now)) {
        release(&now);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < ft_topology_switches(s->t); i++) {
        uint32_t id = ft_topology_find_switch(t, ft_topology_switch(s->t, i)->name);

        if (id != FT_NONE)
            now.switches[id] = s->switches[i];
    }
    release(s);
    *s = now;
    return 0;
}

void ft_sampled_restart(struct ft_sampled *s)
{
    uint32_t ports = ft_topology_ports(s->t);

    memset(s->switches, 0, ft_topology_switches(s->t) * sizeof(*s->switches));
    for (uint32_t i = 0; i < ports; i++) {
        free(s->in[i]);
        free(s->out[i]);
        s->in[i] = s->out[i] = NULL;
    }
}

/* Empties the slots that an older window left. */
static void advance_to(struct point *p, uint32_t window)
{
    for (uint32_t step = 0; step < 2 && p->window + step < window; step++)
        for (uint32_t i = 0; i < p->count; i++) {
            struct source *s = &p->sources[i];
            struct sum *slot = &s->sum[(window - step) & 1];

            s->past = FADE * (s->past + (double)slot->samples);
            *slot = (struct sum){0};
        }
    for (uint32_t step = 0; step < 2 && p->window + step < window; step++)
        p->strays[(window - step) & 1] = 0;
    p->window = window;
}

/* One that was silent for long is replaced. NULL when all are in use. */
static struct source *source_of(struct point *p, uint32_t id)
{
    struct source *mute = NULL;

    for (uint32_t i = 0; i < p->count; i++) {
        struct source *s = &p->sources[i];

        if (s->id == id)
            return s;
        if (s->past < 1 && s->sum[0].samples == 0 && s->sum[1].samples == 0)
            mute = s;
    }
    if (p->count < FT_SAMPLED_SOURCES)
        mute = &p->sources[p->count++];
    if (mute)
        *mute = (struct source){.id = id};
    return mute;
}

static void add_to(struct point *p, uint32_t id, uint32_t window, uint64_t samples, uint64_t bytes)
{
    struct source *s;

    if (window > p->window)
        advance_to(p, window);
    s = source_of(p, id);
    if (!s)
        return;
    s->sum[window & 1].samples += samples;
    s->sum[window & 1].bytes += (double)bytes;
}

static void add_to_port(struct point **point, uint32_t id, uint32_t window, uint64_t samples,
                        uint64_t bytes)
{
    if (!*point)
        *point = calloc(1, sizeof(**point));
    if (*point)
        add_to(*point, id, window, samples, bytes);
}

static bool is_unused(const struct ft_topology *t, uint32_t port)
{
    const struct ft_port *p = ft_topology_port(t, port);

    return p->peer == FT_NONE && p->nic == FT_NONE;
}

void ft_sampled_add(struct ft_sampled *s, uint32_t switch_id, uint32_t in, uint32_t out,
                    uint32_t source, uint32_t window, uint64_t samples, uint64_t bytes)
{
    struct point *p = &s->switches[switch_id];

    add_to(p, source, window, samples, bytes);
    if (ft_is_port(in) && is_unused(s->t, in))
        p->strays[window & 1] += samples;
    if (p->count < 2)
        return;
    if (ft_is_port(in))
        add_to_port(&s->in[in], source, window, samples, bytes);
    if (ft_is_port(out))
        add_to_port(&s->out[out], source, window, samples, bytes);
}

/* What the best source had: of those with any, the one that had most before. */
static struct sum best_of(const struct point *p, uint32_t window)
{
    const struct source *best = NULL;
    unsigned slot = window & 1;

    if (!p || p->window < window || p->window > window + 1)
        return (struct sum){0};
    for (uint32_t i = 0; i < p->count; i++) {
        const struct source *s = &p->sources[i];

        if (s->sum[slot].samples == 0)
            continue;
        if (!best || s->past > best->past ||
            (s->past == best->past && s->sum[slot].samples > best->sum[slot].samples))
            best = s;
    }
    return best ? best->sum[slot] : (struct sum){0};
}

static struct sum sum_over_ports(const struct ft_switch *sw, struct point *const *by_port,
                                 uint32_t window)
{
    struct sum total = {0};

    for (uint32_t i = 0; i < sw->port_count; i++) {
        struct sum port = best_of(by_port[sw->ports[i]], window);

        total.samples += port.samples;
        total.bytes += port.bytes;
    }
    return total;
}

void ft_sampled_window(const struct ft_sampled *s, uint32_t switch_id, uint32_t window,
                       uint64_t *samples, double *bytes)
{
    const struct point *p = &s->switches[switch_id];
    struct sum best = best_of(p, window);

    if (p->count > 1) {
        const struct ft_switch *sw = ft_topology_switch(s->t, switch_id);
        struct sum in = sum_over_ports(sw, s->in, window);
        struct sum out = sum_over_ports(sw, s->out, window);

        if (in.samples > best.samples)
            best = in;
        if (out.samples > best.samples)
            best = out;
    }
    *samples = best.samples;
    *bytes = best.bytes;
}

uint64_t ft_sampled_strays(const struct ft_sampled *s, uint32_t switch_id, uint32_t window)
{
    const struct point *p = &s->switches[switch_id];

    return p->window < window || p->window > window + 1 ? 0 : p->strays[window & 1];
}
