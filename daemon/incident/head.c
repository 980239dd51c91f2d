// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/incident/head.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/config/yaml.h"
#include "proto/json.h"

#define NS_PER_S   INT64_C(1000000000)
#define DAY_NS     (86400 * NS_PER_S)
#define COUNT_MAX  100000000
#define BYTES_MAX  (UINT64_C(1) << 40)
#define NUMBER_MAX ((uint64_t)INT64_MAX)

enum type { TIME, NUMBER, TRUTH, SHARE };

/* What a pipeline, a history and the answers depend on. */
static const struct {
    const char *name;
    enum type type;
    size_t offset;
    uint64_t least, most;
    bool later;      /* older files do not have it */
    uint64_t before; /* what the daemons did that wrote them */
} fields[] = {
#define FIELD(type, member, least, most)                                                           \
    {                                                                                              \
#member, type, offsetof(struct ft_settings, member), least, most, false, 0                 \
    }
#define LATER(type, member, least, most, before)                                                   \
    {                                                                                              \
#member, type, offsetof(struct ft_settings, member), least, most, true, before             \
    }
    FIELD(TIME, window_ns, NS_PER_S, 3600 * NS_PER_S),
    FIELD(TIME, grace_ns, 0, 600 * NS_PER_S),
    FIELD(TIME, path_refresh_ns, NS_PER_S, DAY_NS),
    FIELD(TIME, flow_idle_ns, NS_PER_S, DAY_NS),
    FIELD(TIME, evidence_ns, NS_PER_S, DAY_NS),
    LATER(TIME, hang_after_ns, 0, DAY_NS, 10 * NS_PER_S),
    FIELD(TIME, path_hold_down_ns, 0, 600 * NS_PER_S),
    FIELD(TIME, tolerance_ns, 0, 600 * NS_PER_S),
    FIELD(TIME, history_ns, 0, DAY_NS),
    FIELD(TRUTH, verify_topology, 0, 1),
    FIELD(TRUTH, link_local, 0, 1),
    LATER(TRUTH, infer_paths, 0, 1, 0),
    FIELD(SHARE, floor, 0, 1),
    FIELD(SHARE, elephant, 0, 1),
    FIELD(NUMBER, flows_max, 1, COUNT_MAX),
    FIELD(NUMBER, victims_max, 1, 64),
    FIELD(NUMBER, switches_max, 0, 1000000),
    FIELD(NUMBER, learnt_max, 0, 10000000),
    FIELD(NUMBER, fabric_ports_max, 0, 10000000),
    FIELD(NUMBER, crossing_flows_max, 0, 10000000),
    FIELD(NUMBER, crossing_ports_max, 1, 10000000),
    FIELD(NUMBER, ends_max, 0, 10000000),
    FIELD(NUMBER, hash_sets_max, 0, COUNT_MAX),
    FIELD(NUMBER, operations_max, 0, COUNT_MAX),
    FIELD(NUMBER, ranks_max, 0, 1000000),
    FIELD(NUMBER, counters_max, 0, COUNT_MAX),
    FIELD(NUMBER, events_max, 1, 1000000),
    FIELD(NUMBER, past_events_max, 0, 1000000),
    FIELD(NUMBER, sources_max, 1, 1000000),
    FIELD(NUMBER, kept_bytes, 0, BYTES_MAX),
    FIELD(NUMBER, history_memory_max, 0, BYTES_MAX),
#undef FIELD
#undef LATER
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static void write_text(struct ft_writer *w, const char *name, const char *text)
{
    ft_write_fmt(w, "%s: ", name);
    ft_json_write_text(w, text ? text : "");
    ft_write_u8(w, '\n');
}

static void write_field(struct ft_writer *w, size_t i, const struct ft_settings *s)
{
    const char *at = (const char *)s + fields[i].offset;

    switch (fields[i].type) {
    case TIME:
        ft_write_fmt(w, "  %s: %" PRId64 "\n", fields[i].name, *(const int64_t *)(const void *)at);
        break;
    case NUMBER:
        ft_write_fmt(w, "  %s: %" PRIu64 "\n", fields[i].name, *(const uint64_t *)(const void *)at);
        break;
    case TRUTH:
        ft_write_fmt(w, "  %s: %d\n", fields[i].name, *(const bool *)(const void *)at);
        break;
    case SHARE:
        ft_write_fmt(w, "  %s: %.17g\n", fields[i].name, *(const double *)(const void *)at);
        break;
    }
}

void ft_head_write(struct ft_writer *w, const struct ft_head *head, const struct ft_settings *s)
{
    write_text(w, "program", head->program);
    write_text(w, "source_id", head->source_id);
    write_text(w, "fabric", head->fabric);
    ft_write_fmt(w,
                 "from_ms: %" PRId64 "\nto_ms: %" PRId64 "\nfrom_start: %d\nseed: %" PRIu64
                 "\nhistory_number: %" PRIu64 "\nhistory_version: %" PRIu32 "\nsettings:\n",
                 head->from_ms, head->to_ms, head->from_start, head->seed, head->history_number,
                 head->history_version);
    for (size_t i = 0; i < FIELDS; i++)
        write_field(w, i, s);
}

static bool parse_number(const char *text, uint64_t *value)
{
    char *end;

    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == 0;
}

static int get_number(const struct ft_yaml *root, const char *name, uint64_t least, uint64_t most,
                      uint64_t *value, struct ft_diag *diag)
{
    const struct ft_yaml *node = ft_yaml_get(root, name);
    uint64_t v;

    if (node && parse_number(ft_yaml_text(node), &v) && v >= least && v <= most) {
        *value = v;
        return 0;
    }
    ft_diag_add(diag, "head", node ? ft_yaml_line(node) : 0,
                "%s is not a number from %" PRIu64 " to %" PRIu64, name, least, most);
    return -EBADMSG;
}

static int get_text(const struct ft_yaml *root, const char *name, char **text, struct ft_diag *diag)
{
    const struct ft_yaml *node = ft_yaml_get(root, name);
    const char *value = node ? ft_yaml_text(node) : NULL;

    if (!value)
        ft_diag_add(diag, "head", 0, "%s is missing", name);
    *text = value ? strdup(value) : NULL;
    return *text ? 0 : value ? -ENOMEM : -EBADMSG;
}

static int get_share(const struct ft_yaml *root, size_t i, double *value, struct ft_diag *diag)
{
    const struct ft_yaml *node = ft_yaml_get(root, fields[i].name);
    const char *text = node ? ft_yaml_text(node) : NULL;
    char *end = NULL;
    double v = text ? strtod(text, &end) : -1;

    if (text && *text && *end == 0 && v >= 0 && v <= 1) {
        *value = v;
        return 0;
    }
    ft_diag_add(diag, "head", 0, "%s is not a number from 0 to 1", fields[i].name);
    return -EBADMSG;
}

static int get_field(const struct ft_yaml *root, size_t i, struct ft_settings *s,
                     struct ft_diag *diag)
{
    void *at = (char *)s + fields[i].offset;
    uint64_t v;

    if (fields[i].type == SHARE)
        return get_share(root, i, at, diag);
    if (fields[i].later && !ft_yaml_get(root, fields[i].name))
        v = fields[i].before;
    else if (get_number(root, fields[i].name, fields[i].least, fields[i].most, &v, diag))
        return -EBADMSG;
    if (fields[i].type == TRUTH)
        *(bool *)at = v != 0;
    else if (fields[i].type == TIME)
        *(int64_t *)at = (int64_t)v;
    else
        *(uint64_t *)at = v;
    return 0;
}

static int read_head(const struct ft_yaml *root, struct ft_head *head, struct ft_diag *diag)
{
    uint64_t from, to, from_start, version;
    int rc = get_text(root, "program", &head->program, diag);

    rc = rc ? rc : get_text(root, "source_id", &head->source_id, diag);
    rc = rc ? rc : get_text(root, "fabric", &head->fabric, diag);
    rc = rc ? rc : get_number(root, "from_ms", 0, NUMBER_MAX, &from, diag);
    rc = rc ? rc : get_number(root, "to_ms", 0, NUMBER_MAX, &to, diag);
    rc = rc ? rc : get_number(root, "from_start", 0, 1, &from_start, diag);
    rc = rc ? rc : get_number(root, "seed", 0, UINT64_MAX, &head->seed, diag);
    rc = rc ? rc : get_number(root, "history_number", 0, NUMBER_MAX, &head->history_number, diag);
    rc = rc ? rc : get_number(root, "history_version", 0, UINT32_MAX, &version, diag);
    if (rc)
        return rc;
    head->from_ms = (int64_t)from;
    head->to_ms = (int64_t)to;
    head->from_start = from_start != 0;
    head->history_version = (uint32_t)version;
    return 0;
}

int ft_head_read(const uint8_t *bytes, size_t len, struct ft_head *head, struct ft_settings *s,
                 struct ft_diag *diag)
{
    struct ft_yaml *root = ft_yaml_parse((const char *)bytes, len, "head", diag);
    const struct ft_yaml *settings = root ? ft_yaml_get(root, "settings") : NULL;
    int rc;

    memset(head, 0, sizeof(*head));
    if (!root)
        return -EBADMSG;
    rc = read_head(root, head, diag);
    if (rc == 0 && !settings) {
        ft_diag_add(diag, "head", 0, "settings is missing");
        rc = -EBADMSG;
    }
    for (size_t i = 0; rc == 0 && i < FIELDS; i++)
        rc = get_field(settings, i, s, diag);
    if (rc == 0 && s->grace_ns >= s->window_ns) {
        ft_diag_add(diag, "head", 0, "grace is not shorter than the window");
        rc = -EBADMSG;
    }
    ft_yaml_free(root);
    if (rc)
        ft_head_clear(head);
    return rc;
}

void ft_head_clear(struct ft_head *head)
{
    free(head->source_id);
    free(head->fabric);
    free(head->program);
    memset(head, 0, sizeof(*head));
}
