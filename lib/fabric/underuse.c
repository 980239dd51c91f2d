// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/underuse.h"

#include <math.h>
#include <string.h>

/* The share that is looked for, as a part of what chance gives. */
#define PART 0.25
/* No more than this times the limit: the alarm ends when flows come again. */
#define MOST 10

void ft_underuse_add(struct ft_underuse *u, uint32_t m, bool here)
{
    double chance = 1.0 / m, less = PART * chance, limit = m * FT_UNDERUSE_FLOWS;

    u->r = (1 + u->r) * (here ? PART : (1 - less) / (1 - chance));
    u->flows++;
    u->here += here;
    if (u->r > MOST * limit)
        u->r = MOST * limit;
    if (u->r >= limit)
        u->stands = true;
    else if (u->r < sqrt(limit))
        u->stands = false;
    /* From here on nothing of what was is in it. */
    if (u->r < 1)
        u->flows = u->here = 0;
}
