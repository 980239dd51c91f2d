// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_OUTPUT_OUTPUT_H
#define FT_SWITCHPOLL_OUTPUT_OUTPUT_H
/*
 * Records out: in batches to a sender, or as NDJSON lines to a file.
 *
 * Input: records by ft_output_emit(), which fits struct ft_record_sink. A write error of a file is
 * kept and returned by ft_output_error(); from then on records are counted as dropped. Owner: the
 * caller. Thread: the loop's own.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/io/transport/transport.h"
#include "proto/fabrictrace.pb-c.h"
#include "switchpoll/output/gather.h"
#include "switchpoll/output/loss.h"

struct ft_output;

/* To a file, emptied first; "-" is standard output. NULL with a complaint that names the file. */
struct ft_output *ft_output_file(const char *file, char *error, size_t error_bytes);

/* To a sender, which stays the caller's, in payloads of about so many bytes at most. NULL without
 * memory. */
struct ft_output *ft_output_sender(struct ft_sender *sender, size_t payload_bytes);

/* Flushes first. */
void ft_output_free(struct ft_output *output);

/* Adds a record; writes when enough has gathered. arg is the output. */
void ft_output_emit(void *arg, const Fabrictrace__Record *record);

/* Gathers records as this output writes them, for a thread that hands their bytes over. NULL
 * without memory. Thread: any. */
struct ft_gather *ft_output_gather(const struct ft_output *output);

/* Takes records that were encoded elsewhere, and those that were lost there. */
void ft_output_add(struct ft_output *output, const uint8_t *bytes, size_t len, uint32_t records);
void ft_output_lost(struct ft_output *output, uint64_t records);

/* Writes or queues what has gathered. */
void ft_output_flush(struct ft_output *output);

/* 0, or -errno of the first failed write with its text in error. */
int ft_output_error(const struct ft_output *output, char *error, size_t error_bytes);

void ft_output_stats(const struct ft_output *output, struct ft_loss_transport *stats);

#endif
