// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_SNMP_ANSWERS_H
#define FT_TESTS_SNMP_ANSWERS_H
/* Canned answers of an agent, for tests of what is made of them. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/io/snmp/snmp.h"
#include "switchpoll/snmp/mib.h"

#define ANSWERS_MAX 256

struct answers {
    struct ft_snmp_varbind varbinds[ANSWERS_MAX];
    uint32_t ids[ANSWERS_MAX][FT_SNMP_OID_MAX];
    size_t count;
};

/* Adds the cell of a column with an index; the value's type is to be set in what is returned. */
static inline struct ft_snmp_varbind *answer(struct answers *a, enum ft_mib_table table,
                                             size_t column, const uint32_t *index, size_t len)
{
    const struct ft_snmp_oid *prefix = ft_mib_column(table, column);
    struct ft_snmp_varbind *v = &a->varbinds[a->count];
    uint32_t *ids = a->ids[a->count++];

    memcpy(ids, prefix->ids, prefix->len * sizeof(*ids));
    memcpy(ids + prefix->len, index, len * sizeof(*ids));
    *v = (struct ft_snmp_varbind){.oid = ids, .oid_len = prefix->len + len};
    return v;
}

#define INDEX(...)                                                                                 \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static inline void set_number(struct ft_snmp_varbind *v, enum ft_snmp_type type, uint64_t number)
{
    v->type = type;
    v->number = number;
}

static inline void set_string(struct ft_snmp_varbind *v, const void *bytes, size_t len)
{
    v->type = FT_SNMP_STRING;
    v->bytes = bytes;
    v->len = len;
}

#endif
