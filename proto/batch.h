// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_BATCH_H
#define FT_PROTO_BATCH_H
/*
 * A received batch in steps, so that millions of records do not keep a loop: first all of it
 * is decoded, then each record is applied, in order.
 *
 * Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "proto/fabrictrace.pb-c.h"
#include "proto/observed.h"

struct ft_batch;

/* Who takes a batch. Observations in columns come one by one; without observed() the record that
 * they are in comes as any other. */
struct ft_batch_sink {
    void (*record)(void *arg, const Fabrictrace__Record *record);
    void (*observed)(void *arg, const struct ft_observed *o);
    void *arg;
};

/* Of a batch of len bytes; none of them is read yet. NULL without memory. */
struct ft_batch *ft_batch_new(size_t len);
void ft_batch_free(struct ft_batch *batch);

/* Decodes at most `most` records, or applies as many, each observation being one. bytes are the
 * batch, each time; once a record has been applied they are not looked at any more. 1: call again.
 * 0: all is applied. -EBADMSG when the bytes are no batch or stand for far more memory than a batch
 * of theirs should, or columns do not fit together, -ENOMEM: nothing was applied, nor will be. A
 * record lives until the batch is freed. */
int ft_batch_step(struct ft_batch *batch, const uint8_t *bytes, size_t most,
                  const struct ft_batch_sink *sink);

/* The records that are applied, and those without a kind that is known here, once all is. */
uint64_t ft_batch_known(const struct ft_batch *batch);
uint64_t ft_batch_unknown(const struct ft_batch *batch);

#endif
