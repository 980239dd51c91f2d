// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_WIRING_H
#define FT_DAEMON_DISCOVERY_WIRING_H
/*
 * What samples say of the cables (lib/fabric/crossings.h), held against the present topology.
 *
 * Observations of known and unknown switches go in; a switch of the topology goes by its first
 * address, whichever it exports with, and its ports by their own ifIndex, whichever its samples
 * name. Each link of the topology is confirmed when samples of both its ends agree with it. What
 * contradicts it, and links that no other source reports, are for the survey
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
void ft_wiring_restart(struct ft_wiring *w);

/* Takes an observation. True when its packets came from a host by the port in, of a switch that is
 * known from samples. */
bool ft_wiring_observe(struct ft_wiring *w, const struct ft_observation *o, uint8_t ttl,
                       int64_t now_ms);

/* Continues with the judgement, a part of the links each time. changed: what is to be reported of
 * the link that leaves a port is another thing. */
void ft_wiring_step(struct ft_wiring *w, int64_t now_ms, void (*changed)(void *arg, uint32_t port),
                    void *arg);

/* Whether links were found or contradicted since the last call. */
bool ft_wiring_take_news(struct ft_wiring *w);

/* Whether flows leave the switch of a port for other switches by a port whose link is not known:
 * what is known of its links is not all. */
bool ft_wiring_missing(const struct ft_wiring *w, uint32_t port);

/* Of the link that leaves a port. */
bool ft_wiring_confirms(const struct ft_wiring *w, uint32_t port);
struct ft_crossing_proof ft_wiring_proof(const struct ft_wiring *w, uint32_t port);

struct ft_crossings *ft_wiring_crossings(const struct ft_wiring *w);

/* For the doctor: what samples leave open, some thousand ports a call. index begins at 0; false:
 * that was all. */
bool ft_wiring_find(const struct ft_wiring *w, int64_t now_ms, uint32_t *index,
                    struct ft_findings *findings);

/* Adds its stage: received = processed + drops. */
void ft_wiring_account(const struct ft_wiring *w, struct ft_account *account);

#endif
