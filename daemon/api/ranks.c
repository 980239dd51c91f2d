// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/ranks.h"

#include <string.h>

#include "daemon/pipeline/stages.h"

static char *text(const char *s)
{
    return s && *s ? (char *)(uintptr_t)s : NULL;
}

static void fill_last(Fabrictrace__Rank *out, const struct ft_slowest_last *last)
{
    out->op = text(last->op);
    out->has_time_ms = last->time_ms != 0;
    out->time_ms = last->time_ms;
    if (!last->named)
        return;
    out->has_slowest_peer = out->has_slowest_step_median_ns = out->has_others_step_median_ns = true;
    out->slowest_peer = last->peer;
    out->slowest_step_median_ns = last->step_median_ns;
    out->others_step_median_ns = last->others_median_ns;
    if (!last->has_link)
        return;
    out->slowest_switch = text(last->link.switch_name);
    out->slowest_port = text(last->link.port);
    out->has_slowest_port_flows = true;
    out->slowest_port_flows = last->link.flows;
}

static void fill_progress(Fabrictrace__Rank *out, const struct ft_rank_progress *p)
{
    out->has_progress_ms = out->has_begun = out->has_standing = true;
    out->progress_ms = (uint64_t)p->time_ms;
    out->begun = p->begun;
    out->standing = p->standing;
    out->has_process = p->process != FABRICTRACE__PROCESS_STATE__PROCESS_STATE_UNKNOWN;
    out->process = p->process;
    out->has_finished = p->finished > 0;
    out->finished = p->finished;
    out->has_number = out->has_state = p->number > 0;
    out->number = p->number;
    out->state = p->state;
    out->standing_op = text(p->op);
    out->has_start_ms = p->start_ms > 0;
    out->start_ms = (uint64_t)p->start_ms;
    out->has_transfer = out->has_transfer_send = out->has_transfer_since_ms = p->has_transfer;
    out->transfer = p->transfer;
    out->transfer_send = p->transfer_send;
    out->transfer_since_ms = (uint64_t)p->transfer_since_ms;
    out->has_transfer_peer = p->has_transfer && p->transfer_peer != UINT32_MAX;
    out->transfer_peer = p->transfer_peer;
}

static void write_rank(struct ft_list *list, const struct ft_rank_member *m,
                       const struct ft_slowest_last *last)
{
    Fabrictrace__Rank out = FABRICTRACE__RANK__INIT;

    out.comm_id = text(m->comm_id);
    out.has_rank = out.has_ranks = true;
    out.has_pid = m->pid != 0;
    out.rank = m->rank;
    out.ranks = m->ranks;
    out.host = text(m->host);
    out.pid = m->pid;
    out.gpu = text(m->gpu);
    out.job = text(m->job);
    out.has_closed = out.closed = m->closed;
    if (last)
        fill_last(&out, last);
    if (m->progress.time_ms)
        fill_progress(&out, &m->progress);
    ft_list_message(list, "fabrictrace.rank.v1", &out.base);
}

/* Names are kept as far as there is room for them. */
static bool is(const char *filter, const char name[FT_RANKS_NAME])
{
    return !filter || strncmp(filter, name, FT_RANKS_NAME - 1) == 0;
}

static bool matches(const struct ft_rank_member *m, const struct ft_list_filter *f)
{
    return (!f->comm || strcmp(f->comm, m->comm_id) == 0) && is(f->job, m->job) &&
           is(f->host, m->host) && (!f->has_rank || f->rank == m->rank);
}

struct item {
    char comm_id[FT_RANKS_ID];
    uint32_t rank;
    uint32_t index;
};

static int order(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int by_comm = strncmp(x->comm_id, y->comm_id, sizeof(x->comm_id));

    return by_comm ? by_comm : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static enum ft_sorted_found look(const struct ft_view *view, const void *filter, uint32_t *index,
                                 void *to)
{
    const struct ft_rank_member *m = ft_ranks_next_member(view->stages->ranks, index);
    struct item *item = to;

    if (!m)
        return FT_SORTED_END;
    if (!matches(m, filter))
        return FT_SORTED_OTHER;
    memcpy(item->comm_id, m->comm_id, sizeof(item->comm_id));
    item->rank = m->rank;
    item->index = *index - 1;
    return FT_SORTED_MATCH;
}

static void write_item(struct ft_list *list, const void *of)
{
    const struct ft_stages *stages = list->view->stages;
    const struct item *item = of;
    const struct ft_rank_member *m = ft_ranks_member_at(stages->ranks, item->index);

    /* Another may have its slot by now. */
    if (m && m->rank == item->rank && strcmp(m->comm_id, item->comm_id) == 0)
        write_rank(list, m, ft_slowest_of(stages->slowest, m->comm_id, m->rank));
}

static size_t most(const struct ft_view *view)
{
    return ft_ranks_members(view->stages->ranks);
}

const struct ft_sorted_kind ft_api_rank_order = {"ranks", sizeof(struct item), order,
                                                 look,    write_item,          most};

/* By how much longer the steps of a rank to its slowest peer take than the others', the most first.
 */
struct slow {
    double times;
    struct item item;
};

static int order_slow(const void *a, const void *b)
{
    const struct slow *x = a, *y = b;

    if (x->times != y->times)
        return x->times < y->times ? 1 : -1;
    return order(&x->item, &y->item);
}

static enum ft_sorted_found look_slow(const struct ft_view *view, const void *filter,
                                      uint32_t *index, void *to)
{
    struct slow *slow = to;
    enum ft_sorted_found found = look(view, filter, index, &slow->item);
    const struct ft_slowest_last *last;

    if (found != FT_SORTED_MATCH)
        return found;
    last = ft_slowest_of(view->stages->slowest, slow->item.comm_id, slow->item.rank);
    if (!last || !last->named)
        return FT_SORTED_OTHER;
    slow->times = (double)last->step_median_ns /
                  (double)(last->others_median_ns ? last->others_median_ns : 1);
    return FT_SORTED_MATCH;
}

static void write_slow(struct ft_list *list, const void *of)
{
    write_item(list, &((const struct slow *)of)->item);
}

const struct ft_sorted_kind ft_api_slow_order = {"slowest", sizeof(struct slow), order_slow,
                                                 look_slow, write_slow,          most};

const struct ft_pair_link *ft_api_slow_link(const struct ft_view *view, const void *of)
{
    const struct slow *slow = of;
    const struct ft_slowest_last *last =
        ft_slowest_of(view->stages->slowest, slow->item.comm_id, slow->item.rank);

    return last && last->named && last->has_link ? &last->link : NULL;
}

int ft_api_ranks(void *view, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"comm", "job", "host", "rank", NULL};

    return ft_sorted_answer(view, request, &ft_api_rank_order, names, UINT64_MAX, body);
}
