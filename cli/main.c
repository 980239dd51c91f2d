// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/cli.h"

int main(int argc, char **argv)
{
    return ft_cli_run(argc, argv);
}
