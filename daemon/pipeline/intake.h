// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_INTAKE_H
#define FT_DAEMON_PIPELINE_INTAKE_H
/*
 * From the messages of agents and pollers to what the join takes: every field that is needed is
 * there and in range, or the message is refused. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/observed.h"

/* False, and *out is not to be used, when a field is missing or cannot be. Bytes that no flow
 * carries in its interval are cut to what one could; then *odd is set. */
bool ft_intake_observed(const struct ft_observed *o, struct ft_observation *out, bool *odd);

/* What few observations have beside; false: nothing. */
bool ft_intake_rest(const struct ft_observed *o, struct ft_observed_rest *out);

/* The packet numbers of an observation; false: it has none, or none that can be. */
bool ft_intake_numbered(const struct ft_observed *o, struct ft_numbered *out);

/* As ft_intake_observed(). Texts are borrowed from the message. */
bool ft_intake_report(const Fabrictrace__FlowReport *r, struct ft_host_report *out, bool *odd);

enum ft_intake_numbers {
    FT_INTAKE_FITS,
    FT_INTAKE_WRONG, /* an invalid time, or a number beyond 63 bits */
    FT_INTAKE_AHEAD, /* more than a minute, of what is only published and compared */
};

/* Times and numbers of a record of any other kind. */
enum ft_intake_numbers ft_intake_numbers(const Fabrictrace__Record *record, int64_t now_ms);

/* The moment that a record speaks of, for replays; 0: none, or one that cannot be. */
int64_t ft_record_time_ms(const Fabrictrace__Record *record);
int64_t ft_moment_ms(uint64_t ms);

#endif
