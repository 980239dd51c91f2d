// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/daemon.h"

int main(int argc, char **argv)
{
    return ft_daemon_main(argc, argv);
}
