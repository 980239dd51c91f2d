// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_PROMETHEUS_H
#define FT_BASE_PROMETHEUS_H
/*
 * A page of metrics in Prometheus' text format (0.0.4), written from a table: what a program can
 * show stands in it once, and the page, the manual page and the number of series follow.
 *
 * A family is begun once and all its series are written before the next. Values are in base units:
 * seconds, bytes, ratios. Labels are names of a bounded kind (links, groups, stages), never a
 * flow's. Pure: figures in, text out.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/writer.h"

#define FT_PROM_CONTENT_TYPE "text/plain; version=0.0.4"

enum ft_prom_type {
    FT_PROM_GAUGE,
    FT_PROM_COUNTER,
    FT_PROM_SUMMARY, /* its sum and count alone */
};

struct ft_prom_metric {
    const char *name;
    enum ft_prom_type type;
    const char *unit;   /* of a value: seconds, bytes, ratio, flows ... */
    const char *labels; /* their names, separated by commas; NULL: none */
    const char *per;    /* "link": there are series for each of these; NULL: for the program */
    unsigned each;      /* so many for each at most; 0 stands for 1 */
    const char *help;
};

/* Metrics by their number, ended by one without a name. */
struct ft_prom_table {
    const struct ft_prom_metric *metrics;
};

/* How many there are at most of something that series are counted by. */
struct ft_prom_things {
    const char *per;
    uint64_t count;
};

/* A page on its way; make it with the writer and the table alone. */
struct ft_prom {
    struct ft_writer *w;
    const struct ft_prom_table *table;
    const struct ft_prom_metric *family; /* begun */
};

/* Values of a family's labels, in the table's order. */
#define FT_PROM_LABELS(...) ((const char *const[]){__VA_ARGS__})

/* Begins a family: HELP and TYPE. */
void ft_prom_family(struct ft_prom *p, size_t metric);

/* A series of the family that was begun; labels NULL: without any. What is not a number is left
 * out. */
void ft_prom_u64(struct ft_prom *p, const char *const *labels, uint64_t value);
void ft_prom_double(struct ft_prom *p, const char *const *labels, double value);
void ft_prom_summary(struct ft_prom *p, double sum, uint64_t count);

/* The same with labels that ft_prom_write_label() wrote before, for many series of one thing. */
void ft_prom_double_of(struct ft_prom *p, const char *labels, double value);

/* A family of one series. */
void ft_prom_one(struct ft_prom *p, size_t metric, uint64_t value);
void ft_prom_one_double(struct ft_prom *p, size_t metric, double value);

/* name="value" with the three escapes that the format knows. Prometheus refuses a page that is not
 * valid UTF-8: other bytes become U+FFFD. */
void ft_prom_write_label(struct ft_writer *w, const char *name, const char *value);

/* The most series that a page of this table has; a thing that is not in the list is there 0 times.
 * The list ends with a NULL per. */
uint64_t ft_prom_series(const struct ft_prom_table *table, const struct ft_prom_things *things);

/* Of those, for each thing: the series that one of it has. */
uint64_t ft_prom_series_each(const struct ft_prom_table *table, const char *per);

/* The table as a list for a manual page. */
void ft_prom_mdoc(const struct ft_prom_table *table, FILE *out);

#endif
