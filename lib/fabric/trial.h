// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_TRIAL_H
#define FT_FABRIC_TRIAL_H
/*
 * A flow's evidence held against the equal-cost paths between its ends. Shared by what weighs it
 * alone: judge.c (the verdict), attested.c (what links were sampled), departure.c (where it left a
 * path), shares.c (several paths at once). Pure.
 */
#include "lib/fabric/evidence_impl.h"

#define FT_CANDIDATES_LIMIT 65536
/* Candidate paths that are compared hop by hop for what they agree on; beyond that, nothing is
 * certain. */
#define FT_COMPARED_MAX 64

/* The case of one flow. Arrays are by sighting. */
struct ft_trial {
    const struct ft_judging *by;
    const struct ft_topology *t;
    const struct ft_sighting *list;
    uint16_t count;
    uint32_t stage[FT_SIGHTINGS_MAX]; /* FT_NONE: on no equal-cost path */
    bool use[FT_SIGHTINGS_MAX];       /* what a walk must satisfy */
    bool usable[FT_SIGHTINGS_MAX];    /* evidence of where the flow goes, or went */
    bool recent[FT_SIGHTINGS_MAX];    /* of these: since it was last seen elsewhere, and certain */
    uint32_t left;                    /* the last sighting elsewhere; FT_NONE */
    int64_t outlier_ms;               /* the last sample on no path that was set aside */
    bool known;                       /* a switch of the topology saw the flow */
    bool strange;                     /* another one did */
    bool off_path;
    bool uncertain; /* some evidence is uncertain, and is left out of what is recent */
};

/* Everything usable counts, nothing is recent yet. */
void ft_trial_init(struct ft_trial *trial, const struct ft_evidence *ev,
                   const struct ft_judging *by);

/* `use` and the like are arrays by sighting. Counts the paths that satisfy the sightings, up to
 * limit, and stores the first max of them. */
uint64_t ft_trial_paths(struct ft_trial *trial, const bool *use, struct ft_path *paths, size_t max,
                        uint64_t limit);

/* Whether one path satisfies all of them. */
bool ft_trial_fits(struct ft_trial *trial, const bool *use);

/* The only path that the sightings allow; false when there are several, or none. */
bool ft_trial_only_path(struct ft_trial *trial, const bool *use, struct ft_path *path);

/* Their newest sample; INT64_MIN without any. */
int64_t ft_trial_newest_ms(const struct ft_trial *trial, const bool *use);

bool ft_trial_any(const struct ft_trial *trial, const bool *use);

/* The usable sighting that was seen last before a moment, or in it behind the i-th; FT_NONE. */
uint32_t ft_trial_seen_before(const struct ft_trial *trial, uint32_t last);

/* Of the sightings, the newest that leave no more than the one path. */
void ft_trial_newest_enough(struct ft_trial *trial, const bool *use, bool *enough);

/* Of these, those without which there would be several. */
void ft_trial_needed(struct ft_trial *trial, const bool *use, bool *needed);

/* The newest moment of which all of some sightings speak: up to then each of them went on. Where
 * they do not overlap it is when the last of them began. *apart_ms: how long lay between the last
 * sample of one and the first of another; at most 0 where all overlap. */
int64_t ft_trial_common_ms(const struct ft_trial *trial, const bool *use, int64_t *apart_ms);

/* Whether links changed, or flows moved, so lately that others may. */
bool ft_trial_is_unquiet(const struct ft_trial *trial);

/* Whether the topology may miss a link that is back: then it leaves too few paths. */
bool ft_trial_may_miss_links(const struct ft_trial *trial);

/* Up to when each link of a path was sampled, as ft_trial_common_ms() has it of sightings;
 * INT64_MAX where none was. */
int64_t ft_trial_links_ms(const struct ft_trial *trial, const bool *use, const struct ft_path *path,
                          int64_t *apart_ms);

/* A moment at which the path of sightings was known; that of its links, if that is earlier, where
 * the topology may miss some. */
int64_t ft_trial_sampled_ms(struct ft_trial *trial, const bool *use, int64_t ms);

/* When samples last determined the path: the moment of which all speak that it takes. */
int64_t ft_trial_certain_ms(struct ft_trial *trial, const bool *use);

/* Whether the flow was sampled on each link of a path: at both its ends, or at one of them where
 * the link is confirmed. */
bool ft_trial_is_attested(const struct ft_trial *trial, const bool *use,
                          const struct ft_path *path);

/* Whether each link that a sample names is where the topology has it, as far as samples can show
 * that. Where cables lie, those of one flow look like several paths that are not there. */
bool ft_trial_links_are_confirmed(const struct ft_trial *trial);

/* Of what the candidates agree on, leaves what recent sightings say, and what follows from it over
 * links that are confirmed. */
void ft_trial_leave_sampled(const struct ft_trial *trial, const bool *use,
                            struct ft_judgement *out);

#endif
