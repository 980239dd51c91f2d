// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/verbs.h"

#include <errno.h>

/* In place of lib/io/verbs.c in a build without libibverbs. */
int ft_verbs_gids(const char *device, uint32_t port, struct ft_verbs_gid *gids, size_t max,
                  size_t *count)
{
    (void)device;
    (void)port;
    (void)gids;
    (void)max;
    (void)count;
    return -ENOTSUP;
}
