// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/hashes/hashes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hashes/hashes_impl.h"
#include "daemon/join/flow_names.h"
#include "lib/base/digest.h"
#include "lib/base/table.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/hash_model.h"
#include "lib/fabric/hinted.h"

/* A window's first looks at flows: what comes later in it waits for the next. */
#define FLOWS_A_WINDOW 20000
/* Of what was kept, one in so many is held out while a model is learnt. */
#define HELD_OUT_ONE_IN 4
/* So many flows that are new make it worth learning anew; later a quarter of those there are. */
#define NEW_LEAST 16
/* Predictions are counted over about so many: older ones fade. */
#define PREDICTED_MOST 4096
/* A hash that errs so often in a row is another one. */
#define WRONG_IN_A_ROW 6

struct ft_hashes {
    struct ft_table *sets;
    uint32_t cursor;
    uint32_t flows_left;
    uint32_t trusted; /* sets, when the window began */
};

static void free_set(struct ft_hash_set *s)
{
    ft_hash_model_free(&s->model);
    free(s->members);
    free(s->entries);
    free(s->flows);
}

struct ft_hashes *ft_hashes_new(size_t sets_max, uint64_t seed)
{
    struct ft_hashes *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->sets = ft_table_new(sizeof(struct ft_hash_set), sizeof(uint64_t), sets_max, seed);
    if (!h->sets) {
        free(h);
        return NULL;
    }
    return h;
}

void ft_hashes_free(struct ft_hashes *h)
{
    struct ft_hash_set *s;
    uint32_t index = 0;

    if (!h)
        return;
    while ((s = ft_table_next(h->sets, &index)))
        free_set(s);
    ft_table_free(h->sets);
    free(h);
}

/* What the switch of a hop had to choose from, and the number of the link that it took; false where
 * that was nothing, or is not known. */
static bool find_choice(struct ft_choice *c, const struct ft_topology *t, uint32_t out,
                        uint32_t dst_nic, uint32_t *taken)
{
    const struct ft_port *port = ft_topology_port(t, out);
    uint32_t left;

    if (port->peer == FT_NONE || port->group == FT_NONE)
        return false;
    left = ft_choice_distance(t, ft_topology_port(t, port->peer)->switch_id, dst_nic);
    if (!ft_choice_find(c, t, port->switch_id, dst_nic, left) || c->count <= 1)
        return false;
    for (uint32_t i = 0; i < c->count; i++) {
        *taken = i;
        if (c->links[i] == out)
            return true;
    }
    return false;
}

/* By names, which stay when the topology is another. */
static uint64_t key_of(const struct ft_choice *c)
{
    uint64_t key = ft_digest_text(c->at ? c->at->name : "", 0);

    for (uint32_t i = 0; i < c->count; i++)
        key = ft_digest_text(ft_choice_member(c, i), key);
    return key;
}

static bool fill_set(struct ft_hash_set *s, const struct ft_choice *c, const char *group)
{
    s->members = calloc(c->count, sizeof(*s->members));
    s->entries = calloc(FT_HASH_ENTRIES_MAX, sizeof(*s->entries));
    if (!s->members || !s->entries)
        return false;
    s->member_count = c->count;
    for (uint32_t i = 0; i < c->count; i++)
        snprintf(s->members[i], FT_HASHES_NAME, "%s", ft_choice_member(c, i));
    snprintf(s->switch_name, FT_HASHES_NAME, "%s", c->at ? c->at->name : "");
    snprintf(s->group, FT_HASHES_NAME, "%s", group);
    return true;
}

static struct ft_hash_set *find_set(struct ft_hashes *h, const struct ft_choice *c,
                                    const char *group)
{
    uint64_t key = key_of(c);
    struct ft_hash_set *s;
    bool fresh;

    s = ft_table_insert(h->sets, &key, &fresh);
    if (s && fresh && !fill_set(s, c, group)) {
        free_set(s);
        ft_table_remove(h->sets, s);
        return NULL;
    }
    return s;
}

/* Its number among the ports by which flows came in; FT_HASH_ENTRIES_MAX: none did. */
static uint32_t find_entry(const struct ft_hash_set *s, uint64_t digest)
{
    for (uint32_t i = 0; i < s->entry_count; i++) {
        if (s->entries[i] == digest)
            return i;
    }
    return FT_HASH_ENTRIES_MAX;
}

/* The same, and a new one where there is none; none of those after many. */
static uint32_t entry_of(struct ft_hash_set *s, uint64_t digest)
{
    uint32_t known = find_entry(s, digest);

    if (known < FT_HASH_ENTRIES_MAX || s->entry_count == FT_HASH_ENTRIES_MAX)
        return known;
    s->entries[s->entry_count] = digest;
    return s->entry_count++;
}

static bool grow(struct ft_hash_set *s)
{
    uint32_t size = s->flow_size ? 2 * s->flow_size : 32;
    struct ft_hash_flow *flows = realloc(s->flows, size * sizeof(*flows));

    if (!flows)
        return false;
    s->flows = flows;
    s->flow_size = size;
    return true;
}

static void judge(struct ft_hash_set *s, uint32_t said, uint32_t took)
{
    if (said == took)
        s->agreed++;
    else if (s->doubts[said] < UINT8_MAX)
        s->doubts[said]++;
}

/* Holds a model against all flows that are kept. */
static void recount(struct ft_hash_set *s)
{
    s->agreed = 0;
    memset(s->doubts, 0, sizeof(s->doubts));
    for (uint32_t i = 0; i < s->flow_count; i++) {
        uint32_t member = ft_hash_predict(&s->model, &s->flows[i].in);

        if (member != FT_HASH_MEMBERS_MAX)
            judge(s, member, s->flows[i].member);
    }
}

/* Whether destination queue pairs are hashed. Without memory nothing is known of them: then those
 * of no flow are apart. */
static void look_at_qps(struct ft_hash_set *s)
{
    s->takes_qp = false;
    if (ft_hash_qps(s->flows, s->flow_count, &s->qps))
        s->qps = (struct ft_hash_qps){.known = s->flow_count};
    if (s->model.kind == FT_HASH_TABLE && s->qps.known &&
        ft_hash_takes_qp(s->flows, s->flow_count, s->member_count, &s->takes_qp))
        s->takes_qp = false;
}

static bool is_doubted(const struct ft_hash_set *s)
{
    for (uint32_t i = 0; i < s->member_count; i++)
        if (s->doubts[i])
            return true;
    return false;
}

static void forget(struct ft_hash_set *s)
{
    ft_hash_model_free(&s->model);
    s->agreed = 0;
    memset(s->doubts, 0, sizeof(s->doubts));
    s->flow_count = s->learnt_count = s->oldest = s->wrong_in_a_row = 0;
    s->predicted = s->right = 0;
    s->newest_wrong = 0;
    s->qps = (struct ft_hash_qps){.known = 0};
    s->takes_qp = false;
    s->dirty = true;
}

/* Holds the model against a flow that it was not learnt from. */
static void test(struct ft_hash_set *s, const struct ft_hash_flow *flow)
{
    uint32_t member = ft_hash_predict(&s->model, &flow->in);
    bool trusted = ft_hash_set_is_trusted(s);

    if (member == FT_HASH_MEMBERS_MAX)
        return;
    s->confirmed += trusted && member == flow->member;
    s->contradicted += trusted && member != flow->member;
    if (s->predicted >= PREDICTED_MOST) {
        s->predicted /= 2;
        s->right /= 2;
    }
    s->predicted++;
    s->right += member == flow->member;
    s->newest_wrong = s->newest_wrong << 1 | (member != flow->member);
    s->wrong_in_a_row = member == flow->member ? 0 : s->wrong_in_a_row + 1;
    s->dirty |= member != flow->member && s->doubts[member] == 0;
    judge(s, member, flow->member);
    if (s->wrong_in_a_row >= WRONG_IN_A_ROW)
        forget(s);
    s->dirty |= ft_hash_set_is_trusted(s) != trusted;
}

/* Of a flow that is on another link since, the newest is kept. */
static bool is_kept(struct ft_hash_set *s, const struct ft_hash_flow *flow)
{
    for (uint32_t i = 0; i < s->flow_count; i++) {
        struct ft_hash_flow *kept = &s->flows[i];

        if (memcmp(&kept->in, &flow->in, sizeof(flow->in)) != 0)
            continue;
        if (kept->member != flow->member) {
            kept->member = flow->member;
            test(s, flow);
        }
        return true;
    }
    return false;
}

static void keep(struct ft_hash_set *s, const struct ft_hash_flow *flow)
{
    if (is_kept(s, flow))
        return;
    s->offered++;
    test(s, flow);
    if (s->flow_count < FT_HASHES_FLOWS) {
        if (s->flow_count < s->flow_size || grow(s))
            s->flows[s->flow_count++] = *flow;
    } else if (s->model.kind != FT_HASH_LINEAR) {
        /* Not learnt yet: the newest ones are the likeliest to be of the present hash. */
        s->flows[s->oldest] = *flow;
        s->oldest = (s->oldest + 1) % FT_HASHES_FLOWS;
    }
}

void ft_hashes_begin(struct ft_hashes *h)
{
    const struct ft_hash_set *s;
    uint32_t index = 0;

    h->cursor = 0;
    h->flows_left = FLOWS_A_WINDOW;
    h->trusted = 0;
    while ((s = ft_table_next(h->sets, &index)))
        h->trusted += ft_hash_set_is_trusted(s);
}

/* By which of its ports the flow's NIC sent it. Of more NICs than there is room for at these leaves
 * nothing is learnt: nothing would distinguish them. */
static void learn_entry(struct ft_hashes *h, const struct ft_topology *t,
                        const struct ft_flow *flow)
{
    uint32_t in = flow->path.hop_count ? flow->path.hops[0].in : FT_NONE, entry;
    struct ft_hash_flow seen = {.qp = ft_flow_dst_qp(flow)};
    char group[FT_CHOICE_GROUP];
    struct ft_choice choice;
    struct ft_hash_set *s;

    if (in == FT_NONE || !ft_is_port(in) || ft_topology_port(t, in)->nic == FT_NONE ||
        !ft_choice_of_nic(&choice, t, ft_topology_port(t, in)->nic) ||
        ft_choice_nics_group(&choice, group))
        return;
    while (seen.member < choice.count && choice.links[seen.member] != in)
        seen.member++;
    s = seen.member < choice.count ? find_set(h, &choice, group) : NULL;
    entry = s ? entry_of(s, ft_choice_nic_digest(&choice)) : FT_HASH_ENTRIES_MAX;
    if (entry == FT_HASH_ENTRIES_MAX)
        return;
    ft_hash_input(&seen.in, &flow->tuple, entry);
    keep(s, &seen);
}

void ft_hashes_flow(struct ft_hashes *h, const struct ft_join *join, struct ft_flow *flow,
                    int64_t window_start_ms)
{
    const struct ft_topology *t = ft_join_topology(join);

    if (flow->learnt || flow->source_routed || h->flows_left == 0 ||
        flow->state != FT_PATH_RESOLVED || flow->dst_nic == FT_NONE ||
        !ft_join_is_placed(join, flow, window_start_ms))
        return;
    h->flows_left--;
    flow->learnt = true;
    learn_entry(h, t, flow);
    for (uint32_t i = 0; i < flow->path.hop_count; i++) {
        const struct ft_hop *hop = &flow->path.hops[i];
        struct ft_hash_flow seen = {.qp = ft_flow_dst_qp(flow)};
        struct ft_choice choice;
        struct ft_hash_set *s;

        if (!ft_is_port(hop->out) ||
            !find_choice(&choice, t, hop->out, flow->dst_nic, &seen.member))
            continue;
        s = find_set(h, &choice, ft_topology_group(t, ft_topology_port(t, hop->out)->group)->name);
        if (!s)
            continue;
        ft_hash_input(&seen.in, &flow->tuple,
                      hop->in == FT_NONE
                          ? FT_HASH_ENTRIES_MAX
                          : entry_of(s, ft_digest_text(ft_topology_end_name(t, hop->in), 0)));
        keep(s, &seen);
    }
}

/* Learns without every fourth flow, and says how the model does on those. */
static void hold_out(struct ft_hash_set *s)
{
    struct ft_hash_flow *part = calloc(s->flow_count, sizeof(*part));
    struct ft_hash_model model;
    uint32_t n = 0;

    s->predicted = s->right = 0;
    if (!part)
        return;
    for (uint32_t i = 0; i < s->flow_count; i++) {
        if (i % HELD_OUT_ONE_IN)
            part[n++] = s->flows[i];
    }
    if (!ft_hash_learn(&model, part, n, s->member_count)) {
        for (uint32_t i = 0; i < s->flow_count; i += HELD_OUT_ONE_IN) {
            uint32_t member = ft_hash_predict(&model, &s->flows[i].in);

            s->predicted += member != FT_HASH_MEMBERS_MAX;
            s->right += member == s->flows[i].member;
        }
        ft_hash_model_free(&model);
    }
    free(part);
}

/* What flows showed of the model before is true of one that says the same of them all, and of more:
 * where neither says any flow wrongly. */
static void learn(struct ft_hash_set *s)
{
    enum ft_hash_kind before = ft_hash_set_kind(s);
    bool trusted = ft_hash_set_is_trusted(s), doubted = is_doubted(s);
    bool took_qp = s->takes_qp;
    bool flawless = s->model.kind == FT_HASH_LINEAR && !doubted && s->right == s->predicted;
    uint32_t bits = s->model.index_bits;
    double predicted = s->predicted;

    ft_hash_model_free(&s->model);
    s->learnt_count = s->flow_count;
    s->wrong_in_a_row = 0;
    if (ft_hash_learn(&s->model, s->flows, s->flow_count, s->member_count))
        return; /* next time */
    recount(s);
    look_at_qps(s);
    if (s->model.kind == FT_HASH_LINEAR)
        hold_out(s);
    if (flawless && s->model.kind == FT_HASH_LINEAR && s->model.index_bits == bits &&
        !is_doubted(s) && s->right == s->predicted && predicted > s->predicted)
        s->predicted = s->right = predicted;
    s->dirty |= ft_hash_set_kind(s) != before || s->model.index_bits != bits ||
                ft_hash_set_is_trusted(s) != trusted || is_doubted(s) != doubted ||
                s->takes_qp != took_qp;
}

static bool is_due(const struct ft_hash_set *s)
{
    uint32_t fresh = s->flow_count - s->learnt_count;

    return fresh >= NEW_LEAST && fresh >= s->learnt_count / 4;
}

bool ft_hashes_step(struct ft_hashes *h, const char *fabric, int64_t now_ms,
                    const struct ft_emitter *emitter)
{
    struct ft_hash_set *s;

    while ((s = ft_table_next(h->sets, &h->cursor))) {
        bool due = is_due(s);

        if (due)
            learn(s);
        if (s->dirty)
            ft_hash_set_emit(s, false, fabric, now_ms, emitter);
        s->dirty = false;
        if (due)
            return true;
    }
    return false;
}

void ft_hashes_finish(struct ft_hashes *h, const char *fabric, int64_t now_ms,
                      const struct ft_emitter *emitter)
{
    uint32_t index = 0;
    struct ft_hash_set *s;

    while ((s = ft_table_next(h->sets, &index))) {
        if (s->flow_count != s->learnt_count)
            learn(s);
        ft_hash_set_emit(s, false, fabric, now_ms, emitter);
        s->dirty = false;
    }
}

bool ft_hashes_next(const struct ft_hashes *h, uint32_t *index, bool function, const char *fabric,
                    int64_t now_ms, const struct ft_emitter *emitter)
{
    const struct ft_hash_set *s = ft_table_next(h->sets, index);

    if (!s)
        return false;
    ft_hash_set_emit(s, function, fabric, now_ms, emitter);
    return true;
}

bool ft_hashes_predict(const struct ft_hashes *h, const struct ft_topology *t,
                       const struct ft_flow *flow, uint32_t in, struct ft_hint *hint)
{
    uint32_t switch_id, left, entry, member;
    struct ft_hash_input input;
    struct ft_choice choice;
    const struct ft_hash_set *s;
    uint64_t key;

    if (h->trusted == 0 || flow->dst_nic == FT_NONE)
        return false;
    switch_id = ft_topology_port(t, in)->switch_id;
    left = ft_choice_distance(t, switch_id, flow->dst_nic);
    if (left == FT_NONE || left == 0 ||
        !ft_choice_find(&choice, t, switch_id, flow->dst_nic, left - 1) || choice.count <= 1)
        return false;
    key = key_of(&choice);
    s = ft_table_find(h->sets, &key);
    if (!s || !ft_hash_set_is_trusted(s))
        return false;
    /* Nothing is known of what comes in where no flow did. */
    entry = find_entry(s, ft_digest_text(ft_topology_end_name(t, in), 0));
    if (entry == FT_HASH_ENTRIES_MAX)
        return false;
    ft_hash_input(&input, &flow->tuple, entry);
    member = ft_hash_predict(&s->model, &input);
    if (member >= choice.count || !ft_hash_set_is_sure(s, member))
        return false;
    *hint = (struct ft_hint){switch_id, choice.links[member], FT_BY_PREDICTION,
                             (float)(s->right / s->predicted)};
    return true;
}

void ft_hashes_checked(const struct ft_hashes *h, uint64_t *confirmed, uint64_t *contradicted)
{
    const struct ft_hash_set *s;
    uint32_t index = 0;

    *confirmed = *contradicted = 0;
    while ((s = ft_table_next(h->sets, &index))) {
        *confirmed += s->confirmed;
        *contradicted += s->contradicted;
    }
}

uint32_t ft_hashes_trusted(const struct ft_hashes *h)
{
    return h->trusted;
}

size_t ft_hashes_count(const struct ft_hashes *h)
{
    return ft_table_count(h->sets);
}

uint64_t ft_hashes_refused(const struct ft_hashes *h)
{
    return ft_table_refused(h->sets);
}
