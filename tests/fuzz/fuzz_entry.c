// SPDX-License-Identifier: Apache-2.0
/* A Kafka message as it lies in the spool: it is refused, or lies within the bytes, and is the same
 * after it was written and read once more. */
#include "config.h"

#include "lib/io/kafka/entry.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static const uint8_t *first, *end;

static bool is_inside(const void *at, size_t len)
{
    const uint8_t *p = at;

    return p >= first && p <= end && len <= (size_t)(end - p);
}

static bool is_text(const char *text)
{
    return is_inside(text, 1) && memchr(text, 0, (size_t)(end - (const uint8_t *)text));
}

static void check_inside(const struct ft_kafka_outgoing *m)
{
    ft_fuzz_assert(is_text(m->topic), "the topic ends");
    ft_fuzz_assert(is_inside(m->key, m->key_len), "the key is there");
    ft_fuzz_assert(m->header_count <= FT_KAFKA_HEADERS_MAX, "headers have room");
    for (size_t i = 0; i < m->header_count; i++)
        ft_fuzz_assert(is_text(m->headers[i].name) && is_text(m->headers[i].value), "headers end");
    ft_fuzz_assert(is_inside(m->value, m->len) && (const uint8_t *)m->value + m->len == end,
                   "the value goes to the end");
}

static void check_same(const struct ft_kafka_outgoing *a, const struct ft_kafka_outgoing *b)
{
    ft_fuzz_assert(strcmp(a->topic, b->topic) == 0 && a->partition == b->partition &&
                       a->weight == b->weight,
                   "it goes to the same place");
    ft_fuzz_assert(a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0, "its key");
    ft_fuzz_assert(a->len == b->len && memcmp(a->value, b->value, a->len) == 0, "its value");
    ft_fuzz_assert(a->header_count == b->header_count, "as many headers");
    for (size_t i = 0; i < a->header_count; i++)
        ft_fuzz_assert(strcmp(a->headers[i].name, b->headers[i].name) == 0 &&
                           strcmp(a->headers[i].value, b->headers[i].value) == 0,
                       "each header");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_kafka_header headers[FT_KAFKA_HEADERS_MAX], again_headers[FT_KAFKA_HEADERS_MAX];
    struct ft_kafka_outgoing m, again;
    struct ft_writer w;
    int rc = ft_kafka_entry_read(bytes, len, &m, headers);

    ft_fuzz_assert(rc == 0 || rc == -EBADMSG, "a known result");
    ft_fuzz_assert(ft_kafka_entry_weight(bytes, len) == (rc ? 0 : m.weight), "its weight");
    if (rc)
        return 0;
    first = bytes;
    end = bytes + len;
    check_inside(&m);
    ft_writer_init(&w, len + 16);
    ft_fuzz_assert(ft_kafka_entry_write(&w, &m) == 0, "it can be written");
    ft_fuzz_assert(ft_kafka_entry_read(w.bytes, w.len, &again, again_headers) == 0, "and read");
    check_same(&m, &again);
    ft_writer_free(&w);
    return 0;
}
