// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/discovery/survey.h"
#include "lib/base/grow.h"

#define ENDS_MAX (1u << 30)
/* A poll takes so long, and comes so late at most; counters by sFlow come every 20 or 30 s. */
#define REPORT_LATE_MS 10000
#define WORD_MS        35000

/* A switch may have thousands of ports: none is looked for among all. */
struct number_key {
    uint32_t node, ifindex;
};

struct number {
    struct number_key key;
    uint32_t end;
};

int ft_survey_index(struct ft_survey *s)
{
    size_t ports = ft_topology_ports(s->base);

    s->numbered = ft_table_new(sizeof(struct number), sizeof(struct number_key), ENDS_MAX, 0);
    s->of_base = malloc((ports + 1) * sizeof(*s->of_base));
    if (!s->numbered || !s->of_base)
        return -ENOMEM;
    memset(s->of_base, 0xff, (ports + 1) * sizeof(*s->of_base));
    return 0;
}

void ft_survey_unindex(struct ft_survey *s)
{
    free(s->of_base);
    ft_table_free(s->numbered);
}

void ft_survey_number(struct ft_survey *s, uint32_t end, uint32_t ifindex)
{
    struct number_key key = {s->ends[end].node, ifindex};
    struct number *number;
    bool fresh;

    ft_survey_pace(s);
    s->ends[end].ifindex = ifindex;
    number = ifindex ? ft_table_insert(s->numbered, &key, &fresh) : NULL;
    if (number && fresh)
        number->end = end;
}

struct ft_end *ft_survey_add_end(struct ft_survey *s, uint32_t node, const char *name)
{
    struct ft_end *end = ft_grow(s->ends, s->end_count, &s->end_size, sizeof(*end));

    if (!end)
        return NULL;
    s->ends = end;
    end = &s->ends[s->end_count++];
    *end = (struct ft_end){.node = node,
                           .base = FT_NONE,
                           .recalled = FT_NONE,
                           .lag = FT_NONE,
                           .member = FT_NONE,
                           .link = FT_NONE,
                           .nic = FT_NONE};
    snprintf(end->name, sizeof(end->name), "%s", name);
    s->nodes[node].end_count++;
    return end;
}

uint32_t ft_survey_end(struct ft_survey *s, uint32_t node, uint32_t ifindex)
{
    struct number_key key = {node, ifindex};
    const struct number *number = ifindex ? ft_table_find(s->numbered, &key) : NULL;

    s->looks++;
    ft_survey_pace(s);
    return number ? number->end : FT_NONE;
}

uint32_t ft_survey_member(struct ft_survey *s, uint32_t aggregate)
{
    s->looks++;
    ft_survey_pace(s);
    return s->ends[aggregate].members == 1 ? s->ends[aggregate].member : FT_NONE;
}

static bool says_down(const struct ft_end *end)
{
    return end->word_down || (end->info && end->info->has_oper_up && !end->info->oper_up);
}

bool ft_survey_says_down(const struct ft_survey *s, uint32_t at)
{
    return says_down(&s->ends[at]);
}

bool ft_survey_is_shut(const struct ft_survey *s, uint32_t at)
{
    const struct ft_end *end = &s->ends[at];
    bool info_shut = end->info && end->info->has_admin_up && !end->info->admin_up;

    return says_down(end) && (end->word_shut || (info_shut && !end->word_enabled));
}

/* Whether sFlow's counters of this switch distinguish what was shut. */
static bool words_have_both(const struct ft_survey *s, const struct ft_node *n)
{
    const struct ft_switch *base = n->base == FT_NONE ? NULL : ft_topology_switch(s->base, n->base);
    const Fabrictrace__SwitchReport *m = n->report ? n->report->message : NULL;
    struct ft_ip ip;

    if (!s->down_ports)
        return false;
    for (uint32_t i = 0; base && i < base->address_count; i++)
        if (ft_down_ports_has_both(s->down_ports, &base->addresses[i]))
            return true;
    for (size_t i = 0; m && i < m->n_addresses; i++)
        if (ft_ip_from_bytes(m->addresses[i].data, m->addresses[i].len, &ip) == 0 &&
            ft_down_ports_has_both(s->down_ports, &ip))
            return true;
    return n->report && ft_down_ports_has_both(s->down_ports, &n->report->agent);
}

int64_t ft_survey_may_say_shut(const struct ft_survey *s, uint32_t at, int64_t down_ms)
{
    const struct ft_node *n = &s->nodes[s->ends[at].node];
    const Fabrictrace__PortInfo *info = s->ends[at].info;
    const struct ft_report *r = n->report;

    if (r && !n->stale && !ft_report_silent(r->message) && info && info->has_admin_up)
        return r->heard_ms - down_ms >= FT_SURVEY_CACHED_MS
                   ? 0
                   : r->message->interval_ms + REPORT_LATE_MS;
    return words_have_both(s, n) ? WORD_MS : 0;
}

bool ft_survey_is_down(const struct ft_survey *s, uint32_t at)
{
    const struct ft_end *end = &s->ends[at];

    return says_down(end) || (end->link != FT_NONE && says_down(&s->ends[end->link]));
}

bool ft_survey_member_down(const struct ft_survey *s, uint32_t member)
{
    const struct ft_node *n = &s->nodes[s->ends[member].node];

    if (!n->report || n->stale || ft_report_silent(n->report->message))
        return s->ends[member].word_down;
    return ft_survey_is_down(s, member);
}
