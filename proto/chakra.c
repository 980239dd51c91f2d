// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/chakra.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/reader.h"

/* Wire types (protobuf encoding), and members of AttributeProto's oneof. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum {
    INT32_VAL = 7,
    INT64_VAL = 9,
    UINT32_VAL = 11,
    UINT64_VAL = 13,
    BOOL_VAL = 27,
    BOOL_LIST = 28,
    STRING_VAL = 29
};

#define NAME_BYTES 64

struct decoder {
    struct ft_chakra_trace *trace;
    size_t node_size, dep_size;
    char *error;
    size_t error_bytes;
};

/* One field: its number and its type; its value, or its bytes as a child. */
struct field {
    uint32_t number;
    uint32_t wire;
    uint64_t value;
    struct ft_reader bytes;
};

static bool read_field(struct ft_reader *r, struct field *f)
{
    uint64_t key = ft_read_varint(r);

    f->number = (uint32_t)(key >> 3);
    f->wire = key & 7;
    f->value = 0;
    ft_reader_init(&f->bytes, NULL, 0);
    if (key >> 32 || f->number == 0)
        r->failed = true;
    else if (f->wire == VARINT)
        f->value = ft_read_varint(r);
    else if (f->wire == FIXED64)
        ft_read_skip(r, 8);
    else if (f->wire == FIXED32)
        ft_read_skip(r, 4);
    else if (f->wire == BYTES)
        ft_read_child(r, (size_t)ft_read_varint(r), &f->bytes);
    else
        r->failed = true;
    return ft_reader_ok(r);
}

static int fail(struct decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct decoder *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(d->error, d->error_bytes, format, args);
    va_end(args);
    return -EINVAL;
}

static int add_dep(struct decoder *d, uint64_t id)
{
    struct ft_chakra_trace *t = d->trace;
    void *deps = ft_grow(t->deps, t->dep_count, &d->dep_size, sizeof(*t->deps));

    if (!deps)
        return -ENOMEM;
    t->deps = deps;
    t->deps[t->dep_count++] = id;
    return 0;
}

/* Packed, or one by one as old writers do. */
static int read_deps(struct decoder *d, struct field *f)
{
    int rc = 0;

    if (f->wire == VARINT)
        return add_dep(d, f->value);
    while (rc == 0 && f->wire == BYTES && ft_reader_left(&f->bytes) > 0) {
        uint64_t id = ft_read_varint(&f->bytes);

        if (!ft_reader_ok(&f->bytes))
            return fail(d, "a list of dependencies is cut off");
        rc = add_dep(d, id);
    }
    return rc;
}

static void copy_text(const struct ft_reader *from, char text[NAME_BYTES])
{
    size_t len = ft_reader_left(from);

    if (len >= NAME_BYTES)
        len = NAME_BYTES - 1;
    if (len)
        memcpy(text, from->pos, len);
    text[len] = '\0';
}

static int read_group(struct decoder *d, struct ft_chakra_node *node, const struct field *value)
{
    char text[NAME_BYTES], *end;
    unsigned long group;

    copy_text(&value->bytes, text);
    if (!*text)
        return 0;
    errno = 0;
    group = strtoul(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || group >= 1000000)
        return fail(d, "node %llu: pg_name has to be a number below 1000000",
                    (unsigned long long)node->id);
    node->group = (uint32_t)group;
    return 0;
}

static int read_dims(struct decoder *d, struct ft_chakra_node *node, struct field *list)
{
    struct field f;
    uint32_t n = 0;

    node->has_dims = true;
    while (ft_reader_left(&list->bytes) > 0) {
        if (!read_field(&list->bytes, &f))
            return fail(d, "node %llu: involved_dim is cut off", (unsigned long long)node->id);
        if (f.number == 1 && f.wire == VARINT && n < FT_CHAKRA_DIMS_MAX)
            node->dims |= (uint8_t)((f.value != 0) << n++);
        while (f.number == 1 && f.wire == BYTES && ft_reader_left(&f.bytes) > 0 &&
               n < FT_CHAKRA_DIMS_MAX)
            node->dims |= (uint8_t)((ft_read_varint(&f.bytes) != 0) << n++);
    }
    return 0;
}

/* What ASTRA-sim takes an attribute from; another member reads as 0. */
static uint64_t blind(struct decoder *d, const struct field *value, uint32_t member)
{
    if (value->number == member)
        return value->value;
    d->trace->blind++;
    return 0;
}

static int set_attribute(struct decoder *d, struct ft_chakra_node *node, const char *name,
                         struct field *value)
{
    if (strcmp(name, "is_cpu_op") == 0) {
        node->cpu = blind(d, value, BOOL_VAL) != 0;
    } else if (strcmp(name, "num_ops") == 0) {
        node->has_ops = blind(d, value, INT64_VAL) != 0;
    } else if (strcmp(name, "comm_type") == 0) {
        node->comm_type = (int64_t)blind(d, value, INT64_VAL);
    } else if (strcmp(name, "comm_size") == 0) {
        node->comm_size = (int64_t)blind(d, value, INT64_VAL);
    } else if (strcmp(name, "comm_src") == 0) {
        node->has_src = true;
        node->src = (int32_t)blind(d, value, INT32_VAL);
    } else if (strcmp(name, "comm_dst") == 0) {
        node->has_dst = true;
        node->dst = (int32_t)blind(d, value, INT32_VAL);
    } else if (strcmp(name, "comm_tag") == 0) {
        node->tag = (int32_t)blind(d, value, INT32_VAL);
    } else if (strcmp(name, "comm_priority") == 0) {
        node->priority = (uint32_t)blind(d, value, UINT32_VAL);
    } else if (strcmp(name, "pg_name") == 0 && value->number == STRING_VAL) {
        return read_group(d, node, value);
    } else if (strcmp(name, "involved_dim") == 0) {
        if (value->number != BOOL_LIST)
            return fail(d, "node %llu: involved_dim is not a bool_list",
                        (unsigned long long)node->id);
        return read_dims(d, node, value);
    }
    return 0;
}

static int read_attribute(struct decoder *d, struct ft_chakra_node *node, struct ft_reader *r)
{
    struct field f, value = {0};
    char name[NAME_BYTES] = "";

    while (ft_reader_left(r) > 0) {
        if (!read_field(r, &f))
            return fail(d, "node %llu: an attribute is cut off", (unsigned long long)node->id);
        if (f.number == 1 && f.wire == BYTES)
            copy_text(&f.bytes, name);
        else if (f.number > 2)
            value = f; /* of a oneof the last one counts */
    }
    return set_attribute(d, node, name, &value);
}

/* Attributes come behind the id as writers have it; those before it would name node 0 in a
 * complaint, no more. */
static int read_node(struct decoder *d, struct ft_reader *r, struct ft_chakra_node *node)
{
    struct field f;
    int rc = 0;

    memset(node, 0, sizeof(*node));
    node->first_dep = d->trace->dep_count;
    while (rc == 0 && ft_reader_left(r) > 0) {
        if (!read_field(r, &f))
            return fail(d, "node %llu is cut off", (unsigned long long)node->id);
        if (f.number == 1 && f.wire == VARINT)
            node->id = f.value;
        else if (f.number == 3 && f.wire == VARINT)
            node->type = f.value > FT_CHAKRA_COLL ? UINT32_MAX : (uint32_t)f.value;
        else if (f.number == 4 || f.number == 5)
            rc = read_deps(d, &f);
        else if (f.number == 7 && f.wire == VARINT)
            node->duration_us = f.value;
        else if (f.number == 10 && f.wire == BYTES)
            rc = read_attribute(d, node, &f.bytes);
    }
    node->dep_count = d->trace->dep_count - node->first_dep;
    return rc;
}

static int read_head(struct decoder *d, struct ft_reader *r)
{
    struct field f;
    char version[NAME_BYTES] = "";

    while (ft_reader_left(r) > 0) {
        if (!read_field(r, &f))
            return fail(d, "the metadata at its start is cut off: not a Chakra trace");
        if (f.number == 1 && f.wire == BYTES)
            copy_text(&f.bytes, version);
    }
    if (strcmp(version, FT_CHAKRA_VERSION) == 0)
        return 0;
    for (char *c = version; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    snprintf(d->error, d->error_bytes, "a trace of version '%.32s', not " FT_CHAKRA_VERSION,
             version);
    return -EINVAL;
}

static int compare_ids(const void *a, const void *b)
{
    const struct ft_chakra_node *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static int read_nodes(struct decoder *d, struct ft_reader *r)
{
    struct ft_chakra_trace *t = d->trace;
    int rc = 0;

    while (rc == 0 && ft_reader_left(r) > 0) {
        struct ft_reader bytes;
        void *nodes = ft_grow(t->nodes, t->count, &d->node_size, sizeof(*t->nodes));

        if (!nodes)
            return -ENOMEM;
        t->nodes = nodes;
        if (t->count == FT_CHAKRA_NODES_MAX)
            return fail(d, "more than %llu nodes", (unsigned long long)FT_CHAKRA_NODES_MAX);
        ft_read_child(r, (size_t)ft_read_varint(r), &bytes);
        if (!ft_reader_ok(r))
            return fail(d, "ends within a node, behind %llu of them", (unsigned long long)t->count);
        rc = read_node(d, &bytes, &t->nodes[t->count]);
        if (rc == 0 && t->nodes[t->count++].type == UINT32_MAX)
            return fail(d, "node %llu has a type that is not known",
                        (unsigned long long)t->nodes[t->count - 1].id);
    }
    if (rc == 0 && t->count)
        qsort(t->nodes, t->count, sizeof(*t->nodes), compare_ids);
    for (uint32_t i = 1; rc == 0 && i < t->count; i++)
        if (t->nodes[i].id == t->nodes[i - 1].id)
            rc = fail(d, "node %llu is defined twice", (unsigned long long)t->nodes[i].id);
    return rc;
}

int ft_chakra_read(const void *bytes, size_t len, struct ft_chakra_trace *trace, char *error,
                   size_t error_bytes)
{
    struct decoder d = {.trace = trace, .error = error, .error_bytes = error_bytes};
    struct ft_reader r, head;
    int rc;

    memset(trace, 0, sizeof(*trace));
    error[0] = '\0';
    ft_reader_init(&r, bytes, len);
    ft_read_child(&r, (size_t)ft_read_varint(&r), &head);
    rc = ft_reader_ok(&r) ? read_head(&d, &head)
                          : fail(&d, "is cut off within its metadata: not a Chakra trace");
    if (rc == 0)
        rc = read_nodes(&d, &r);
    if (rc)
        ft_chakra_free(trace);
    return rc;
}

void ft_chakra_free(struct ft_chakra_trace *trace)
{
    free(trace->nodes);
    free(trace->deps);
    memset(trace, 0, sizeof(*trace));
}

static void write_varint(struct ft_writer *w, uint64_t value)
{
    while (value >= 0x80) {
        ft_write_u8(w, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    ft_write_u8(w, (uint8_t)value);
}

static void write_key(struct ft_writer *w, uint32_t number, uint32_t wire)
{
    write_varint(w, number << 3 | wire);
}

static void write_text(struct ft_writer *w, uint32_t number, const char *text)
{
    write_key(w, number, BYTES);
    write_varint(w, strlen(text));
    ft_write_str(w, text);
}

static void write_child(struct ft_writer *w, const struct ft_writer *child)
{
    write_varint(w, child->len);
    ft_write_bytes(w, child->bytes, child->len);
    if (!ft_writer_ok(child))
        w->failed = true;
}

static void write_number(struct ft_writer *w, const char *name, uint32_t member, uint64_t value)
{
    struct ft_writer attribute;

    ft_writer_init(&attribute, 2 * NAME_BYTES);
    write_text(&attribute, 1, name);
    write_key(&attribute, member, VARINT);
    write_varint(&attribute, value);
    write_key(w, 10, BYTES);
    write_child(w, &attribute);
    ft_writer_free(&attribute);
}

static void write_group(struct ft_writer *w, uint32_t group)
{
    struct ft_writer attribute;
    char text[16];

    snprintf(text, sizeof(text), "%u", group);
    ft_writer_init(&attribute, 2 * NAME_BYTES);
    write_text(&attribute, 1, "pg_name");
    write_text(&attribute, STRING_VAL, text);
    write_key(w, 10, BYTES);
    write_child(w, &attribute);
    ft_writer_free(&attribute);
}

void ft_chakra_write_head(struct ft_writer *w)
{
    struct ft_writer head;

    ft_writer_init(&head, NAME_BYTES);
    write_text(&head, 1, FT_CHAKRA_VERSION);
    write_child(w, &head);
    ft_writer_free(&head);
}

static void write_attributes(struct ft_writer *w, const struct ft_chakra_node *node)
{
    write_number(w, "is_cpu_op", BOOL_VAL, node->cpu);
    if (node->type == FT_CHAKRA_COLL)
        write_number(w, "comm_type", INT64_VAL, (uint64_t)node->comm_type);
    if (node->type >= FT_CHAKRA_SEND)
        write_number(w, "comm_size", INT64_VAL, (uint64_t)node->comm_size);
    if (node->has_src)
        write_number(w, "comm_src", INT32_VAL, (uint64_t)(int64_t)node->src);
    if (node->has_dst)
        write_number(w, "comm_dst", INT32_VAL, (uint64_t)(int64_t)node->dst);
    if (node->type == FT_CHAKRA_SEND || node->type == FT_CHAKRA_RECV)
        write_number(w, "comm_tag", INT32_VAL, (uint64_t)(int64_t)node->tag);
    if (node->group)
        write_group(w, node->group);
}

void ft_chakra_write_node(struct ft_writer *w, const struct ft_chakra_node *node,
                          const uint64_t *deps)
{
    struct ft_writer body, list;

    ft_writer_init(&body, w->max);
    ft_writer_init(&list, w->max);
    write_key(&body, 1, VARINT);
    write_varint(&body, node->id);
    write_text(&body, 2, node->name ? node->name : "");
    write_key(&body, 3, VARINT);
    write_varint(&body, node->type);
    for (uint32_t i = 0; i < node->dep_count; i++)
        write_varint(&list, deps[i]);
    if (node->dep_count) {
        write_key(&body, 5, BYTES);
        write_child(&body, &list);
    }
    if (node->duration_us) {
        write_key(&body, 7, VARINT);
        write_varint(&body, node->duration_us);
    }
    write_attributes(&body, node);
    write_child(w, &body);
    ft_writer_free(&body);
    ft_writer_free(&list);
}
