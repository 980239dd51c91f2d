// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_PLAN_NAME_H
#define FT_PROTO_PLAN_NAME_H
/*
 * The file that a plan lies in for the agent of a host: UID@JOB@HOST.plan, in a folder that the
 * tool writes and agents read; in it is one record, fabrictrace.plan.v1, as a line of JSON with
 * what is of that host. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_PLAN_JOB_BYTES  64
#define FT_PLAN_NAME_BYTES 256
#define FT_PLAN_FILE_MAX   (1u << 20)

/* Whether it may be part of a file's name: letters, digits, "-" and "_", "." within; not empty,
 * shorter than FT_PLAN_JOB_BYTES. */
bool ft_plan_name_is_good(const char *name);

/* -EINVAL where job or host may not be part of a file's name. */
int ft_plan_name(char name[FT_PLAN_NAME_BYTES], uint32_t uid, const char *job, const char *host);

#endif
