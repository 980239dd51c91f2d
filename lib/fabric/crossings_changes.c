// SPDX-License-Identifier: Apache-2.0
/* Of which ports something else was found since somebody asked. */
#include "config.h"

#include "lib/base/grow.h"
#include "lib/fabric/crossings_impl.h"

void ft_crossings_note(struct ft_crossings *x, struct ft_crossing_entry *p)
{
    struct ft_crossing_changes *c = &x->changes;
    uint32_t *list;

    x->news = true;
    if (p->noted || c->all)
        return;
    list =
        c->count < x->config.ports_max ? ft_grow(c->list, c->count, &c->size, sizeof(*list)) : NULL;
    if (!list) {
        c->all = true;
        return;
    }
    c->list = list;
    c->list[c->count++] = ft_table_index(x->ports, p);
    p->noted = true;
}

enum ft_crossings_changed ft_crossings_take_changed(struct ft_crossings *x, uint32_t *index)
{
    struct ft_crossing_changes *c = &x->changes;
    struct ft_crossing_entry *p;

    if (c->count == 0 && c->all) {
        c->all = false;
        return FT_CROSSINGS_ALL;
    }
    if (c->count == 0)
        return FT_CROSSINGS_NONE;
    *index = c->list[--c->count];
    p = ft_table_at(x->ports, *index);
    if (p)
        p->noted = false;
    return FT_CROSSINGS_ONE;
}
