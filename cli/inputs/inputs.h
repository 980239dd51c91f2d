// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_INPUTS_INPUTS_H
#define FT_CLI_INPUTS_INPUTS_H
/*
 * What `plan` and `whatif` read without a daemon: a topology, flows, links that are down.
 */
#include <stdbool.h>
#include <stdio.h>

#include "cli/args/args.h"
#include "lib/whatif/inputs.h"

/* 0, or EX_NOINPUT, EX_DATAERR or EX_OSERR after complaints to err. */
int ft_inputs_load(const struct ft_args *args, struct ft_inputs *inputs, FILE *err);

/* What --failed names, by port; *dead is the caller's in any case. The exit status likewise. */
int ft_inputs_failed(const struct ft_args *args, const struct ft_topology *t, bool **dead,
                     FILE *err);

/* The port of SWITCH/PORT, where the names themselves may have slashes; FT_NONE. Writes to name,
 * and leaves it as it was. */
uint32_t ft_inputs_port(const struct ft_topology *t, char *name);

/* Every complaint, a line each, with what the terminal may not see replaced. */
void ft_inputs_complain(FILE *err, const char *command, const struct ft_diag *diag);

/* "plan: 1024 of 16384 flows" on a terminal, over and over; nothing elsewhere. arg is the command's
 * name. */
void ft_inputs_progress(void *arg, uint32_t done, uint32_t of);

#endif
