// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/files/flows_file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/files/slurp.h"

#define COLUMNS 3
/* Of a file that is wrong from its first line to its last, this many complaints are enough. */
#define COMPLAINTS_MAX 100
#define SHOWN_BYTES    64

static const char *const column_names[COLUMNS] = {"src", "dst", "rate_bps"};

struct field {
    char *text; /* terminated */
    uint32_t column;
};

struct reader {
    const char *file;
    const struct ft_topology *t;
    struct ft_diag *diag;
    struct ft_flow_list *flows;
    size_t demand_size, name_size;
    uint32_t line;
    uint32_t at[COLUMNS]; /* where each column stands in a line */
    uint32_t *next_nic;   /* by host: flows that it sends, then those that it receives */
    bool bad;
};

static void complain(struct reader *r, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void complain(struct reader *r, uint32_t column, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    r->bad = true;
    ft_diag_add(r->diag, NULL, 0, "%s:%u:%u: %s", r->file, r->line, column, text);
}

/* Ends the field at *pos with a zero byte and steps behind its comma; *pos is NULL behind the last.
 * A field in quotes may contain commas, and quotes twice. */
static bool next_field(struct reader *r, char *line, char **pos, struct field *field)
{
    char *from = *pos, *to = from, *c = from;

    field->column = (uint32_t)(from - line) + 1;
    field->text = from;
    if (*c != '"') {
        c += strcspn(c, ",");
        to = c;
    } else {
        for (c++; *c && (*c != '"' || c[1] == '"'); c++) {
            c += *c == '"';
            *to++ = *c;
        }
        if (*c != '"' || (c[1] && c[1] != ',')) {
            complain(r, field->column, "a field in quotes has to end with one");
            return false;
        }
        c++;
    }
    *pos = *c ? c + 1 : NULL;
    *to = '\0';
    while (*field->text == ' ' || *field->text == '\t') {
        field->text++;
        field->column++;
    }
    while (to > field->text && (to[-1] == ' ' || to[-1] == '\t'))
        *--to = '\0';
    return true;
}

/* The fields of a line; one more than there may be is a complaint. */
static bool split(struct reader *r, char *line, struct field fields[COLUMNS])
{
    char *pos = line;
    uint32_t n = 0, length = (uint32_t)strlen(line);

    while (pos && n < COLUMNS)
        if (!next_field(r, line, &pos, &fields[n++]))
            return false;
    if (pos)
        complain(r, (uint32_t)(pos - line) + 1, "more than %d fields", COLUMNS);
    else if (n < COLUMNS)
        complain(r, length + 1, "%u field%s, there have to be %d: src, dst, rate_bps", n,
                 n == 1 ? "" : "s", COLUMNS);
    return !pos && n == COLUMNS;
}

static bool read_head(struct reader *r, char *line)
{
    struct field fields[COLUMNS];
    bool seen[COLUMNS] = {false};

    if (!split(r, line, fields))
        return false;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        uint32_t k = 0;

        while (k < COLUMNS && strcmp(column_names[k], fields[i].text) != 0)
            k++;
        if (k == COLUMNS || seen[k]) {
            complain(r, fields[i].column,
                     "the first line has to be src,dst,rate_bps: column '%.*s' is %s", SHOWN_BYTES,
                     fields[i].text, k == COLUMNS ? "not known" : "there twice");
            return false;
        }
        seen[k] = true;
        r->at[k] = i;
    }
    return true;
}

/* The NIC of a host for a flow: of the rail where there is one, else in turn. */
static uint32_t nic_of_host(const struct reader *r, uint32_t host, uint32_t rail,
                            uint32_t *next_nic)
{
    const struct ft_host *h = ft_topology_host(r->t, host);

    for (uint32_t i = 0; rail != FT_NONE && i < h->nic_count; i++)
        if (ft_topology_nic(r->t, h->nics[i])->rail == rail)
            return h->nics[i];
    return h->nic_count ? h->nics[(*next_nic)++ % h->nic_count] : FT_NONE;
}

static uint32_t read_end(struct reader *r, const struct field *field, bool dst, uint32_t rail)
{
    struct ft_ip ip;
    uint32_t host, nic = FT_NONE;

    if (ft_ip_parse(field->text, &ip) == 0)
        nic = ft_topology_nic_at(r->t, &ip);
    if (nic == FT_NONE) {
        host = ft_topology_find_host(r->t, field->text);
        if (host == FT_NONE) {
            complain(r, field->column,
                     "%s '%.*s' is not a host of the topology, nor an address of one",
                     dst ? "dst" : "src", SHOWN_BYTES, field->text);
            return FT_NONE;
        }
        nic = nic_of_host(r, host, dst ? rail : FT_NONE, &r->next_nic[2 * host + dst]);
    }
    if (nic == FT_NONE || ft_topology_nic(r->t, nic)->attach_count == 0) {
        complain(r, field->column, "%s '%.*s' is attached to no switch", dst ? "dst" : "src",
                 SHOWN_BYTES, field->text);
        return FT_NONE;
    }
    return nic;
}

static bool read_rate(struct reader *r, const struct field *field, uint64_t *rate)
{
    char *end = field->text;
    double value = -1;

    if ((*end >= '0' && *end <= '9') || *end == '.')
        value = strtod(field->text, &end);
    /* strtod() knows more than numbers of a file: hexadecimal ones. */
    if (end == field->text || *end || strpbrk(field->text, "xXpP") || !(value >= 0) ||
        value > (double)FT_SPEED_MAX_BPS) {
        complain(r, field->column, "rate_bps '%.*s' is not a number from 0 to %llu", SHOWN_BYTES,
                 field->text, (unsigned long long)FT_SPEED_MAX_BPS);
        return false;
    }
    *rate = (uint64_t)llround(value);
    return true;
}

static int add_flow(struct reader *r, struct ft_demand demand, struct ft_flow_names names)
{
    struct ft_flow_list *flows = r->flows;
    void *demands = ft_grow(flows->demands, flows->count, &r->demand_size, sizeof(demand));
    void *all;

    if (!demands)
        return -ENOMEM;
    flows->demands = demands;
    all = ft_grow(flows->names, flows->count, &r->name_size, sizeof(names));
    if (!all)
        return -ENOMEM;
    flows->names = all;
    flows->demands[flows->count] = demand;
    flows->names[flows->count++] = names;
    return 0;
}

static int read_line(struct reader *r, char *line)
{
    struct field fields[COLUMNS];
    const struct field *src, *dst;
    struct ft_demand d;

    if (!split(r, line, fields))
        return 0;
    src = &fields[r->at[0]];
    dst = &fields[r->at[1]];
    d.src_nic = read_end(r, src, false, FT_NONE);
    d.dst_nic = read_end(r, dst, true,
                         d.src_nic == FT_NONE ? FT_NONE : ft_topology_nic(r->t, d.src_nic)->rail);
    if (!read_rate(r, &fields[r->at[2]], &d.rate_bps) || d.src_nic == FT_NONE ||
        d.dst_nic == FT_NONE)
        return 0;
    if (d.src_nic == d.dst_nic) {
        complain(r, dst->column, "dst '%.*s' is the source itself", SHOWN_BYTES, dst->text);
        return 0;
    }
    if (r->flows->count == FT_FLOWS_MAX) {
        complain(r, 1, "more than %u flows", FT_FLOWS_MAX);
        return -EINVAL;
    }
    return add_flow(r, d, (struct ft_flow_names){src->text, dst->text, r->line});
}

static int read_lines(struct reader *r, char *text, size_t len)
{
    size_t before = ft_diag_count(r->diag);
    bool head = false;
    char *next;
    int rc = 0;

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        text += 3;
        len -= 3;
    }
    for (char *line = text, *end = text + len; line < end && rc == 0; line = next) {
        char *stop = memchr(line, '\n', (size_t)(end - line));

        next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        r->line++;
        if (stop > line && stop[-1] == '\r')
            stop--;
        *stop = '\0';
        if (strlen(line) != (size_t)(stop - line)) {
            complain(r, (uint32_t)strlen(line) + 1, "a zero byte");
            return -EINVAL;
        }
        if (*line == '\0' || *line == '#')
            continue;
        if (head)
            rc = read_line(r, line);
        else if (!(head = read_head(r, line)))
            return -EINVAL;
        if (ft_diag_count(r->diag) - before >= COMPLAINTS_MAX)
            return -EINVAL;
    }
    if (rc == 0 && !head) {
        r->line++;
        complain(r, 1, "is empty: the first line has to be src,dst,rate_bps");
    }
    return rc ? rc : r->bad ? -EINVAL : 0;
}

int ft_flows_read_take(char *text, size_t len, const char *file, const struct ft_topology *t,
                       struct ft_diag *diag, struct ft_flow_list *flows)
{
    struct reader r = {.file = file, .t = t, .diag = diag, .flows = flows};
    int rc;

    memset(flows, 0, sizeof(*flows));
    r.next_nic = calloc(2 * (size_t)ft_topology_hosts(t) + 1, sizeof(*r.next_nic));
    rc = r.next_nic ? read_lines(&r, text, len) : -ENOMEM;
    free(r.next_nic);
    if (rc)
        ft_flows_free(flows);
    else
        flows->text = text;
    return rc;
}

int ft_flows_load(const char *file, const struct ft_topology *t, struct ft_diag *diag,
                  struct ft_flow_list *flows)
{
    char *text;
    size_t len;
    int rc = ft_slurp(file, FT_FLOWS_MAX_BYTES, &text, &len);

    if (rc)
        return rc;
    rc = ft_flows_read_take(text, len, file, t, diag, flows);
    if (rc)
        free(text);
    return rc;
}

void ft_flows_free(struct ft_flow_list *flows)
{
    free(flows->demands);
    free(flows->names);
    free(flows->text);
    memset(flows, 0, sizeof(*flows));
}
