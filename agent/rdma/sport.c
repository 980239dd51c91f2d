// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/sport.h"

#include <rdma/ib_user_ioctl_verbs.h>

#define FLOW_LABEL_MASK 0xFFFFFu
#define SPORT_MIN       0xC000u

bool ft_rdma_sport_is_computable(uint32_t driver)
{
    switch (driver) {
    case RDMA_DRIVER_MLX5:
    case RDMA_DRIVER_RXE:
    case RDMA_DRIVER_IRDMA:
    case RDMA_DRIVER_HNS:
        return true;
    default:
        return false;
    }
}

uint16_t ft_rdma_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
    uint32_t label = flow_label & FLOW_LABEL_MASK;

    if (label == 0) {
        uint64_t product = (uint64_t)lqpn * rqpn;

        product ^= product >> 20;
        product ^= product >> 40;
        label = (uint32_t)product & FLOW_LABEL_MASK;
    }
    /* The upper 6 bits fold into the lower 14. */
    return (uint16_t)(((label & 0x3FFFu) ^ (label >> 14)) | SPORT_MIN);
}

uint32_t ft_rdma_cm_flow_label(uint16_t connecting_port, uint16_t listening_port)
{
    return ((uint32_t)connecting_port * 31 + listening_port) & FLOW_LABEL_MASK;
}
