// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SERVICE_PROBERS_H
#define FT_DAEMON_SERVICE_PROBERS_H
/*
 * Asks agents to probe elephants (daemon/probe/prober.h), over the connections that they have to
 * the daemon. Thread: the loop's.
 */
#include "daemon/pipeline/stages.h"
#include "lib/base/account.h"
#include "lib/io/loop.h"

struct ft_probers;
struct ft_receiver;

/* Stages and receiver must be there as long. NULL without memory. */
struct ft_probers *ft_probers_new(struct ft_loop *loop, const struct ft_stages *stages,
                                  struct ft_receiver *receiver);
void ft_probers_free(struct ft_probers *p);

/* Adds the stage of requests. Takes NULL: nobody is asked. */
void ft_probers_account(const struct ft_probers *p, struct ft_account *account);

#endif
