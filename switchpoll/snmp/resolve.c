// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "switchpoll/snmp/device_impl.h"

#define LOCAL    7 /* LldpPortIdSubtype */
#define ETHERNET 6 /* ifType: ethernetCsmacd */

enum field { FIELD_NAME, FIELD_DESCR, FIELD_ALIAS, FIELD_MAC };

static const char *field_of(const struct ft_device_port *port, enum field field)
{
    switch (field) {
    case FIELD_NAME:
        return port->name;
    case FIELD_DESCR:
        return port->descr;
    case FIELD_ALIAS:
        return port->alias;
    case FIELD_MAC:
        return port->mac;
    }
    return NULL;
}

/* The one port whose field is the text; 0 for none or several. */
static uint32_t only(const struct ft_device_ports *ports, enum field field, const char *text)
{
    uint32_t found = 0;

    if (!text)
        return 0;
    for (size_t i = 0; i < ports->count; i++) {
        const char *value = field_of(&ports->items[i], field);

        if (!value || strcmp(value, text) != 0)
            continue;
        if (found)
            return 0;
        found = ports->items[i].ifindex;
    }
    return found;
}

static uint32_t by_any_name(const struct ft_device_ports *ports, const char *text)
{
    uint32_t found = only(ports, FIELD_NAME, text);

    if (!found)
        found = only(ports, FIELD_DESCR, text);
    return found ? found : only(ports, FIELD_ALIAS, text);
}

static bool is_called(const struct ft_device_port *port, const char *text)
{
    return (port->name && strcmp(port->name, text) == 0) ||
           (port->descr && strcmp(port->descr, text) == 0) ||
           (port->alias && strcmp(port->alias, text) == 0);
}

/* The one port that is called so in any way. A person may have described a port by the name of the
 * port at the other side, which this switch has, too: then there are two. */
static uint32_t by_description(const struct ft_device_ports *ports, const char *text)
{
    uint32_t found = 0;

    for (size_t i = 0; text && i < ports->count; i++) {
        if (!is_called(&ports->items[i], text))
            continue;
        if (found)
            return 0;
        found = ports->items[i].ifindex;
    }
    return found;
}

static const struct ft_device_port *port_of(const struct ft_device_ports *ports, uint32_t ifindex)
{
    size_t at = ft_device_port_at(ports, ifindex);

    return at < ports->count && ports->items[at].ifindex == ifindex ? &ports->items[at] : NULL;
}

/* Whether the port calls itself by its own LLDP port number. */
static bool is_numbered(const struct ft_device_local *local)
{
    char number[11];

    snprintf(number, sizeof(number), "%u", local->number);
    return (local->id.subtype == LOCAL || local->id.subtype == 0) && local->id.text &&
           strcmp(local->id.text, number) == 0;
}

/* Whether numbers by which ports call themselves are ifIndexes, as Junos has them, and above which.
 * LLDP's port number is the ifIndex or the number of the bridge's port (IEEE 802.1AB-2005, textual
 * convention LldpPortNumber). Ports that are only counted have numbers up to that of Ethernet
 * ports; what is above has to be an Ethernet port's ifIndex, but for a few. UINT32_MAX: they are
 * none. */
static uint32_t numbers_above(const struct ft_device_locals *locals,
                              const struct ft_device_ports *ports)
{
    uint32_t ethernet = 0;
    size_t hits = 0, misses = 0;

    for (size_t i = 0; i < ports->count; i++)
        ethernet += ports->items[i].type == ETHERNET;
    for (size_t i = 0; i < locals->count; i++) {
        const struct ft_device_local *local = &locals->items[i];
        const struct ft_device_port *port;

        if (local->number <= ethernet || !is_numbered(local))
            continue;
        port = port_of(ports, local->number);
        if (port && port->type == ETHERNET)
            hits++;
        else
            misses++;
    }
    return hits > misses ? ethernet : UINT32_MAX;
}

static uint32_t by_number(const struct ft_device_local *local, const struct ft_device_ports *ports,
                          uint32_t above)
{
    const struct ft_device_port *port =
        local->number > above && is_numbered(local) ? port_of(ports, local->number) : NULL;

    return port && port->type == ETHERNET ? port->ifindex : 0;
}

/* Whether a is a unit of b, as xe-0/0/1.0 is of xe-0/0/1. */
static bool is_unit(const struct ft_device_port *a, const struct ft_device_port *b)
{
    size_t length = b->name ? strlen(b->name) : 0;

    return length && a->name && strncmp(a->name, b->name, length) == 0 && a->name[length] == '.';
}

/* By what a port is described as, and by its number: where they contradict each other, neither. */
static uint32_t by_the_rest(const struct ft_device_local *local,
                            const struct ft_device_ports *ports, uint32_t above)
{
    uint32_t described = by_description(ports, local->descr);
    uint32_t numbered = by_number(local, ports, above);

    if (!numbered || !described || numbered == described)
        return numbered ? numbered : described;
    return is_unit(port_of(ports, described), port_of(ports, numbered)) ? numbered : 0;
}

static uint32_t resolve(const struct ft_device_local *local, const struct ft_device_ports *ports,
                        uint32_t above)
{
    const char *id = local->id.text;
    uint32_t found = 0;

    switch (local->id.kind) {
    case FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME:
        found = only(ports, FIELD_NAME, id);
        if (!found)
            found = only(ports, FIELD_DESCR, id);
        break;
    case FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_ALIAS:
        found = only(ports, FIELD_ALIAS, id);
        break;
    case FABRICTRACE__ID_KIND__ID_KIND_MAC:
        found = only(ports, FIELD_MAC, id);
        break;
    default:
        found = by_any_name(ports, id);
        break;
    }
    return found ? found : by_the_rest(local, ports, above);
}

static int by_ifindex(const void *a, const void *b)
{
    uint32_t x = (*(const struct ft_device_local *const *)a)->ifindex;
    uint32_t y = (*(const struct ft_device_local *const *)b)->ifindex;

    return x < y ? -1 : x > y;
}

/* Takes back what more than one number was resolved to. */
static void drop_contradictions(struct ft_device_locals *locals)
{
    struct ft_device_local **order = calloc(locals->count + 1, sizeof(struct ft_device_local *));

    for (size_t i = 0; order && i < locals->count; i++)
        order[i] = &locals->items[i];
    if (order)
        qsort(order, locals->count, sizeof(struct ft_device_local *), by_ifindex);
    for (size_t i = 0; order && i < locals->count;) {
        uint32_t ifindex = order[i]->ifindex;
        size_t end = i + 1;

        while (end < locals->count && order[end]->ifindex == ifindex)
            end++;
        for (size_t k = i; end - i > 1 && k < end; k++)
            order[k]->ifindex = 0;
        i = end;
    }
    free(order);
}

void ft_resolve_locals(struct ft_device_locals *locals, const struct ft_device_ports *ports)
{
    uint32_t above = numbers_above(locals, ports);

    for (size_t i = 0; i < locals->count; i++)
        locals->items[i].ifindex = resolve(&locals->items[i], ports, above);
    drop_contradictions(locals);
}
