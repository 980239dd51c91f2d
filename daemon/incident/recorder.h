// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_INCIDENT_RECORDER_H
#define FT_DAEMON_INCIDENT_RECORDER_H
/*
 * Keeps what the pipeline was driven with over the last minutes, so that a replay drives another
 * one with the same: payloads as they came, the times, what the stages around it said.
 *
 * Segments of entries (entry.h), packed, in bounded memory: one that is too old goes, unless
 * somebody copies, and the oldest where there are too many bytes, which is counted. A replay can
 * begin at any segment.
 * Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/publish.h"
#include "lib/base/account.h"

struct ft_recorder;

struct ft_recorder_config {
    int64_t keep_ms;
    size_t bytes_max; /* a quarter more while somebody copies */
};

struct ft_recorder_stats {
    size_t segments, bytes;
    int64_t from_ms;  /* the first that is kept; 0: nothing is */
    uint64_t dropped; /* segments that went before their time */
    uint64_t lost;    /* without memory: nothing before is kept either */
};

/* NULL without memory. */
struct ft_recorder *ft_recorder_new(const struct ft_recorder_config *config);
void ft_recorder_free(struct ft_recorder *recorder);

/* The pipeline begins now, with this topology file (NULL: none), which is read; every other call
 * comes after it, and immediately before the pipeline is driven, but for a slice: after it. */
void ft_recorder_begin(struct ft_recorder *r, const char *topology, int64_t now_ms);
void ft_recorder_topology(struct ft_recorder *r, const char *file);
void ft_recorder_advance(struct ft_recorder *r, int64_t now_ms, uint32_t items);

void ft_recorder_gap(struct ft_recorder *r);

/* For struct ft_arrivals_tap. */
void ft_recorder_batch(void *recorder, const void *payload, size_t len);
void ft_recorder_refused(void *recorder, uint64_t number);
void ft_recorder_slice(void *recorder, int64_t now_ms, uint64_t steps, bool ended);

/* During an advance the account asked for these stages. */
void ft_recorder_stages(struct ft_recorder *r, const struct ft_account_stage *stages, size_t count);

/* For the publisher: one went out. */
void ft_recorder_published(void *recorder, const struct ft_published *out);

void ft_recorder_stats(const struct ft_recorder *r, struct ft_recorder_stats *stats);

/* What is kept since a moment, to be copied segment by segment while the recorder continues. */
struct ft_recording {
    uint64_t next, end; /* numbers of segments */
    bool from_start;    /* it begins where the pipeline began */
    int64_t from_ms, to_ms;
    const char *topology; /* in force at its beginning: good until the next call of anything */
    size_t topology_len;
};

/* Also appends what is in no segment yet to w, as a section, with the stages as they are now.
 * False: nothing is kept, or no memory; then nothing is held. */
bool ft_recorder_hold(struct ft_recorder *r, int64_t from_ms, const struct ft_account *now,
                      struct ft_recording *recording, struct ft_writer *w);
void ft_recorder_release(struct ft_recorder *r);

/* The next segment as a complete section of the file. 1; 0: that was all; -ESTALE: it had to go
 * meanwhile. */
int ft_recorder_copy(const struct ft_recorder *r, struct ft_recording *recording,
                     const uint8_t **bytes, size_t *len);

#endif
