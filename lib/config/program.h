// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CONFIG_PROGRAM_H
#define FT_CONFIG_PROGRAM_H
/*
 * What all daemons share on the command line, so that a main() only connects:
 *
 *   -c, --config FILE   default FT_SYSCONFDIR/<program>.yaml; only a named file has to be there
 *   --set KEY=VALUE     over the file, repeatable
 *   --log-level LEVEL   over the option log.level
 *   --check             lists every problem, exits 0 or EX_CONFIG
 *   --print-config      prints the effective configuration, exits
 *   -V, --version  -h, --help
 *   --print-mdoc        the option list for the manual page; not in the help
 *   --print-metrics     the same of its metrics
 *
 * and the program's own long options. Complaints go to standard error, one a line.
 *
 * Where the table has an enum "log.level", its value sets the level of the log.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdio.h>

#include "lib/base/diag.h"
#include "lib/base/prometheus.h"
#include "lib/config/budget.h"
#include "lib/config/options.h"

/* A long option of one program. */
struct ft_program_option {
    const char *name;     /* "replay" */
    const char *argument; /* "FILE"; NULL: takes none */
    const char *help;     /* "read records from FILE instead of the network" */
    bool repeatable;      /* else a second one is a usage error */
};

struct ft_run;

struct ft_program {
    const char *name;    /* "fabrictraced" */
    const char *summary; /* one line of what it does, for the help */
    const struct ft_option_table *table;
    const struct ft_program_option *options; /* ends with a NULL name; NULL: none */
    /* More to check than the table can (a file that the config names), for --check: complaints
     * into diag. May be NULL. A run does the same where it loads such a file. */
    void (*check)(const struct ft_run *run, struct ft_diag *diag);
    /* What of a configuration grows, and the caps of it that are to be filled in: how many shares.
     * The budget is its option "memory_max". Called for each configuration that is loaded, before
     * ft_run_config() knows it; --check prints the table. May be NULL. */
    size_t (*shares)(const struct ft_run *run, void *config, struct ft_share shares[FT_SHARES_MAX]);
    /* No cap takes effect by a reload: memory has to suffice as for a start, which is when it is
     * shared out anew. Else what runs stays, and what is new has to fit beside it. */
    bool caps_need_start;
    /* What a valid configuration means in figures, a line each, for --check. May be NULL. */
    void (*print_size)(const struct ft_run *run, FILE *out);
    const struct ft_prom_table *metrics; /* of its page, for the manual page; NULL: none */
};

/* Reads the command line and the configuration. NULL when the program is to exit at once, with
 * *exit_code: 0 (--check, --help ...), EX_USAGE (64), EX_CONFIG (78), EX_OSERR, EX_IOERR
 * (74) where it could not be printed. What there is to say was said. */
struct ft_run *ft_run_new(const struct ft_program *program, int argc, char **argv, int *exit_code);
void ft_run_free(struct ft_run *run);

/* The program's struct; good until the second next ft_run_reload(), so that whoever compares old
 * and new may. */
const void *ft_run_config(const struct ft_run *run);

/* Complains of a key of the configuration that was read last: "FILE:LINE: key 'KEY': ...", without
 * the position when run is NULL. */
void ft_run_complain(const struct ft_run *run, struct ft_diag *diag, const char *key,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Where a key of that configuration stands, in room: "FILE:LINE: key 'KEY': ". "" where key is
 * NULL, "key 'KEY': " where run is. Returns room. */
#define FT_RUN_LOCATION_BYTES 512
const char *ft_run_location(const struct ft_run *run, const char *key,
                            char room[FT_RUN_LOCATION_BYTES]);

/* True where the file says something of the key, and not a --set. */
bool ft_run_in_file(const struct ft_run *run, const char *key);

/* The file that is read, also when it is not there. */
const char *ft_run_file(const struct ft_run *run);

/* Arguments given to an own option, in their order; an option without an argument has one "" for
 * each time. Count 0: not given. The name must be in the program's list. */
const struct ft_strings *ft_run_values(const struct ft_run *run, const char *option);

/* The argument of an own option, NULL when it was not given. */
const char *ft_run_value(const struct ft_run *run, const char *option);

/* For SIGHUP: reads the file again, under the same --set and --log-level. -EINVAL after complaints
 * into diag: nothing has changed. */
int ft_run_reload(struct ft_run *run, struct ft_diag *diag);

/* Takes back the last ft_run_reload(), once, when the program cannot follow it. */
void ft_run_revert(struct ft_run *run);

#endif
