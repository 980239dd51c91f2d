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

struct ft_batch;

/* Of a batch of len bytes; none of them is read yet. NULL without memory. */
struct ft_batch *ft_batch_new(size_t len);
void ft_batch_free(struct ft_batch *batch);

/* Decodes or applies at most `most` records. bytes are the batch, each time; once a record has been
 * applied they are not looked at any more. 1: call again. 0: all is applied. -EBADMSG when the
 * bytes are no batch or stand for far more memory than a batch of theirs should, -ENOMEM: nothing
 * was applied, nor will be. A record lives until the batch is freed. */
int ft_batch_step(struct ft_batch *batch, const uint8_t *bytes, size_t most,
                  void (*apply)(void *arg, const Fabrictrace__Record *record), void *arg);

/* The records that are applied, and those without a kind that is known here, once all is. */
uint64_t ft_batch_known(const struct ft_batch *batch);
uint64_t ft_batch_unknown(const struct ft_batch *batch);

#endif
