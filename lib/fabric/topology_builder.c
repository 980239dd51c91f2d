// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/fabric/topology_impl.h"

#define FILES_MAX 64

struct ft_topology_builder *ft_topology_builder_new(const char *fabric)
{
    struct ft_topology_builder *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->fabric = strdup(fabric);
    b->at.file = FT_NONE;
    if (!b->fabric || ft_index_init(&b->index) < 0) {
        ft_topology_builder_free(b);
        return NULL;
    }
    return b;
}

void ft_topology_builder_free(struct ft_topology_builder *b)
{
    struct ft_new_switch *switches;
    struct ft_new_port *ports;
    struct ft_new_host *hosts;
    struct ft_new_lag *lags;

    if (!b)
        return;
    switches = b->switches.items;
    ports = b->ports.items;
    lags = b->lags.items;
    hosts = b->hosts.items;
    for (uint32_t i = 0; i < b->switches.count; i++)
        free(switches[i].name);
    for (uint32_t i = 0; i < b->ports.count; i++)
        free(ports[i].name);
    for (uint32_t i = 0; i < b->lags.count; i++)
        free(lags[i].name);
    for (uint32_t i = 0; i < b->hosts.count; i++)
        free(hosts[i].name);
    for (uint32_t i = 0; i < b->file_count; i++)
        free(b->files[i]);
    free(b->files);
    free(switches);
    free(ports);
    free(lags);
    free(hosts);
    free(b->switch_addresses.items);
    free(b->nics.items);
    free(b->nic_addresses.items);
    free(b->attaches.items);
    ft_index_free(&b->index);
    free(b->key);
    free(b->fabric);
    free(b);
}

/* The id of a file's name; what is over the cap or finds no memory goes unnamed in complaints. */
static uint32_t file_id(struct ft_topology_builder *b, const char *file)
{
    char **files;

    if (!file)
        return FT_NONE;
    for (uint32_t i = b->file_count; i-- > 0;)
        if (strcmp(b->files[i], file) == 0)
            return i;
    if (b->file_count == FILES_MAX)
        return FT_NONE;
    files = realloc(b->files, (b->file_count + 1) * sizeof(*files));
    if (!files)
        return FT_NONE;
    b->files = files;
    files[b->file_count] = strdup(file);
    return files[b->file_count] ? b->file_count++ : FT_NONE;
}

void ft_topology_at(struct ft_topology_builder *b, const char *file, unsigned line, const char *key)
{
    b->at.file = file_id(b, file);
    b->at.line = line;
    free(b->key);
    b->key = key ? strdup(key) : NULL;
}

void ft_topology_pace(struct ft_topology_builder *b, struct ft_task *task)
{
    b->task = task;
}

void ft_topology_speed(struct ft_topology_builder *b, uint64_t speed_bps)
{
    b->speed_bps = speed_bps;
}

static void complain(const struct ft_topology_builder *b, struct ft_diag *diag, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

static void complain(const struct ft_topology_builder *b, struct ft_diag *diag, const char *format,
                     ...)
{
    const char *file = b->at.file == FT_NONE ? NULL : b->files[b->at.file];
    /* Longer ones are cut: what they quote comes from a file. */
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (b->key)
        ft_diag_add(diag, file, b->at.line, "key '%.200s': %s", b->key, text);
    else
        ft_diag_add(diag, file, b->at.line, "%s", text);
}

/* " (line 7)" of something that was there before, "" without a line. */
struct where {
    char text[32];
};

static struct where first_at(struct ft_stated_at stated)
{
    struct where where = {""};

    if (stated.line)
        snprintf(where.text, sizeof(where.text), " (line %u)", stated.line);
    return where;
}

static void *add_item(struct ft_topology_list *list, size_t item_bytes)
{
    void *items = ft_grow(list->items, list->count, &list->size, item_bytes);

    if (!items)
        return NULL;
    list->items = items;
    return memset((char *)list->items + list->count++ * item_bytes, 0, item_bytes);
}

static struct ft_new_switch *switch_of(const struct ft_topology_builder *b, uint32_t id)
{
    return (struct ft_new_switch *)b->switches.items + id;
}

static struct ft_new_port *port_of(const struct ft_topology_builder *b, uint32_t id)
{
    return (struct ft_new_port *)b->ports.items + id;
}

static struct ft_new_lag *lag_of(const struct ft_topology_builder *b, uint32_t id)
{
    return (struct ft_new_lag *)b->lags.items + id;
}

static struct ft_new_nic *nic_of(const struct ft_topology_builder *b, uint32_t id)
{
    return (struct ft_new_nic *)b->nics.items + id;
}

static const char *host_name_of(const struct ft_topology_builder *b, uint32_t nic_id)
{
    return ((struct ft_new_host *)b->hosts.items)[nic_of(b, nic_id)->host_id].name;
}

/* Enters a name of what the last item of list will be; NULL after a complaint. */
static char *enter_name(struct ft_topology_builder *b, uint32_t scope, const char *what,
                        const char *name, uint32_t id, struct ft_diag *diag)
{
    char *copy;

    if (*name == '\0' || strnlen(name, FT_NAME_MAX + 1) > FT_NAME_MAX) {
        complain(b, diag, "the name of a %s has 1 to %d bytes", what, FT_NAME_MAX);
        return NULL;
    }
    copy = strdup(name);
    if (!copy || ft_index_add_name(&b->index, scope, name, id) < 0) {
        free(copy);
        complain(b, diag, "%s '%s': out of memory", what, name);
        return NULL;
    }
    return copy;
}

uint32_t ft_topology_add_switch(struct ft_topology_builder *b, const char *name, enum ft_tier tier,
                                struct ft_diag *diag)
{
    uint32_t id = ft_index_name(&b->index, FT_NAMESPACE_SWITCHES, name);
    struct ft_new_switch *s;
    char *copy;

    if (id != FT_NONE) {
        complain(b, diag, "switch '%s' is defined twice%s", name,
                 first_at(switch_of(b, id)->stated).text);
        return FT_NONE;
    }
    id = b->switches.count;
    if (id == FT_SWITCHES_MAX) {
        complain(b, diag, "switch '%s' is over the limit of %d switches", name, FT_SWITCHES_MAX);
        return FT_NONE;
    }
    copy = enter_name(b, FT_NAMESPACE_SWITCHES, "switch", name, id, diag);
    if (!copy)
        return FT_NONE;
    s = add_item(&b->switches, sizeof(*s));
    if (!s) {
        free(copy);
        complain(b, diag, "switch '%s': out of memory", name);
        return FT_NONE;
    }
    *s = (struct ft_new_switch){.name = copy, .tier = tier, .stated = b->at};
    return id;
}

static int add_address(struct ft_topology_builder *b, uint32_t scope, struct ft_topology_list *list,
                       uint32_t owner, const struct ft_ip *address, struct ft_diag *diag)
{
    struct ft_new_address *item = add_item(list, sizeof(*item));

    if (!item) {
        complain(b, diag, "out of memory");
        return -ENOMEM;
    }
    *item = (struct ft_new_address){owner, *address};
    if (ft_index_add_address(&b->index, scope, address, owner) < 0) {
        list->count--;
        complain(b, diag, "out of memory");
        return -ENOMEM;
    }
    return 0;
}

int ft_topology_add_address(struct ft_topology_builder *b, uint32_t switch_id,
                            const struct ft_ip *address, struct ft_diag *diag)
{
    uint32_t other = ft_index_address(&b->index, FT_NAMESPACE_SWITCHES, address);
    char text[FT_IP_TEXT_BYTES];

    if (other == FT_NONE)
        return add_address(b, FT_NAMESPACE_SWITCHES, &b->switch_addresses, switch_id, address,
                           diag);
    ft_ip_format(address, text);
    complain(b, diag, "address %s belongs to switch '%s' already%s", text,
             switch_of(b, other)->name, first_at(switch_of(b, other)->stated).text);
    return -EINVAL;
}

static uint32_t new_port(struct ft_topology_builder *b, uint32_t switch_id, const char *name,
                         struct ft_diag *diag)
{
    uint32_t id = b->ports.count;
    struct ft_new_port *port;
    char *copy;

    if (id == FT_ENDS_MAX) {
        complain(b, diag, "port '%s' is over the limit of %u ports", name, FT_ENDS_MAX);
        return FT_NONE;
    }
    copy = enter_name(b, switch_id, "port", name, id, diag);
    if (!copy)
        return FT_NONE;
    port = add_item(&b->ports, sizeof(*port));
    if (!port) {
        free(copy);
        complain(b, diag, "port '%s': out of memory", name);
        return FT_NONE;
    }
    *port = (struct ft_new_port){
        .name = copy,
        .switch_id = switch_id,
        .peer = FT_NONE,
        .nic = FT_NONE,
        .lag = FT_NONE,
        .stated = b->at,
    };
    return id;
}

/* Refuses an ifIndex that contradicts what is known of the port (FT_NONE: a new one) and switch. */
static bool ifindex_fits(struct ft_topology_builder *b, uint32_t switch_id, const char *name,
                         uint32_t port, uint32_t ifindex, struct ft_diag *diag)
{
    const char *switch_name = switch_of(b, switch_id)->name;
    uint32_t other = ft_index_ifindex(&b->index, switch_id, ifindex);

    if (ifindex == 0)
        return true;
    if (port != FT_NONE && port_of(b, port)->ifindex && port_of(b, port)->ifindex != ifindex) {
        complain(b, diag, "port '%s' of switch '%s' has ifIndex %u already, not %u", name,
                 switch_name, port_of(b, port)->ifindex, ifindex);
        return false;
    }
    if (other != FT_NONE && other != port) {
        complain(b, diag, "ifIndex %u of switch '%s' is %s '%s' already", ifindex, switch_name,
                 ft_is_lag(other) ? "aggregate" : "port",
                 ft_is_lag(other) ? lag_of(b, other & ~FT_LAG_BIT)->name : port_of(b, other)->name);
        return false;
    }
    return true;
}

uint32_t ft_topology_add_port(struct ft_topology_builder *b, uint32_t switch_id, const char *name,
                              uint32_t ifindex, uint64_t speed_bps, struct ft_diag *diag)
{
    uint32_t id = ft_index_name(&b->index, switch_id, name);
    struct ft_new_port *port;

    switch_of(b, switch_id)->states_ports = true;
    if (!ifindex_fits(b, switch_id, name, id, ifindex, diag))
        return FT_NONE;
    if (id == FT_NONE)
        id = new_port(b, switch_id, name, diag);
    if (id == FT_NONE)
        return FT_NONE;
    port = port_of(b, id);
    if (ifindex && !port->ifindex) {
        if (ft_index_add_ifindex(&b->index, switch_id, ifindex, id) < 0) {
            complain(b, diag, "port '%s': out of memory", name);
            return FT_NONE;
        }
        port->ifindex = ifindex;
    }
    /* What a switch says of itself may be anything. */
    if (!port->speed_bps && speed_bps <= FT_SPEED_MAX_BPS)
        port->speed_bps = speed_bps;
    return id;
}

uint32_t ft_topology_add_lag(struct ft_topology_builder *b, uint32_t switch_id, const char *name,
                             uint32_t ifindex, struct ft_diag *diag)
{
    const char *switch_name = switch_of(b, switch_id)->name;
    uint32_t id = b->lags.count;
    struct ft_new_lag *lag;
    char *copy;

    if (ft_index_name(&b->index, switch_id, name) != FT_NONE ||
        ft_index_name(&b->index, FT_NAMESPACE_LAGS | switch_id, name) != FT_NONE) {
        complain(b, diag, "switch '%s' has a port or aggregate '%s' already", switch_name, name);
        return FT_NONE;
    }
    if (!ifindex_fits(b, switch_id, name, FT_NONE, ifindex, diag))
        return FT_NONE;
    if (id == FT_ENDS_MAX) {
        complain(b, diag, "aggregate '%s' is over the limit of %u aggregates", name, FT_ENDS_MAX);
        return FT_NONE;
    }
    copy = enter_name(b, FT_NAMESPACE_LAGS | switch_id, "aggregate", name, id, diag);
    if (!copy)
        return FT_NONE;
    lag = add_item(&b->lags, sizeof(*lag));
    if (!lag || (ifindex && ft_index_add_ifindex(&b->index, switch_id, ifindex, FT_LAG_BIT | id))) {
        if (lag)
            b->lags.count--;
        free(copy);
        complain(b, diag, "aggregate '%s': out of memory", name);
        return FT_NONE;
    }
    *lag = (struct ft_new_lag){copy, switch_id, ifindex, b->at};
    return id;
}

int ft_topology_add_member(struct ft_topology_builder *b, uint32_t lag_id, const char *port,
                           struct ft_diag *diag)
{
    const struct ft_new_lag *lag = lag_of(b, lag_id);
    const char *switch_name = switch_of(b, lag->switch_id)->name;
    uint32_t id = ft_index_name(&b->index, lag->switch_id, port);

    if (id == FT_NONE) {
        complain(b, diag, "aggregate '%s': switch '%s' has no port '%s'", lag->name, switch_name,
                 port);
        return -EINVAL;
    }
    if (port_of(b, id)->lag != FT_NONE) {
        const struct ft_new_lag *other = lag_of(b, port_of(b, id)->lag);

        complain(b, diag, "port '%s' of switch '%s' is in aggregate '%s' already%s", port,
                 switch_name, other->name, first_at(other->stated).text);
        return -EINVAL;
    }
    port_of(b, id)->lag = lag_id;
    return 0;
}

/* The port where a link or NIC is to go; FT_NONE after a complaint. */
static uint32_t free_port(struct ft_topology_builder *b, const char *switch_name, const char *name,
                          struct ft_diag *diag)
{
    uint32_t switch_id = ft_index_name(&b->index, FT_NAMESPACE_SWITCHES, switch_name);
    struct ft_new_port *port;
    uint32_t id;

    if (switch_id == FT_NONE) {
        complain(b, diag, "switch '%s' is not known", switch_name);
        return FT_NONE;
    }
    id = ft_index_name(&b->index, switch_id, name);
    if (id == FT_NONE && switch_of(b, switch_id)->states_ports) {
        complain(b, diag, "switch '%s' has no port '%s'", switch_name, name);
        return FT_NONE;
    }
    if (id == FT_NONE)
        return new_port(b, switch_id, name, diag);
    port = port_of(b, id);
    if (port->peer != FT_NONE) {
        const struct ft_new_port *peer = port_of(b, port->peer);

        complain(b, diag, "port '%s' of switch '%s' is linked to '%s' of '%s' already%s", name,
                 switch_name, peer->name, switch_of(b, peer->switch_id)->name,
                 first_at(port->stated).text);
        return FT_NONE;
    }
    if (port->nic != FT_NONE) {
        complain(b, diag, "port '%s' of switch '%s' has a NIC of host '%s' already%s", name,
                 switch_name, host_name_of(b, port->nic), first_at(port->stated).text);
        return FT_NONE;
    }
    return id;
}

static bool same_link(const struct ft_topology_builder *b, const char *a, const char *a_port,
                      const char *z, const char *z_port, struct ft_stated_at *stated)
{
    uint32_t a_switch = ft_index_name(&b->index, FT_NAMESPACE_SWITCHES, a);
    uint32_t z_switch = ft_index_name(&b->index, FT_NAMESPACE_SWITCHES, z);
    uint32_t from, to;

    if (a_switch == FT_NONE || z_switch == FT_NONE)
        return false;
    from = ft_index_name(&b->index, a_switch, a_port);
    to = ft_index_name(&b->index, z_switch, z_port);
    if (from == FT_NONE || to == FT_NONE || port_of(b, from)->peer != to)
        return false;
    *stated = port_of(b, from)->stated;
    return true;
}

static void occupy(struct ft_topology_builder *b, uint32_t id)
{
    struct ft_new_port *port = port_of(b, id);

    port->stated = b->at;
    if (!port->speed_bps)
        port->speed_bps = b->speed_bps;
}

int ft_topology_add_link(struct ft_topology_builder *b, const char *a, const char *a_port,
                         const char *z, const char *z_port, struct ft_diag *diag)
{
    struct ft_stated_at stated;
    uint32_t from, to;

    if (strcmp(a, z) == 0) {
        complain(b, diag, "a link from switch '%s' to itself", a);
        return -EINVAL;
    }
    if (same_link(b, a, a_port, z, z_port, &stated)) {
        complain(b, diag, "the link from '%s' %s to '%s' %s is defined twice%s", a, a_port, z,
                 z_port, first_at(stated).text);
        return -EINVAL;
    }
    /* Both ends are looked at, so that two mistakes make two complaints. */
    from = free_port(b, a, a_port, diag);
    to = free_port(b, z, z_port, diag);
    if (from == FT_NONE || to == FT_NONE)
        return -EINVAL;
    port_of(b, from)->peer = to;
    port_of(b, to)->peer = from;
    occupy(b, from);
    occupy(b, to);
    return 0;
}

uint32_t ft_topology_add_host(struct ft_topology_builder *b, const char *name, struct ft_diag *diag)
{
    uint32_t id = ft_index_name(&b->index, FT_NAMESPACE_HOSTS, name);
    struct ft_new_host *host = b->hosts.items;
    char *copy;

    if (id != FT_NONE) {
        complain(b, diag, "host '%s' is defined twice%s", name, first_at(host[id].stated).text);
        return FT_NONE;
    }
    id = b->hosts.count;
    copy = enter_name(b, FT_NAMESPACE_HOSTS, "host", name, id, diag);
    if (!copy)
        return FT_NONE;
    host = add_item(&b->hosts, sizeof(*host));
    if (!host) {
        free(copy);
        complain(b, diag, "host '%s': out of memory", name);
        return FT_NONE;
    }
    *host = (struct ft_new_host){copy, b->at};
    return id;
}

uint32_t ft_topology_add_nic(struct ft_topology_builder *b, uint32_t host_id, uint32_t rail,
                             struct ft_diag *diag)
{
    struct ft_new_nic *nic = add_item(&b->nics, sizeof(*nic));

    if (!nic) {
        complain(b, diag, "out of memory");
        return FT_NONE;
    }
    *nic = (struct ft_new_nic){host_id, rail, b->at};
    return b->nics.count - 1;
}

int ft_topology_add_nic_address(struct ft_topology_builder *b, uint32_t nic_id,
                                const struct ft_ip *address, struct ft_diag *diag)
{
    uint32_t other = ft_index_address(&b->index, FT_NAMESPACE_NICS, address);
    char text[FT_IP_TEXT_BYTES];

    if (other == FT_NONE)
        return add_address(b, FT_NAMESPACE_NICS, &b->nic_addresses, nic_id, address, diag);
    ft_ip_format(address, text);
    complain(b, diag, "address %s belongs to a NIC of host '%s' already%s", text,
             host_name_of(b, other), first_at(nic_of(b, other)->stated).text);
    return -EINVAL;
}

int ft_topology_attach(struct ft_topology_builder *b, uint32_t nic_id, const char *switch_name,
                       const char *port, struct ft_diag *diag)
{
    struct ft_new_attach *attach;
    uint32_t id = free_port(b, switch_name, port, diag);

    if (id == FT_NONE)
        return -EINVAL;
    attach = add_item(&b->attaches, sizeof(*attach));
    if (!attach) {
        complain(b, diag, "out of memory");
        return -ENOMEM;
    }
    *attach = (struct ft_new_attach){nic_id, id};
    port_of(b, id)->nic = nic_id;
    occupy(b, id);
    return 0;
}
