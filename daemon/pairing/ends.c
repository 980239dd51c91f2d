// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pairing/state.h"

uint32_t ft_pairing_port_at(const struct ft_pairing *p, const struct ft_ip *ip)
{
    const struct ft_pairing_address *a = ft_table_find(p->addresses, ip);

    return a && a->count == 1 ? (uint32_t)a->sum : FT_NONE;
}

bool ft_pairing_knows(const struct ft_pairing *p, const struct ft_ip *address)
{
    return ft_table_find(p->addresses, address) != NULL;
}

struct ft_pairing_qp *ft_pairing_find(const struct ft_pairing *p, uint32_t port, uint32_t local)
{
    const struct ft_pairing_end_key key = {port, local};

    return ft_table_find(p->ends, &key);
}

struct ft_pairing_qp *ft_pairing_peer(const struct ft_pairing *p, const struct ft_pairing_qp *e)
{
    struct ft_pairing_qp *peer;

    if (e->peer != FT_NONE)
        return ft_pairing_at(p, e->peer);
    peer = e->sampled ? ft_pairing_find(p, e->sampled_key.port, e->sampled_key.local) : NULL;
    return peer && peer->seq == e->sampled_seq ? peer : NULL;
}

void ft_pairing_mark_uncertain(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    if (e->uncertain)
        return;
    e->uncertain = true;
    e->next_uncertain = FT_NONE;
    if (p->last_uncertain == FT_NONE)
        p->first_uncertain = ft_table_index(p->ends, e);
    else
        ft_pairing_at(p, p->last_uncertain)->next_uncertain = ft_table_index(p->ends, e);
    p->last_uncertain = ft_table_index(p->ends, e);
}

struct ft_pairing_qp *ft_pairing_take_uncertain(struct ft_pairing *p)
{
    struct ft_pairing_qp *e =
        p->first_uncertain == FT_NONE ? NULL : ft_pairing_at(p, p->first_uncertain);

    if (!e)
        return NULL;
    e->uncertain = false;
    p->first_uncertain = e->next_uncertain;
    if (p->first_uncertain == FT_NONE)
        p->last_uncertain = FT_NONE;
    return e;
}

static void append_linked(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    struct ft_pairing_port *port = ft_table_at(p->ports, e->key.port);
    uint32_t index = ft_table_index(p->ends, e);

    e->previous_linked = port->last_linked;
    e->next_linked = FT_NONE;
    if (port->last_linked == FT_NONE)
        port->first_linked = index;
    else
        ft_pairing_at(p, port->last_linked)->next_linked = index;
    port->last_linked = index;
}

static void drop_linked(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    struct ft_pairing_port *port = ft_table_at(p->ports, e->key.port);

    if (e->previous_linked == FT_NONE)
        port->first_linked = e->next_linked;
    else
        ft_pairing_at(p, e->previous_linked)->next_linked = e->next_linked;
    if (e->next_linked == FT_NONE)
        port->last_linked = e->previous_linked;
    else
        ft_pairing_at(p, e->next_linked)->previous_linked = e->previous_linked;
}

void ft_pairing_set_by(struct ft_pairing *p, struct ft_pairing_qp *e, enum ft_paired_by by)
{
    if (!e->by && by)
        append_linked(p, e);
    else if (e->by && !by)
        drop_linked(p, e);
    e->by = (uint8_t)by;
}

bool ft_pairing_holds(const struct ft_pairing *p, const struct ft_pairing_qp *e)
{
    const struct ft_pairing_qp *peer = ft_pairing_peer(p, e);

    return e->by > FT_PAIRED_BY_BOTH_HOSTS && !e->uncertain && !(peer && peer->uncertain);
}
