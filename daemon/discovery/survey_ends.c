// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/discovery/survey.h"
#include "lib/base/grow.h"

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
                           .link = FT_NONE,
                           .nic = FT_NONE};
    snprintf(end->name, sizeof(end->name), "%s", name);
    s->nodes[node].end_count++;
    return end;
}

uint32_t ft_survey_end(const struct ft_survey *s, uint32_t node, uint32_t ifindex)
{
    const struct ft_node *n = &s->nodes[node];

    for (uint32_t i = 0; ifindex && i < n->end_count; i++)
        if (s->ends[n->first_end + i].ifindex == ifindex)
            return n->first_end + i;
    return FT_NONE;
}

uint32_t ft_survey_member(const struct ft_survey *s, uint32_t aggregate)
{
    const struct ft_node *n = &s->nodes[s->ends[aggregate].node];
    uint32_t found = FT_NONE;

    for (uint32_t i = n->first_end; i < n->first_end + n->end_count; i++) {
        if (s->ends[i].lag != aggregate)
            continue;
        if (found != FT_NONE)
            return FT_NONE;
        found = i;
    }
    return found;
}

static bool says_down(const struct ft_end *end)
{
    return end->word_down || (end->info && end->info->has_oper_up && !end->info->oper_up);
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
