// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_COLLECTIVE_RECORD_H
#define FT_AGENT_JOBS_COLLECTIVE_RECORD_H
/*
 * From operations and communicators of training jobs to records of fabrictrace.proto. Pure; nothing
 * is allocated. Everything that a job wrote is checked here: a number that cannot be is left out, a
 * text keeps printable characters only.
 */
#include "agent/jobs/collectives.h"
#include "agent/jobs/rings.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_COLLECTIVE_PEERS_MAX 128
#define FT_COMM_ID_BYTES        17

/* Who reports; texts are borrowed. offset_ms is the wall clock minus the monotonic one. */
struct ft_job_identity {
    const char *host;
    const char *job; /* empty: not known */
    uint32_t pid;    /* 0: not known, of another PID namespace */
    int64_t offset_ms;
};

struct ft_collective_record {
    Fabrictrace__Record record;
    Fabrictrace__Collective collective;
    Fabrictrace__PeerTraffic peers[FT_COLLECTIVE_PEERS_MAX];
    Fabrictrace__PeerTraffic *peer_list[FT_COLLECTIVE_PEERS_MAX];
    uint32_t qps[FT_COLLECTIVE_PEERS_MAX][FT_RECORD_QPS];
    char comm_id[FT_COMM_ID_BYTES];
    char op[FT_SEGMENT_TEXT], datatype[FT_SEGMENT_TEXT];
    char algo[FT_SEGMENT_TEXT], proto[FT_SEGMENT_TEXT];
};

struct ft_communicator_record {
    Fabrictrace__Record record;
    Fabrictrace__Communicator communicator;
    char comm_id[FT_COMM_ID_BYTES];
    char name[FT_SEGMENT_NAME], gpu[FT_SEGMENT_TEXT];
};

/* For these records. A copy of a job's text with printable characters alone, NULL when nothing is
 * left of it; whether a number can be a rank; Unix milliseconds of a monotonic time. */
char *ft_job_text(char *to, size_t to_bytes, const char *from);
bool ft_job_is_rank(int32_t rank);
uint64_t ft_job_wall_ms(int64_t mono_ns, const struct ft_job_identity *who);

/* Both fill *out, which stays where it is while the record is used. */
void ft_collective_record_fill(struct ft_collective_record *out, const struct ft_collective *c,
                               const struct ft_job_identity *who);
void ft_communicator_record_fill(struct ft_communicator_record *out,
                                 const struct ft_rings_comm *comm, bool closed,
                                 const struct ft_job_identity *who, int64_t now_ms);

#endif
