// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CONFIG_OPTIONS_H
#define FT_CONFIG_OPTIONS_H
/*
 * A program's configuration from one table.
 *
 * The table (dotted key, type, range, default, help, field of the program's config struct) gives
 * the YAML reader, `--check`, `--print-config`, `--set KEY=VALUE` and the option list of the manual
 * page. A dotted key "kafka.brokers" is `brokers` in the map `kafka`. Unknown keys are complaints.
 * The filled struct is immutable; on reload a new one is made and replaced as one.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/diag.h"
#include "lib/base/writer.h"
#include "lib/config/yaml.h"

enum ft_option_type {
    FT_OPTION_STRING,   /* char *; NULL when unset without a default */
    FT_OPTION_STRINGS,  /* struct ft_strings; a YAML list, a scalar is a list of one */
    FT_OPTION_MAP,      /* struct ft_strings of KEY=VALUE; a YAML map, or a list of these */
    FT_OPTION_BOOL,     /* bool */
    FT_OPTION_UINT,     /* uint64_t, within min..max */
    FT_OPTION_DOUBLE,   /* double, within min..max */
    FT_OPTION_DURATION, /* int64_t nanoseconds; written "10s", "250ms", "5m", "1h" */
    FT_OPTION_SIZE,     /* uint64_t bytes; written "64MiB", "4KiB", "1GiB" or a plain number */
    FT_OPTION_ENDPOINT, /* char *: "host:port", "[v6]:port" or ":port"; checked for form */
    FT_OPTION_ENUM,     /* int: index into choices */
};

struct ft_strings {
    char **items; /* a NULL behind the last; NULL without any */
    size_t count;
};

bool ft_strings_equal(const struct ft_strings *a, const struct ft_strings *b);

struct ft_option {
    const char *key;
    enum ft_option_type type;
    size_t offset;        /* offsetof() in the program's struct */
    const char *standard; /* default as it would be written in YAML; NULL: unset */
    double min, max;      /* numbers: range; durations in seconds, sizes in bytes; both 0: any */
    const char *const *choices; /* FT_OPTION_ENUM: names, NULL-terminated */
    const char *help;           /* one or two plain sentences, for the manual page */
};

/* Table ends with a NULL key. */
struct ft_option_table {
    const char *program;
    const struct ft_option *options;
    size_t struct_bytes;
};

/* A new struct with the defaults, then what root sets (NULL: nothing), then the "KEY=VALUE" texts
 * of sets. Every complaint goes into diag; NULL when there was one, or without memory. lines (NULL:
 * not needed) has an item for each option of the table, all zero: it gets the line that set it, or
 * FT_OPTIONS_SET for one of sets. */
#define FT_OPTIONS_SET UINT_MAX
void *ft_options_load(const struct ft_option_table *table, const struct ft_yaml *root,
                      const struct ft_strings *sets, struct ft_diag *diag, unsigned *lines);
void ft_options_free(const struct ft_option_table *table, void *config);
size_t ft_options_count(const struct ft_option_table *table);

/* The effective configuration as YAML that loads to the same, but for hidden secrets. */
void ft_options_print(const struct ft_option_table *table, const void *config, FILE *out);

/* The option list as mdoc(7) source, for the manual page. */
void ft_options_mdoc(const struct ft_option_table *table, FILE *out);

#endif
