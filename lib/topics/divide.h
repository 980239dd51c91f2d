// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TOPICS_DIVIDE_H
#define FT_TOPICS_DIVIDE_H
/*
 * A batch as it would go to one daemon, divided among the partitions of the ingest topics: each
 * record of a flow goes where its 5-tuple says, in its order. Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/topics/envelope.h"

/* A part of a batch: a batch itself, which is borrowed. */
struct ft_divided {
    enum ft_ingest_topic topic;
    uint32_t partition; /* of FT_INGEST_FLOWS; of the others the source's is the sender's to know */
    const char *key;    /* of FT_INGEST_STATE: what is said anew replaces what was; else "" */
    const uint8_t *batch;
    size_t len;
    uint32_t records;
};

struct ft_divide;

struct ft_divide_sink {
    void (*part)(void *arg, const struct ft_divided *part);
    void *arg;
};

/* Parts of about so many bytes at most. NULL without memory. */
struct ft_divide *ft_divide_new(uint32_t partitions, size_t part_bytes_max);
void ft_divide_free(struct ft_divide *divide);

/* Hands over each part of a batch before it returns; without memory a record may be in none.
 * -EBADMSG, -ENOMEM: nothing was handed over. */
int ft_divide_batch(struct ft_divide *divide, const uint8_t *batch, size_t len,
                    const struct ft_divide_sink *sink);

#endif
