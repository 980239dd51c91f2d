// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_ROLES_H
#define FT_DIAGNOSIS_ROLES_H
/*
 * Which ranks do the same work, as far as sends and receives show: the stages of a pipeline differ,
 * the same stage of its replicas does not. Ranks without sends and receives are all alike.
 */
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* A number for the role of each process; free() it. NULL without memory. */
uint64_t *ft_roles_new(const struct ft_matched *m);

#endif
