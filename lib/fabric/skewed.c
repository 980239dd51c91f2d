// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/skewed.h"

#include <math.h>
#include <stdlib.h>

#include "lib/fabric/weights.h"

#define ROUNDING 1e-9

struct ft_skewed {
    bool *weighed; /* by group: its links may be */
    bool *leading; /* of those up: they may lead to the switches above in other shares than alike */
    bool some;     /* of leading */
};

uint32_t ft_skewed_bundle(const struct ft_topology *t, uint32_t link)
{
    const struct ft_port *port = ft_topology_port(t, link);

    if (port->direction == FT_DIRECTION_DOWN)
        return port->switch_id;
    return port->lag == FT_NONE ? link : port->lag;
}

/* Of a link 0 where a speed of its group is not known. */
static bool speeds_known(const struct ft_topology *t, const struct ft_group *g)
{
    for (uint32_t i = 0; i < g->link_count; i++)
        if (ft_topology_port(t, g->links[i])->speed_bps == 0)
            return false;
    return true;
}

static uint32_t above(const struct ft_topology *t, const struct ft_group *g, uint32_t i)
{
    const struct ft_port *port = ft_topology_port(t, g->links[i]);

    return g->direction == FT_DIRECTION_DOWN ? port->switch_id
                                             : ft_topology_port(t, port->peer)->switch_id;
}

/* What leads to, or comes from, a switch above: its speed, or where not all are known its links. */
static double size_of(const struct ft_topology *t, const struct ft_group *g, uint32_t switch_id,
                      bool known)
{
    double sum = 0;

    for (uint32_t i = 0; i < g->link_count; i++)
        if (above(t, g, i) == switch_id)
            sum += known ? (double)ft_topology_port(t, g->links[i])->speed_bps : 1;
    return sum;
}

static bool is_leading(const struct ft_topology *t, const struct ft_group *g)
{
    bool known = speeds_known(t, g);
    double first = g->link_count ? size_of(t, g, above(t, g, 0), known) : 0;

    for (uint32_t i = 1; i < g->link_count; i++)
        if (fabs(size_of(t, g, above(t, g, i), known) / first - 1) > ROUNDING)
            return true;
    return false;
}

/* -1 without memory. */
static int is_weighed(const struct ft_topology *t, const struct ft_group *g)
{
    uint64_t *speed = calloc(g->link_count + 1u, sizeof(*speed));
    uint32_t *bundle = calloc(g->link_count + 1u, sizeof(*bundle));
    double *share = calloc(g->link_count + 1u, sizeof(*share));
    const struct ft_link_set links = {g->link_count, speed, bundle};
    int weighed = -1;

    if (speed && bundle && share) {
        for (uint32_t i = 0; i < g->link_count; i++) {
            speed[i] = ft_topology_port(t, g->links[i])->speed_bps;
            bundle[i] = ft_skewed_bundle(t, g->links[i]);
        }
        weighed = ft_weigh(&links, FT_WEIGHED_BY_SPEED, share) ||
                  ft_weigh(&links, FT_WEIGHED_BY_BUNDLE, share);
    }
    free(speed);
    free(bundle);
    free(share);
    return weighed;
}

struct ft_skewed *ft_skewed_new(const struct ft_topology *t)
{
    struct ft_skewed *s = calloc(1, sizeof(*s));
    bool ok = s != NULL;

    if (s) {
        s->weighed = calloc((size_t)ft_topology_groups(t) + 1, sizeof(*s->weighed));
        s->leading = calloc((size_t)ft_topology_groups(t) + 1, sizeof(*s->leading));
        ok = s->weighed && s->leading;
    }
    for (uint32_t i = 0; ok && i < ft_topology_groups(t); i++) {
        const struct ft_group *g = ft_topology_group(t, i);
        int weighed = is_weighed(t, g);

        s->weighed[i] = weighed > 0;
        s->leading[i] = g->direction == FT_DIRECTION_UP && is_leading(t, g);
        s->some |= s->leading[i];
        ok = weighed >= 0;
    }
    if (ok)
        return s;
    ft_skewed_free(s);
    return NULL;
}

void ft_skewed_free(struct ft_skewed *s)
{
    if (!s)
        return;
    free(s->weighed);
    free(s->leading);
    free(s);
}

bool ft_skewed_group(const struct ft_skewed *s, uint32_t group)
{
    return s->weighed[group];
}

/* Whether a group down has, of the switches above, the same shares as the group up by which flows
 * come there: then its own weights say what those up do. */
static bool match(const struct ft_topology *t, const struct ft_group *up,
                  const struct ft_group *down)
{
    bool known = speeds_known(t, up) && speeds_known(t, down);
    double scale = 0;

    for (uint32_t i = 0; i < down->link_count; i++) {
        uint32_t from = above(t, down, i);
        double part = size_of(t, up, from, known) / size_of(t, down, from, known);

        if (i == 0)
            scale = part;
        if (scale <= 0 || fabs(part / scale - 1) > ROUNDING)
            return false;
    }
    return true;
}

/* The group of the link, or of the members of an aggregate. */
static uint32_t group_of(const struct ft_topology *t, uint32_t out)
{
    if (out == FT_NONE)
        return FT_NONE;
    if (ft_is_lag(out))
        out = ft_topology_lag(t, out)->members[0];
    return ft_topology_port(t, out)->group;
}

bool ft_skewed_before(const struct ft_skewed *s, const struct ft_topology *t,
                      const struct ft_path *path, uint32_t hop)
{
    uint32_t group = s->some ? group_of(t, path->hops[hop].out) : FT_NONE, up;

    if (group == FT_NONE || ft_topology_group(t, group)->direction != FT_DIRECTION_DOWN)
        return false;
    /* What comes down by the switch above was chosen by the one that sent it there, if that is a
     * way up; if not, by any of those before. */
    for (uint32_t before = hop; before-- > 0;) {
        up = group_of(t, path->hops[before].out);
        if (up == FT_NONE || ft_topology_group(t, up)->direction != FT_DIRECTION_UP)
            continue;
        if (before + 1 == hop)
            return s->leading[up] &&
                   !match(t, ft_topology_group(t, up), ft_topology_group(t, group));
        if (s->leading[up])
            return true;
    }
    return false;
}
