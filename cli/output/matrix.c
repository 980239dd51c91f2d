// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/output/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/units.h"
#include "lib/base/bound.h"

#define LABEL_BYTES 160
#define CELL_PX     14
#define LABEL_PX    150

/* A rank, and which of the members has it. */
struct ranked {
    uint64_t rank;
    size_t member;
};

/* The row of each member, in the order of "members". */
struct labelled {
    size_t *of_member;
    struct ranked *ranked; /* by rank */
    size_t count;
    bool *sends; /* whether a member's own agent reported what it sent */
    size_t members;
};

static void make_label(const struct ft_value *member, enum ft_matrix_by by, char label[LABEL_BYTES])
{
    const char *host = ft_value_str(member, "host"), *gpu = ft_value_str(member, "gpu");
    uint64_t rank = 0, pid = 0;

    ft_value_uint(member, "rank", &rank);
    ft_value_uint(member, "pid", &pid);
    host = host ? host : "?";
    if (by == FT_MATRIX_RANK)
        snprintf(label, LABEL_BYTES, "%llu", (unsigned long long)rank);
    else if (by == FT_MATRIX_HOST)
        snprintf(label, LABEL_BYTES, "%s", host);
    else if (gpu)
        snprintf(label, LABEL_BYTES, "%s %s", host, gpu);
    else if (pid)
        snprintf(label, LABEL_BYTES, "%s pid %llu", host, (unsigned long long)pid);
    else
        snprintf(label, LABEL_BYTES, "%s rank %llu", host, (unsigned long long)rank);
}

static int label_member(struct ft_matrix *m, const struct ft_value *member, enum ft_matrix_by by,
                        size_t *index)
{
    char label[LABEL_BYTES];
    char **grown;

    make_label(member, by, label);
    for (size_t i = 0; i < m->label_count; i++) {
        if (strcmp(m->labels[i], label) == 0) {
            *index = i;
            return 0;
        }
    }
    if (m->label_count == FT_MATRIX_LABELS_MAX)
        return -E2BIG;
    grown = realloc(m->labels, (m->label_count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    m->labels = grown;
    grown[m->label_count] = strdup(label);
    if (!grown[m->label_count])
        return -ENOMEM;
    *index = m->label_count++;
    return 0;
}

static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->member < b->member ? -1 : a->member > b->member;
}

static void sort_ranks(const struct ft_value *members, struct labelled *labelled)
{
    for (size_t i = 0; i < labelled->members; i++) {
        struct ranked *next = &labelled->ranked[labelled->count];

        next->member = i;
        labelled->count += ft_value_uint(ft_value_at(members, i), "rank", &next->rank);
    }
    qsort(labelled->ranked, labelled->count, sizeof(*labelled->ranked), by_rank);
}

/* The first member of that rank. */
static bool find_rank(const struct labelled *labelled, uint64_t rank, size_t *index)
{
    const struct ranked key = {.rank = rank}, *all = labelled->ranked;
    size_t at = ft_lower_bound(&key, all, labelled->count, sizeof(key), by_rank);

    if (at == labelled->count || all[at].rank != rank)
        return false;
    *index = all[at].member;
    return true;
}

static double real(const struct ft_value *object, const char *name)
{
    double value = 0;

    ft_value_real(object, name, &value);
    return value;
}

static void note_sender(struct labelled *labelled, const struct ft_value *edge)
{
    uint64_t src;
    size_t index;

    if (real(edge, "sent_messages") > 0 && ft_value_uint(edge, "src", &src) &&
        find_rank(labelled, src, &index))
        labelled->sends[index] = true;
}

static void add_edge(struct ft_matrix *m, const struct labelled *labelled,
                     const struct ft_value *edge)
{
    double sent = real(edge, "sent_bytes"), messages = real(edge, "sent_messages");
    struct ft_matrix_cell *cell;
    uint64_t src, dst;
    size_t a, b;

    if (!ft_value_uint(edge, "src", &src) || !ft_value_uint(edge, "dst", &dst) ||
        !find_rank(labelled, src, &a) || !find_rank(labelled, dst, &b))
        return;
    /* The rest of an operation that its receiver reported in two parts has no name: the sender
     * reported it under its name. */
    if (messages <= 0 && labelled->sends[a] && !ft_value_str(edge, "op"))
        return;
    cell = &m->cells[labelled->of_member[a] * m->label_count + labelled->of_member[b]];
    cell->bytes += messages > 0 ? sent : real(edge, "received_bytes");
    cell->messages += messages > 0 ? messages : real(edge, "received_messages");
    cell->formula_bytes += real(edge, "expected_bytes");
}

int ft_matrix_new(const struct ft_value *comm, enum ft_matrix_by by, struct ft_matrix **out)
{
    const struct ft_value *members = ft_value_get(comm, "members");
    const struct ft_value *edges = ft_value_get(comm, "edges");
    struct ft_matrix *m = calloc(1, sizeof(*m));
    struct labelled labelled = {.members = ft_value_count(members)};
    int rc = -ENOMEM;

    labelled.of_member = calloc(labelled.members + 1, sizeof(*labelled.of_member));
    labelled.sends = calloc(labelled.members + 1, sizeof(*labelled.sends));
    labelled.ranked = calloc(labelled.members + 1, sizeof(*labelled.ranked));
    if (!m || !labelled.of_member || !labelled.sends || !labelled.ranked)
        goto out;
    for (size_t i = 0; i < labelled.members; i++) {
        rc = label_member(m, ft_value_at(members, i), by, &labelled.of_member[i]);
        if (rc)
            goto out;
    }
    sort_ranks(members, &labelled);
    m->cells = calloc(m->label_count * m->label_count + 1, sizeof(*m->cells));
    rc = m->cells ? 0 : -ENOMEM;
    for (size_t i = 0; i < ft_value_count(edges); i++)
        note_sender(&labelled, ft_value_at(edges, i));
    for (size_t i = 0; rc == 0 && i < ft_value_count(edges); i++)
        add_edge(m, &labelled, ft_value_at(edges, i));
out:
    free(labelled.of_member);
    free(labelled.sends);
    free(labelled.ranked);
    if (rc) {
        ft_matrix_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void ft_matrix_free(struct ft_matrix *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->label_count; i++)
        free(m->labels[i]);
    free(m->labels);
    free(m->cells);
    free(m);
}

const struct ft_matrix_cell *ft_matrix_cell(const struct ft_matrix *m, size_t src, size_t dst)
{
    return &m->cells[src * m->label_count + dst];
}

/* A quoted field (RFC 4180); control characters go, and so does what a spreadsheet runs. */
static void put_field(FILE *out, const char *text)
{
    fputc('"', out);
    if (*text && strchr("=+-@", *text))
        fputc('\'', out);
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20)
            continue;
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void ft_matrix_csv(FILE *out, const struct ft_matrix *m, const char *comm_id)
{
    for (size_t i = 0; i < m->label_count * m->label_count; i++) {
        const struct ft_matrix_cell *c = &m->cells[i];

        if (c->bytes <= 0 && c->messages <= 0 && c->formula_bytes <= 0)
            continue;
        put_field(out, comm_id);
        fputc(',', out);
        put_field(out, m->labels[i / m->label_count]);
        fputc(',', out);
        put_field(out, m->labels[i % m->label_count]);
        fprintf(out, ",%.0f,%.0f,%.0f\n", c->bytes, c->messages, c->formula_bytes);
    }
}

static void put_xml(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
        }
    }
}

/* From pale to dark with the square root, so that small senders are seen beside large ones. */
static void put_cell(FILE *out, const struct ft_matrix *m, size_t i, bool messages, double most)
{
    const struct ft_matrix_cell *c = &m->cells[i];
    double value = messages ? c->messages : c->bytes;
    double shade = most > 0 ? sqrt(value / most) : 0;
    char bytes[FT_UNIT_BYTES], formula[FT_UNIT_BYTES];

    if (value <= 0)
        return;
    fprintf(out, "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,%d)\">",
            LABEL_PX + i % m->label_count * CELL_PX, LABEL_PX + i / m->label_count * CELL_PX,
            CELL_PX, CELL_PX, (int)(255 - 225 * shade), (int)(240 - 180 * shade),
            (int)(225 - 95 * shade));
    fputs("<title>", out);
    put_xml(out, m->labels[i / m->label_count]);
    fputs(" to ", out);
    put_xml(out, m->labels[i % m->label_count]);
    fprintf(out, ": %s in %.0f messages", ft_unit_size(bytes, c->bytes), c->messages);
    if (c->formula_bytes > 0)
        fprintf(out, ", by formula %s", ft_unit_size(formula, c->formula_bytes));
    fputs("</title></rect>\n", out);
}

void ft_matrix_svg(FILE *out, const struct ft_matrix *m, const char *title, bool messages)
{
    size_t side = LABEL_PX + m->label_count * CELL_PX + 20;
    double most = 0;

    for (size_t i = 0; i < m->label_count * m->label_count; i++)
        most = fmax(most, messages ? m->cells[i].messages : m->cells[i].bytes);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"8\" y=\"20\" "
            "font-size=\"13\">",
            side > 480 ? side : 480, side);
    put_xml(out, title);
    fprintf(out,
            "</text>\n<text x=\"8\" y=\"38\">rows send, columns receive; darkest: %.4g %s</text>\n",
            most, messages ? "messages" : "bytes");
    for (size_t i = 0; i < m->label_count; i++) {
        size_t at = LABEL_PX + i * CELL_PX + CELL_PX - 3;

        fprintf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">", LABEL_PX - 4, at);
        put_xml(out, m->labels[i]);
        fprintf(out, "</text>\n<text transform=\"translate(%zu,%d) rotate(-90)\">", at,
                LABEL_PX - 4);
        put_xml(out, m->labels[i]);
        fputs("</text>\n", out);
    }
    for (size_t i = 0; i < m->label_count * m->label_count; i++)
        put_cell(out, m, i, messages, most);
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%zu\" height=\"%zu\" fill=\"none\" stroke=\"#888\"/>\n"
            "</svg>\n",
            LABEL_PX, LABEL_PX, m->label_count * CELL_PX, m->label_count * CELL_PX);
}
