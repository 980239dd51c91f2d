// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_ROLES_H
#define FT_DIAGNOSIS_ROLES_H
/*
 * Which ranks do the same work, as far as sends and receives show: the stages of a pipeline differ,
 * the same stage of its replicas does not. Ranks without sends and receives are all alike.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* A number for the role of each process; free() it. NULL without memory. */
uint64_t *ft_roles_new(const struct ft_matched *m);

/* Whether ranks may be the stages of one pipeline: none has to do with more than two others, what
 * is sent does not only run round, and some receive first and send later. */
bool ft_roles_may_be_stages(const struct ft_matched *m);

#endif
