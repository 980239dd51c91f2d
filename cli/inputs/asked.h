// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_INPUTS_ASKED_H
#define FT_CLI_INPUTS_ASKED_H
/*
 * Switches that are asked by which port they would send a flow, by the commands of
 * fabrictrace-oracle(7), many at a time; each answer is kept. What is not known yet is noted as a
 * question, which ft_asked_run() puts: so who needs answers looks, runs, and looks again.
 *
 * A switch whose command fails is asked nothing more. Capped: questions. Owner: the caller. Thread:
 * one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cli/args/args.h"
#include "lib/base/tuple.h"
#include "lib/fabric/choice.h"

#define FT_ASKED_MAX 100000

struct ft_asked;

struct ft_asked_stats {
    uint64_t questions;
    uint64_t silent; /* the command knew no answer, or none of the switch's ports */
};

/* Commands are args->oracles. NULL without memory. */
struct ft_asked *ft_asked_new(const struct ft_args *args, const struct ft_topology *t);
void ft_asked_free(struct ft_asked *a);

/* Whether a switch is asked, by its name. Takes NULL. */
bool ft_asked_has(const struct ft_asked *a, const char *switch_name);

/* Which of the links the switch takes (lib/sim/hashed.h); FT_NONE: not known, or not yet. */
uint32_t ft_asked_choose(struct ft_asked *a, const struct ft_choice *choice, uint32_t in,
                         const struct ft_tuple *tuple);

/* Puts the questions that were noted. False: there was none. *stopped: a signal came. */
bool ft_asked_run(struct ft_asked *a, bool *stopped);

/* What the first failure at a switch was; NULL: none failed. i from 0 on; false behind the last. */
bool ft_asked_failure(const struct ft_asked *a, uint32_t i, const char **switch_name,
                      const char **text);

struct ft_asked_stats ft_asked_stats(const struct ft_asked *a);

#endif
