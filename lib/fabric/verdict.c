// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/verdict.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double ft_verdict_threshold(double *p, size_t n)
{
    if (n > 0)
        qsort(p, n, sizeof(*p), by_size);
    for (size_t k = n; k > 0; k--)
        if (p[k - 1] < FT_VERDICT_UNEVEN_BELOW * (double)k / (double)n)
            return p[k - 1];
    return 0;
}

enum ft_verdict ft_verdict_among(double p, double threshold)
{
    if (p < FT_VERDICT_FAULT_BELOW)
        return FT_VERDICT_FAULT;
    return p <= threshold ? FT_VERDICT_UNEVEN : FT_VERDICT_EVEN;
}

enum ft_verdict ft_verdict_of(double p)
{
    if (p < FT_VERDICT_FAULT_BELOW)
        return FT_VERDICT_FAULT;
    return p < FT_VERDICT_UNEVEN_BELOW ? FT_VERDICT_UNEVEN : FT_VERDICT_EVEN;
}

const char *ft_verdict_name(enum ft_verdict verdict)
{
    static const char *const names[] = {"even", "uneven", "fault"};

    return names[verdict];
}
