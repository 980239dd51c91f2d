// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/verdict.h"

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
