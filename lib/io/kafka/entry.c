// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/entry.h"

#include <errno.h>
#include <string.h>

#include "lib/base/reader.h"

#define ENTRY_VERSION   3
#define ENTRY_WEIGHTED  3 /* with a weight, from it on */
#define ENTRY_UNDIVIDED 1 /* without a partition */

static void write_text(struct ft_writer *w, const char *text)
{
    ft_write_bytes(w, text, strlen(text) + 1);
}

int ft_kafka_entry_write(struct ft_writer *w, const struct ft_kafka_outgoing *m)
{
    if (m->key_len > UINT16_MAX || m->header_count > FT_KAFKA_HEADERS_MAX)
        return -EINVAL;
    ft_write_u8(w, ENTRY_VERSION);
    ft_write_u8(w, (uint8_t)m->header_count);
    ft_write_u8(w, (uint8_t)(m->key_len >> 8));
    ft_write_u8(w, (uint8_t)m->key_len);
    ft_write_be32(w, (uint32_t)m->partition);
    ft_write_be32(w, m->weight);
    write_text(w, m->topic);
    ft_write_bytes(w, m->key, m->key_len);
    for (size_t i = 0; i < m->header_count; i++) {
        write_text(w, m->headers[i].name);
        write_text(w, m->headers[i].value);
    }
    ft_write_bytes(w, m->value, m->len);
    return ft_writer_ok(w) ? 0 : -ENOSPC;
}

static const char *read_text(struct ft_reader *r)
{
    size_t left = ft_reader_left(r), len = strnlen((const char *)r->pos, left);

    return (const char *)ft_read_bytes(r, len + 1);
}

int ft_kafka_entry_read(const uint8_t *bytes, size_t len, struct ft_kafka_outgoing *message,
                        struct ft_kafka_header headers[FT_KAFKA_HEADERS_MAX])
{
    struct ft_kafka_outgoing m = {.headers = headers, .partition = -1};
    struct ft_reader r;
    uint8_t version;

    ft_reader_init(&r, bytes, len);
    version = ft_read_u8(&r);
    m.header_count = ft_read_u8(&r);
    m.key_len = ft_read_be16(&r);
    if (version != ENTRY_UNDIVIDED)
        m.partition = (int32_t)ft_read_be32(&r);
    if (version >= ENTRY_WEIGHTED)
        m.weight = ft_read_be32(&r);
    if (!ft_reader_ok(&r) || version < ENTRY_UNDIVIDED || version > ENTRY_VERSION ||
        m.header_count > FT_KAFKA_HEADERS_MAX)
        return -EBADMSG;
    m.topic = read_text(&r);
    m.key = (const char *)ft_read_bytes(&r, m.key_len);
    for (size_t i = 0; i < m.header_count && ft_reader_ok(&r); i++) {
        headers[i].name = read_text(&r);
        headers[i].value = read_text(&r);
    }
    m.len = ft_reader_left(&r);
    m.value = ft_read_bytes(&r, m.len);
    if (!ft_reader_ok(&r))
        return -EBADMSG;
    *message = m;
    return 0;
}

uint32_t ft_kafka_entry_weight(const uint8_t *bytes, size_t len)
{
    struct ft_kafka_header headers[FT_KAFKA_HEADERS_MAX];
    struct ft_kafka_outgoing m;

    return ft_kafka_entry_read(bytes, len, &m, headers) == 0 ? m.weight : 0;
}
