// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/nlattr.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>

#define HEAD_BYTES 4

static void read_value(const struct ft_nlattr *attr, void *out, size_t n, bool *bad)
{
    struct ft_reader r = attr->value;
    const uint8_t *bytes = ft_reader_left(&r) == n ? ft_read_bytes(&r, n) : NULL;

    if (bytes)
        memcpy(out, bytes, n);
    else
        *bad = true;
}

int ft_nlattr_next(struct ft_reader *r, struct ft_nlattr *attr)
{
    const uint8_t *head;
    uint16_t len, type;
    size_t padding;

    if (ft_reader_left(r) == 0)
        return ft_reader_ok(r) ? 0 : -EBADMSG;
    head = ft_read_bytes(r, HEAD_BYTES);
    if (!head)
        return -EBADMSG;
    memcpy(&len, head, sizeof(len));
    memcpy(&type, head + sizeof(len), sizeof(type));
    if (len < HEAD_BYTES)
        return -EBADMSG;
    attr->type = type & NLA_TYPE_MASK;
    ft_read_child(r, len - HEAD_BYTES, &attr->value);
    if (!ft_reader_ok(r))
        return -EBADMSG;
    /* The last one need not be padded. */
    padding = NLA_ALIGN(len) - len;
    ft_read_skip(r, padding < ft_reader_left(r) ? padding : ft_reader_left(r));
    return 1;
}

uint8_t ft_nlattr_u8(const struct ft_nlattr *attr, bool *bad)
{
    uint8_t v = 0;

    read_value(attr, &v, sizeof(v), bad);
    return v;
}

uint32_t ft_nlattr_u32(const struct ft_nlattr *attr, bool *bad)
{
    uint32_t v = 0;

    read_value(attr, &v, sizeof(v), bad);
    return v;
}

uint64_t ft_nlattr_u64(const struct ft_nlattr *attr, bool *bad)
{
    uint64_t v = 0;

    read_value(attr, &v, sizeof(v), bad);
    return v;
}

void ft_nlattr_text(const struct ft_nlattr *attr, char *text, size_t text_bytes)
{
    struct ft_reader r = attr->value;
    size_t len = ft_reader_left(&r);
    const uint8_t *bytes = ft_read_bytes(&r, len);

    len = bytes ? strnlen((const char *)bytes, len) : 0;
    if (len >= text_bytes)
        len = text_bytes - 1;
    if (len > 0)
        memcpy(text, bytes, len);
    text[len] = '\0';
}
