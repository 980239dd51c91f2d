// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_PREFIX_H
#define FT_BASE_PREFIX_H
/*
 * Prefixes of addresses, IPv4 and IPv6, and sorted lists of them. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/tuple.h"

struct ft_prefix {
    struct ft_ip ip;
    unsigned bits; /* of the 128 of ip */
};

/* From the first len bytes of text: "192.0.2.0/24", "2001:db8::/32", or an address, which is a
 * prefix of its own. -EINVAL. */
int ft_prefix_parse(const char *text, size_t len, struct ft_prefix *prefix);

bool ft_prefix_has(const struct ft_prefix *prefix, const struct ft_ip *ip);

/* Sorts a list and removes what lies in other prefixes of it; returns how many are left. */
size_t ft_prefixes_sort(struct ft_prefix *list, size_t count);

/* Whether one of a sorted list has the address. */
bool ft_prefixes_have(const struct ft_prefix *list, size_t count, const struct ft_ip *ip);

#endif
