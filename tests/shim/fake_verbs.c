// SPDX-License-Identifier: Apache-2.0
/* A libibverbs.so.1 without devices: says what it was asked to do, in the symbols and versions that
 * the real one has. REFUSES_LABELS in the environment makes it take no flow label. */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int fake_modify_qp_old(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int fake_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);

int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    unsigned label = mask & IBV_QP_AV ? attr->ah_attr.grh.flow_label : 0;

    printf("modify %u state %d label 0x%x mask 0x%x\n", qp->qp_num, attr->qp_state, label,
           (unsigned)mask);
    if (label && getenv("REFUSES_LABELS"))
        return EINVAL;
    return getenv("REFUSES_ALL") ? EACCES : 0;
}

int fake_modify_qp_old(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    printf("old ");
    return fake_modify_qp(qp, attr, mask);
}

/* 10.0.0.PORT, whatever the index. */
int fake_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    (void)context;
    (void)index;
    memset(gid, 0, sizeof(*gid));
    gid->raw[10] = gid->raw[11] = 0xff;
    gid->raw[12] = 10;
    gid->raw[15] = port;
    return 0;
}

__asm__(".symver fake_modify_qp_old,ibv_modify_qp@IBVERBS_1.0");
__asm__(".symver fake_modify_qp,ibv_modify_qp@@IBVERBS_1.1");
__asm__(".symver fake_query_gid,ibv_query_gid@@IBVERBS_1.1");
