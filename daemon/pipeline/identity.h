// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_IDENTITY_H
#define FT_DAEMON_PIPELINE_IDENTITY_H
/*
 * Who a peer is by its certificate, and what it may report.
 *
 * A certificate says "URI:fabrictrace://agent/NAME" or "URI:fabrictrace://switchpoll/NAME": the
 * program and the source id; an agent's is its host, too. One with neither is that of an agent by
 * its "DNS:" names, in full or up to the first point, unless the configuration says otherwise. An
 * agent may report its own host alone: flows that end at its addresses, its queue pairs, ranks and
 * counters. An address belongs to the host that the topology file gives it to, then to that whose
 * certificate has it ("IP:"), then to the first that reports it, for as long as it does. A poller
 * may report switches of its inventory. Pure; times are in Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/config/options.h"
#include "lib/fabric/topology.h"
#include "lib/io/transport/transport.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/observed.h"

#define FT_IDENTITY_TEXT_BYTES 256

struct ft_identities;
struct ft_identity;

struct ft_identities_config {
    const struct ft_strings *peers;     /* "URI:...=agent/NAME": what other names stand for */
    const struct ft_strings *inventory; /* "NAME=PREFIX[,PREFIX]...": a poller's switches */
    size_t addresses_max;               /* whose first reporter is remembered */
    uint64_t seed;
};

/* Whether an item of the two lists is one. */
bool ft_identity_is_peer(const char *text);
bool ft_identity_is_inventory(const char *text);

/* Copies the lists, which were checked. NULL without memory. */
struct ft_identities *ft_identities_new(const struct ft_identities_config *config);
void ft_identities_free(struct ft_identities *ids);

/* A peer that says it is this program and source. NULL with a reason where the names do not say so,
 * or without memory. Free it before the identities. */
struct ft_identity *ft_identity_new(const struct ft_identities *ids, const char *program,
                                    const char *source_id, const struct ft_peer_names *names,
                                    char *reason, size_t reason_bytes);
void ft_identity_free(struct ft_identity *identity);

/* Whether the peer may report this, by the topology of the file among others. If not, reason says
 * what is not its own. */
bool ft_identity_allows(struct ft_identities *ids, const struct ft_identity *identity,
                        const Fabrictrace__Record *record, const struct ft_topology *file,
                        int64_t now_ms, char reason[FT_IDENTITY_TEXT_BYTES]);

/* The same of an observation. */
bool ft_identity_allows_observed(const struct ft_identity *identity, const struct ft_observed *o,
                                 char reason[FT_IDENTITY_TEXT_BYTES]);

#endif
