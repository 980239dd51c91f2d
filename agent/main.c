// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/agent.h"

int main(int argc, char **argv)
{
    return ft_agent_main(argc, argv);
}
