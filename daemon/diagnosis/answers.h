// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_ANSWERS_H
#define FT_DAEMON_DIAGNOSIS_ANSWERS_H
/* Where the acknowledgements of what a rank sends go, as samples of them have shown: they have the
 * UDP source port of the data, with the addresses changed over. Pure. Thread: one. */
#include <stdint.h>

#include "daemon/diagnosis/witness.h"

/* Fills the ports by which the answers to the sender leave switches, and their flow. How many
 * there are; 0: their path is not certain. */
uint32_t ft_answers_path(const struct ft_witnesses *w, const struct ft_recent_rank *sender,
                         const struct ft_recent_rank *receiver, uint32_t *ports, uint32_t max,
                         struct ft_tuple *tuple);

/* The flow of these answers to a flow of data; NULL: none was seen. */
const struct ft_flow *ft_answers_flow(const struct ft_join *join, const struct ft_tuple *data);

#endif
