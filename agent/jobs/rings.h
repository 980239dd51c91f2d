// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_RINGS_H
#define FT_AGENT_JOBS_RINGS_H
/*
 * The reading side of the memory that a training process shares (agent/nccl/segment.h).
 *
 * All of it is untrusted: descriptor, size and seals are checked before it is mapped, a record is
 * copied before it is looked at, and of the ring's own counters only those within its length are
 * believed. Whatever the job writes, the agent reads no byte outside and never waits.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/nccl/segment.h"

/* As the job and its readers counted them since the job started. */
struct ft_rings_stats {
    uint64_t events;
    uint64_t drops[FT_DROPS];
    uint64_t outside; /* of threads without a ring */
    uint64_t read;    /* by this agent and those before it */
    uint64_t lost;    /* read by agents that were killed before they published or reported them */
    uint64_t stray;   /* read by this agent, and of no operation that it knows */
    uint64_t broken;  /* rings whose counters could not be */
    uint64_t comms_refused;
    uint64_t drops_reported[FT_DROPS], outside_reported; /* already in the account of an agent */
};

struct ft_rings_comm {
    bool open;
    uint64_t comm_id;
    int32_t rank, ranks, nodes, abi;
    int64_t opened_ns;
    uint64_t begun; /* operations */
    char name[FT_SEGMENT_NAME];
    char gpu[FT_SEGMENT_TEXT];
};

/* A transfer or a kernel's channel in flight. Numbers are as the job wrote them, but for comm,
 * which is below FT_SEGMENT_COMMS, wait and open. */
struct ft_rings_flight {
    bool kernel, send, foreign;
    uint64_t number; /* of its operation; 0: not this process's */
    int64_t start_ns;
    int64_t moved_ns; /* when a step of it last began or ended, or changed what it waits for */
    uint32_t comm;
    int32_t rank, peer;
    uint32_t channel, expected, done, open; /* steps: in all, ended, in progress */
    enum ft_segment_wait wait;              /* of the step that is furthest, or of all */
    int64_t since_ns;
};

struct ft_rings;

/* Maps a descriptor, which stays the caller's. -EBADMSG when it is not such memory, of another
 * version, or not sealed; -errno of mmap(2); -ENOMEM. */
int ft_rings_open(int fd, struct ft_rings **rings);
void ft_rings_free(struct ft_rings *rings);

/* Hands over what is in the rings, `most` records at most, and continues with the next ring the
 * next time. Texts end within their bounds; everything else in a record is as the job wrote it.
 * Returns the records read; where that is less than `most`, all that was in the rings before was
 * read. */
uint64_t ft_rings_read(struct ft_rings *rings, uint32_t most,
                       void (*take)(void *arg, const struct ft_segment_record *record), void *arg);

/* Records in the rings that are not read. */
uint64_t ft_rings_waiting(const struct ft_rings *rings);

/* Reports the next agent that the events of read records have been published. */
void ft_rings_sent(struct ft_rings *rings, uint64_t events);

/* Counts events of read records that cannot be published. */
void ft_rings_stray(struct ft_rings *rings, uint64_t events);

/* Reports the next agent that what was dropped, lost or stray so far is in this one's account:
 * once, at the end. An agent that is killed reports nothing, so the next one counts its
 * forerunners' again. */
void ft_rings_reported(struct ft_rings *rings);

/* The i-th communicator, i below FT_SEGMENT_COMMS. False where there never was one, or while it is
 * being written. */
bool ft_rings_comm(const struct ft_rings *rings, uint32_t i, struct ft_rings_comm *comm);

/* What is in flight, `most` of it at most; whatever the job wrote, a bounded number is looked at.
 * Returns how many; *more: there are others. */
size_t ft_rings_flights(struct ft_rings *rings, struct ft_rings_flight *out, size_t most,
                        bool *more);

void ft_rings_job(const struct ft_rings *rings, char job[FT_SEGMENT_NAME]);
void ft_rings_stats(const struct ft_rings *rings, struct ft_rings_stats *stats);

#endif
