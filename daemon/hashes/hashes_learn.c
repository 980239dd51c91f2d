// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/hashes/hashes.h"
#include "daemon/hashes/hashes_impl.h"
#include "lib/base/mix.h"

/* Of what was kept, one in so many is held out while a model is learnt. */
#define HELD_OUT_ONE_IN 4
/* Predictions are counted over about so many: older ones fade. */
#define PREDICTED_MOST 4096
/* A hash that errs so often in a row is another one. */
#define WRONG_IN_A_ROW 6

/* Of a tunnel's header other ends than were seen may be those of another tunnel of the same flow,
 * as behind a gateway. */
#define OUTER_SEEN (1u << FT_HASH_PART_FROM | 1u << FT_HASH_PART_TO)

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
    if (s->model.kind == FT_HASH_TABLE && s->qps.known && !s->outer &&
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

/* What is published again when it is another. */
struct said {
    enum ft_hash_kind kind;
    enum ft_hash_reason reason;
    bool trusted;
};

static struct said said_of(const struct ft_hash_set *s)
{
    return (struct said){ft_hash_set_kind(s), ft_hash_set_why(s).reason, ft_hash_set_is_trusted(s)};
}

static void note_said(struct ft_hash_set *s, const struct said *before)
{
    struct said now = said_of(s);

    s->dirty |=
        now.kind != before->kind || now.reason != before->reason || now.trusted != before->trusted;
}

static void forget(struct ft_hash_set *s)
{
    ft_hash_model_free(&s->model);
    s->agreed = 0;
    memset(s->doubts, 0, sizeof(s->doubts));
    s->flow_count = s->learnt_count = s->fresh = s->wrong_in_a_row = 0;
    s->drawn_from = 0;
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
    bool predicts = ft_hash_set_is_trusted(s) && !s->aside;
    struct said before = said_of(s);

    if (member == FT_HASH_MEMBERS_MAX)
        return;
    s->confirmed += predicts && member == flow->member;
    s->contradicted += predicts && member != flow->member;
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
    note_said(s, &before);
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

/* Each flow of all is kept with the same chance (algorithm R, Vitter 1985), so that others are
 * there than the first ones. Not the newest: when a link comes those that move to it come together,
 * and of them alone it seems that all flows take it. */
static void replace(struct ft_hash_set *s, const struct ft_hash_flow *flow)
{
    uint64_t at = ft_mix(s->key + s->drawn_from) % s->drawn_from;

    if (at >= s->flow_count)
        return;
    s->flows[at] = *flow;
    s->fresh++;
}

void ft_hash_set_keep(struct ft_hash_set *s, const struct ft_hash_flow *flow)
{
    if (is_kept(s, flow))
        return;
    s->offered++;
    test(s, flow);
    s->drawn_from++;
    if (s->flow_count < FT_HASHES_FLOWS) {
        if (s->flow_count == s->flow_size && !grow(s))
            return;
        s->flows[s->flow_count++] = *flow;
        s->fresh++;
    } else if (s->model.kind != FT_HASH_LINEAR || ft_hash_set_may_take_qp(s)) {
        replace(s, flow);
    }
}

static int learn_from(struct ft_hash_model *model, const struct ft_hash_set *s,
                      const struct ft_hash_flow *flows, uint32_t count)
{
    return ft_hash_learn_seen(model, flows, count, s->member_count, s->outer ? OUTER_SEEN : 0);
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
    if (!learn_from(&model, s, part, n)) {
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
void ft_hash_set_learn(struct ft_hash_set *s)
{
    struct said before = said_of(s);
    bool doubted = is_doubted(s);
    bool took_qp = s->takes_qp;
    bool flawless = s->model.kind == FT_HASH_LINEAR && !doubted && s->right == s->predicted;
    uint32_t bits = s->model.index_bits;
    double predicted = s->predicted;

    ft_hash_model_free(&s->model);
    s->learnt_count = s->flow_count;
    s->fresh = 0;
    s->wrong_in_a_row = 0;
    if (learn_from(&s->model, s, s->flows, s->flow_count))
        return; /* next time */
    recount(s);
    look_at_qps(s);
    if (s->model.kind == FT_HASH_LINEAR)
        hold_out(s);
    if (flawless && s->model.kind == FT_HASH_LINEAR && s->model.index_bits == bits &&
        !is_doubted(s) && s->right == s->predicted && predicted > s->predicted)
        s->predicted = s->right = predicted;
    s->dirty |= s->model.index_bits != bits || is_doubted(s) != doubted || s->takes_qp != took_qp;
    note_said(s, &before);
}
