// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/plan_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool ft_plan_name_is_good(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t len = strlen(name);

    return len > 0 && len < FT_PLAN_JOB_BYTES && name[0] != '.' && strspn(name, letters) == len;
}

int ft_plan_name(char name[FT_PLAN_NAME_BYTES], uint32_t uid, const char *job, const char *host)
{
    if (!ft_plan_name_is_good(job) || !ft_plan_name_is_good(host))
        return -EINVAL;
    snprintf(name, FT_PLAN_NAME_BYTES, "%" PRIu32 "@%s@%s.plan", uid, job, host);
    return 0;
}
