// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_STAND_H
#define FT_DAEMON_DIAGNOSIS_STAND_H
/*
 * Where an operation stands that all of its ranks have entered, by what their transfers wait for.
 *
 * That leads to the rank, or to the transfer in the network, that all others wait for; a rank that
 * only waits is none. Both ends of a transfer together show a proxy thread that does not progress:
 * it waits for what its peer has long sent, or for room that its peer has long given; or it has
 * begun with none of its transfers. What is sent and not completed is in the network, though the
 * peer has it: completions are lost there, too. Pure. Thread: one.
 */
#include <stdbool.h>

#include "daemon/diagnosis/recent.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/report.h"

#define FT_STAND_TEXT 256

struct ft_stand {
    bool known;
    bool in_network; /* or in its proxy; else the rank itself */
    bool proxy;
    enum ft_side side;                         /* of the proxy's transfer: that of the rank */
    const struct ft_recent_rank *rank;         /* the culprit */
    const struct ft_recent_rank *peer;         /* at the other end, NULL */
    const struct ft_recent_transfer *transfer; /* NULL: none */
    char reason[FT_STAND_TEXT];
};

/* Describes a transfer that is in the network. */
void ft_stand_of_transfer(const struct ft_recent *recent, const struct ft_recent_rank *rank,
                          const struct ft_recent_transfer *transfer, struct ft_stand *out);

/* Whether the peer says that it has got more than the sender knows to be completed. */
bool ft_stand_arrived(const struct ft_recent_rank *sender, const struct ft_recent_transfer *sent,
                      const struct ft_recent_rank *receiver);

/* Whether the receiver waits for anything of the sender on that channel. Where it does not, it has
 * it already, or, over sockets, did not ask for it. */
bool ft_stand_open(const struct ft_recent_rank *sender, const struct ft_recent_transfer *sent,
                   const struct ft_recent_rank *receiver);

/* Of two ranks that seem to wait for each other: the one whose process does not run; else, of one
 * communicator, what the one has sent, for which the other waits, or which it has. */
void ft_stand_between(const struct ft_recent *recent, const struct ft_recent_rank *a,
                      const struct ft_recent_rank *b, struct ft_stand *out);

/* Of the operation that the ranks of the communicator are in. */
void ft_stand_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                   const char *comm_id, struct ft_stand *out);

/* Puts what is known into a report; numbered: ranks have numbers of the job. */
void ft_stand_report(const struct ft_stand *stand, bool numbered, struct ft_diagnosis_report *r);

/* Whether the kernel says that its process does not run. */
bool ft_stand_is_stopped(const struct ft_recent_rank *rank);

#endif
