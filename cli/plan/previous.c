// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/plan/previous.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/files/slurp.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/json.h"

#define FILE_MAX_BYTES (1u << 30)

/* A flow by its ends, of the plan before or of now. */
struct entry {
    const char *src, *dst;
    uint32_t order;
    struct ft_path path;
};

struct before {
    struct entry *entries;
    Fabrictrace__PlannedFlow **messages; /* which the texts are in */
    size_t entry_size, message_size;
    uint32_t count;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->src, y->src);

    if (order == 0)
        order = strcmp(x->dst, y->dst);
    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

static uint32_t find_port(const struct ft_topology *t, const char *switch_name, const char *port)
{
    uint32_t id = switch_name ? ft_topology_find_switch(t, switch_name) : FT_NONE;

    return id == FT_NONE || !port ? FT_NONE : ft_topology_find_port(t, id, port);
}

static struct ft_path path_of(const struct ft_topology *t, const Fabrictrace__PlannedFlow *flow)
{
    struct ft_path path = {0}, none = {0};

    if (flow->n_hops > FT_PATH_HOPS_MAX)
        return none;
    for (size_t i = 0; i < flow->n_hops; i++) {
        const Fabrictrace__Hop *hop = flow->hops[i];
        struct ft_hop *to = &path.hops[path.hop_count++];

        to->in = find_port(t, hop->switch_, hop->in);
        to->out = find_port(t, hop->switch_, hop->out);
        if (to->in == FT_NONE || to->out == FT_NONE)
            return none;
    }
    return path;
}

static int add_entry(struct before *b, const struct ft_topology *t, Fabrictrace__PlannedFlow *flow)
{
    void *entries = ft_grow(b->entries, b->count, &b->entry_size, sizeof(*b->entries));
    void *messages;

    if (!entries)
        return -ENOMEM;
    b->entries = entries;
    messages = ft_grow(b->messages, b->count, &b->message_size, sizeof(*b->messages));
    if (!messages)
        return -ENOMEM;
    b->messages = messages;
    b->messages[b->count] = flow;
    b->entries[b->count] = (struct entry){flow->src, flow->dst, b->count, path_of(t, flow)};
    b->count++;
    return 0;
}

static const ProtobufCMessageDescriptor *pick_schema(const char *name)
{
    return strcmp(name, "fabrictrace.planned_flow.v1") == 0 ? &fabrictrace__planned_flow__descriptor
                                                            : NULL;
}

static int read_line(struct before *b, const char *line, size_t len, const struct ft_topology *t,
                     char *error, size_t error_bytes)
{
    ProtobufCMessage *message;
    Fabrictrace__PlannedFlow *flow;
    int rc = ft_json_read(line, len, FT_JSON_BY_HAND, "schema", pick_schema, &message, error,
                          error_bytes);

    if (rc)
        return rc;
    flow = (Fabrictrace__PlannedFlow *)message;
    if (!flow->src || !flow->dst) {
        strncpy(error, "src or dst is missing", error_bytes);
        rc = -EINVAL;
    } else if (b->count == FT_FLOWS_MAX) {
        strncpy(error, "too many flows", error_bytes);
        rc = -EINVAL;
    } else {
        rc = add_entry(b, t, flow);
    }
    if (rc)
        protobuf_c_message_free_unpacked(message, NULL);
    return rc;
}

static int read_lines(struct before *b, const char *text, size_t len, const char *file,
                      const struct ft_topology *t, struct ft_diag *diag)
{
    unsigned number = 0;
    int rc = 0;

    for (const char *line = text, *end = text + len; line < end && rc == 0;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        char error[160] = "";

        stop = stop ? stop : end;
        number++;
        if (stop > line)
            rc = read_line(b, line, (size_t)(stop - line), t, error, sizeof(error) - 1);
        if (rc == -EINVAL)
            ft_diag_add(diag, file, number, "no planned flow: %s", error);
        line = stop + (stop < end);
    }
    return rc;
}

/* Both sorted by their ends: the n-th of a pair of ends belongs to the n-th. */
static int match(const struct before *b, const struct ft_flow_list *flows, struct ft_path *paths)
{
    struct entry *now = calloc((size_t)flows->count + 1, sizeof(*now));
    uint32_t at = 0;

    if (!now)
        return -ENOMEM;
    for (uint32_t i = 0; i < flows->count; i++)
        now[i] = (struct entry){.src = flows->names[i].src, .dst = flows->names[i].dst, .order = i};
    qsort(now, flows->count, sizeof(*now), compare_entries);
    if (b->count)
        qsort(b->entries, b->count, sizeof(*b->entries), compare_entries);
    for (uint32_t i = 0; i < flows->count; i++) {
        int order = 1;

        while (at < b->count) {
            order = strcmp(b->entries[at].src, now[i].src);
            if (order == 0)
                order = strcmp(b->entries[at].dst, now[i].dst);
            if (order >= 0)
                break;
            at++;
        }
        paths[now[i].order].hop_count = 0;
        if (at < b->count && order == 0)
            paths[now[i].order] = b->entries[at++].path;
    }
    free(now);
    return 0;
}

static int read_previous(const char *text, size_t len, const char *file,
                         const struct ft_inputs *inputs, struct ft_diag *diag,
                         struct ft_path *paths)
{
    struct before b = {0};
    int rc = read_lines(&b, text, len, file, inputs->topology, diag);

    if (rc == 0)
        rc = match(&b, &inputs->flows, paths);
    for (uint32_t i = 0; i < b.count; i++)
        protobuf_c_message_free_unpacked(&b.messages[i]->base, NULL);
    free(b.messages);
    free(b.entries);
    return rc;
}

int ft_previous_load(const char *file, const struct ft_inputs *inputs, struct ft_diag *diag,
                     struct ft_path *paths)
{
    char *text;
    size_t len;
    int rc = ft_slurp(file, FILE_MAX_BYTES, &text, &len);

    if (rc) {
        ft_diag_add(diag, file, 0, "%s", strerror(-rc));
        return rc;
    }
    rc = read_previous(text, len, file, inputs, diag, paths);
    free(text);
    return rc;
}
