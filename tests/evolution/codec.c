// SPDX-License-Identifier: Apache-2.0
/*
 * Our own writer and reader, for check_evolution.py: lines of NDJSON to a Batch, and back.
 *
 * usage: codec pack|unpack      standard input to standard output
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/record.h"

#define BYTES_MAX   ((size_t)64 << 20)
#define RECORDS_MAX 100000

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "codec: %s: %s\n", what, why);
    exit(1);
}

static void pack(char *text, struct ft_writer *w)
{
    static Fabrictrace__Record *records[RECORDS_MAX];
    size_t count = 0;
    char error[256], *next;

    for (char *line = text; *line; line = next) {
        size_t len = strcspn(line, "\n");

        next = line + len + (line[len] != '\0');
        if (count == RECORDS_MAX ||
            ft_record_from_json(line, len, &records[count++], error, sizeof(error)) < 0)
            fail(line, error);
    }
    if (ft_batch_pack(records, count, w) < 0)
        fail("batch", "does not fit");
    for (size_t i = 0; i < count; i++)
        ft_record_free(records[i]);
}

static void unpack(const char *bytes, size_t len, struct ft_writer *w)
{
    Fabrictrace__Batch *batch = fabrictrace__batch__unpack(NULL, len, (const uint8_t *)bytes);

    if (!batch)
        fail("batch", "cannot be read");
    for (size_t i = 0; i < batch->n_records; i++) {
        if (ft_record_to_json(batch->records[i], w) < 0)
            fail("record", "cannot be written");
        ft_write_u8(w, '\n');
    }
    fabrictrace__batch__free_unpacked(batch, NULL);
}

int main(int argc, char **argv)
{
    char *input = calloc(1, BYTES_MAX);
    size_t len = input ? fread(input, 1, BYTES_MAX - 1, stdin) : 0;
    struct ft_writer w;

    ft_writer_init(&w, BYTES_MAX);
    if (argc != 2 || len == 0)
        fail("usage", "codec pack|unpack");
    if (strcmp(argv[1], "pack") == 0)
        pack(input, &w);
    else
        unpack(input, len, &w);
    fwrite(w.bytes, 1, w.len, stdout);
    ft_writer_free(&w);
    free(input);
    return 0;
}
