// SPDX-License-Identifier: Apache-2.0
/* A topology file: it is refused with complaints, or the fabric that is built is consistent. */
#include "config.h"

#include "lib/fabric/paths.h"
#include "lib/files/topology_file.h"
#include "tests/fuzz/fuzz.h"

static void check_ports(const struct ft_topology *t)
{
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        const struct ft_port *p = ft_topology_port(t, i);

        ft_fuzz_assert(ft_topology_find_port(t, p->switch_id, p->name) == i,
                       "a name finds its port");
        ft_fuzz_assert(p->peer == FT_NONE || p->nic == FT_NONE, "a port has a link or a NIC");
        ft_fuzz_assert((p->peer == FT_NONE) == (p->group == FT_NONE),
                       "fabric links are in a group");
        if (p->peer == FT_NONE)
            continue;
        ft_fuzz_assert(ft_topology_port(t, p->peer)->peer == i, "links have two ends");
        ft_fuzz_assert(ft_topology_port(t, p->peer)->direction != p->direction,
                       "of two directions one is up");
    }
}

static void check_paths(const struct ft_topology *t)
{
    struct ft_path paths[8];

    for (uint32_t src = 0; src < ft_topology_nics(t) && src < 4; src++) {
        for (uint32_t dst = 0; dst < ft_topology_nics(t) && dst < 4; dst++) {
            uint64_t found = ft_paths_walk(t, src, dst, NULL, NULL, paths, 8, 8);
            uint32_t length = ft_paths_length(t, src, dst);

            ft_fuzz_assert((found > 0) == (length > 0), "a way has a length");
            for (uint64_t i = 0; i < found; i++) {
                const struct ft_hop *last = &paths[i].hops[paths[i].hop_count - 1];

                ft_fuzz_assert(paths[i].hop_count <= length, "no path is longer");
                ft_fuzz_assert(ft_topology_port(t, paths[i].hops[0].in)->nic == src,
                               "begins at src");
                ft_fuzz_assert(ft_topology_port(t, last->out)->nic == dst, "ends at dst");
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_yaml *root = ft_yaml_parse((const char *)bytes, len, "f", diag);
    struct ft_topology *t = root ? ft_topology_file_read(root, diag) : NULL;

    ft_fuzz_assert(!t == (ft_diag_count(diag) > 0), "complaints and a topology exclude another");
    if (t) {
        check_ports(t);
        check_paths(t);
    }
    ft_topology_free(t);
    ft_yaml_free(root);
    ft_diag_free(diag);
    return 0;
}
