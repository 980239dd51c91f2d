// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_DIAGNOSE_H
#define FT_CLI_DIAGNOSE_H
/*
 * `diagnose --operations FILE`: what is wrong with a job by a table of its operations, computed
 * here, without a daemon.
 */
#include <stdbool.h>
#include <stdio.h>

/* As a table with its reasons for a person, or as fabrictrace.diagnosis.v1 records, one a line;
 * "-" is standard input. 0, or after a complaint to err the exit status. */
int ft_diagnose_show(FILE *out, FILE *err, bool json, const char *file);

#endif
