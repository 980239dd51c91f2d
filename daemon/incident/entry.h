// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_INCIDENT_ENTRY_H
#define FT_DAEMON_INCIDENT_ENTRY_H
/*
 * What the pipeline was driven with, entry by entry, as a section of an incident's file holds it.
 *
 * A section begins with a time (8 bytes, Unix milliseconds), to which the times of its entries add
 * up, each as the difference to the one before. An entry is its kind (1 byte) and then:
 *
 *   BATCH      length, bytes: a payload as a peer sent it (a protobuf Batch)
 *   SLICE      time, steps, refused..., 0: so many steps of that batch were applied; the numbers of
 *              the records that their sender must not report, from 1, each as the difference
 *   ADVANCE    time, items: the time went on, and so many items of a window's close were allowed
 *   STAGES     count, and for each: name, unit, received, processed, pending, count of drops, and
 *              for each: reason, count. The stages around the pipeline, as its account asked for
 *              them
 *   TOPOLOGY   length, text: another topology file was taken over; empty: none
 *   PUBLISHED  records, digest (8 bytes): what came out since the one before
 *   GAP        of the sender of the next batch what it sent before is not there
 *
 * Numbers are varints (7 bits a byte, the lowest first; differences of times in zigzag), texts a
 * byte of length and the bytes. Pure. Thread: any.
 */
#include "lib/base/account.h"
#include "lib/base/reader.h"
#include "lib/base/writer.h"

enum ft_entry_kind {
    FT_ENTRY_BATCH = 1,
    FT_ENTRY_SLICE,
    FT_ENTRY_ADVANCE,
    FT_ENTRY_STAGES,
    FT_ENTRY_TOPOLOGY,
    FT_ENTRY_PUBLISHED,
    FT_ENTRY_GAP,
};

/* Times beyond (2096) are none: windows of a second are counted in 32 bits. */
#define FT_ENTRY_TIME_MAX INT64_C(4000000000000)

struct ft_entry {
    enum ft_entry_kind kind;
    int64_t now_ms; /* SLICE, ADVANCE */
    uint64_t steps; /* SLICE */
    uint64_t items; /* ADVANCE */
    uint64_t records, digest;
    const uint8_t *bytes; /* BATCH, TOPOLOGY; borrowed */
    size_t len;
    struct ft_reader list; /* of SLICE: for ft_entry_refused(); of STAGES: for ft_entry_stages() */
};

/* now_ms: the time of the entry before, which is moved on. */
void ft_entry_batch(struct ft_writer *w, const void *bytes, size_t len);
void ft_entry_slice(struct ft_writer *w, int64_t *now_ms, int64_t at_ms, uint64_t steps,
                    const uint64_t *refused, size_t count);
void ft_entry_advance(struct ft_writer *w, int64_t *now_ms, int64_t at_ms, uint64_t items);
void ft_entry_stages(struct ft_writer *w, const struct ft_account_stage *stages, size_t count);
void ft_entry_topology(struct ft_writer *w, const char *text, size_t len);
void ft_entry_published(struct ft_writer *w, uint64_t records, uint64_t digest);
void ft_entry_gap(struct ft_writer *w);

/* Reads the next entry completely, also its lists. False: it is broken, or there is none. */
bool ft_entry_read(struct ft_reader *r, int64_t *now_ms, struct ft_entry *out);

/* The next number of a record that was refused, after *number; false: that was all. */
bool ft_entry_refused(struct ft_entry *entry, uint64_t *number);

/* The stages, whose names are what keep() makes of them (NULL: without memory, false then). */
bool ft_entry_read_stages(struct ft_entry *entry, struct ft_account *out,
                          const char *(*keep)(void *arg, const char *text, size_t len), void *arg);

#endif
