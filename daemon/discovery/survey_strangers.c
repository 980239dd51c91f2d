// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/discovery/survey.h"
#include "lib/base/bound.h"
#include "lib/base/grow.h"

#define HOST_NAMES   0 /* namespace */
#define PARTNERS_MAX 64
#define OUR_SWITCH   (UINT32_MAX - 1)

/* A neighbour that is not one of our switches, as one of our ports reports it. */
struct heard {
    const Fabrictrace__Neighbor *row;
    uint32_t end;
};

/* All that is heard of one device. */
struct stranger {
    uint32_t first, count; /* among the heard */
    uint32_t report;       /* that a poller asks in vain, by its order; FT_NONE */
    uint32_t index;        /* the node that it became, FT_NONE */
};

struct strangers {
    struct heard *heard;
    struct stranger *list;
    uint32_t *of_end;         /* stranger behind an end, OUR_SWITCH, FT_NONE */
    uint32_t *of_report;      /* stranger that a report is of, by its order; FT_NONE */
    struct meeting *meetings; /* by who */
    uint32_t heard_count, count;
    uint32_t meeting_count, meeting_size;
    size_t heard_size;
};

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static int by_device(const void *a, const void *b)
{
    const Fabrictrace__Neighbor *x = ((const struct heard *)a)->row;
    const Fabrictrace__Neighbor *y = ((const struct heard *)b)->row;
    int by = (int)x->chassis_kind - (int)y->chassis_kind;

    if (by == 0)
        by = strcasecmp(x->chassis_id, y->chassis_id);
    return by ? by : strcmp(text_of(x->name), text_of(y->name));
}

static int by_device_and_end(const void *a, const void *b)
{
    const struct heard *x = a, *y = b;
    int by = by_device(a, b);

    return by ? by : (x->end > y->end) - (x->end < y->end);
}

static int hear(struct ft_survey *s, struct strangers *all, uint32_t node,
                const Fabrictrace__Neighbor *row)
{
    uint32_t end = ft_survey_end(s, node, row->ifindex);
    struct heard *grown;

    ft_survey_pace(s);
    if (end == FT_NONE || !row->chassis_id || !*row->chassis_id)
        return 0;
    if (ft_survey_neighbour(s, row) != FT_IDS_NONE) {
        all->of_end[end] = OUR_SWITCH;
        return 0;
    }
    grown = ft_grow(all->heard, all->heard_count, &all->heard_size, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    all->heard = grown;
    all->heard[all->heard_count++] = (struct heard){row, end};
    return 0;
}

static int hear_all(struct ft_survey *s, struct strangers *all)
{
    all->of_end = malloc(((size_t)s->end_count + 1) * sizeof(*all->of_end));
    if (!all->of_end)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->end_count; i++) {
        uint32_t base = s->ends[i].base;

        all->of_end[i] = base != FT_NONE && ft_topology_port(s->base, base)->peer != FT_NONE
                             ? OUR_SWITCH
                             : FT_NONE;
    }
    for (uint32_t n = 0; n < s->node_count; n++) {
        const struct ft_report *r = s->nodes[n].report;

        for (size_t i = 0; r && !s->nodes[n].stale && i < r->message->n_neighbors; i++)
            if (hear(s, all, n, r->message->neighbors[i]))
                return -ENOMEM;
    }
    return 0;
}

static int distinguish(struct strangers *all)
{
    if (all->heard_count == 0)
        return 0;
    all->list = calloc(all->heard_count, sizeof(*all->list));
    if (!all->list)
        return -ENOMEM;
    qsort(all->heard, all->heard_count, sizeof(*all->heard), by_device_and_end);
    for (uint32_t i = 0; i < all->heard_count; i++) {
        if (i == 0 || by_device(&all->heard[i - 1], &all->heard[i]) != 0)
            all->list[all->count++] =
                (struct stranger){.first = i, .report = FT_NONE, .index = FT_NONE};
        all->list[all->count - 1].count++;
        all->of_end[all->heard[i].end] = all->count - 1;
    }
    return 0;
}

/* Whose management address a poller asks in vain. An address that two devices report belongs to
 * neither. */
static int find_listed(struct ft_survey *s, struct strangers *all)
{
    struct ft_ids *named = ft_ids_new();
    const struct ft_report *r;
    uint32_t index = 0, i = 0;
    struct ft_ip ip;

    all->of_report = malloc((ft_reports_count(s->reports) + 1) * sizeof(*all->of_report));
    if (!named || !all->of_report) {
        ft_ids_free(named);
        return -ENOMEM;
    }
    for (uint32_t k = 0, h = 0; k < all->count; k++)
        for (; h < all->list[k].first + all->list[k].count; h++) {
            const Fabrictrace__Neighbor *row = all->heard[h].row;

            ft_survey_pace(s);
            for (size_t a = 0; a < row->n_addresses; a++)
                if (ft_ip_from_bytes(row->addresses[a].data, row->addresses[a].len, &ip) == 0)
                    ft_ids_add_address(named, &ip, k);
        }
    for (; (r = ft_reports_next(s->reports, &index)); i++) {
        uint32_t k = s->owner[i] == FT_NONE ? ft_ids_find_address(named, &r->agent) : FT_NONE;

        s->looks++;
        ft_survey_pace(s);
        if (k < all->count && all->list[k].report == FT_NONE)
            all->list[k].report = i;
        else
            k = FT_NONE;
        all->of_report[i] = k;
    }
    ft_ids_free(named);
    return 0;
}

/* Who is behind an end: the stranger, else the end itself; FT_NONE where we know that it is another
 * switch of ours. */
static uint32_t behind(struct ft_survey *s, const struct strangers *all,
                       const struct ft_attachment *attachment)
{
    uint32_t node = ft_ids_find_address(s->ids, &attachment->agent);
    uint32_t end = node < s->node_count ? ft_survey_end(s, node, attachment->ifindex) : FT_NONE;

    if (end == FT_NONE || !ft_attachment_is_steady(attachment))
        return FT_NONE;
    if (all->of_end[end] == OUR_SWITCH)
        return FT_NONE;
    return all->of_end[end] == FT_NONE ? all->count + end : all->of_end[end];
}

struct partners {
    uint32_t list[PARTNERS_MAX];
    uint32_t count;
    bool share[PARTNERS_MAX][PARTNERS_MAX]; /* an address was seen behind both */
};

static uint32_t partner(const struct partners *p, uint32_t who)
{
    uint32_t i = 0;

    while (i < p->count && p->list[i] != who)
        i++;
    return i;
}

/* An address that was seen at several attachments: one of those who are behind them, and the
 * others. */
struct meeting {
    uint32_t who, count;
    uint32_t others[FT_ATTACHMENTS_MAX];
};

static int by_who(const void *a, const void *b)
{
    const struct meeting *x = a, *y = b;

    return (x->who > y->who) - (x->who < y->who);
}

static int add_meetings(struct ft_survey *s, struct strangers *all, const struct ft_attached *at)
{
    uint32_t who[FT_ATTACHMENTS_MAX], count = 0;

    for (uint32_t i = 0; i < at->attachment_count; i++) {
        who[count] = behind(s, all, &at->attachments[i]);
        count += who[count] != FT_NONE;
    }
    if (all->meeting_count + count > all->meeting_size) {
        uint32_t size = 2 * all->meeting_size + 64;
        struct meeting *grown = realloc(all->meetings, size * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        all->meetings = grown;
        all->meeting_size = size;
    }
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        struct meeting *m = &all->meetings[all->meeting_count++];

        *m = (struct meeting){.who = who[i]};
        for (uint32_t k = 0; k < count; k++)
            if (who[k] != who[i])
                m->others[m->count++] = who[k];
    }
    return 0;
}

/* By who is behind: what a device shares with others is looked up, however many addresses there
 * are. */
static int gather_meetings(struct ft_survey *s, struct strangers *all)
{
    const struct ft_attached *at;
    uint32_t index = 0;

    while (s->attach && (at = ft_attach_next(s->attach, &index)))
        if (at->attachment_count > 1 && add_meetings(s, all, at))
            return -ENOMEM;
    if (all->meeting_count)
        qsort(all->meetings, all->meeting_count, sizeof(*all->meetings), by_who);
    return 0;
}

static uint32_t first_meeting(const struct strangers *all, uint32_t who)
{
    const struct meeting key = {.who = who};

    return (uint32_t)ft_lower_bound(&key, all->meetings, all->meeting_count, sizeof(key), by_who);
}

static void share(struct ft_survey *s, const struct strangers *all, struct partners *p, uint32_t a)
{
    uint32_t who = p->list[a];

    for (uint32_t i = first_meeting(all, who);
         i < all->meeting_count && all->meetings[i].who == who; i++, s->looks++, ft_survey_pace(s))
        for (uint32_t k = 0; k < all->meetings[i].count; k++) {
            uint32_t b = partner(p, all->meetings[i].others[k]);

            if (b < p->count)
                p->share[a][b] = p->share[b][a] = true;
        }
}

/*
 * Whether packets show that a device forwards for others: those of two hosts come in by it as well
 * as where they hang. That these are hosts, and not two spines that see what comes out of one
 * host, shows by this, that no address comes in by both.
 */
static bool is_transit(struct ft_survey *s, const struct strangers *all, uint32_t x)
{
    struct partners *p = s->attach ? calloc(1, sizeof(*p)) : NULL;
    bool found = false;

    if (!p)
        return false;
    for (uint32_t i = first_meeting(all, x); i < all->meeting_count && all->meetings[i].who == x;
         i++, s->looks++, ft_survey_pace(s))
        for (uint32_t k = 0; k < all->meetings[i].count; k++)
            if (partner(p, all->meetings[i].others[k]) == p->count && p->count < PARTNERS_MAX)
                p->list[p->count++] = all->meetings[i].others[k];
    for (uint32_t a = 0; a < p->count; a++)
        share(s, all, p, a);
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = 0; k < i; k++)
            found |= !p->share[i][k];
    free(p);
    return found;
}

static void name_host(const struct ft_survey *s, struct ft_ids *hosts, const char *name,
                      uint32_t value)
{
    ft_survey_pace(s);
    ft_ids_add(hosts, HOST_NAMES, 0, name, value);
}

static int name_hosts(const struct ft_survey *s, struct ft_ids **hosts)
{
    const char *name;
    uint32_t index = 0;

    *hosts = ft_ids_new();
    if (!*hosts)
        return -ENOMEM;
    for (uint32_t h = 0; h < ft_topology_hosts(s->base); h++)
        name_host(s, *hosts, ft_topology_host(s->base, h)->name, h);
    while (s->attach && (name = ft_attach_next_name(s->attach, &index)))
        name_host(s, *hosts, name, 0);
    return 0;
}

static bool is_host(const struct ft_ids *hosts, const char *name)
{
    char first[128];

    if (!name)
        return false;
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(name, "."), name);
    return ft_ids_find(hosts, HOST_NAMES, 0, name) != FT_IDS_NONE ||
           ft_ids_find(hosts, HOST_NAMES, 0, first) != FT_IDS_NONE;
}

/*
 * Whether a device is a switch: a poller is to read it; or several of our switches hear it, it
 * names its ports, does not say that it forwards nothing, and does forward, as packets show now, or
 * did when it was linked first. Hosts forward as well, for the containers in them: what agents call
 * a host is none.
 */
static bool is_switch(struct ft_survey *s, const struct strangers *all, uint32_t id,
                      const struct ft_ids *hosts)
{
    const struct stranger *x = &all->list[id];
    bool linked = false, several = false;

    if (x->report != FT_NONE)
        return true;
    for (uint32_t i = x->first; i < x->first + x->count; i++) {
        const struct heard *h = &all->heard[i];

        ft_survey_pace(s);
        if ((h->row->has_forwards && !h->row->forwards) || is_host(hosts, h->row->name) ||
            h->row->port_kind == FABRICTRACE__ID_KIND__ID_KIND_MAC)
            return false;
        linked |= s->ends[h->end].was_linked;
        several |= s->ends[h->end].node != s->ends[all->heard[x->first].end].node;
    }
    return several && (linked || is_transit(s, all, id));
}

/* A port's name: as the device names it; else as it describes it, or whatever it says. */
static void name_port(const struct ft_survey *s, uint32_t node, const Fabrictrace__Neighbor *row,
                      char name[128])
{
    const char *best = row->port_id;

    if (row->port_kind != FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME && row->port_description &&
        *row->port_description)
        best = row->port_description;
    snprintf(name, 128, "%.127s", best);
    if (ft_ids_find(s->ids, node, FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, name) !=
        FT_IDS_NONE)
        snprintf(name, 128, "%.100s#%u", best, s->nodes[node].end_count);
}

static int add_ports(struct ft_survey *s, const struct strangers *all, const struct stranger *x,
                     uint32_t node)
{
    char name[128];

    s->nodes[node].first_end = s->end_count;
    for (uint32_t i = x->first; i < x->first + x->count; i++) {
        const Fabrictrace__Neighbor *row = all->heard[i].row;
        uint32_t end = s->end_count;

        ft_survey_pace(s);
        if (!row->port_id || !*row->port_id ||
            ft_ids_find_own(s->ids, node, row->port_kind, row->port_id) != FT_IDS_NONE)
            continue;
        name_port(s, node, row, name);
        if (!ft_survey_add_end(s, node, name))
            return -ENOMEM;
        ft_ids_add_own(s->ids, node, row->port_kind, row->port_id, end);
        ft_ids_add(s->ids, node, FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, name, end);
    }
    return 0;
}

static void add_ids(struct ft_survey *s, uint32_t node)
{
    const Fabrictrace__Neighbor *row = s->nodes[node].heard;
    struct ft_ip ip;

    ft_ids_add(s->ids, FT_IDS_CHASSIS, row->chassis_kind, row->chassis_id, node);
    ft_ids_add(s->ids, FT_IDS_NAMES, 0, row->name, node);
    for (size_t i = 0; i < row->n_addresses; i++)
        if (ft_ip_from_bytes(row->addresses[i].data, row->addresses[i].len, &ip) == 0)
            ft_ids_add_address(s->ids, &ip, node);
}

static int add_stranger(struct ft_survey *s, const struct strangers *all, struct stranger *x)
{
    struct ft_node *grown = realloc(s->nodes, ((size_t)s->node_count + 2) * sizeof(*grown));
    const Fabrictrace__Neighbor *row = all->heard[x->first].row;
    struct ft_node *n;

    if (!grown)
        return -ENOMEM;
    s->nodes = grown;
    n = &s->nodes[x->index = s->node_count++];
    *n = (struct ft_node){.base = FT_NONE, .heard = row};
    if (!row->name || !*row->name)
        snprintf(n->name, sizeof(n->name), "%.127s", row->chassis_id);
    else if (ft_ids_find(s->ids, FT_IDS_NAMES, 0, row->name) == FT_IDS_NONE)
        snprintf(n->name, sizeof(n->name), "%.127s", row->name);
    else
        snprintf(n->name, sizeof(n->name), "%.60s@%.60s", row->name, row->chassis_id);
    add_ids(s, x->index);
    return add_ports(s, all, x, x->index);
}

static void note_stranger(struct ft_survey *s, const struct stranger *x, const char *problem)
{
    const char *name = s->nodes[x->index].name;
    struct ft_finding *f;

    if (x->report == FT_NONE)
        f = ft_findings_add(s->findings, FT_FINDING_NOTE, name, NULL,
                            "add it to a poller's snmp.switches",
                            "no switch poller reads it: its links are known from its neighbours' "
                            "LLDP alone");
    else
        f = ft_findings_add(s->findings, FT_FINDING_NOTE, name, NULL,
                            "check its address and credentials in the poller's snmp.switches, and "
                            "its SNMP access list",
                            "it has never answered SNMP%s%.150s: its links are known from its "
                            "neighbours' LLDP alone",
                            problem ? ", " : "", problem ? problem : "");
    if (f)
        f->blind = true;
}

static void resolve_reports(struct ft_survey *s, const struct strangers *all)
{
    const struct ft_report *r;
    const struct stranger *x;
    uint32_t index = 0, i = 0;

    for (; (r = ft_reports_next(s->reports, &index)); i++) {
        ft_survey_pace(s);
        if (s->owner[i] != FT_NONE)
            continue;
        x = all->count && all->of_report[i] != FT_NONE ? &all->list[all->of_report[i]] : NULL;
        if (x && x->index != FT_NONE) {
            s->owner[i] = x->index;
            ft_ids_add_address(s->ids, &r->agent, s->owner[i]);
            note_stranger(s, x, r->message->problem);
        }
        if (s->owner[i] == FT_NONE)
            ft_survey_note_nobody(s, r);
    }
}

int ft_survey_strangers(struct ft_survey *s)
{
    struct strangers all = {.heard = NULL};
    struct ft_ids *hosts = NULL;
    int rc = hear_all(s, &all);

    if (rc == 0)
        rc = distinguish(&all);
    if (rc == 0 && all.count) {
        rc = find_listed(s, &all);
        if (rc == 0)
            rc = gather_meetings(s, &all);
        if (rc == 0)
            rc = name_hosts(s, &hosts);
    }
    for (uint32_t i = 0; rc == 0 && i < all.count; i++) {
        struct stranger *x = &all.list[i];

        if (!is_switch(s, &all, i, hosts))
            continue;
        rc = add_stranger(s, &all, x);
        if (rc == 0 && x->report == FT_NONE)
            note_stranger(s, x, NULL);
    }
    if (rc == 0)
        resolve_reports(s, &all);
    ft_ids_free(hosts);
    free(all.meetings);
    free(all.of_report);
    free(all.of_end);
    free(all.list);
    free(all.heard);
    return rc;
}
