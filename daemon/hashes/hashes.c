// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/hashes/hashes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/digest.h"
#include "lib/base/table.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/hash_model.h"

#define NAME_BYTES 128
/* A window's first looks at flows: what comes later in it waits for the next. */
#define FLOWS_A_WINDOW 20000
/* Of what was kept, one in so many is held out while a model is learnt. */
#define HELD_OUT_ONE_IN 4
/* A model is linear when so many held-out flows were predicted, and so many of them rightly. */
#define PREDICTED_LEAST 16
#define RIGHT_LEAST     0.99
/* So many flows that are new make it worth learning anew; later a quarter of those there are. */
#define NEW_LEAST 16
/* Predictions are counted over about so many: older ones fade. */
#define PREDICTED_MOST 4096
/* A hash that errs so often in a row is another one. */
#define WRONG_IN_A_ROW 6

/* What a switch chooses from. */
struct set {
    uint64_t key;
    char switch_name[NAME_BYTES];
    char group[NAME_BYTES];
    char (*members)[NAME_BYTES]; /* names of the ports */
    uint32_t member_count;
    uint64_t *entries; /* digests of the names of the ports by which flows came in */
    uint32_t entry_count;
    struct ft_hash_flow *flows;
    uint32_t flow_count, flow_size;
    uint32_t learnt_count; /* of them, when it was last learnt */
    uint32_t oldest;       /* of a full list: is replaced next */
    struct ft_hash_model model;
    uint64_t offered; /* flows, whether they are kept or not */
    double predicted, right;
    uint32_t wrong_in_a_row;
    bool dirty; /* was published otherwise, or never */
};

struct ft_hashes {
    struct ft_table *sets;
    uint32_t cursor;
    uint32_t flows_left;
};

static void free_set(struct set *s)
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
    h->sets = ft_table_new(sizeof(struct set), sizeof(uint64_t), sets_max, seed);
    if (!h->sets) {
        free(h);
        return NULL;
    }
    return h;
}

void ft_hashes_free(struct ft_hashes *h)
{
    struct set *s;
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
    uint64_t key = ft_digest_text(c->at->name, 0);

    for (uint32_t i = 0; i < c->count; i++)
        key = ft_digest_text(ft_topology_port(c->t, c->links[i])->name, key);
    return key;
}

static bool fill_set(struct set *s, const struct ft_choice *c, const char *group)
{
    s->members = calloc(c->count, sizeof(*s->members));
    s->entries = calloc(FT_HASH_ENTRIES_MAX, sizeof(*s->entries));
    if (!s->members || !s->entries)
        return false;
    s->member_count = c->count;
    for (uint32_t i = 0; i < c->count; i++)
        snprintf(s->members[i], NAME_BYTES, "%s", ft_topology_port(c->t, c->links[i])->name);
    snprintf(s->switch_name, NAME_BYTES, "%s", c->at->name);
    snprintf(s->group, NAME_BYTES, "%s", group);
    return true;
}

static struct set *find_set(struct ft_hashes *h, const struct ft_choice *c, const char *group)
{
    uint64_t key = key_of(c);
    struct set *s;
    bool fresh;

    s = ft_table_insert(h->sets, &key, &fresh);
    if (s && fresh && !fill_set(s, c, group)) {
        free_set(s);
        ft_table_remove(h->sets, s);
        return NULL;
    }
    return s;
}

/* Its number among the ports by which flows came in; none of those after many. */
static uint32_t entry_of(struct set *s, const struct ft_topology *t, uint32_t in)
{
    uint64_t digest;

    if (in == FT_NONE)
        return FT_HASH_ENTRIES_MAX;
    digest = ft_digest_text(ft_topology_end_name(t, in), 0);
    for (uint32_t i = 0; i < s->entry_count; i++) {
        if (s->entries[i] == digest)
            return i;
    }
    if (s->entry_count == FT_HASH_ENTRIES_MAX)
        return FT_HASH_ENTRIES_MAX;
    s->entries[s->entry_count] = digest;
    return s->entry_count++;
}

static bool grow(struct set *s)
{
    uint32_t size = s->flow_size ? 2 * s->flow_size : 32;
    struct ft_hash_flow *flows = realloc(s->flows, size * sizeof(*flows));

    if (!flows)
        return false;
    s->flows = flows;
    s->flow_size = size;
    return true;
}

static void forget(struct set *s)
{
    ft_hash_model_free(&s->model);
    s->flow_count = s->learnt_count = s->oldest = s->wrong_in_a_row = 0;
    s->predicted = s->right = 0;
    s->dirty = true;
}

/* Holds the model against a flow that it was not learnt from. */
static void test(struct set *s, const struct ft_hash_flow *flow)
{
    uint32_t member = ft_hash_predict(&s->model, &flow->in);

    if (member == FT_HASH_MEMBERS_MAX)
        return;
    if (s->predicted >= PREDICTED_MOST) {
        s->predicted /= 2;
        s->right /= 2;
    }
    s->predicted++;
    s->right += member == flow->member;
    s->wrong_in_a_row = member == flow->member ? 0 : s->wrong_in_a_row + 1;
    if (s->wrong_in_a_row >= WRONG_IN_A_ROW)
        forget(s);
}

/* Of a flow that is on another link since, the newest is kept. */
static bool is_kept(struct set *s, const struct ft_hash_flow *flow)
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

static void keep(struct set *s, const struct ft_hash_flow *flow)
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
    h->cursor = 0;
    h->flows_left = FLOWS_A_WINDOW;
}

void ft_hashes_flow(struct ft_hashes *h, const struct ft_join *join, struct ft_flow *flow,
                    int64_t window_start_ms)
{
    const struct ft_topology *t = ft_join_topology(join);

    if (flow->learnt || h->flows_left == 0 || flow->state != FT_PATH_RESOLVED ||
        flow->dst_nic == FT_NONE || !ft_join_is_placed(join, flow, window_start_ms))
        return;
    h->flows_left--;
    flow->learnt = true;
    for (uint32_t i = 0; i < flow->path.hop_count; i++) {
        const struct ft_hop *hop = &flow->path.hops[i];
        struct ft_hash_flow seen;
        struct ft_choice choice;
        struct set *s;

        if (!ft_is_port(hop->out) ||
            !find_choice(&choice, t, hop->out, flow->dst_nic, &seen.member))
            continue;
        s = find_set(h, &choice, ft_topology_group(t, ft_topology_port(t, hop->out)->group)->name);
        if (!s)
            continue;
        ft_hash_input(&seen.in, &flow->tuple, entry_of(s, t, hop->in));
        keep(s, &seen);
    }
}

/* Learns without every fourth flow, and says how the model does on those. */
static void hold_out(struct set *s)
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

static bool is_proven(const struct set *s)
{
    return s->predicted >= PREDICTED_LEAST && s->right >= RIGHT_LEAST * s->predicted;
}

/* What is published of a model: it is linear only where that was proven on flows held out. */
static enum ft_hash_kind kind_of(const struct set *s)
{
    if (s->model.kind == FT_HASH_LINEAR && !is_proven(s))
        return FT_HASH_UNKNOWN;
    return s->model.kind;
}

static void learn(struct set *s)
{
    enum ft_hash_kind before = kind_of(s);
    uint32_t bits = s->model.index_bits;

    ft_hash_model_free(&s->model);
    s->learnt_count = s->flow_count;
    s->wrong_in_a_row = 0;
    if (ft_hash_learn(&s->model, s->flows, s->flow_count, s->member_count))
        return; /* next time */
    if (s->model.kind == FT_HASH_LINEAR)
        hold_out(s);
    s->dirty |= kind_of(s) != before || s->model.index_bits != bits;
}

static bool is_due(const struct set *s)
{
    uint32_t fresh = s->flow_count - s->learnt_count;

    return fresh >= NEW_LEAST && fresh >= s->learnt_count / 4;
}

#define INPUT_BYTES (16 * FT_HASH_WORDS + 1)

/* A function's message with what it points to. */
struct function {
    Fabrictrace__HashFunction m;
    Fabrictrace__HashRow *rows, **row_list;
    char (*inputs)[INPUT_BYTES];
    char (*entries)[17];
    char **entry_list;
    uint32_t links[FT_HASH_MEMBERS_MAX];
    char origin[INPUT_BYTES];
};

static void fill_inputs(Fabrictrace__Hash *out, char *inputs[FT_HASH_FIELDS],
                        const struct ft_hash_model *model)
{
    out->inputs = inputs;
    for (unsigned field = 0; field < FT_HASH_FIELDS; field++) {
        bool uses;

        if (!ft_hash_uses(model, field, &uses) && uses)
            inputs[out->n_inputs++] = (char *)(uintptr_t)ft_hash_field_name(field);
    }
}

static void fill_linear(Fabrictrace__Hash *out, const struct set *s, char *inputs[FT_HASH_FIELDS],
                        char **never)
{
    out->model = FABRICTRACE__HASH_MODEL__HASH_MODEL_LINEAR;
    out->has_index_bits = true;
    out->index_bits = s->model.index_bits;
    fill_inputs(out, inputs, &s->model);
    out->never_chosen = never;
    for (uint32_t i = 0; i < s->member_count; i++) {
        if (ft_hash_never_chooses(&s->model, i))
            never[out->n_never_chosen++] = s->members[i];
    }
}

static void put_input(char text[INPUT_BYTES], const struct ft_hash_input *in)
{
    for (unsigned i = 0; i < FT_HASH_WORDS; i++)
        snprintf(text + (size_t)16 * i, 17, "%016llx", (unsigned long long)in->word[i]);
}

static void free_function(struct function *f)
{
    free(f->rows);
    free(f->row_list);
    free(f->inputs);
    free(f->entries);
    free(f->entry_list);
}

/* False without memory; to be freed in any case. */
static bool fill_function(struct function *f, const struct set *s)
{
    const struct ft_hash_model *m = &s->model;

    memset(f, 0, sizeof(*f));
    fabrictrace__hash_function__init(&f->m);
    f->rows = calloc(m->row_count + 1, sizeof(*f->rows));
    f->row_list = calloc(m->row_count + 1, sizeof(Fabrictrace__HashRow *));
    f->inputs = calloc(m->row_count + 1, sizeof(*f->inputs));
    f->entries = calloc(s->entry_count + 1, sizeof(*f->entries));
    f->entry_list = calloc(s->entry_count + 1, sizeof(char *));
    if (!f->rows || !f->row_list || !f->inputs || !f->entries || !f->entry_list)
        return false;
    for (uint32_t i = 0; i < m->row_count; i++) {
        fabrictrace__hash_row__init(&f->rows[i]);
        f->rows[i].has_bit = f->rows[i].has_code = true;
        f->rows[i].bit = m->rows[i].bit;
        f->rows[i].code = m->rows[i].code;
        put_input(f->inputs[i], &m->rows[i].in);
        f->rows[i].input = f->inputs[i];
        f->row_list[i] = &f->rows[i];
    }
    for (uint32_t i = 0; i < s->entry_count; i++) {
        snprintf(f->entries[i], sizeof(f->entries[i]), "%016llx",
                 (unsigned long long)s->entries[i]);
        f->entry_list[i] = f->entries[i];
    }
    for (unsigned i = 0; i < 1u << m->index_bits; i++)
        f->links[i] = m->member[i] == FT_HASH_MEMBERS_MAX ? 0 : m->member[i] + 1;
    put_input(f->origin, &m->origin);
    f->m.rows = f->row_list;
    f->m.n_rows = m->row_count;
    f->m.entries = f->entry_list;
    f->m.n_entries = s->entry_count;
    f->m.links = f->links;
    f->m.n_links = (size_t)1 << m->index_bits;
    f->m.origin = f->origin;
    return true;
}

static void emit(const struct set *s, Fabrictrace__HashFunction *function, const char *fabric,
                 int64_t now_ms, const struct ft_emitter *emitter)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Hash out = FABRICTRACE__HASH__INIT;
    char *members[FT_HASH_MEMBERS_MAX], *never[FT_HASH_MEMBERS_MAX], *inputs[FT_HASH_FIELDS];
    enum ft_hash_kind kind = kind_of(s);

    out.has_time_ms = out.has_model = out.has_observations = true;
    out.time_ms = (uint64_t)now_ms;
    out.fabric = (char *)(uintptr_t)fabric;
    out.switch_ = (char *)(uintptr_t)s->switch_name;
    out.group = (char *)(uintptr_t)s->group;
    for (uint32_t i = 0; i < s->member_count; i++)
        members[i] = s->members[i];
    out.members = members;
    out.n_members = s->member_count;
    out.observations = s->offered;
    out.function = function;
    out.model = kind == FT_HASH_TABLE ? FABRICTRACE__HASH_MODEL__HASH_MODEL_TABLE
                                      : FABRICTRACE__HASH_MODEL__HASH_MODEL_UNKNOWN;
    if (kind == FT_HASH_LINEAR)
        fill_linear(&out, s, inputs, never);
    if (s->model.kind == FT_HASH_LINEAR && s->predicted > 0) {
        out.has_accuracy = out.has_predicted = true;
        out.predicted = (uint64_t)(s->predicted + 0.5);
        out.accuracy = s->right / s->predicted;
    }
    record.kind_case = FABRICTRACE__RECORD__KIND_HASH;
    record.hash = &out;
    emitter->record(emitter->arg, &record);
}

bool ft_hashes_step(struct ft_hashes *h, const char *fabric, int64_t now_ms,
                    const struct ft_emitter *emitter)
{
    struct set *s;

    while ((s = ft_table_next(h->sets, &h->cursor))) {
        bool due = is_due(s);

        if (due)
            learn(s);
        if (s->dirty)
            emit(s, NULL, fabric, now_ms, emitter);
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
    struct set *s;

    while ((s = ft_table_next(h->sets, &index))) {
        if (s->flow_count != s->learnt_count)
            learn(s);
        emit(s, NULL, fabric, now_ms, emitter);
        s->dirty = false;
    }
}

bool ft_hashes_next(const struct ft_hashes *h, uint32_t *index, bool function, const char *fabric,
                    int64_t now_ms, const struct ft_emitter *emitter)
{
    const struct set *s = ft_table_next(h->sets, index);
    struct function f;

    if (!s)
        return false;
    if (function && kind_of(s) == FT_HASH_LINEAR) {
        /* Without memory it has none, as where none is known. */
        emit(s, fill_function(&f, s) ? &f.m : NULL, fabric, now_ms, emitter);
        free_function(&f);
    } else {
        emit(s, NULL, fabric, now_ms, emitter);
    }
    return true;
}

size_t ft_hashes_count(const struct ft_hashes *h)
{
    return ft_table_count(h->sets);
}

uint64_t ft_hashes_refused(const struct ft_hashes *h)
{
    return ft_table_refused(h->sets);
}
