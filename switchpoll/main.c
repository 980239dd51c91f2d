// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/switchpoll.h"

int main(int argc, char **argv)
{
    return ft_switchpoll_main(argc, argv);
}
