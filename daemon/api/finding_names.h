// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_FINDING_NAMES_H
#define FT_DAEMON_API_FINDING_NAMES_H
/*
 * A name for each finding of the doctor, the same whenever the doctor looks again: by what it is
 * about, without the numbers in its text, which change all the time. Findings that differ in
 * numbers alone are numbered by their order. Pure.
 */
#include <stdint.h>

#include "daemon/publish/findings.h"

/* As many as there are findings, which the caller frees. NULL without memory. */
uint64_t *ft_finding_names(const struct ft_findings *findings);

#endif
