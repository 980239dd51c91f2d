// SPDX-License-Identifier: Apache-2.0
/* A file of flows against a small fabric: it is refused with complaints, or every flow is between
 * two NICs and gets a path. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/files/flows_file.h"
#include "lib/files/topology_file.h"
#include "lib/sim/plan.h"
#include "tests/fuzz/fuzz.h"

static const char fabric[] =
    "fabric: f\nlinks:\n  - {a: l0, a_port: u, b: s, b_port: d0}\n"
    "  - {a: l1, a_port: u, b: s, b_port: d1}\nswitches: [{name: l0}, {name: l1}, {name: s}]\n"
    "hosts:\n"
    "  - {name: a, nics: [{addresses: [10.0.0.1], attach: [{switch: l0, port: a}]}]}\n"
    "  - {name: b, nics: [{addresses: [10.0.0.2], attach: [{switch: l1, port: b}]},"
    " {addresses: [10.0.0.3], attach: [{switch: l0, port: b}]}]}\n";

static struct ft_topology *topology(void)
{
    static struct ft_topology *t;
    struct ft_diag *diag = ft_diag_new();
    struct ft_yaml *root = ft_yaml_parse(fabric, sizeof(fabric) - 1, "f", diag);

    if (!t)
        t = ft_topology_file_read(root, diag);
    ft_fuzz_assert(t != NULL, "the fabric is one");
    ft_yaml_free(root);
    ft_diag_free(diag);
    return t;
}

static void check_plan(const struct ft_topology *t, const struct ft_flow_list *flows)
{
    struct ft_plan_input in = {.topology = t, .demands = flows->demands, .count = flows->count};
    struct ft_plan plan;

    ft_fuzz_assert(ft_plan_make(&in, &plan) == 0, "every pair of NICs has a path");
    for (uint32_t i = 0; i < flows->count; i++)
        ft_fuzz_assert(plan.paths[i].hop_count > 0, "every flow has one");
    ft_plan_free(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct ft_topology *t = topology();
    struct ft_diag *diag = ft_diag_new();
    struct ft_flow_list flows;
    char *text = malloc(len + 1);
    int rc;

    if (len)
        memcpy(text, bytes, len);
    text[len] = '\0';
    rc = ft_flows_read_take(text, len, "f", t, diag, &flows);
    ft_fuzz_assert((rc == -EINVAL) == (ft_diag_count(diag) > 0), "what is refused is explained");
    if (rc)
        free(text);
    else
        check_plan(t, &flows);
    if (rc == 0)
        ft_flows_free(&flows);
    ft_diag_free(diag);
    return 0;
}
