// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "cli/args/args_options.h"
#include "lib/config/asking.h"

#define DRAWS_MAX 10000

/* A number from 1 to max. */
static int parse_count(const struct ft_args *args, const char *option, const char *value,
                       uint64_t max, uint64_t *out, FILE *err)
{
    if (ft_args_number(value, value + strlen(value), out) == 0 && *out > 0 && *out <= max)
        return 0;
    return ft_args_complain(err, args->command, "--%s takes an integer from 1 to %llu", option,
                            (unsigned long long)max);
}

static int parse_sim_number(struct ft_args *args, int c, const char *value, FILE *err)
{
    static const struct {
        int option;
        const char *name;
        uint64_t max;
    } numbers[] = {{OPT_DRAWS, "draws", DRAWS_MAX},
                   {OPT_PAIRS, "pairs", 128},
                   {OPT_SPRAY, "spray", 1024},
                   {OPT_ADD_SPINES, "add-spines", 4096},
                   {OPT_FABRIC_SPEED, "fabric-speed", UINT64_C(1000000000000000)}};
    uint64_t number = 0;
    size_t i = 0;
    int rc;

    while (numbers[i].option != c)
        i++;
    rc = parse_count(args, numbers[i].name, value, numbers[i].max, &number, err);
    if (rc)
        return rc;
    if (c == OPT_DRAWS)
        args->draws = (unsigned)number;
    else if (c == OPT_PAIRS)
        args->pairs = (uint32_t)number;
    else if (c == OPT_SPRAY)
        args->spray = (uint32_t)number;
    else if (c == OPT_ADD_SPINES)
        args->add_spines = (uint32_t)number;
    else
        args->fabric_bps = number;
    return 0;
}

static int parse_oracle(struct ft_args *args, const char *value, FILE *err)
{
    const char *complaint = ft_asking_complaint(value);

    if (complaint)
        return ft_args_complain(err, args->command, "--oracle %s: %s", value, complaint);
    if (args->oracle_count == FT_CLI_ORACLES_MAX)
        return ft_args_complain(err, args->command, "--oracle at most %d times",
                                FT_CLI_ORACLES_MAX);
    args->oracles[args->oracle_count++] = value;
    return 0;
}

int ft_args_sim_option(struct ft_args *args, int c, const char *value, FILE *err)
{
    switch (c) {
    case OPT_DRAWS:
    case OPT_PAIRS:
    case OPT_SPRAY:
    case OPT_ADD_SPINES:
    case OPT_FABRIC_SPEED:
        return parse_sim_number(args, c, value, err);
    case OPT_RECORDS:
        args->records = value;
        break;
    case OPT_POLICY:
        args->policies = value;
        break;
    case OPT_FLOWS:
        args->flows = value;
        break;
    case OPT_LINK_SPEED:
        args->link_speeds = value;
        break;
    case OPT_PREVIOUS:
        args->previous = value;
        break;
    case OPT_FAILED:
        args->failed = value;
        break;
    case OPT_APPLY:
        args->apply = value;
        break;
    case OPT_WITHDRAW:
        args->withdraw = value;
        break;
    case OPT_DRY_RUN:
        args->dry_run = true;
        break;
    case OPT_ORACLE:
        return parse_oracle(args, value, err);
    case OPT_CHAKRA:
        args->chakra = value;
        break;
    case OPT_NETWORK:
        args->network = value;
        break;
    case OPT_SYSTEM:
        args->system = value;
        break;
    case OPT_GROUPS:
        args->groups = value;
        break;
    default:
        args->unaware = true;
    }
    return 0;
}
