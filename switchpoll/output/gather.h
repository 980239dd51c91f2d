// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_OUTPUT_GATHER_H
#define FT_SWITCHPOLL_OUTPUT_GATHER_H
/*
 * Records into the bytes of a payload: a batch with observations in columns, or lines of JSON.
 *
 * What was added is in columns until it is packed, which happens when they are full, before a
 * record of another kind (the order stays) and by ft_gather_finish(). Owner: the caller. Thread:
 * one at a time.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_gather;

/* For payloads of about so many bytes, at most; 0: lines of JSON. NULL without memory. */
struct ft_gather *ft_gather_new(size_t payload_bytes);
void ft_gather_free(struct ft_gather *gather);

/* Above 0: added, and enough is packed to go out. Below: this record is lost. */
int ft_gather_add(struct ft_gather *gather, const Fabrictrace__Record *record);

/* Packs what is in columns. */
void ft_gather_finish(struct ft_gather *gather);

/* What is packed, and the records in it; empty it when it is used, or take the bytes over. */
const struct ft_writer *ft_gather_packed(const struct ft_gather *gather);
uint32_t ft_gather_records(const struct ft_gather *gather);
void ft_gather_empty(struct ft_gather *gather);
void ft_gather_take(struct ft_gather *gather, struct ft_writer *bytes);

/* Records that wait in columns, and those that were lost there since this was asked last. */
uint32_t ft_gather_waiting(const struct ft_gather *gather);
uint32_t ft_gather_lost(struct ft_gather *gather);

#endif
