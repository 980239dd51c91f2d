// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/evenness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* -p ln p of k of n. */
static double term(double k, double n)
{
    return k > 0 ? -k / n * log(k / n) : 0;
}

/* Mean entropy of n flows that each take any of m links: each link has Binomial(n, 1 / m). */
static double mean_entropy(double n, double m)
{
    double sum = 0;

    for (double k = 1; m > 1 && k < n; k++)
        sum += m * term(k, n) *
               exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - k * log(m) +
                   (n - k) * log1p(-1 / m));
    return sum;
}

int ft_evenness(const struct ft_hash_flow *flows, size_t count, uint32_t entries, uint32_t members,
                struct ft_evenness *out)
{
    uint32_t *by = calloc((entries + (size_t)1) * (members + (size_t)1), sizeof(*by));
    double entropy = 0, expected = 0;

    if (!by)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        uint32_t entry = ft_hash_entry(&flows[i].in);
        uint32_t *of = &by[(entry < entries ? entry : entries) * (members + (size_t)1)];

        of[flows[i].member]++;
        of[members]++;
    }
    for (uint32_t e = 0; e <= entries; e++) {
        const uint32_t *of = &by[e * (members + (size_t)1)];
        double n = of[members], part = n / (double)count;

        for (uint32_t i = 0; i < members && n > 0; i++)
            entropy += part * term(of[i], n);
        expected += part * mean_entropy(n, members);
    }
    free(by);
    *out = (struct ft_evenness){exp(entropy), exp(expected)};
    return 0;
}
