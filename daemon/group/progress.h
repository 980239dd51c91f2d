// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_GROUP_PROGRESS_H
#define FT_DAEMON_GROUP_PROGRESS_H
/*
 * How far a daemon has read the topic of which it makes its windows, so that a window and the
 * offsets behind it are published in one transaction. Who continues after a kill reads every sample
 * of the windows that are not published yet, in the order of time: no window is closed before all
 * partitions are read as far as it would have been, and none is read further.
 *
 * A sample is never of a window beyond the next one (ft_join_observe_batch()). So those of windows
 * after W were all read after the window before W was sealed, and where the partitions were read to
 * then is from where they are read again. Parts of an aggregator say of which window they are.
 *
 * Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/kafka/producer.h"

struct ft_group_progress;

struct ft_group_progress_config {
    uint32_t partitions;
    int64_t window_ms, grace_ms;
    int64_t back_ms; /* what is older is not applied any more */
    bool of_parts;   /* of an aggregator: partials, instead of samples */
};

/* NULL without memory. */
struct ft_group_progress *ft_group_progress_new(const struct ft_group_progress_config *config);
void ft_group_progress_free(struct ft_group_progress *progress);

/* A partition is ours from an offset on; published_ms: the end of the last window that was
 * published with it, negative: none. It is not, or no longer. */
void ft_group_progress_gain(struct ft_group_progress *progress, uint32_t partition, int64_t from,
                            int64_t published_ms);
void ft_group_progress_lose(struct ft_group_progress *progress, uint32_t partition);

/* After the first partitions: when the window begins that is to be opened, as far as what was
 * published before reaches; -1: none was, the windows are those of now. */
int64_t ft_group_progress_begin(struct ft_group_progress *progress, int64_t now_ms);

/* Whether a message of then is to wait until the window that begins at window_ms is closed. */
bool ft_group_progress_holds(struct ft_group_progress *progress, uint32_t partition,
                             int64_t time_ms, int64_t window_ms);

/* A message was applied. */
void ft_group_progress_read(struct ft_group_progress *progress, uint32_t partition, int64_t offset);
/* It was a part of a window. */
void ft_group_progress_part(struct ft_group_progress *progress, int64_t offset, int64_t window_ms);
/* All was read that was there. */
void ft_group_progress_end(struct ft_group_progress *progress, uint32_t partition);

/* Whether windows of the past are still open, and the time by which they are: that of now unless
 * they are, and before the first partition the moment of its first call. */
bool ft_group_progress_is_behind(const struct ft_group_progress *progress);
int64_t ft_group_progress_now(struct ft_group_progress *progress, int64_t now_ms);

/* A window was sealed. */
void ft_group_progress_seal(struct ft_group_progress *progress);

/* From where the partitions are to be read again once the window that ended then is published;
 * room: of `partitions`. Returns how many. */
size_t ft_group_progress_list(struct ft_group_progress *progress, int64_t end_ms, const char *topic,
                              struct ft_kafka_position *list);

#endif
