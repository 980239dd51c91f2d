// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_ARRIVALS_H
#define FT_DAEMON_PIPELINE_ARRIVALS_H
/*
 * Batches of records that peers send: decoded in slices, held against what their sender may report,
 * and handed to the pipeline. Owner: the daemon. Thread: the loop's own.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/pipeline/identity.h"
#include "daemon/pipeline/pipeline.h"
#include "lib/base/log.h"
#include "proto/batch.h"

/* Who keeps what comes in, for a replay: a payload as it begins, each record of the slice that is
 * refused (from 1), and the slice once it is over: the time of all of its records, its steps of
 * FT_ARRIVALS_STEP records, and whether the batch is over. */
#define FT_ARRIVALS_STEP 64
struct ft_arrivals_tap {
    void (*batch)(void *arg, const void *payload, size_t len);
    void (*refused)(void *arg, uint64_t number);
    void (*slice)(void *arg, int64_t now_ms, uint64_t steps, bool ended);
    void *arg;
};

/* One batch at a time is in progress. */
struct ft_arrivals {
    const struct ft_arrivals_tap *tap; /* NULL: nobody; borrowed */
    struct ft_batch *batch;            /* NULL: none */
    struct ft_log_limit identity_limit, broken_limit;
};

/* Where a batch comes from and goes to. */
struct ft_arrival {
    struct ft_pipeline *pipeline;
    struct ft_identities *identities;
    const struct ft_identity *sender; /* NULL: may report anything */
    const char *source, *program;
};

void ft_arrivals_open(struct ft_arrivals *arrivals);
void ft_arrivals_close(struct ft_arrivals *arrivals);

/* A slice of a batch, none while the pipeline looks at the fabric anew, in the sense of apply() of
 * struct ft_receiver_config: above 0, there is more to do with the same bytes. -EBADMSG, -ENOMEM:
 * nothing of it was applied. */
int ft_arrivals_apply(struct ft_arrivals *arrivals, const struct ft_arrival *from,
                      const uint8_t *payload, size_t len);

/* All of a batch at once, which is small against what a slice may take, behind one over TCP that is
 * begun (receiver; NULL: none can be). What the pipeline has in progress it does not wait for. */
int ft_arrivals_apply_all(struct ft_arrivals *arrivals, const struct ft_arrival *from,
                          struct ft_receiver *receiver, const uint8_t *payload, size_t len);

/* Adds the stages of what comes over TCP: "transport" and "peers". */
void ft_arrivals_account(const struct ft_receiver *receiver, struct ft_account *account);

#endif
