// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SERVICE_CHECK_H
#define FT_DAEMON_SERVICE_CHECK_H
/*
 * Whether the daemon can do what its configuration and command line say, beyond the form of each
 * value: for --check, for a start and for a reload alike. Looks at files; opens and makes none.
 */
#include "daemon/pipeline/pipeline.h"
#include "daemon/settings.h"
#include "lib/base/diag.h"
#include "lib/config/program.h"
#include "lib/fabric/topology.h"

/* Every problem as a complaint. NULL when there is one, else the topology that holds. A reload
 * opens no sink that is not open already: the locations of their files are no matter then. */
struct ft_topology *ft_daemon_check(const struct ft_run *run, bool reload, struct ft_diag *diag);

/* The topology's file, NULL without one. */
const char *ft_daemon_topology(const struct ft_run *run);

/* The list that holds: --sink on the command line stands for that of the file. */
const struct ft_strings *ft_daemon_sinks(const struct ft_run *run);

struct ft_tls_files ft_daemon_tls(const struct ft_settings *settings);

/* For struct ft_program: whether the settings are valid, and what the topology and they make of the
 * metrics page. */
void ft_daemon_check_settings(const struct ft_run *run, struct ft_diag *diag);
void ft_daemon_print_size(const struct ft_run *run, FILE *out);

/* --topics: the script, --schemas: a line for each schema, to standard output. An exit code. */
int ft_daemon_print_topics(const struct ft_run *run);
int ft_daemon_print_schemas(const struct ft_run *run);

#endif
