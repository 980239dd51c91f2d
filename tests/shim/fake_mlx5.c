// SPDX-License-Identifier: Apache-2.0
/* A libmlx5.so.1 of one function, which says what it was asked to do. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

int mlx5dv_modify_qp_udp_sport(struct ibv_qp *qp, uint16_t sport);

int mlx5dv_modify_qp_udp_sport(struct ibv_qp *qp, uint16_t sport)
{
    printf("sport %u of %u\n", sport, qp->qp_num);
    return 0;
}
