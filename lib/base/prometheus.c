// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/prometheus.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "lib/base/utf8.h"

/* Whole numbers up to here are written as such. */
#define INTEGER_MAX 9007199254740992.0

static const char *type_name(enum ft_prom_type type)
{
    static const char *const names[] = {
        [FT_PROM_GAUGE] = "gauge",
        [FT_PROM_COUNTER] = "counter",
        [FT_PROM_SUMMARY] = "summary",
    };

    return names[type];
}

void ft_prom_family(struct ft_prom *p, size_t metric)
{
    const struct ft_prom_metric *m = &p->table->metrics[metric];

    p->family = m;
    ft_write_fmt(p->w, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
                 type_name(m->type));
}

void ft_prom_write_label(struct ft_writer *w, const char *name, const char *value)
{
    ft_write_str(w, name);
    ft_write_str(w, "=\"");
    for (size_t n; *value; value += n) {
        n = ft_utf8_bytes((const unsigned char *)value);
        if (n == 0)
            ft_write_str(w, "\xef\xbf\xbd");
        else if (*value == '\n')
            ft_write_str(w, "\\n");
        else if (*value == '"' || *value == '\\')
            ft_write_fmt(w, "\\%c", *value);
        else
            ft_write_bytes(w, value, n);
        n += n == 0;
    }
    ft_write_u8(w, '"');
}

/* Name and labels of a series. */
static void begin(struct ft_prom *p, const char *const *labels)
{
    const char *name = p->family->labels;
    char one[64];

    ft_write_str(p->w, p->family->name);
    assert(!name == !labels);
    for (size_t i = 0; name && *name; i++) {
        size_t n = strcspn(name, ",");

        assert(n < sizeof(one));
        memcpy(one, name, n);
        one[n] = 0;
        ft_write_u8(p->w, i ? ',' : '{');
        ft_prom_write_label(p->w, one, labels[i]);
        name += n + (name[n] == ',');
    }
    if (labels)
        ft_write_u8(p->w, '}');
    ft_write_u8(p->w, ' ');
}

static void write_double(struct ft_writer *w, double value)
{
    if (value >= 0 && value < INTEGER_MAX && value == floor(value))
        ft_write_u64(w, (uint64_t)value);
    else
        ft_write_fmt(w, "%.10g", value);
    ft_write_u8(w, '\n');
}

void ft_prom_u64(struct ft_prom *p, const char *const *labels, uint64_t value)
{
    begin(p, labels);
    ft_write_u64(p->w, value);
    ft_write_u8(p->w, '\n');
}

void ft_prom_double(struct ft_prom *p, const char *const *labels, double value)
{
    if (!isfinite(value))
        return;
    begin(p, labels);
    write_double(p->w, value);
}

void ft_prom_double_of(struct ft_prom *p, const char *labels, double value)
{
    if (!isfinite(value))
        return;
    ft_write_str(p->w, p->family->name);
    ft_write_u8(p->w, '{');
    ft_write_str(p->w, labels);
    ft_write_str(p->w, "} ");
    write_double(p->w, value);
}

void ft_prom_summary(struct ft_prom *p, double sum, uint64_t count)
{
    ft_write_fmt(p->w, "%s_sum ", p->family->name);
    write_double(p->w, sum);
    ft_write_fmt(p->w, "%s_count ", p->family->name);
    write_double(p->w, (double)count);
}

void ft_prom_one(struct ft_prom *p, size_t metric, uint64_t value)
{
    ft_prom_family(p, metric);
    ft_prom_u64(p, NULL, value);
}

void ft_prom_one_double(struct ft_prom *p, size_t metric, double value)
{
    ft_prom_family(p, metric);
    ft_prom_double(p, NULL, value);
}

static unsigned series_of(const struct ft_prom_metric *m)
{
    return (m->each ? m->each : 1) * (m->type == FT_PROM_SUMMARY ? 2 : 1);
}

uint64_t ft_prom_series_each(const struct ft_prom_table *table, const char *per)
{
    uint64_t sum = 0;

    for (const struct ft_prom_metric *m = table->metrics; m->name; m++)
        if (per && m->per ? strcmp(m->per, per) == 0 : per == m->per)
            sum += series_of(m);
    return sum;
}

uint64_t ft_prom_series(const struct ft_prom_table *table, const struct ft_prom_things *things)
{
    uint64_t sum = ft_prom_series_each(table, NULL);

    for (; things->per; things++)
        sum += things->count * ft_prom_series_each(table, things->per);
    return sum;
}

static void print_labels(const char *labels, FILE *out)
{
    while (*labels) {
        size_t n = strcspn(labels, ",");

        fprintf(out, "%.*s%s", (int)n, labels, labels[n] ? " , " : "");
        labels += n + (labels[n] == ',');
    }
}

/* A sentence a line, as mdoc requires. */
static void print_help(const char *help, FILE *out)
{
    const char *end;

    for (; (end = strstr(help, ". ")); help = end + 2)
        fprintf(out, "%.*s.\n", (int)(end - help), help);
    fprintf(out, "%s\n", help);
}

void ft_prom_mdoc(const struct ft_prom_table *table, FILE *out)
{
    fputs(".Bl -tag -width Ds\n", out);
    for (const struct ft_prom_metric *m = table->metrics; m->name; m++) {
        fprintf(out, ".It Va %s", m->name);
        if (m->labels) {
            fputs(" Brq Ar ", out);
            print_labels(m->labels, out);
        }
        fprintf(out, "\n%s, %s", type_name(m->type), m->unit);
        if (m->per && m->each > 1)
            fprintf(out, "; up to %u for each %s", m->each, m->per);
        else if (m->per)
            fprintf(out, "; one for each %s", m->per);
        else if (m->each > 1)
            fprintf(out, "; up to %u", m->each);
        fputs(".\n", out);
        print_help(m->help, out);
    }
    fputs(".El\n", out);
}
