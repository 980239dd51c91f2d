// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/whatif/whatif_error.h"

#include "cli/output/units.h"

static void print_errors(const struct ft_errors *e, const char *what, FILE *out)
{
    char median[FT_UNIT_BYTES], p90[FT_UNIT_BYTES], worst[FT_UNIT_BYTES];

    if (e->count == 0)
        fprintf(out, "  %s: none to compare\n", what);
    else
        fprintf(out, "  %s: %u compared, median %s, nine of ten within %s, worst %s\n", what,
                e->count, ft_unit_percent(median, e->median), ft_unit_percent(p90, e->p90),
                ft_unit_percent(worst, e->worst));
}

void ft_model_error_print(const struct ft_model_error *e, const struct ft_topology *t, FILE *out)
{
    fprintf(out, "Error of the model in the measured case:\n");
    print_errors(&e->rates, "rates of flows", out);
    print_errors(&e->limited, "of these behind a full link", out);
    print_errors(&e->loads, "loads of links", out);
    if (e->worst_link != FT_NONE) {
        const struct ft_port *p = ft_topology_port(t, e->worst_link);

        fprintf(out, "  the link that is furthest off: %s %s\n",
                ft_topology_switch(t, p->switch_id)->name, p->name);
    }
}
