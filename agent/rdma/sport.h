// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_SPORT_H
#define FT_AGENT_RDMA_SPORT_H
/*
 * The UDP source port of a RoCEv2 queue pair as the kernel's formula has it (rdma_get_udp_sport()
 * in Linux include/rdma/ib_verbs.h). Drivers that follow it: mlx5, rxe, irdma and hns; elsewhere
 * the firmware chooses and the port is known from packets alone. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

/* Whether a driver (enum rdma_driver_id) follows the formula. */
bool ft_rdma_sport_is_computable(uint32_t driver);

/* From the flow label of a queue pair's address (20 bits); 0, which most programs set, makes it
 * follow from the numbers of both queue pairs: the same port in both directions. */
uint16_t ft_rdma_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn);

/* The flow label that the connection manager sets for a connection, from the TCP-like ports of the
 * side that connected and of the side that listened; it informs the other side, so both use it. */
uint32_t ft_rdma_cm_flow_label(uint16_t connecting_port, uint16_t listening_port);

#endif
