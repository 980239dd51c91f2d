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
    peer = e->wired ? ft_pairing_find(p, e->wire_key.port, e->wire_key.local) : NULL;
    return peer && peer->seq == e->wire_seq ? peer : NULL;
}

void ft_pairing_doubt(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    if (e->doubted)
        return;
    e->doubted = true;
    e->next_doubted = FT_NONE;
    if (p->last_doubted == FT_NONE)
        p->first_doubted = ft_table_index(p->ends, e);
    else
        ft_pairing_at(p, p->last_doubted)->next_doubted = ft_table_index(p->ends, e);
    p->last_doubted = ft_table_index(p->ends, e);
}

struct ft_pairing_qp *ft_pairing_take_doubted(struct ft_pairing *p)
{
    struct ft_pairing_qp *e =
        p->first_doubted == FT_NONE ? NULL : ft_pairing_at(p, p->first_doubted);

    if (!e)
        return NULL;
    e->doubted = false;
    p->first_doubted = e->next_doubted;
    if (p->first_doubted == FT_NONE)
        p->last_doubted = FT_NONE;
    return e;
}

bool ft_pairing_holds(const struct ft_pairing *p, const struct ft_pairing_qp *e)
{
    const struct ft_pairing_qp *peer = ft_pairing_peer(p, e);

    return e->by > FT_PAIRED_BY_BOTH_ENDS && !e->doubted && !(peer && peer->doubted);
}
