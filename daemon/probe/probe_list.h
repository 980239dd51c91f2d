// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PROBE_PROBE_LIST_H
#define FT_DAEMON_PROBE_PROBE_LIST_H
/*
 * The last probe of each flow, as it is published, with those that were asked for and are not
 * answered. Capped: of too many flows the one that was probed longest ago goes. Pure; times are
 * Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/fabrictrace.pb-c.h"

#define FT_PROBE_LIST_MAX       1024
#define FT_PROBE_LIST_BYTES_MAX (FT_PROBE_LIST_MAX * 4096)
/* An agent that says nothing for so long has lost the request: more than three rounds take. */
#define FT_PROBE_LIST_LOST_MS 12000

struct ft_probe_list;

/* NULL without memory. */
struct ft_probe_list *ft_probe_list_new(uint64_t seed);
void ft_probe_list_free(struct ft_probe_list *list);

/* In place of the flow's last one. -ENOMEM, -EINVAL: it has no flow. */
int ft_probe_list_put(struct ft_probe_list *list, const Fabrictrace__Probe *probe);

/* The next one, unpacked for the call; one that was asked for FT_PROBE_LIST_LOST_MS ago is lost.
 * index begins at 0; false: that was all. */
bool ft_probe_list_next(const struct ft_probe_list *list, int64_t now_ms, uint32_t *index,
                        void (*each)(void *arg, const Fabrictrace__Record *record), void *arg);

#endif
