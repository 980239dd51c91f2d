// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "daemon/join/flow_networks.h"
#include "daemon/join/flow_path.h"
#include "daemon/join/join_impl.h"

/* Links of an equal-cost set. */
#define CHOICE_MAX 512
/* A flow sampled so often a second cannot move away and back unseen. */
#define DENSE_HZ 5
/* A flow that stayed on its path this often is steady: when it leaves, others may have left too. */
#define STAYS_STEADY 3

static bool same_path(const struct ft_path *a, const struct ft_path *b)
{
    return a->hop_count == b->hop_count &&
           memcmp(a->hops, b->hops, a->hop_count * sizeof(*a->hops)) == 0;
}

struct ft_judging ft_join_judging(const struct ft_join *j, const struct ft_flow *flow,
                                  int64_t now_ms, struct ft_path *known)
{
    *known = ft_flow_path(j->t, flow);
    return (struct ft_judging){.t = j->t,
                               .trust = &j->trust,
                               .verify = !j->config.trust_topology,
                               .policy = j->config.policy,
                               .window_ms = j->config.window_ms,
                               .src_nic = flow->src_nic,
                               .dst_nic = flow->dst_nic,
                               .known = known->hop_count ? known : NULL,
                               .known_since_ms = flow->path_since_ms,
                               .is_known = flow->state == FT_PATH_RESOLVED,
                               .several = ft_flow_is_several(flow),
                               .first_ms = flow->first_ms,
                               .now_ms = now_ms};
}

void ft_join_judge(const struct ft_join *j, const struct ft_flow *flow, struct ft_judgement *out)
{
    struct ft_path known;
    struct ft_judging by;

    if (j->judged == flow && j->judgement.state == FT_PATH_PARTIAL) {
        *out = j->judgement;
        return;
    }
    by = ft_join_judging(j, flow, j->heard_ms, &known);
    ft_evidence_judge(&flow->evidence, &by, out);
}

int64_t ft_flow_seen_ms(const struct ft_flow *flow)
{
    const struct ft_evidence *ev = &flow->evidence;
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;
    int64_t seen_ms = INT64_MIN;

    for (uint16_t i = 0; i < ev->count; i++)
        if (list[i].last_ms > seen_ms)
            seen_ms = list[i].last_ms;
    return ev->count ? seen_ms : flow->last_ms;
}

int64_t ft_join_path_ms(const struct ft_join *j, const struct ft_flow *flow)
{
    struct ft_path path = ft_flow_path(j->t, flow);
    int64_t first_ms, last_ms;

    ft_evidence_attested(&flow->evidence, j->t, &path, &first_ms, &last_ms);
    if (last_ms - first_ms > FT_APART_MS) {
        struct ft_judging by = ft_join_judging(j, flow, j->heard_ms, &path);

        first_ms = ft_evidence_certain_ms(&flow->evidence, &by);
    }
    return first_ms != INT64_MAX && first_ms > flow->path_since_ms ? first_ms : flow->path_since_ms;
}

bool ft_join_was_on_path(const struct ft_join *j, const struct ft_flow *flow, int64_t ms)
{
    int64_t moved_ms = j->moved_ms > j->trust.uncertain_ms ? j->moved_ms : j->trust.uncertain_ms;
    bool quiet = moved_ms < ms - FT_STRETCH_GAP_MS;
    struct ft_path path = ft_flow_path(j->t, flow);

    return ft_evidence_covers(&flow->evidence, j->t, &path, ms, ft_join_window_at(j, ms) & 1,
                              quiet ? 0 : (uint32_t)(j->config.window_ms * DENSE_HZ / 1000));
}

bool ft_join_is_placed(const struct ft_join *j, const struct ft_flow *flow, int64_t from_ms)
{
    int64_t moved_ms = j->moved_ms > j->trust.uncertain_ms ? j->moved_ms : j->trust.uncertain_ms;
    int64_t first_ms, last_ms;
    struct ft_path path;

    if (moved_ms < from_ms - j->config.evidence_ms)
        return true;
    if (flow->path_since_ms >= from_ms + j->config.window_ms)
        return false;
    path = ft_flow_path(j->t, flow);
    ft_evidence_attested(&flow->evidence, j->t, &path, &first_ms, &last_ms);
    return first_ms >= from_ms || first_ms > moved_ms || ft_join_path_ms(j, flow) >= from_ms;
}

uint32_t ft_join_links(const struct ft_join *j, const struct ft_flow *flow,
                       const struct ft_path *path, uint8_t past, unsigned slot)
{
    struct ft_path known;
    struct ft_judging by = ft_join_judging(j, flow, j->heard_ms, &known);

    return ft_evidence_links(&flow->evidence, &by, path, past, slot);
}

/* A steady flow leaves its path: whatever made it do so may have moved others that go where it
 * went, or share an equal-cost set with it. */
static void mark_others_uncertain(struct ft_join *j, const struct ft_flow *flow,
                                  const struct ft_judging *by, int64_t left_ms)
{
    const struct ft_evidence *ev = &flow->evidence;
    int64_t until_ms = flow->last_ms + j->config.policy.tolerance_ms;
    uint32_t first, last, ports[CHOICE_MAX];

    if (!by->trust || !by->known || ev->stays < STAYS_STEADY || ev->stays <= 3 * ev->returns ||
        !ft_evidence_left_at(ev, by, &first, &last))
        return;
    /* Once for each move. */
    if (j->trust.links[by->known->hops[first].out].uncertain_ms >=
        left_ms + j->config.policy.tolerance_ms)
        return;
    for (uint32_t h = first; h <= last; h++) {
        size_t n = ft_evidence_choice(by, by->known, h, ports, CHOICE_MAX);

        for (size_t i = 0; i < n; i++)
            ft_trust_mark_uncertain(&j->trust, ports[i], until_ms);
    }
    for (uint32_t h = last + 1; h < by->known->hop_count; h++)
        ft_trust_mark_uncertain(&j->trust, by->known->hops[h].out, until_ms);
}

/* Takes a judgement over. Returns whether it is news. */
static bool take(const struct ft_join *j, struct ft_flow *flow, const struct ft_judgement *verdict,
                 const struct ft_path *before, bool *moved)
{
    bool news = verdict->state != flow->state || verdict->reason != flow->reason ||
                (verdict->state == FT_PATH_PARTIAL && verdict->candidates != flow->candidates);
    struct ft_left left = {j->t, before, FT_PAST_NONE};

    *moved = false;
    flow->state = (uint8_t)verdict->state;
    flow->reason = (uint8_t)verdict->reason;
    flow->candidates = (uint32_t)verdict->candidates;
    if (verdict->state == FT_PATH_RESOLVED) {
        if (!same_path(before, &verdict->path)) {
            *moved = before->hop_count > 0;
            flow->moved |= *moved;
            left.number = ft_moves_leave(flow, before, verdict->since_ms);
            ft_flow_set_path(j->t, flow, &verdict->path);
            news = true;
        }
        flow->path_since_ms = ft_flow_moment(verdict->since_ms);
    }
    ft_evidence_apply(&flow->evidence, verdict, &left);
    return news;
}

void ft_join_judge_now(struct ft_join *j, struct ft_flow *flow, int64_t now_ms)
{
    struct ft_path before;
    struct ft_judging by = ft_join_judging(j, flow, now_ms, &before);
    struct ft_judgement *verdict = &j->judgement;
    size_t had = ft_flow_beside(flow);
    bool moved, news;

    ft_evidence_judge(&flow->evidence, &by, verdict);
    j->judged = flow;
    if (verdict->sprayed && now_ms > j->trust.sprayed_ms)
        j->trust.sprayed_ms = now_ms;
    if (verdict->contradicted)
        mark_others_uncertain(j, flow, &by, verdict->left_ms);
    news = take(j, flow, verdict, &before, &moved);
    ft_join_recount(j, flow, had);
    if (moved && flow->path_since_ms > j->moved_ms)
        j->moved_ms = flow->path_since_ms;
    /* Who had the flow before has said it; the next close says it again. */
    if (j->recalling) {
        flow->published = 0;
        return;
    }
    if (moved && j->hooks.moved)
        j->hooks.moved(j->hooks.arg, flow, &before, now_ms);
    if (news && j->hooks.judged)
        j->hooks.judged(j->hooks.arg, flow);
}
