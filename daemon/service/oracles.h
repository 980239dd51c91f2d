// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SERVICE_ORACLES_H
#define FT_DAEMON_SERVICE_ORACLES_H
/*
 * Runs the commands that ask switches (daemon/oracle/oracle.h, fabrictrace-oracle(7)), a few at a
 * time. Thread: the loop's.
 */
#include <stdint.h>

#include "daemon/settings.h"
#include "lib/base/account.h"
#include "lib/io/loop.h"

#define FT_ORACLES_MAX 32

struct ft_join;
struct ft_oracle;
struct ft_oracles;

/* Hints go into the join, which must be there as long. NULL without memory or random numbers. */
struct ft_oracles *ft_oracles_new(const struct ft_settings *settings, struct ft_loop *loop,
                                  struct ft_join *join);
void ft_oracles_free(struct ft_oracles *o);

const struct ft_oracle *ft_oracles_oracle(const struct ft_oracles *o);

/* Adds the stage of questions. Takes NULL: nobody asks. */
void ft_oracles_account(const struct ft_oracles *o, struct ft_account *account);

#endif
