// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_WIRING_H
#define FT_DAEMON_DISCOVERY_WIRING_H
/*
 * Links found by samples (lib/fabric/crossings.h), compared with the present topology.
 *
 * Observations of known and unknown switches go in; a switch of the topology is identified by its
 * first address, whichever it exports from, and its ports by their own ifIndex, also where samples
 * name an aggregate. Each link of the topology is confirmed when samples of both its ends agree
 * with it. Contradictions, and links that no other source reports, are for the survey
 * (daemon/discovery/survey_samples.c). Pure; times come with the records. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/findings.h"
#include "lib/base/account.h"
#include "lib/fabric/crossings.h"
#include "lib/fabric/topology.h"

struct ft_wiring;

/* The topology is borrowed until another is followed. NULL without memory. */
struct ft_wiring *ft_wiring_new(const struct ft_crossings_config *config,
                                const struct ft_topology *t);
void ft_wiring_free(struct ft_wiring *w);

/* Judges every link of another topology. -ENOMEM: the old one stays. */
int ft_wiring_follow(struct ft_wiring *w, const struct ft_topology *t);

/* Which switches of the present topology something besides samples reports: the file, LLDP. Those
 * that samples alone name share a part of the memory. Until this says otherwise all are listed. */
void ft_wiring_list(struct ft_wiring *w, bool (*is_listed)(void *arg, uint32_t switch_id),
                    void *arg);
void ft_wiring_restart(struct ft_wiring *w);

/* Takes an observation. True when its packets came from a host by the port in, of a switch that is
 * known from samples. */
bool ft_wiring_observe(struct ft_wiring *w, const struct ft_observation *o, uint8_t ttl,
                       int64_t now_ms);

/* Continues to check the links, some in each call. changed: called for the port of each link whose
 * result changed. */
void ft_wiring_step(struct ft_wiring *w, int64_t now_ms, void (*changed)(void *arg, uint32_t port),
                    void *arg);

/* Whether links were found or contradicted since the last call. */
bool ft_wiring_take_news(struct ft_wiring *w);

/* Whether flows leave the switch of a port for other switches by a port whose link is not known:
 * what is known of its links is not all. */
bool ft_wiring_missing(const struct ft_wiring *w, uint32_t port);

/* Of the link that leaves a port. */
bool ft_wiring_confirms(const struct ft_wiring *w, uint32_t port);
bool ft_wiring_contradicts(const struct ft_wiring *w, uint32_t port);
struct ft_crossing_proof ft_wiring_proof(const struct ft_wiring *w, uint32_t port);

struct ft_crossings *ft_wiring_crossings(const struct ft_wiring *w);

/* For the doctor: links that samples cannot confirm, some thousand ports a call. index begins at 0;
 * false: that was all. */
bool ft_wiring_find(const struct ft_wiring *w, int64_t now_ms, uint32_t *index,
                    struct ft_findings *findings);

/* Adds its stage: received = processed + drops. */
void ft_wiring_account(const struct ft_wiring *w, struct ft_account *account);

#endif
