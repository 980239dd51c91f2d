// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/hints.h"

#include <stdlib.h>

#include "lib/base/table.h"

struct ft_hints {
    struct ft_table *flows;
    uint32_t hand;
    int64_t keep_ms, now_ms;
};

struct ft_hints *ft_hints_new(int64_t keep_ms, uint64_t seed)
{
    struct ft_hints *h = calloc(1, sizeof(*h));

    _Static_assert(sizeof(struct ft_said_of_flow) <= 224, "FT_HINTS_BYTES_MAX");
    if (!h)
        return NULL;
    h->keep_ms = keep_ms;
    h->flows =
        ft_table_new(sizeof(struct ft_said_of_flow), sizeof(struct ft_tuple), FT_HINTS_FLOWS, seed);
    if (h->flows)
        return h;
    free(h);
    return NULL;
}

void ft_hints_free(struct ft_hints *h)
{
    if (!h)
        return;
    ft_table_free(h->flows);
    free(h);
}

struct ageing {
    int64_t before_ms;
};

static bool is_old(void *arg, void *entry)
{
    const struct ageing *a = arg;
    const struct ft_said_of_flow *f = entry;

    return f->newest_ms < a->before_ms;
}

/* Where all are fresh the next one that is looked at goes. */
static bool any(void *arg, void *entry)
{
    (void)arg;
    (void)entry;
    return true;
}

static void make_room(struct ft_hints *h)
{
    struct ageing a = {h->now_ms - h->keep_ms};

    if (ft_table_count(h->flows) >= FT_HINTS_FLOWS &&
        !ft_table_make_room(h->flows, &h->hand, FT_HINTS_FLOWS, is_old, &a))
        ft_table_make_room(h->flows, &h->hand, FT_HINTS_FLOWS, any, NULL);
}

static struct ft_said *slot_for(struct ft_said_of_flow *f, uint32_t switch_id)
{
    struct ft_said *oldest = &f->said[0];

    for (uint32_t i = 0; i < f->count; i++) {
        if (f->said[i].hint.switch_id == switch_id)
            return &f->said[i];
        if (f->said[i].at_ms < oldest->at_ms)
            oldest = &f->said[i];
    }
    return f->count < FT_HINTS_FLOW ? &f->said[f->count++] : oldest;
}

void ft_hints_advance(struct ft_hints *h, int64_t now_ms)
{
    h->now_ms = now_ms;
}

void ft_hints_put(struct ft_hints *h, const struct ft_tuple *tuple, const struct ft_hint *hint)
{
    struct ft_said_of_flow *f = ft_table_find(h->flows, tuple);
    bool fresh;

    if (!f) {
        make_room(h);
        f = ft_table_insert(h->flows, tuple, &fresh);
    }
    if (!f)
        return;
    f->newest_ms = h->now_ms;
    *slot_for(f, hint->switch_id) = (struct ft_said){.hint = *hint, .at_ms = h->now_ms};
}

struct ft_said_of_flow *ft_hints_of(struct ft_hints *h, const struct ft_tuple *tuple)
{
    struct ft_said_of_flow *f;
    uint32_t n = 0;

    if (ft_table_count(h->flows) == 0)
        return NULL;
    f = ft_table_find(h->flows, tuple);
    if (!f)
        return NULL;
    for (uint32_t i = 0; i < f->count; i++)
        if (f->said[i].at_ms >= h->now_ms - h->keep_ms)
            f->said[n++] = f->said[i];
    f->count = n;
    if (n)
        return f;
    ft_table_remove(h->flows, f);
    return NULL;
}

size_t ft_hints_list(const struct ft_said_of_flow *said, struct ft_hint list[FT_HINTS_FLOW])
{
    size_t n = 0;

    for (uint32_t i = 0; said && i < said->count; i++)
        if (said->said[i].hint.out != FT_NONE && said->said[i].hint.by != FT_BY_SAMPLES)
            list[n++] = said->said[i].hint;
    return n;
}

void ft_hints_drop_answers(struct ft_hints *h, const struct ft_tuple *tuple)
{
    struct ft_said_of_flow *f = ft_table_count(h->flows) ? ft_table_find(h->flows, tuple) : NULL;
    uint32_t n = 0;

    if (!f)
        return;
    for (uint32_t i = 0; i < f->count; i++)
        if (f->said[i].hint.by == FT_BY_PROBE)
            f->said[n++] = f->said[i];
    f->count = n;
    if (n == 0)
        ft_table_remove(h->flows, f);
}

void ft_hints_clear(struct ft_hints *h)
{
    ft_table_clear(h->flows);
}
