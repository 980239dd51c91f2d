// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/plans/ask.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/reader.h"
#include "proto/plan_name.h"

/* What a flow label can give. */
#define PORT_LEAST 0xc000u
#define PORT_MOST  0xffffu

static void read_ip(struct ft_reader *r, struct ft_ip *ip)
{
    const uint8_t *bytes = ft_read_bytes(r, sizeof(ip->b));

    if (bytes)
        memcpy(ip->b, bytes, sizeof(ip->b));
}

static void read_job(struct ft_reader *r, struct ft_plan_ask *ask)
{
    const uint8_t *bytes = ft_read_bytes(r, FT_SHIM_JOB);

    if (bytes)
        memcpy(ask->job, bytes, FT_SHIM_JOB - 1);
    if (ask->job[0] && !ft_plan_name_is_good(ask->job))
        ask->job[0] = '\0';
}

int ft_plan_ask_decode(const uint8_t *bytes, size_t len, struct ft_plan_ask *ask)
{
    struct ft_plan_ask found = {0};
    uint32_t sport = 0, outcome = 0;
    struct ft_reader r;
    bool good;

    ft_reader_init(&r, bytes, len);
    good = ft_read_be64(&r) == FT_SHIM_MAGIC;
    found.kind = ft_read_be32(&r);
    found.qp = ft_read_be32(&r);
    found.peer = ft_read_be32(&r);
    read_ip(&r, &found.src);
    read_ip(&r, &found.dst);
    read_job(&r, &found);
    good = good && (found.kind == FT_SHIM_ASK || found.kind == FT_SHIM_DONE);
    if (good && found.kind == FT_SHIM_DONE) {
        sport = ft_read_be32(&r);
        outcome = ft_read_be32(&r);
        good = sport >= PORT_LEAST && sport <= PORT_MOST && outcome >= FT_SHIM_LABEL &&
               outcome <= FT_SHIM_REFUSED;
        found.sport = (uint16_t)sport;
        found.outcome = outcome;
    }
    if (!good || !ft_reader_ok(&r) || ft_reader_left(&r))
        return -EBADMSG;
    *ask = found;
    return 0;
}
