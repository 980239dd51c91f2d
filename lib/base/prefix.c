// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/prefix.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bound.h"

int ft_prefix_parse(const char *text, size_t len, struct ft_prefix *prefix)
{
    char copy[FT_IP_TEXT_BYTES + 4], *slash, *end;
    unsigned long bits, most;
    struct ft_ip ip;

    if (len >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    slash = strchr(copy, '/');
    if (slash)
        *slash = '\0';
    if (ft_ip_parse(copy, &ip))
        return -EINVAL;
    bits = most = ft_ip_is4(&ip) ? 32 : 128;
    if (slash) {
        bits = strtoul(slash + 1, &end, 10);
        if (slash[1] < '0' || slash[1] > '9' || *end || bits > most)
            return -EINVAL;
    }
    *prefix = (struct ft_prefix){.ip = ip, .bits = (unsigned)(128 - most + bits)};
    return 0;
}

bool ft_prefix_has(const struct ft_prefix *p, const struct ft_ip *ip)
{
    unsigned full_bytes = p->bits / 8, rest = p->bits % 8;
    unsigned mask = 0xff00u >> rest & 0xff;

    return memcmp(ip->b, p->ip.b, full_bytes) == 0 &&
           (!rest || (ip->b[full_bytes] & mask) == (p->ip.b[full_bytes] & mask));
}

/* By address; of two with the same the wider is the first. */
static int compare(const void *a, const void *b)
{
    const struct ft_prefix *x = a, *y = b;
    int order = memcmp(&x->ip, &y->ip, sizeof(x->ip));

    return order ? order : (x->bits > y->bits) - (x->bits < y->bits);
}

static void mask(struct ft_prefix *p)
{
    unsigned at = p->bits / 8;

    if (at == sizeof(p->ip.b))
        return;
    p->ip.b[at] &= (uint8_t)(0xff00u >> p->bits % 8);
    memset(p->ip.b + at + 1, 0, sizeof(p->ip.b) - at - 1);
}

size_t ft_prefixes_sort(struct ft_prefix *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        mask(&list[i]);
    if (count)
        qsort(list, count, sizeof(*list), compare);
    /* Prefixes do not overlap but lie in one another, behind the one that holds them. */
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !ft_prefix_has(&list[kept - 1], &list[i].ip))
            list[kept++] = list[i];
    return kept;
}

bool ft_prefixes_have(const struct ft_prefix *list, size_t count, const struct ft_ip *ip)
{
    const struct ft_prefix behind = {.ip = *ip, .bits = UINT_MAX};
    size_t next = ft_lower_bound(&behind, list, count, sizeof(*list), compare);

    /* The last that does not begin behind the address. */
    return next > 0 && ft_prefix_has(&list[next - 1], ip);
}
