// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SWITCHPOLL_H
#define FT_SWITCHPOLL_SWITCHPOLL_H
/*
 * The program fabrictrace-switchpoll: from its command line to its exit code.
 */

/* Returns an exit code of sysexits.h. */
int ft_switchpoll_main(int argc, char **argv);

#endif
