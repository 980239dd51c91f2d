// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/files/topology_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 96
#define LIST_MAX  (1u << 20)
#define RAIL_MAX  65535

struct reader {
    struct ft_topology_builder *builder;
    struct ft_diag *diag;
    uint64_t speed_bps;
};

/* A map in the file and the key that leads to it, "hosts[0].nics[1]". */
struct entry {
    const struct ft_yaml *node;
    char key[KEY_BYTES];
};

static void key_of(char key[KEY_BYTES], const struct entry *entry, const char *name)
{
    snprintf(key, KEY_BYTES, "%.60s%s%.32s", entry->key, *entry->key ? "." : "", name);
}

static void stand_at(struct reader *r, const struct ft_yaml *node, const char *key)
{
    ft_topology_at(r->builder, ft_yaml_file(node), ft_yaml_line(node), *key ? key : NULL);
}

/* Names each key of the map that is not in known (NULL-terminated); false when it is not a map. */
static bool check_keys(struct reader *r, const struct entry *entry, const char *const *known)
{
    const struct ft_yaml *node = entry->node;

    if (ft_yaml_kind(node) != FT_YAML_MAP) {
        ft_yaml_complain(r->diag, node, *entry->key ? entry->key : NULL, "has to be a map");
        return false;
    }
    for (size_t i = 0; i < ft_yaml_count(node); i++) {
        char key[KEY_BYTES];
        size_t k = 0;

        while (known[k] && strcmp(known[k], ft_yaml_key(node, i)) != 0)
            k++;
        if (known[k])
            continue;
        key_of(key, entry, ft_yaml_key(node, i));
        ft_diag_add(r->diag, ft_yaml_file(node), ft_yaml_key_line(node, i),
                    "key '%s': is not known", key);
    }
    return true;
}

/* A text that is there; NULL after a complaint. */
static const char *text_of(struct reader *r, const struct entry *entry, const char *name)
{
    const struct ft_yaml *node = ft_yaml_get(entry->node, name);
    char key[KEY_BYTES];

    key_of(key, entry, name);
    if (!node)
        ft_yaml_complain(r->diag, entry->node, key, "is missing");
    else if (ft_yaml_kind(node) != FT_YAML_SCALAR || *ft_yaml_text(node) == '\0' ||
             ft_yaml_is_null(node))
        ft_yaml_complain(r->diag, node, key, "has to be a name");
    else
        return ft_yaml_text(node);
    return NULL;
}

/* A number between min and max, `standard` when it is left out or wrong. */
static uint64_t number_of(struct reader *r, const struct entry *entry, const char *name,
                          uint64_t min, uint64_t max, uint64_t standard)
{
    const struct ft_yaml *node = ft_yaml_get(entry->node, name);
    unsigned long long value;
    const char *text;
    char key[KEY_BYTES];
    char *end;

    if (!node)
        return standard;
    text = ft_yaml_text(node);
    if (text && *text >= '0' && *text <= '9') {
        errno = 0;
        value = strtoull(text, &end, 10);
        if (errno == 0 && *end == '\0' && value >= min && value <= max)
            return value;
    }
    key_of(key, entry, name);
    ft_yaml_complain(r->diag, node, key, "has to be a number from %llu to %llu",
                     (unsigned long long)min, (unsigned long long)max);
    return standard;
}

/* The items of a list by that name; 0 when it is left out or after a complaint. */
static size_t list_of(struct reader *r, const struct entry *entry, const char *name,
                      const struct ft_yaml **list)
{
    char key[KEY_BYTES];

    *list = ft_yaml_get(entry->node, name);
    if (!*list || ft_yaml_is_null(*list))
        return 0;
    if (ft_yaml_kind(*list) == FT_YAML_LIST && ft_yaml_count(*list) <= LIST_MAX)
        return ft_yaml_count(*list);
    key_of(key, entry, name);
    ft_yaml_complain(r->diag, *list, key, "has to be a list");
    return 0;
}

static struct entry item_of(const struct entry *entry, const char *name, const struct ft_yaml *list,
                            size_t i)
{
    struct entry item = {.node = ft_yaml_item(list, i)};

    snprintf(item.key, sizeof(item.key), "%.60s%s%s[%zu]", entry->key, *entry->key ? "." : "", name,
             i);
    return item;
}

typedef int (*add_address_fn)(struct ft_topology_builder *b, uint32_t id,
                              const struct ft_ip *address, struct ft_diag *diag);

/* id FT_NONE: the addresses are checked for form only. */
static void read_addresses(struct reader *r, const struct entry *entry, uint32_t id,
                           add_address_fn add)
{
    const struct ft_yaml *list;
    size_t count = list_of(r, entry, "addresses", &list);

    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(entry, "addresses", list, i);
        const char *text = ft_yaml_text(item.node);
        struct ft_ip ip;

        stand_at(r, item.node, item.key);
        if (!text || ft_ip_parse(text, &ip) < 0)
            ft_yaml_complain(r->diag, item.node, item.key, "'%s' is not an IPv4 or IPv6 address",
                             text ? text : "");
        else if (id != FT_NONE)
            add(r->builder, id, &ip, r->diag);
    }
}

static void read_ports(struct reader *r, const struct entry *entry, uint32_t switch_id)
{
    static const char *const known[] = {"name", "ifindex", "speed_bps", NULL};
    const struct ft_yaml *list;
    size_t count = list_of(r, entry, "ports", &list);
    uint32_t last = FT_NONE;

    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(entry, "ports", list, i);
        const char *name;
        uint64_t speed_bps;
        uint32_t ifindex, id;

        if (!check_keys(r, &item, known))
            continue;
        name = text_of(r, &item, "name");
        ifindex = (uint32_t)number_of(r, &item, "ifindex", 1, INT32_MAX, 0);
        speed_bps = number_of(r, &item, "speed_bps", 1, FT_SPEED_MAX_BPS, 0);
        if (!name || switch_id == FT_NONE)
            continue;
        stand_at(r, item.node, item.key);
        id = ft_topology_add_port(r->builder, switch_id, name, ifindex, speed_bps, r->diag);
        if (id == FT_NONE)
            continue;
        /* Ids rise, so one that does not is a port that was there. */
        if (last != FT_NONE && id <= last)
            ft_yaml_complain(r->diag, item.node, item.key, "port '%s' is stated twice", name);
        else
            last = id;
    }
}

static void read_members(struct reader *r, const struct entry *lag, uint32_t id)
{
    const struct ft_yaml *list;
    size_t count = list_of(r, lag, "members", &list);

    if (count == 0) {
        ft_yaml_complain(r->diag, lag->node, lag->key, "has to have members");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(lag, "members", list, i);

        stand_at(r, item.node, item.key);
        if (ft_yaml_kind(item.node) != FT_YAML_SCALAR)
            ft_yaml_complain(r->diag, item.node, item.key, "has to be the name of a port");
        else if (id != FT_NONE)
            ft_topology_add_member(r->builder, id, ft_yaml_text(item.node), r->diag);
    }
}

static void read_lags(struct reader *r, const struct entry *entry, uint32_t switch_id)
{
    static const char *const known[] = {"name", "ifindex", "members", NULL};
    const struct ft_yaml *list;
    size_t count = list_of(r, entry, "lags", &list);

    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(entry, "lags", list, i);
        uint32_t ifindex, id = FT_NONE;
        const char *name;

        if (!check_keys(r, &item, known))
            continue;
        name = text_of(r, &item, "name");
        ifindex = (uint32_t)number_of(r, &item, "ifindex", 1, INT32_MAX, 0);
        stand_at(r, item.node, item.key);
        if (name && switch_id != FT_NONE)
            id = ft_topology_add_lag(r->builder, switch_id, name, ifindex, r->diag);
        read_members(r, &item, id);
    }
}

/* After links and hosts, which may make the ports. ids are those of the switches in their order. */
static void read_all_lags(struct reader *r, const struct entry *root, const uint32_t *ids)
{
    const struct ft_yaml *list = ft_yaml_get(root->node, "switches");

    for (size_t i = 0; ids && i < ft_yaml_count(list); i++) {
        struct entry item = item_of(root, "switches", list, i);

        if (ft_yaml_kind(item.node) == FT_YAML_MAP)
            read_lags(r, &item, ids[i]);
    }
}

static enum ft_tier read_tier(struct reader *r, const struct entry *entry)
{
    const struct ft_yaml *node = ft_yaml_get(entry->node, "tier");
    const char *text;
    char key[KEY_BYTES];

    if (!node)
        return FT_TIER_UNKNOWN;
    text = ft_yaml_text(node);
    for (enum ft_tier tier = FT_TIER_LEAF; text && tier <= FT_TIER_SUPERSPINE; tier++)
        if (strcmp(text, ft_tier_name(tier)) == 0)
            return tier;
    key_of(key, entry, "tier");
    ft_yaml_complain(r->diag, node, key, "has to be leaf, spine or superspine");
    return FT_TIER_UNKNOWN;
}

/* Ids of the switches in their order, FT_NONE of a mistaken one; NULL when there are none, or after
 * a complaint. */
static uint32_t *read_switches(struct reader *r, const struct entry *root)
{
    static const char *const known[] = {"name", "tier", "addresses", "ports", "lags", NULL};
    const struct ft_yaml *list;
    size_t count = list_of(r, root, "switches", &list);
    uint32_t *ids = count ? malloc(count * sizeof(*ids)) : NULL;

    if (count && !ids)
        ft_yaml_complain(r->diag, list, NULL, "out of memory");
    for (size_t i = 0; ids && i < count; i++) {
        struct entry item = item_of(root, "switches", list, i);
        uint32_t id = FT_NONE;
        enum ft_tier tier;
        const char *name;

        ids[i] = FT_NONE;
        if (!check_keys(r, &item, known))
            continue;
        name = text_of(r, &item, "name");
        tier = read_tier(r, &item);
        stand_at(r, item.node, item.key);
        if (name)
            id = ft_topology_add_switch(r->builder, name, tier, r->diag);
        read_addresses(r, &item, id, ft_topology_add_address);
        read_ports(r, &item, id);
        ids[i] = id;
    }
    return ids;
}

static void read_links(struct reader *r, const struct entry *root)
{
    static const char *const known[] = {"a", "a_port", "b", "b_port", "speed_bps", NULL};
    const struct ft_yaml *list;
    size_t count = list_of(r, root, "links", &list);

    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(root, "links", list, i);
        const char *a, *a_port, *b, *b_port;

        if (!check_keys(r, &item, known))
            continue;
        a = text_of(r, &item, "a");
        a_port = text_of(r, &item, "a_port");
        b = text_of(r, &item, "b");
        b_port = text_of(r, &item, "b_port");
        ft_topology_speed(r->builder,
                          number_of(r, &item, "speed_bps", 1, FT_SPEED_MAX_BPS, r->speed_bps));
        stand_at(r, item.node, item.key);
        if (a && a_port && b && b_port)
            ft_topology_add_link(r->builder, a, a_port, b, b_port, r->diag);
    }
    ft_topology_speed(r->builder, r->speed_bps);
}

static void read_attachments(struct reader *r, const struct entry *nic, uint32_t nic_id)
{
    static const char *const known[] = {"switch", "port", NULL};
    const struct ft_yaml *list;
    size_t count = list_of(r, nic, "attach", &list);

    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(nic, "attach", list, i);
        const char *switch_name, *port;

        if (!check_keys(r, &item, known))
            continue;
        switch_name = text_of(r, &item, "switch");
        port = text_of(r, &item, "port");
        stand_at(r, item.node, item.key);
        if (switch_name && port && nic_id != FT_NONE)
            ft_topology_attach(r->builder, nic_id, switch_name, port, r->diag);
    }
}

static void read_nics(struct reader *r, const struct entry *host, uint32_t host_id)
{
    static const char *const known[] = {"addresses", "rail", "attach", NULL};
    const struct ft_yaml *list;
    size_t count = list_of(r, host, "nics", &list);

    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(host, "nics", list, i);
        uint32_t id = FT_NONE, rail;

        if (!check_keys(r, &item, known))
            continue;
        rail = (uint32_t)number_of(r, &item, "rail", 0, RAIL_MAX, FT_NONE);
        stand_at(r, item.node, item.key);
        if (host_id != FT_NONE)
            id = ft_topology_add_nic(r->builder, host_id, rail, r->diag);
        read_addresses(r, &item, id, ft_topology_add_nic_address);
        read_attachments(r, &item, id);
    }
}

static void read_hosts(struct reader *r, const struct entry *root)
{
    static const char *const known[] = {"name", "nics", NULL};
    const struct ft_yaml *list;
    size_t count = list_of(r, root, "hosts", &list);

    for (size_t i = 0; i < count; i++) {
        struct entry item = item_of(root, "hosts", list, i);
        uint32_t id = FT_NONE;
        const char *name;

        if (!check_keys(r, &item, known))
            continue;
        name = text_of(r, &item, "name");
        stand_at(r, item.node, item.key);
        if (name)
            id = ft_topology_add_host(r->builder, name, r->diag);
        read_nics(r, &item, id);
    }
}

struct ft_topology *ft_topology_file_read(const struct ft_yaml *root, struct ft_diag *diag)
{
    static const char *const known[] = {"fabric", "speed_bps", "switches", "links", "hosts", NULL};
    struct reader r = {.diag = diag};
    struct entry entry = {.node = root};
    size_t before = ft_diag_count(diag);
    struct ft_topology *topology = NULL;
    const char *fabric;
    uint32_t *ids;

    if (!check_keys(&r, &entry, known))
        return NULL;
    fabric = text_of(&r, &entry, "fabric");
    r.builder = ft_topology_builder_new(fabric ? fabric : "");
    if (!r.builder) {
        ft_yaml_complain(diag, root, NULL, "out of memory");
        return NULL;
    }
    r.speed_bps = number_of(&r, &entry, "speed_bps", 1, FT_SPEED_MAX_BPS, 0);
    ids = read_switches(&r, &entry);
    read_links(&r, &entry);
    read_hosts(&r, &entry);
    read_all_lags(&r, &entry, ids);
    free(ids);
    /* What the build would say of half a topology only confuses. */
    if (ft_diag_count(diag) == before)
        topology = ft_topology_build(r.builder, diag);
    ft_topology_builder_free(r.builder);
    return topology;
}

struct ft_topology *ft_topology_file_load(const char *file, struct ft_diag *diag)
{
    struct ft_yaml *root = ft_yaml_load(file, diag);
    struct ft_topology *topology = NULL;

    if (root)
        topology = ft_topology_file_read(root, diag);
    ft_yaml_free(root);
    return topology;
}

struct ft_topology *ft_topology_file_none(const char *fabric, struct ft_diag *diag)
{
    struct ft_topology_builder *b = ft_topology_builder_new(fabric);
    struct ft_topology *topology = b ? ft_topology_build(b, diag) : NULL;

    if (!b)
        ft_diag_add(diag, NULL, 0, "topology: out of memory");
    ft_topology_builder_free(b);
    return topology;
}
