// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hashes/hashes_impl.h"
#include "lib/fabric/evenness.h"
#include "lib/fabric/weights.h"

bool ft_hash_set_fill(struct ft_hash_set *s, const struct ft_choice *c, const char *group)
{
    s->members = calloc(c->count, sizeof(*s->members));
    s->speeds = calloc(c->count, sizeof(*s->speeds));
    s->bundles = calloc(c->count, sizeof(*s->bundles));
    s->entries = calloc(FT_HASH_ENTRIES_MAX, sizeof(*s->entries));
    if (!s->members || !s->speeds || !s->bundles || !s->entries)
        return false;
    s->member_count = c->count;
    for (uint32_t i = 0; i < c->count; i++)
        snprintf(s->members[i], FT_HASHES_NAME, "%s", ft_choice_member(c, i));
    snprintf(s->switch_name, FT_HASHES_NAME, "%s", c->at ? c->at->name : "");
    snprintf(s->group, FT_HASHES_NAME, "%s", group);
    return true;
}

void ft_hash_set_free(struct ft_hash_set *s)
{
    ft_hash_model_free(&s->model);
    free(s->members);
    free(s->speeds);
    free(s->bundles);
    free(s->entries);
    free(s->flows);
}

bool ft_hash_set_is_there(const struct ft_hash_set *s, const struct ft_topology *t)
{
    uint32_t at = s->switch_name[0] ? ft_topology_find_switch(t, s->switch_name) : FT_NONE;

    for (uint32_t i = 0; i < s->member_count; i++) {
        uint32_t port = at == FT_NONE ? FT_NONE : ft_topology_find_port(t, at, s->members[i]);

        if (s->switch_name[0] ? port == FT_NONE || ft_topology_port(t, port)->group == FT_NONE
                              : ft_topology_find_switch(t, s->members[i]) == FT_NONE)
            return false;
    }
    return true;
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
    Fabrictrace__HashPart parts[FT_HASH_PARTS], *part_list[FT_HASH_PARTS];
    char *fields[FT_HASH_PARTS][FT_HASH_FIELDS];
};

/* The names of fields, a bit each, of the header that it learns from. */
static size_t name_fields(const struct ft_hash_set *s, uint32_t fields, char *names[FT_HASH_FIELDS])
{
    static const char *const outer[FT_HASH_FIELDS] = {
        [FT_HASH_SRC] = "outer_src",
        [FT_HASH_DST] = "outer_dst",
        [FT_HASH_SPORT] = "outer_sport",
        [FT_HASH_ENTRY] = "entry",
    };
    size_t n = 0;

    for (unsigned field = 0; field < FT_HASH_FIELDS; field++)
        if (fields >> field & 1)
            names[n++] = (char *)(uintptr_t)(s->outer ? outer[field] : ft_hash_field_name(field));
    return n;
}

/* Of tunnels of several kinds the port of entry stands for the kind, too. */
static void fill_inputs(Fabrictrace__Hash *out, char *inputs[FT_HASH_FIELDS],
                        const struct ft_hash_set *s)
{
    uint32_t fields = 0;

    for (unsigned field = 0; field < FT_HASH_FIELDS; field++) {
        bool uses;

        if ((field != FT_HASH_ENTRY || !s->tunnels_differ) &&
            !ft_hash_uses(&s->model, field, &uses) && uses)
            fields |= 1u << field;
    }
    out->inputs = inputs;
    out->n_inputs = name_fields(s, fields, inputs);
}

static void fill_why(Fabrictrace__Hash *out, const struct ft_hash_set *s,
                     char *few_of[FT_HASH_FIELDS])
{
    static const Fabrictrace__HashReason reasons[] = {
        [FT_HASH_WHY_FEW_FLOWS] = FABRICTRACE__HASH_REASON__HASH_REASON_FEW_FLOWS,
        [FT_HASH_WHY_FEW_VALUES] = FABRICTRACE__HASH_REASON__HASH_REASON_FEW_VALUES,
        [FT_HASH_WHY_FEW_PREDICTED] = FABRICTRACE__HASH_REASON__HASH_REASON_FEW_PREDICTED,
        [FT_HASH_WHY_WRONG] = FABRICTRACE__HASH_REASON__HASH_REASON_WRONG,
        [FT_HASH_WHY_FEW_AGREE] = FABRICTRACE__HASH_REASON__HASH_REASON_FEW_AGREE,
        [FT_HASH_WHY_QUEUE_PAIRS] = FABRICTRACE__HASH_REASON__HASH_REASON_QUEUE_PAIRS,
        [FT_HASH_WHY_CONTRADICTED] = FABRICTRACE__HASH_REASON__HASH_REASON_CONTRADICTED,
    };
    struct ft_hash_why why = ft_hash_set_why(s);

    if (why.reason == FT_HASH_WHY_NONE)
        return;
    out->has_reason = true;
    out->reason = reasons[why.reason];
    out->has_more_least = why.more_least > 0;
    out->more_least = why.more_least;
    out->few_of = few_of;
    out->n_few_of = name_fields(s, why.fields, few_of);
}

static void fill_linear(Fabrictrace__Hash *out, const struct ft_hash_set *s,
                        char *inputs[FT_HASH_FIELDS], char **never)
{
    out->model = FABRICTRACE__HASH_MODEL__HASH_MODEL_LINEAR;
    out->has_index_bits = true;
    out->index_bits = s->model.index_bits;
    fill_inputs(out, inputs, s);
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

static void fill_parts(struct function *f, const struct ft_hash_model *m)
{
    for (uint32_t i = 0; i < FT_HASH_PARTS; i++) {
        Fabrictrace__HashPart *part = &f->parts[f->m.n_unproven];
        char **fields = f->fields[f->m.n_unproven];

        if (!(m->unproven >> i & 1))
            continue;
        fabrictrace__hash_part__init(part);
        for (unsigned field = 0; field < FT_HASH_FIELDS; field++)
            if (ft_hash_part_fields(i) >> field & 1)
                fields[part->n_fields++] = (char *)(uintptr_t)ft_hash_field_name(field);
        part->fields = fields;
        part->seen = m->seen + m->seen_at[i];
        part->n_seen = m->seen_at[i + 1] - m->seen_at[i];
        f->part_list[f->m.n_unproven++] = part;
    }
    f->m.unproven = f->part_list;
}

/* False without memory; to be freed in any case. */
static bool fill_function(struct function *f, const struct ft_hash_set *s)
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
        f->links[i] =
            m->member[i] == FT_HASH_MEMBERS_MAX || s->doubts[m->member[i]] ? 0 : m->member[i] + 1;
    put_input(f->origin, &m->origin);
    fill_parts(f, m);
    f->m.rows = f->row_list;
    f->m.n_rows = m->row_count;
    f->m.entries = f->entry_list;
    f->m.n_entries = s->entry_count;
    f->m.links = f->links;
    f->m.n_links = (size_t)1 << m->index_bits;
    f->m.origin = f->origin;
    return true;
}

/* What is known of its model. */
static void fill_model(Fabrictrace__Hash *out, const struct ft_hash_set *s,
                       char *inputs[FT_HASH_FIELDS], char **never, char *few_of[FT_HASH_FIELDS])
{
    enum ft_hash_kind kind = ft_hash_set_kind(s);

    out->model = kind == FT_HASH_TABLE ? FABRICTRACE__HASH_MODEL__HASH_MODEL_TABLE
                                       : FABRICTRACE__HASH_MODEL__HASH_MODEL_UNKNOWN;
    if (kind == FT_HASH_LINEAR)
        fill_linear(out, s, inputs, never);
    if (s->model.kind == FT_HASH_LINEAR && s->predicted > 0) {
        out->has_accuracy = out->has_predicted = out->has_trusted = true;
        out->predicted = (uint64_t)(s->predicted + 0.5);
        out->accuracy = s->right / s->predicted;
        out->trusted = ft_hash_set_is_trusted(s);
    }
    fill_why(out, s, few_of);
    out->has_hashes_outer = out->hashes_outer = s->outer;
}

static void emit(const struct ft_hash_set *s, const struct ft_hash_set *outer,
                 Fabrictrace__HashFunction *function, const char *fabric, int64_t now_ms,
                 const struct ft_emitter *emitter)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Hash out = FABRICTRACE__HASH__INIT;
    char *members[FT_HASH_MEMBERS_MAX], *never[FT_HASH_MEMBERS_MAX], *inputs[FT_HASH_FIELDS],
        *few_of[FT_HASH_FIELDS];
    uint64_t confirmed = s->confirmed + (outer ? outer->confirmed : 0);
    uint64_t contradicted = s->contradicted + (outer ? outer->contradicted : 0);
    const struct ft_link_set links = {s->member_count, s->speeds, s->bundles};
    struct ft_evenness even;

    out.has_time_ms = out.has_model = out.has_observations = true;
    out.time_ms = (uint64_t)now_ms;
    out.fabric = (char *)(uintptr_t)fabric;
    out.switch_ = s->switch_name[0] ? (char *)(uintptr_t)s->switch_name : NULL;
    out.group = (char *)(uintptr_t)s->group;
    for (uint32_t i = 0; i < s->member_count; i++)
        members[i] = s->members[i];
    out.members = members;
    out.n_members = s->member_count;
    out.observations = s->offered;
    out.function = function;
    fill_model(&out, outer && ft_hash_set_names_outer(s, outer) ? outer : s, inputs, never, few_of);
    out.has_hashes_qp = out.hashes_qp = s->takes_qp && !out.hashes_outer;
    if (s->flow_count && !ft_evenness(s->flows, s->flow_count, s->entry_count, &links, &even)) {
        out.has_effective_links = out.has_effective_by_chance = true;
        out.effective_links = even.effective;
        out.effective_by_chance = even.by_chance;
    }
    out.has_confirmed = out.has_contradicted = confirmed + contradicted > 0;
    out.confirmed = confirmed;
    out.contradicted = contradicted;
    record.kind_case = FABRICTRACE__RECORD__KIND_HASH;
    record.hash = &out;
    emitter->record(emitter->arg, &record);
}

/* Not of tunnels' headers: who asks for it has flows that are not sent yet. */
static bool has_function(const struct ft_hash_set *s, const struct ft_hash_set *outer)
{
    return ft_hash_set_kind(s) == FT_HASH_LINEAR && !ft_hash_set_may_take_qp(s) &&
           !(outer && ft_hash_set_names_outer(s, outer));
}

void ft_hash_set_emit(const struct ft_hash_set *s, const struct ft_hash_set *outer, bool function,
                      const char *fabric, int64_t now_ms, const struct ft_emitter *emitter)
{
    struct function f;

    if (function && has_function(s, outer)) {
        /* Without memory it has none, as where none is known. */
        emit(s, outer, fill_function(&f, s) ? &f.m : NULL, fabric, now_ms, emitter);
        free_function(&f);
    } else {
        emit(s, outer, NULL, fabric, now_ms, emitter);
    }
}
