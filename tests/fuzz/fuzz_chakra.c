// SPDX-License-Identifier: Apache-2.0
/* A Chakra trace, or by its first byte a network, system or groups file of ASTRA-sim: it is refused
 * with a reason, or what is read is within its bounds. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/traces/astra_files.h"
#include "proto/chakra.h"
#include "tests/fuzz/fuzz.h"

static void check_trace(const uint8_t *bytes, size_t len)
{
    struct ft_chakra_trace t;
    char error[200];
    int rc = ft_chakra_read(bytes, len, &t, error, sizeof(error));

    ft_fuzz_assert((rc == -EINVAL) == (error[0] != '\0'), "what is refused is explained");
    for (uint32_t i = 0; rc == 0 && i < t.count; i++) {
        ft_fuzz_assert(i == 0 || t.nodes[i].id > t.nodes[i - 1].id, "nodes are sorted");
        ft_fuzz_assert(t.nodes[i].first_dep + t.nodes[i].dep_count <= t.dep_count,
                       "dependencies are there");
    }
    ft_chakra_free(&t);
}

static void check_files(uint8_t kind, const char *text, size_t len)
{
    static const uint32_t ids[] = {1, 2};
    struct ft_diag *diag = ft_diag_new();
    struct ft_astra_group *groups = calloc(2, sizeof(*groups));
    struct ft_astra_network network;
    struct ft_astra_system system;
    struct ft_yaml *root = kind == 1 ? ft_yaml_parse(text, len, "n", diag) : NULL;
    int rc = -EINVAL;

    if (root)
        rc = ft_astra_network_read(root, diag, &network);
    else if (kind == 2)
        rc = ft_astra_system_read(text, len, "s", diag, &system);
    else if (kind == 3)
        rc = ft_astra_groups_read(text, len, "g", ids, 2, 8, diag, groups);
    ft_fuzz_assert((rc == 0) == (ft_diag_count(diag) == 0), "what is refused is explained");
    for (uint32_t i = 0; kind == 3 && rc == 0 && i < groups[0].count; i++)
        ft_fuzz_assert(groups[0].ranks[i] < 8, "ranks are there");
    ft_astra_groups_free(groups, 2);
    ft_yaml_free(root);
    ft_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len > 0 && bytes[0] >= 1 && bytes[0] <= 3)
        check_files(bytes[0], (const char *)bytes + 1, len - 1);
    else
        check_trace(bytes, len);
    return 0;
}
