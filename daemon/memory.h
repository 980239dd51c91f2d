// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_MEMORY_H
#define FT_DAEMON_MEMORY_H
/*
 * What of fabrictraced grows with what comes from outside, what one of it costs, and its share of
 * memory_max. A test fills the tables and holds the costs against the allocator. Thread: any.
 */
#include "lib/config/program.h"

/* For struct ft_program. */
size_t ft_daemon_shares(const struct ft_run *run, void *config,
                        struct ft_share shares[FT_SHARES_MAX]);

#endif
