// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/table.h"

struct address {
    struct ft_ip ip;
    uint64_t interfaces; /* bit per interface number; none: the host's */
};

struct ft_interfaces {
    char *names[FT_INTERFACES_MAX];
    uint32_t count;
    struct ft_table *addresses;
};

struct ft_interfaces *ft_interfaces_new(void)
{
    struct ft_interfaces *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->addresses =
        ft_table_new(sizeof(struct address), sizeof(struct ft_ip), FT_INTERFACE_ADDRESSES, 0);
    if (!x->addresses) {
        free(x);
        return NULL;
    }
    return x;
}

void ft_interfaces_free(struct ft_interfaces *x)
{
    if (!x)
        return;
    for (uint32_t i = 0; i < x->count; i++)
        free(x->names[i]);
    ft_table_free(x->addresses);
    free(x);
}

static uint32_t number_of(const struct ft_interfaces *x, const char *name)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (strcmp(x->names[i], name) == 0)
            return i;
    return FT_INTERFACE_NONE;
}

int ft_interfaces_intern(struct ft_interfaces *x, const char *name, uint32_t *number)
{
    uint32_t n = number_of(x, name);

    if (n == FT_INTERFACE_NONE) {
        if (x->count == FT_INTERFACES_MAX)
            return -ENOSPC;
        x->names[x->count] = strdup(name);
        if (!x->names[x->count])
            return -ENOMEM;
        n = x->count++;
    }
    *number = n;
    return 0;
}

const char *ft_interfaces_name(const struct ft_interfaces *x, uint32_t number)
{
    return x->names[number];
}

int ft_interfaces_add(struct ft_interfaces *x, uint32_t number, const struct ft_ip *ip)
{
    struct address *address;
    bool fresh;

    address = ft_table_insert(x->addresses, ip, &fresh);
    if (!address)
        return -ENOSPC;
    if (number != FT_INTERFACE_NONE)
        address->interfaces |= UINT64_C(1) << number;
    return 0;
}

void ft_interfaces_forget(struct ft_interfaces *x)
{
    ft_table_clear(x->addresses);
}

static bool read_address(const struct ifaddrs *a, struct ft_ip *ip)
{
    if (!a->ifa_addr)
        return false;
    if (a->ifa_addr->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, a->ifa_addr, sizeof(in));
        *ip = ft_ip4((const uint8_t *)&in.sin_addr);
        return true;
    }
    if (a->ifa_addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, a->ifa_addr, sizeof(in6));
        *ip = ft_ip6(in6.sin6_addr.s6_addr);
        return true;
    }
    return false;
}

static int take(struct ft_interfaces *x, const struct ifaddrs *list, bool numbered)
{
    int err = 0;

    for (const struct ifaddrs *a = list; a && !err; a = a->ifa_next) {
        uint32_t number = number_of(x, a->ifa_name);
        struct ft_ip ip;

        if ((number != FT_INTERFACE_NONE) == numbered && read_address(a, &ip))
            err = ft_interfaces_add(x, number, &ip);
    }
    return err;
}

int ft_interfaces_take(struct ft_interfaces *x, const struct ifaddrs *list)
{
    int err = take(x, list, true);

    return err ? err : take(x, list, false);
}

int ft_interfaces_scan(struct ft_interfaces *x)
{
    struct ifaddrs *list;
    int err;

    if (getifaddrs(&list))
        return -errno;
    err = ft_interfaces_take(x, list);
    freeifaddrs(list);
    return err;
}

void ft_interfaces_list(char *text, size_t text_bytes)
{
    struct if_nameindex *list = if_nameindex();
    size_t at = 0;

    text[0] = '\0';
    for (const struct if_nameindex *i = list; i && i->if_index && at < text_bytes; i++)
        at += (size_t)snprintf(text + at, text_bytes - at, " %s", i->if_name);
    if (list)
        if_freenameindex(list);
}

bool ft_interfaces_is_local(const struct ft_interfaces *x, const struct ft_ip *ip)
{
    return ft_table_find(x->addresses, ip) != NULL;
}

enum ft_flow_direction ft_interfaces_direction(const struct ft_interfaces *x, uint32_t number,
                                               const struct ft_ip *src, const struct ft_ip *dst)
{
    const struct address *from = ft_table_find(x->addresses, src);
    const struct address *to = ft_table_find(x->addresses, dst);
    uint64_t bit = number == FT_INTERFACE_NONE ? 0 : UINT64_C(1) << number;

    if (from && from->interfaces & bit)
        return FT_FLOW_TX;
    if (to && to->interfaces & bit)
        return FT_FLOW_RX;
    if (from && !to)
        return FT_FLOW_TX;
    if (to && !from)
        return FT_FLOW_RX;
    return FT_FLOW_UNKNOWN;
}
