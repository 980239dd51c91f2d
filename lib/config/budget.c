// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/config/budget.h"

#include <errno.h>
#include <inttypes.h>

#define KIB       1024.0
#define MIB_BYTES (UINT64_C(1) << 20)

void ft_budget_format(uint64_t bytes, char text[FT_BUDGET_TEXT_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= KIB && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= KIB;
        unit++;
    }
    snprintf(text, FT_BUDGET_TEXT_BYTES, value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value,
             units[unit]);
}

static uint64_t sum_of(const struct ft_share *shares, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += shares[i].bytes;
    return sum;
}

/* A number that a person can read: two digits, the rest zeroes; of bytes, full MiB. */
static uint64_t round_down(uint64_t cap, bool in_bytes)
{
    uint64_t unit = 1;

    if (in_bytes)
        return cap > MIB_BYTES ? cap / MIB_BYTES * MIB_BYTES : cap;
    while (cap / unit >= 100)
        unit *= 10;
    return cap / unit * unit;
}

static void take(struct ft_share *s, uint64_t cap)
{
    cap = s->most && cap >= s->most ? s->most : round_down(cap, s->in_bytes);
    if (cap < s->least)
        cap = s->least;
    *s->cap = cap;
    s->bytes = (uint64_t)((double)cap * s->each_bytes);
}

static bool is_open(const struct ft_share *s)
{
    return s->cap && !s->is_set && !s->kept;
}

/* What must be: fixed, set, or the least of a share. The key of the most that somebody set. */
static uint64_t least_of(struct ft_share *shares, size_t count, const char **culprit)
{
    uint64_t most = 0;

    *culprit = "memory_max";
    for (size_t i = 0; i < count; i++) {
        struct ft_share *s = &shares[i];

        if (s->is_set || s->kept)
            s->bytes = (uint64_t)((double)*s->cap * s->each_bytes);
        else if (s->cap)
            s->bytes = (uint64_t)((double)s->least * s->each_bytes);
        if (s->is_set && s->bytes > most) {
            most = s->bytes;
            *culprit = s->key;
        }
    }
    return sum_of(shares, count);
}

int ft_budget_share(struct ft_share *shares, size_t count, uint64_t budget_bytes,
                    const char **culprit, uint64_t *needed)
{
    const char *most;
    uint64_t sum = least_of(shares, count, &most);
    double rest, weights = 0;

    if (sum > budget_bytes) {
        *culprit = most;
        *needed = sum;
        return -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        weights += is_open(&shares[i]) ? shares[i].weight : 0;
        sum -= is_open(&shares[i]) ? shares[i].bytes : 0;
    }
    rest = (double)(budget_bytes - sum);
    for (size_t i = 0; i < count; i++)
        if (is_open(&shares[i]))
            take(&shares[i], (uint64_t)(rest * shares[i].weight / weights / shares[i].each_bytes));
    /* The least of some may have taken more than their part. */
    for (size_t i = 0; i < count && sum_of(shares, count) > budget_bytes; i++) {
        uint64_t over = sum_of(shares, count) - budget_bytes;
        double cap = is_open(&shares[i]) ? (double)*shares[i].cap : 0;

        if (cap > (double)over / shares[i].each_bytes)
            take(&shares[i], (uint64_t)(cap - (double)over / shares[i].each_bytes));
        else if (cap > 0)
            take(&shares[i], shares[i].least);
    }
    return 0;
}

void ft_budget_print(const struct ft_share *shares, size_t count, uint64_t budget_bytes, FILE *out)
{
    char text[FT_BUDGET_TEXT_BYTES], each[FT_BUDGET_TEXT_BYTES];

    fprintf(out, "%-22s %-24s %10s %10s %10s\n", "MEMORY FOR", "CAP", "AT MOST", "EACH", "BYTES");
    for (size_t i = 0; i < count; i++) {
        const struct ft_share *s = &shares[i];

        ft_budget_format(s->bytes, text);
        if (!s->cap) {
            fprintf(out, "%-22s %-24s %10s %10s %10s\n", s->what, "", "", "", text);
            continue;
        }
        ft_budget_format((uint64_t)s->each_bytes, each);
        fprintf(out, "%-22s %-24s %10" PRIu64 " %10s %10s%s\n", s->what, s->key ? s->key : "",
                *s->cap, s->in_bytes ? "" : each, text, s->is_set ? " (set)" : "");
    }
    ft_budget_format(sum_of(shares, count), text);
    ft_budget_format(budget_bytes, each);
    fprintf(out, "sum: %s of %s (memory_max)\n", text, each);
}
