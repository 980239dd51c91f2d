// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/resolve.h"

#include <stdlib.h>
#include <string.h>

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

static uint32_t resolve(const struct ft_device_local *local, const struct ft_device_ports *ports)
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
    return found ? found : by_any_name(ports, local->descr);
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
    for (size_t i = 0; i < locals->count; i++)
        locals->items[i].ifindex = resolve(&locals->items[i], ports);
    drop_contradictions(locals);
}
