// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COLUMNS_MAX 64
#define FIELD_BYTES 256
/* Beyond it a sum of two times would not fit. */
#define TIME_MAX (1ULL << 62)

enum column { RANK, HOST, COMM, FUNCTION, SEQUENCE, BYTES, START, END, PEER, COLUMNS };

static const char *const names[COLUMNS] = {
    [RANK] = "rank",         [HOST] = "host",         [COMM] = "communicator",
    [FUNCTION] = "function", [SEQUENCE] = "sequence", [BYTES] = "bytes",
    [START] = "start_ns",    [END] = "end_ns",        [PEER] = "peer",
};

struct reader {
    const char *at, *end;
    uint64_t line;        /* of the record that is read */
    uint64_t next_line;   /* of what follows it */
    int columns[COLUMNS]; /* position of each in a line, -1: not there */
    size_t count;         /* of the header */
    char fields[COLUMNS_MAX][FIELD_BYTES];
    char *error;
};

static int bad(struct reader *r, const char *column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(struct reader *r, const char *column, const char *format, ...)
{
    int n = snprintf(r->error, FT_CSV_ERROR_BYTES, "%" PRIu64 ": %s%s", r->line,
                     column ? column : "", column ? ": " : "");
    va_list args;

    va_start(args, format);
    if (n > 0 && n < FT_CSV_ERROR_BYTES)
        vsnprintf(r->error + n, (size_t)(FT_CSV_ERROR_BYTES - n), format, args);
    va_end(args);
    return -EINVAL;
}

static const char *column_name(const struct reader *r, size_t column)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (r->columns[i] == (int)column)
            return names[i];
    return NULL;
}

/* The next field into text; *last: it ends the record. */
static int read_field(struct reader *r, size_t column, char text[FIELD_BYTES], bool *last)
{
    bool quoted = r->at < r->end && *r->at == '"', closed = false;
    size_t n = 0;

    r->at += quoted;
    for (;; r->at++) {
        char c = r->at < r->end ? *r->at : '\n';

        if (quoted && !closed) {
            if (r->at == r->end)
                return bad(r, column_name(r, column), "the quotes are not closed");
            if (c == '"' && r->at + 1 < r->end && r->at[1] == '"') {
                r->at++;
            } else if (c == '"') {
                closed = true;
                continue;
            }
            r->next_line += c == '\n';
        } else if (c == ',' || c == '\n') {
            break;
        } else if (c == '\r' && (r->at + 1 == r->end || r->at[1] == '\n')) {
            continue;
        } else if (closed && c != ' ') {
            return bad(r, column_name(r, column), "text behind closed quotes");
        } else if (closed) {
            continue;
        }
        if (c == '\0')
            return bad(r, column_name(r, column), "a byte of value 0");
        if (n + 1 >= FIELD_BYTES)
            return bad(r, column_name(r, column), "longer than %d bytes", FIELD_BYTES - 1);
        text[n++] = c;
    }
    while (!quoted && n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    text[n] = '\0';
    *last = r->at == r->end || *r->at == '\n';
    if (r->at < r->end)
        r->at++;
    r->next_line += *last;
    if (!quoted && (n = strspn(text, " \t")))
        memmove(text, text + n, strlen(text + n) + 1);
    return 0;
}

/* 1 with the fields of the next record, 0 at the end. An empty line is none. */
static int read_record(struct reader *r, size_t *count)
{
    size_t n;
    bool last;
    int rc;

    do {
        if (r->at == r->end)
            return 0;
        r->line = r->next_line;
        for (n = 0, last = false; !last; n++) {
            if (n == COLUMNS_MAX)
                return bad(r, NULL, "more than %d columns", COLUMNS_MAX);
            rc = read_field(r, n, r->fields[n], &last);
            if (rc)
                return rc;
        }
    } while (n == 1 && !r->fields[0][0]);
    *count = n;
    return 1;
}

static int read_header(struct reader *r)
{
    int rc;

    if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0)
        r->at += 3;
    for (size_t i = 0; i < COLUMNS; i++)
        r->columns[i] = -1;
    rc = read_record(r, &r->count);
    if (rc <= 0)
        return rc ? rc : bad(r, NULL, "no header line");
    for (size_t i = 0; i < r->count; i++) {
        for (size_t c = 0; c < COLUMNS; c++) {
            if (strcasecmp(r->fields[i], names[c]) != 0)
                continue;
            if (r->columns[c] >= 0)
                return bad(r, names[c], "the header has this column twice");
            r->columns[c] = (int)i;
        }
    }
    for (size_t c = 0; c < PEER; c++)
        if (r->columns[c] < 0)
            return bad(r, names[c], "the header has no such column");
    return 0;
}

/* Digits, or a real number that is an integer, such as 12.0 or 1.7e+18. */
static int parse_uint(const char *text, uint64_t max, uint64_t *out)
{
    char *stop;
    uint64_t value;
    double real;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    value = strtoull(text, &stop, 10);
    if (errno == 0 && !*stop) {
        *out = value;
        return value > max ? -ERANGE : 0;
    }
    if (*stop != '.' && *stop != 'e' && *stop != 'E')
        return errno == ERANGE ? -ERANGE : -EINVAL;
    real = strtod(text, &stop);
    if (*stop || strspn(text, "0123456789.e+E") != strlen(text) || !isfinite(real) ||
        real != floor(real))
        return -EINVAL;
    /* As a real number the largest integer is one more than that. */
    if (real > (double)max || real >= 0x1p64)
        return -ERANGE;
    *out = (uint64_t)real > max ? max : (uint64_t)real;
    return 0;
}

static const char *field(const struct reader *r, enum column column)
{
    return r->columns[column] < 0 ? "" : r->fields[r->columns[column]];
}

static int number(struct reader *r, enum column column, uint64_t max, uint64_t *out)
{
    const char *text = field(r, column);
    int rc = parse_uint(text, max, out);

    if (rc == -ERANGE)
        return bad(r, names[column], "'%s' is more than %" PRIu64, text, max);
    if (rc)
        return *text ? bad(r, names[column], "'%s' is not an unsigned integer", text)
                     : bad(r, names[column], "is empty");
    return 0;
}

static int parse_row(struct reader *r, bool *pair, struct ft_operation_row *row)
{
    uint64_t rank, peer = FT_OPERATIONS_NONE;
    const char *function = field(r, FUNCTION);
    int rc;

    *row = (struct ft_operation_row){.host = field(r, HOST),
                                     .comm = field(r, COMM),
                                     .function = function,
                                     .end_ns = FT_OPERATIONS_NEVER};
    if (!*row->comm)
        return bad(r, names[COMM], "is empty");
    if (!*function)
        return bad(r, names[FUNCTION], "is empty");
    if ((rc = number(r, RANK, FT_OPERATIONS_NONE - 1, &rank)) < 0 ||
        (rc = number(r, BYTES, UINT64_MAX, &row->bytes)) < 0 ||
        (rc = number(r, START, TIME_MAX, &row->start_ns)) < 0)
        return rc;
    if (*field(r, END) && (rc = number(r, END, TIME_MAX, &row->end_ns)) < 0)
        return rc;
    if (*field(r, PEER) && (rc = number(r, PEER, FT_OPERATIONS_NONE - 1, &peer)) < 0)
        return rc;
    *pair = peer != FT_OPERATIONS_NONE;
    /* NCCL does not number sends and receives. */
    if ((!*pair || *field(r, SEQUENCE)) &&
        (rc = number(r, SEQUENCE, UINT64_MAX - 1, &row->sequence)) < 0)
        return rc;
    if (row->end_ns < row->start_ns)
        return bad(r, names[END], "%" PRIu64 " is before the start, %" PRIu64, row->end_ns,
                   row->start_ns);
    row->rank = (uint32_t)rank;
    row->peer = (uint32_t)peer;
    if (*pair && row->peer == row->rank)
        return bad(r, names[PEER], "rank %" PRIu32 " is its own peer", row->rank);
    return 0;
}

static int add(struct reader *r, struct ft_operations *ops, const struct ft_operation_row *row)
{
    switch (ft_operations_add(ops, row)) {
    case 0:
        return 0;
    case -EINVAL:
        return bad(r, names[HOST], "rank %" PRIu32 " was on another host before", row->rank);
    case -EOVERFLOW:
        return bad(r, NULL, "more than %u operations, or too many names", FT_OPERATIONS_MAX);
    case -ENAMETOOLONG:
        return bad(r, NULL, "a name is longer than %d bytes", FT_OPERATIONS_NAME_BYTES - 1);
    default:
        return -ENOMEM;
    }
}

int ft_csv_read(struct ft_operations *ops, const char *text, size_t len,
                char error[FT_CSV_ERROR_BYTES])
{
    struct reader *r = calloc(1, sizeof(*r));
    struct ft_operation_row row;
    size_t count;
    bool pair;
    int rc;

    if (!r)
        return -ENOMEM;
    r->at = text;
    r->end = text + len;
    r->line = r->next_line = 1;
    r->error = error;
    rc = read_header(r);
    while (rc == 0 && (rc = read_record(r, &count)) > 0) {
        if (count != r->count)
            rc = bad(r, NULL, "%zu columns, the header has %zu", count, r->count);
        else if ((rc = parse_row(r, &pair, &row)) == 0)
            rc = add(r, ops, &row);
    }
    free(r);
    return rc;
}
