// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/tuple.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool ft_ip_is4(const struct ft_ip *ip)
{
    return memcmp(ip->b, mapped, sizeof(mapped)) == 0;
}

int ft_ip_from_bytes(const uint8_t *bytes, size_t len, struct ft_ip *ip)
{
    if (len == 4)
        *ip = ft_ip4(bytes);
    else if (len == 16)
        *ip = ft_ip6(bytes);
    else
        return -EINVAL;
    return 0;
}

const uint8_t *ft_ip_bytes(const struct ft_ip *ip, size_t *len)
{
    if (ft_ip_is4(ip)) {
        *len = 4;
        return ip->b + sizeof(mapped);
    }
    *len = sizeof(ip->b);
    return ip->b;
}

int ft_ip_parse(const char *text, struct ft_ip *ip)
{
    uint8_t bytes[16];

    if (inet_pton(AF_INET, text, bytes) == 1)
        *ip = ft_ip4(bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        *ip = ft_ip6(bytes);
    else
        return -EINVAL;
    return 0;
}

void ft_ip_format(const struct ft_ip *ip, char text[FT_IP_TEXT_BYTES])
{
    if (ft_ip_is4(ip))
        inet_ntop(AF_INET, ip->b + sizeof(mapped), text, FT_IP_TEXT_BYTES);
    else
        inet_ntop(AF_INET6, ip->b, text, FT_IP_TEXT_BYTES);
}

static int parse_number(const char *text, unsigned long max, unsigned long *value)
{
    char *end;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *value = strtoul(text, &end, 10);
    return errno || *end || *value > max ? -EINVAL : 0;
}

/* Cuts "addr:port", "[addr]:port" or a bare address at its port; *port is NULL without one. */
static int parse_end(char *text, struct ft_ip *ip, const char **port)
{
    char *addr = text;
    char *cut;

    *port = NULL;
    if (*text == '[') {
        addr = text + 1;
        cut = strchr(addr, ']');
        if (!cut)
            return -EINVAL;
        *cut++ = '\0';
        if (*cut == ':')
            *port = cut + 1;
        else if (*cut)
            return -EINVAL;
    } else {
        cut = strchr(text, ':');
        if (cut && !strchr(cut + 1, ':')) {
            *cut = '\0';
            *port = cut + 1;
        }
    }
    return ft_ip_parse(addr, ip);
}

static int parse_key(char *text, struct ft_tuple *tuple)
{
    char *part[5];
    char *save = NULL;
    unsigned long sport, dport, proto;

    for (int i = 0; i < 5; i++) {
        part[i] = strtok_r(i ? NULL : text, ",", &save);
        if (!part[i])
            return -EINVAL;
    }
    if (strtok_r(NULL, ",", &save) || ft_ip_parse(part[0], &tuple->src) ||
        ft_ip_parse(part[1], &tuple->dst) || parse_number(part[2], UINT16_MAX, &sport) ||
        parse_number(part[3], UINT16_MAX, &dport) || parse_number(part[4], UINT8_MAX, &proto))
        return -EINVAL;
    tuple->sport = (uint16_t)sport;
    tuple->dport = (uint16_t)dport;
    tuple->proto = (uint8_t)proto;
    return 0;
}

int ft_tuple_parse(const char *text, struct ft_tuple *tuple)
{
    struct ft_tuple t = {.dport = FT_ROCE_PORT, .proto = FT_PROTO_UDP};
    char copy[FT_TUPLE_TEXT_BYTES];
    const char *sport, *dport;
    unsigned long port, proto;
    char *dash, *slash;

    if (strlen(text) >= sizeof(copy))
        return -EINVAL;
    strcpy(copy, text);
    if (strchr(copy, ',')) {
        if (parse_key(copy, &t))
            return -EINVAL;
        *tuple = t;
        return 0;
    }
    dash = strchr(copy, '-');
    if (!dash)
        return -EINVAL;
    *dash = '\0';
    slash = strchr(dash + 1, '/');
    if (slash) {
        *slash = '\0';
        if (parse_number(slash + 1, UINT8_MAX, &proto))
            return -EINVAL;
        t.proto = (uint8_t)proto;
    }
    if (parse_end(copy, &t.src, &sport) || !sport || parse_number(sport, UINT16_MAX, &port))
        return -EINVAL;
    t.sport = (uint16_t)port;
    if (parse_end(dash + 1, &t.dst, &dport))
        return -EINVAL;
    if (dport) {
        if (parse_number(dport, UINT16_MAX, &port))
            return -EINVAL;
        t.dport = (uint16_t)port;
    }
    *tuple = t;
    return 0;
}

void ft_tuple_format(const struct ft_tuple *tuple, char text[FT_TUPLE_TEXT_BYTES])
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES];
    bool six = !ft_ip_is4(&tuple->src) || !ft_ip_is4(&tuple->dst);
    int n;

    ft_ip_format(&tuple->src, src);
    ft_ip_format(&tuple->dst, dst);
    n = snprintf(text, FT_TUPLE_TEXT_BYTES, six ? "[%s]:%u-[%s]:%u" : "%s:%u-%s:%u", src,
                 tuple->sport, dst, tuple->dport);
    if (tuple->proto != FT_PROTO_UDP)
        snprintf(text + n, FT_TUPLE_TEXT_BYTES - (size_t)n, "/%u", tuple->proto);
}

void ft_tuple_format_key(const struct ft_tuple *tuple, char text[FT_TUPLE_TEXT_BYTES])
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES];

    ft_ip_format(&tuple->src, src);
    ft_ip_format(&tuple->dst, dst);
    snprintf(text, FT_TUPLE_TEXT_BYTES, "%s,%s,%u,%u,%u", src, dst, tuple->sport, tuple->dport,
             tuple->proto);
}
