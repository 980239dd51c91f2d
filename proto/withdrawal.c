// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/withdrawal.h"

#include <errno.h>
#include <string.h>

#include "lib/base/reader.h"

#define MAGIC UINT64_C(0x6674776974680001) /* "ftwith", version 1 */

void ft_withdrawal_write(struct ft_writer *w, const struct ft_withdrawal *withdrawal)
{
    char job[FT_PLAN_JOB_BYTES] = "";

    memcpy(job, withdrawal->job, strnlen(withdrawal->job, sizeof(job) - 1));
    ft_write_be64(w, MAGIC);
    ft_write_be32(w, withdrawal->uid);
    ft_write_be64(w, withdrawal->plan_time_ms);
    ft_write_bytes(w, job, sizeof(job));
}

int ft_withdrawal_decode(const uint8_t *bytes, size_t len, struct ft_withdrawal *withdrawal)
{
    struct ft_withdrawal found = {0};
    const uint8_t *job;
    struct ft_reader r;
    size_t used;

    ft_reader_init(&r, bytes, len);
    if (ft_read_be64(&r) != MAGIC)
        return -EBADMSG;
    found.uid = ft_read_be32(&r);
    found.plan_time_ms = ft_read_be64(&r);
    job = ft_read_bytes(&r, sizeof(found.job));
    if (!job || !ft_reader_ok(&r) || ft_reader_left(&r))
        return -EBADMSG;
    memcpy(found.job, job, sizeof(found.job) - 1);
    /* What follows the name would be lost in silence. */
    used = strlen(found.job);
    for (size_t i = used; i < sizeof(found.job); i++)
        if (job[i])
            return -EBADMSG;
    if (!ft_plan_name_is_good(found.job))
        return -EBADMSG;
    *withdrawal = found;
    return 0;
}
