// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_LOSSES_H
#define FT_DAEMON_HEALTH_LOSSES_H
/*
 * Active events (loss) for records lost between their source and the daemon, from the accounts of
 * every program and of the daemon itself.
 *
 * Two accounts of one program are an interval. It is bad when one stage lost, for one reason that
 * takes something away from what is known of the fabric, at least 10 units and 1 % of what it
 * received meanwhile. One bad interval raises the program's event, which names the worst; three
 * intervals in a row of less than half of that clear it, as does a program that has been silent for
 * three of its intervals. Counts that go back are another start of the program, and judged from
 * there. Pure; times are in Unix milliseconds. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/events.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_losses;

/* At most programs_max are judged. NULL without memory. */
struct ft_losses *ft_losses_new(size_t programs_max);
void ft_losses_free(struct ft_losses *losses);

/* Judges a program by its account; one without a source or program is ignored. */
void ft_losses_take(struct ft_losses *losses, const Fabrictrace__Loss *loss, int64_t now_ms);

/* Samples that programs which may thin them out accounted for since they were heard first, and how
 * many of them were not thinned. */
void ft_losses_thinned(const struct ft_losses *losses, uint64_t *came, uint64_t *kept);

/* Raises what stands, at the close of a window. fabric is borrowed. */
void ft_losses_raise(const struct ft_losses *losses, struct ft_events *events, uint32_t window,
                     int64_t now_ms, const char *fabric);

/* What helps against drops of this reason in a stage, a literal; NULL when they take nothing away.
 */
const char *ft_losses_advice(const char *stage, const char *reason);

#endif
