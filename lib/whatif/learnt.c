// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/learnt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/digest.h"
#include "lib/base/grow.h"

#define WORD_DIGITS 16

static void set_free(struct ft_hashes_set *s)
{
    if (s->record)
        protobuf_c_message_free_unpacked(&s->record->base, NULL);
    ft_hash_model_free(&s->model);
    free(s->entries);
}

void ft_hashes_list_free(struct ft_hashes_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        set_free(&list->sets[i]);
    free(list->sets);
    memset(list, 0, sizeof(*list));
}

static bool read_word(const char *text, uint64_t *word)
{
    *word = 0;
    for (int i = 0; i < WORD_DIGITS; i++) {
        char c = text[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 16;

        if (digit > 15)
            return false;
        *word = *word << 4 | digit;
    }
    return true;
}

static bool read_input(const char *text, struct ft_hash_input *in)
{
    if (!text || strlen(text) != (size_t)WORD_DIGITS * FT_HASH_WORDS)
        return false;
    for (unsigned i = 0; i < FT_HASH_WORDS; i++)
        if (!read_word(text + (size_t)WORD_DIGITS * i, &in->word[i]))
            return false;
    return true;
}

/* Whether in begins with this bit: what elimination relies on. */
static bool begins_with(const struct ft_hash_input *in, uint32_t bit)
{
    for (unsigned i = 0; i < FT_HASH_WORDS; i++)
        if (in->word[i])
            return 64 * i + (uint32_t)__builtin_ctzll(in->word[i]) == bit;
    return false;
}

static bool read_rows(struct ft_hash_model *m, const Fabrictrace__HashFunction *f)
{
    for (size_t i = 0; i < f->n_rows; i++) {
        const Fabrictrace__HashRow *row = f->rows[i];
        struct ft_hash_row *to = &m->rows[i];

        if (!row->has_bit || !row->has_code || row->code > UINT8_MAX ||
            !read_input(row->input, &to->in) || !begins_with(&to->in, row->bit) ||
            (i > 0 && row->bit <= m->rows[i - 1].bit))
            return false;
        to->bit = (uint16_t)row->bit;
        to->code = (uint8_t)row->code;
        if (to->code >> m->index_bits)
            return false;
    }
    m->row_count = (uint32_t)f->n_rows;
    return read_input(f->origin, &m->origin);
}

/* The part of these fields, FT_HASH_PARTS: none is. */
static uint32_t part_of(const Fabrictrace__HashPart *p)
{
    uint32_t fields = 0, part = 0;

    for (size_t i = 0; i < p->n_fields; i++)
        for (unsigned f = 0; f < FT_HASH_FIELDS; f++)
            if (strcmp(p->fields[i], ft_hash_field_name(f)) == 0)
                fields |= 1u << f;
    while (part < FT_HASH_PARTS && ft_hash_part_fields(part) != fields)
        part++;
    return part;
}

/* In the order of the parts, as the daemon has them; seen_at of those between is where the next
 * begins. -EINVAL, -ENOMEM. */
static int read_parts(struct ft_hash_model *m, const Fabrictrace__HashFunction *f)
{
    uint32_t next = 0, used = 0;
    size_t total = 0;

    for (size_t i = 0; i < f->n_unproven; i++)
        total += f->unproven[i]->n_seen;
    m->seen = total < UINT32_MAX ? calloc(total + 1, sizeof(*m->seen)) : NULL;
    if (!m->seen)
        return -ENOMEM;
    for (size_t i = 0; i < f->n_unproven; i++) {
        const Fabrictrace__HashPart *p = f->unproven[i];
        uint32_t part = part_of(p);

        if (part < next || part == FT_HASH_PARTS)
            return -EINVAL;
        for (size_t k = 1; k < p->n_seen; k++)
            if (p->seen[k] <= p->seen[k - 1])
                return -EINVAL;
        while (next <= part)
            m->seen_at[next++] = used;
        if (p->n_seen)
            memcpy(m->seen + used, p->seen, p->n_seen * sizeof(*m->seen));
        used += (uint32_t)p->n_seen;
        m->unproven |= 1u << part;
    }
    while (next <= FT_HASH_PARTS)
        m->seen_at[next++] = used;
    return 0;
}

/* -EINVAL where it does not fit the record's links; -ENOMEM. */
static int read_function(struct ft_hashes_set *s, const Fabrictrace__HashFunction *f)
{
    struct ft_hash_model *m = &s->model;
    int rc;

    while (m->index_bits < 7 && (size_t)1 << m->index_bits < f->n_links)
        m->index_bits++;
    if (f->n_links != (size_t)1 << m->index_bits || f->n_rows > FT_HASH_BITS ||
        f->n_entries > FT_HASH_ENTRIES_MAX)
        return -EINVAL;
    m->rows = calloc(f->n_rows + 1, sizeof(*m->rows));
    s->entries = calloc(f->n_entries + 1, sizeof(*s->entries));
    if (!m->rows || !s->entries)
        return -ENOMEM;
    if (!read_rows(m, f))
        return -EINVAL;
    rc = read_parts(m, f);
    if (rc)
        return rc;
    for (size_t i = 0; i < FT_HASH_MEMBERS_MAX; i++)
        m->member[i] = FT_HASH_MEMBERS_MAX;
    for (size_t i = 0; i < f->n_links; i++) {
        if (f->links[i] > s->record->n_members)
            return -EINVAL;
        if (f->links[i])
            m->member[i] = f->links[i] - 1;
    }
    for (; s->entry_count < f->n_entries; s->entry_count++)
        if (strlen(f->entries[s->entry_count]) != WORD_DIGITS ||
            !read_word(f->entries[s->entry_count], &s->entries[s->entry_count]))
            return -EINVAL;
    m->kind = FT_HASH_LINEAR;
    return 0;
}

int ft_hashes_add_take(struct ft_hashes_list *list, Fabrictrace__Hash *record)
{
    struct ft_hashes_set s = {.record = record};
    void *sets;
    int rc = record->function ? read_function(&s, record->function) : 0;

    sets = rc ? NULL : ft_grow(list->sets, list->count, &list->size, sizeof(*list->sets));
    if (!sets) {
        set_free(&s);
        return rc ? rc : -ENOMEM;
    }
    list->sets = sets;
    list->sets[list->count++] = s;
    return 0;
}

const struct ft_hashes_set *ft_hashes_find(const struct ft_hashes_list *list,
                                           const struct ft_choice *choice)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const Fabrictrace__Hash *r = list->sets[i].record;
        uint32_t k = 0;

        if (r->n_members != choice->count || !r->switch_ != !choice->at ||
            (choice->at && strcmp(r->switch_, choice->at->name) != 0))
            continue;
        while (k < choice->count && strcmp(r->members[k], ft_choice_member(choice, k)) == 0)
            k++;
        if (k == choice->count)
            return &list->sets[i];
    }
    return NULL;
}

/* What hashes are learnt from: of other protocols and ports their part in the hash is not known. */
static bool is_learnt_from(const struct ft_tuple *tuple)
{
    return tuple->proto == FT_PROTO_UDP && tuple->dport == FT_ROCE_PORT;
}

uint32_t ft_hashes_choose(void *arg, const struct ft_choice *choice, uint32_t in,
                          const struct ft_tuple *tuple)
{
    const struct ft_hashes_set *s = ft_hashes_find(arg, choice);
    struct ft_hash_input input;
    uint32_t entry = 0, member;
    uint64_t digest;

    if (!s || s->model.kind != FT_HASH_LINEAR || !is_learnt_from(tuple))
        return FT_NONE;
    digest = choice->at ? ft_digest_text(ft_topology_port(choice->t, in)->name, 0)
                        : ft_choice_nic_digest(choice);
    while (entry < s->entry_count && s->entries[entry] != digest)
        entry++;
    ft_hash_input(&input, tuple, entry < s->entry_count ? entry : FT_HASH_ENTRIES_MAX);
    member = ft_hash_predict(&s->model, &input);
    return member < choice->count ? member : FT_NONE;
}

const struct ft_hashes_set *ft_hashes_of_nic(const struct ft_hashes_list *list,
                                             const struct ft_topology *t, uint32_t nic)
{
    struct ft_choice choice;

    return ft_choice_of_nic(&choice, t, nic) ? ft_hashes_find(list, &choice) : NULL;
}

int ft_hashes_enter(const struct ft_hashes_list *list, const struct ft_topology *t,
                    const bool *dead, uint32_t nic, const struct ft_tuple *tuple, uint32_t *port)
{
    struct ft_choice choice;
    uint32_t alive = 0, chosen;

    if (!ft_choice_of_nic(&choice, t, nic))
        return -ENODATA;
    for (uint32_t i = 0; i < choice.count; i++)
        if (!dead || !dead[choice.links[i]])
            choice.links[alive++] = choice.links[i];
    choice.count = alive;
    if (alive == 0)
        return -EHOSTUNREACH;
    chosen = alive == 1 ? 0 : ft_hashes_choose((void *)(uintptr_t)list, &choice, FT_NONE, tuple);
    if (chosen >= alive)
        return -ENODATA;
    *port = choice.links[chosen];
    return 0;
}
