// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_GPU_H
#define FT_AGENT_NCCL_GPU_H
/*
 * Which GPU the calling thread works on, asked of the CUDA driver that the process has loaded.
 */
#include "agent/nccl/segment.h"

/* PCI bus id such as "0000:17:00.0"; empty when there is no driver or no context. */
void ft_gpu_bus_id(char text[FT_SEGMENT_TEXT]);

#endif
