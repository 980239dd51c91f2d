// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/traces/astra_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/answer.h"
#include "lib/files/slurp.h"

#define FILE_MAX_BYTES (64u << 20)

/* The items of a list in YAML; one per dimension. A single value is a list of one. */
static size_t list_of(const struct ft_yaml *root, const char *key, struct ft_diag *diag,
                      const struct ft_yaml *items[FT_ASTRA_DIMS_MAX])
{
    const struct ft_yaml *list = ft_yaml_get(root, key);
    size_t count = 0;

    if (!list) {
        ft_yaml_complain(diag, root, key, "is missing");
    } else if (ft_yaml_kind(list) == FT_YAML_SCALAR) {
        items[count++] = list;
    } else if (ft_yaml_kind(list) != FT_YAML_LIST || ft_yaml_count(list) == 0 ||
               ft_yaml_count(list) > FT_ASTRA_DIMS_MAX) {
        ft_yaml_complain(diag, list, key, "has to be a list of 1 to %d dimensions",
                         FT_ASTRA_DIMS_MAX);
    } else {
        for (; count < ft_yaml_count(list); count++)
            items[count] = ft_yaml_item(list, count);
    }
    return count;
}

static int shape_of(const char *name, enum ft_astra_shape *shape)
{
    static const char *const names[] = {[FT_ASTRA_RING] = "Ring",
                                        [FT_ASTRA_FULLY_CONNECTED] = "FullyConnected",
                                        [FT_ASTRA_SWITCH] = "Switch"};

    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            *shape = (enum ft_astra_shape)i;
            return 0;
        }
    }
    return -EINVAL;
}

static bool number_of(const struct ft_yaml *node, double *out)
{
    const char *text = ft_yaml_text(node);
    char *end;

    if (!text || !*text)
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static void read_numbers(const struct ft_yaml *root, const char *key, uint32_t dims, double least,
                         bool above, struct ft_diag *diag, double out[FT_ASTRA_DIMS_MAX])
{
    const struct ft_yaml *items[FT_ASTRA_DIMS_MAX];
    size_t count = list_of(root, key, diag, items);

    if (count && count != dims)
        ft_yaml_complain(diag, items[0], key, "has %zu items, topology has %u", count, dims);
    for (size_t i = 0; i < count && i < dims; i++)
        if (!number_of(items[i], &out[i]) || out[i] < least || (above && out[i] <= least))
            ft_yaml_complain(diag, items[i], key, "has to be a number %s %g",
                             above ? "above" : "from", least);
}

int ft_astra_network_read(const struct ft_yaml *root, struct ft_diag *diag,
                          struct ft_astra_network *out)
{
    const struct ft_yaml *items[FT_ASTRA_DIMS_MAX];
    struct ft_astra_network n = {0};
    double npus[FT_ASTRA_DIMS_MAX] = {0}, all = 1;
    size_t before = ft_diag_count(diag);

    n.dims = (uint32_t)list_of(root, "topology", diag, items);
    for (uint32_t i = 0; i < n.dims; i++)
        if (shape_of(ft_yaml_text(items[i]), &n.shape[i]) < 0)
            ft_yaml_complain(diag, items[i], "topology",
                             "has to be Ring, FullyConnected or Switch");
    if (n.dims == 0)
        return -EINVAL;
    read_numbers(root, "npus_count", n.dims, 1, true, diag, npus);
    read_numbers(root, "bandwidth", n.dims, 0, true, diag, n.bandwidth);
    read_numbers(root, "latency", n.dims, 0, false, diag, n.latency_ns);
    for (uint32_t i = 0; i < n.dims && ft_diag_count(diag) == before; i++) {
        all *= npus[i];
        if (npus[i] != floor(npus[i]) || all > FT_ASTRA_RANKS_MAX)
            ft_yaml_complain(diag, ft_yaml_get(root, "npus_count"), "npus_count",
                             "has to be integers, and their product at most %d",
                             FT_ASTRA_RANKS_MAX);
        else
            n.npus[i] = (uint32_t)npus[i];
    }
    if (ft_diag_count(diag) > before)
        return -EINVAL;
    n.aware = n.dims == 1;
    *out = n;
    return 0;
}

int ft_astra_network_load(const char *file, struct ft_diag *diag, struct ft_astra_network *out)
{
    struct ft_yaml *root = ft_yaml_load(file, diag);
    int rc = root ? ft_astra_network_read(root, diag, out) : -EINVAL;

    ft_yaml_free(root);
    return rc;
}

/* A key with a number; absent it stays as it is. */
static void read_number(const struct ft_value *root, const char *file, const char *key, double min,
                        double max, struct ft_diag *diag, double *out)
{
    double value;

    if (!ft_value_get(root, key))
        return;
    if (!ft_value_real(root, key, &value) || value < min || value > max)
        ft_diag_add(diag, file, 0, "key '%s': has to be a number from %g to %g", key, min, max);
    else
        *out = value;
}

/* "ring", "direct", "direct4", "oneRing", "oneDirect". */
static int impl_of(const char *text, struct ft_astra_impl *impl)
{
    const char *rest = text;
    char *end;
    long window;

    *impl = (struct ft_astra_impl){.window = -1};
    if (strncmp(rest, "one", 3) == 0) {
        impl->one = true;
        rest += 3;
    }
    if (strcmp(rest, impl->one ? "Ring" : "ring") == 0)
        return 0;
    if (strncmp(rest, impl->one ? "Direct" : "direct", 6) != 0)
        return -EINVAL;
    impl->direct = true;
    if (!rest[6])
        return 0;
    window = strtol(rest + 6, &end, 10);
    if (*end || window < 1 || window > FT_ASTRA_RANKS_MAX)
        return -EINVAL;
    impl->window = (int)window;
    return 0;
}

static void read_impls(const struct ft_value *root, const char *file, const char *key,
                       enum ft_astra_op op, struct ft_diag *diag, struct ft_astra_system *out)
{
    const struct ft_value *list = ft_value_get(root, key);
    size_t count = ft_value_count(list);

    if (!list)
        return;
    if (count == 0 || count > FT_ASTRA_DIMS_MAX) {
        ft_diag_add(diag, file, 0, "key '%s': has to be a list of 1 to %d texts", key,
                    FT_ASTRA_DIMS_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = ft_value_text(ft_value_at(list, i));

        if (!text || impl_of(text, &out->impl[op][i]) < 0)
            ft_diag_add(diag, file, 0,
                        "key '%s': '%.32s' is not modelled here: ring, oneRing, "
                        "direct and oneDirect are",
                        key, text ? text : "");
    }
    out->impls[op] = (uint32_t)count;
}

/* What would change times and is not modelled. */
static void refuse_others(const struct ft_value *root, const char *file, struct ft_diag *diag)
{
    static const char *const keys[] = {"model-shared-bus", "roofline-enabled", "replay-only"};
    static const char *const customs[] = {
        "all-reduce-implementation-custom", "all-gather-implementation-custom",
        "reduce-scatter-implementation-custom", "all-to-all-implementation-custom",
        "per-node-custom-implementation"};
    double value;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        value = 0;
        if (ft_value_true(root, keys[i]) || (ft_value_real(root, keys[i], &value) && value != 0))
            ft_diag_add(diag, file, 0, "key '%s': is not modelled here", keys[i]);
    }
    for (size_t i = 0; i < sizeof(customs) / sizeof(customs[0]); i++)
        if (ft_value_get(root, customs[i]))
            ft_diag_add(diag, file, 0, "key '%s': is not modelled here", customs[i]);
}

static void read_policy(const struct ft_value *root, const char *file, struct ft_diag *diag,
                        struct ft_astra_system *out)
{
    static const char *const names[] = {
        [FT_ASTRA_LIFO] = "LIFO", [FT_ASTRA_FIFO] = "FIFO", [FT_ASTRA_EXPLICIT] = "EXPLICIT"};
    size_t i = 0;

    if (ft_value_get(root, "scheduling-policy")) {
        while (i < 3 && !ft_value_is(root, "scheduling-policy", names[i]))
            i++;
        if (i == 3)
            ft_diag_add(diag, file, 0, "key 'scheduling-policy': has to be LIFO, FIFO or EXPLICIT");
        else
            out->policy = (enum ft_astra_policy)i;
    }
    out->baseline = ft_value_is(root, "collective-optimization", "baseline");
    if (ft_value_get(root, "collective-optimization") && !out->baseline &&
        !ft_value_is(root, "collective-optimization", "localBWAware"))
        ft_diag_add(diag, file, 0,
                    "key 'collective-optimization': has to be baseline or localBWAware");
}

int ft_astra_system_read(const char *text, size_t len, const char *file, struct ft_diag *diag,
                         struct ft_astra_system *out)
{
    char error[160];
    struct ft_answer *answer = ft_answer_parse(text, len, error, sizeof(error));
    const struct ft_value *root = answer ? ft_answer_root(answer) : NULL;
    struct ft_astra_system s = {0};
    double delay = 10, chunks = 1, splits = 0, memory = 0;
    size_t before = ft_diag_count(diag);

    if (!answer) {
        ft_diag_add(diag, file, 0, "%s", error);
        return -EINVAL;
    }
    read_policy(root, file, diag, &s);
    refuse_others(root, file, diag);
    read_number(root, file, "endpoint-delay", 0, 1e15, diag, &delay);
    read_number(root, file, "active-chunks-per-dimension", 1, 1e6, diag, &chunks);
    read_number(root, file, "preferred-dataset-splits", 1, 1e6, diag, &splits);
    read_number(root, file, "local-mem-bw", 1e-3, 1e12, diag, &memory);
    read_impls(root, file, "all-reduce-implementation", FT_ASTRA_ALL_REDUCE, diag, &s);
    read_impls(root, file, "all-gather-implementation", FT_ASTRA_ALL_GATHER, diag, &s);
    read_impls(root, file, "reduce-scatter-implementation", FT_ASTRA_REDUCE_SCATTER, diag, &s);
    read_impls(root, file, "all-to-all-implementation", FT_ASTRA_ALL_TO_ALL, diag, &s);
    ft_answer_free(answer);
    if (ft_diag_count(diag) > before)
        return -EINVAL;
    s.endpoint_delay_ns = (uint64_t)delay;
    s.active_chunks = (uint32_t)chunks;
    s.splits = (uint64_t)splits;
    s.memory_bps = memory * 1000000000;
    *out = s;
    return 0;
}

static int slurp(const char *file, struct ft_diag *diag, char **text, size_t *len)
{
    int rc = ft_slurp(file, FILE_MAX_BYTES, text, len);

    if (rc && rc != -ENOMEM)
        ft_diag_add(diag, file, 0, "%s", strerror(-rc));
    return rc;
}

int ft_astra_system_load(const char *file, struct ft_diag *diag, struct ft_astra_system *out)
{
    char *text;
    size_t len;
    int rc = slurp(file, diag, &text, &len);

    if (rc)
        return rc;
    rc = ft_astra_system_read(text, len, file, diag, out);
    free(text);
    return rc;
}

/* A rank in a list, which has no name of its own. */
static bool rank_of(const struct ft_value *item, uint32_t ranks, uint32_t *out)
{
    char *text = ft_value_dump(item), *end = text;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    bool fine = text && *text >= '0' && *text <= '9' && !*end && value < ranks;

    free(text);
    *out = (uint32_t)value;
    return fine;
}

static int read_group(const struct ft_value *root, const char *file, uint32_t ranks,
                      struct ft_diag *diag, struct ft_astra_group *group)
{
    char key[16];
    const struct ft_value *list;
    size_t count;

    snprintf(key, sizeof(key), "%u", group->id);
    list = ft_value_get(root, key);
    count = ft_value_count(list);
    if (count == 0) {
        ft_diag_add(diag, file, 0, "key '%s': has to be a list of ranks: a trace names this group",
                    key);
        return -EINVAL;
    }
    group->ranks = calloc(count, sizeof(*group->ranks));
    if (!group->ranks)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        bool twice = false;

        if (!rank_of(ft_value_at(list, i), ranks, &group->ranks[i])) {
            ft_diag_add(diag, file, 0, "key '%s': has to be ranks from 0 to %u", key, ranks - 1);
            return -EINVAL;
        }
        for (size_t k = 0; k < i && !twice; k++)
            twice = group->ranks[k] == group->ranks[i];
        if (twice) {
            ft_diag_add(diag, file, 0, "key '%s': rank %u is given twice", key, group->ranks[i]);
            return -EINVAL;
        }
    }
    group->count = (uint32_t)count;
    return 0;
}

int ft_astra_groups_read(const char *text, size_t len, const char *file, const uint32_t *ids,
                         uint32_t count, uint32_t ranks, struct ft_diag *diag,
                         struct ft_astra_group *groups)
{
    char error[160];
    struct ft_answer *answer = ft_answer_parse(text, len, error, sizeof(error));
    int rc = 0;

    memset(groups, 0, count * sizeof(*groups));
    if (!answer) {
        ft_diag_add(diag, file, 0, "%s", error);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        groups[i].id = ids[i];
        rc = read_group(ft_answer_root(answer), file, ranks, diag, &groups[i]);
    }
    ft_answer_free(answer);
    return rc;
}

int ft_astra_groups_load(const char *file, const uint32_t *ids, uint32_t count, uint32_t ranks,
                         struct ft_diag *diag, struct ft_astra_group *groups)
{
    char *text;
    size_t len;
    int rc = slurp(file, diag, &text, &len);

    if (rc)
        return rc;
    rc = ft_astra_groups_read(text, len, file, ids, count, ranks, diag, groups);
    free(text);
    return rc;
}

void ft_astra_groups_free(struct ft_astra_group *groups, uint32_t count)
{
    for (uint32_t i = 0; groups && i < count; i++)
        free(groups[i].ranks);
    free(groups);
}
