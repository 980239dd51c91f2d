// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_STORE_H
#define FT_DAEMON_API_STORE_H
/*
 * The link and imbalance records of the last closed window, kept as JSON for the HTTP API.
 *
 * A sink of the publisher: records gather in one half while the other answers; the fabric's
 * imbalance record, which is the last of a window, swaps the halves. Thread: the loop's.
 */
#include <stddef.h>

#include "daemon/publish/publish.h"

struct ft_store;

/* The store as a sink, which frees it; *store is good as long as the sink is. NULL without memory.
 * bytes_max caps each half; what is over it is counted as failed. */
struct ft_sink *ft_store_new(size_t bytes_max, struct ft_store **store);

enum ft_store_kind {
    FT_STORE_LINK,
    FT_STORE_IMBALANCE,
};

/* Each kept record of a kind: its Kafka key, its group (links; "" without one) and its JSON. */
void ft_store_each(const struct ft_store *store, enum ft_store_kind kind,
                   void (*each)(void *arg, const char *key, const char *group, const char *json,
                                size_t len),
                   void *arg);

#endif
