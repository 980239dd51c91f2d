// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_INCIDENT_PLAYER_H
#define FT_DAEMON_INCIDENT_PLAYER_H
/*
 * Drives a pipeline with what a recorder kept (entry.h), and compares what comes out with what came
 * out then: the same settings, seed and input from the beginning on give the same to the byte.
 * Sections are foreign. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/pipeline/pipeline.h"
#include "daemon/publish/publish.h"

struct ft_player;

struct ft_player_stats {
    uint64_t batches, published; /* payloads; records that came out */
    uint64_t compared, differ;   /* stretches between two advances of the time */
    int64_t from_ms, to_ms;
};

/* fabric: its name where a topology file that comes later is empty. Borrowed. NULL without memory.
 */
struct ft_player *ft_player_new(struct ft_pipeline *pipeline, const char *fabric);
void ft_player_free(struct ft_player *player);

/* For ft_pipeline_on_account(): the stages around the recorded pipeline, as they were. */
void ft_player_account(void *player, struct ft_account *account);

/* For the publisher. */
void ft_player_published(void *player, const struct ft_published *out);

/* Plays a section. -EBADMSG: from an entry on, at *offset of it, it is broken; what is before is
 * played. -ENOMEM. */
int ft_player_section(struct ft_player *player, const uint8_t *bytes, size_t len, size_t *offset);

void ft_player_stats(const struct ft_player *player, struct ft_player_stats *stats);

/* The topology of a file's text (empty: none). NULL: it is none; the complaint is in diag. */
struct ft_topology *ft_player_topology(const char *text, size_t len, const char *fabric,
                                       struct ft_diag *diag);

#endif
