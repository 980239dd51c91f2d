// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TRACES_CHAKRA_H
#define FT_CLI_TRACES_CHAKRA_H
/*
 * Captured collectives and transfers as execution traces of MLCommons Chakra that ASTRA-sim runs,
 * and such traces as flows for `whatif` (proto/chakra.h).
 */
#include "cli/args/args.h"

/* `export chakra --output PREFIX [JOB]`: PREFIX.RANK.et of every rank, and PREFIX.network.yml,
 * .system.json, .memory.json and .groups.json. An operation that not all of its ranks reported is
 * left out and counted: in a simulator the others would wait for ever. The exit status. */
int ft_chakra_export(const struct ft_args *args);

/* `import chakra PREFIX --topology FILE`: src,dst,rate_bps to standard output. Rank r is the r-th
 * NIC of the topology, and sends at its speed, to each peer in proportion to the bytes of its
 * trace. The exit status. */
int ft_chakra_import(const struct ft_args *args);

#endif
