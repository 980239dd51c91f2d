// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CONFIG_YAML_H
#define FT_CONFIG_YAML_H
/*
 * A YAML document as a tree whose every node knows its line, so that whoever reads it can say where
 * a mistake is. One document a file; anchors and aliases are refused; a duplicate key is a
 * complaint. At most 64 MiB, 32 levels and 4 million nodes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/diag.h"

enum ft_yaml_kind {
    FT_YAML_SCALAR,
    FT_YAML_LIST,
    FT_YAML_MAP,
};

struct ft_yaml;

/* Parses text; file names it in complaints. NULL after at least one complaint in diag. An empty
 * document is an empty map. */
struct ft_yaml *ft_yaml_parse(const char *text, size_t len, const char *file, struct ft_diag *diag);

/* Reads and parses a file ("-": standard input). NULL after a complaint. */
struct ft_yaml *ft_yaml_load(const char *file, struct ft_diag *diag);

/* Frees the complete tree; only for the root. Takes NULL. */
void ft_yaml_free(struct ft_yaml *root);

enum ft_yaml_kind ft_yaml_kind(const struct ft_yaml *node);
unsigned ft_yaml_line(const struct ft_yaml *node);
const char *ft_yaml_file(const struct ft_yaml *node);

/* Scalar's text; NULL for another kind. Scalars hold no zero byte. */
const char *ft_yaml_text(const struct ft_yaml *node);

/* Whether nothing is stated: an empty value, "~" or "null" without quotes. */
bool ft_yaml_is_null(const struct ft_yaml *node);

/* Children of a list or a map, in the document's order; 0 for a scalar. */
size_t ft_yaml_count(const struct ft_yaml *node);
const struct ft_yaml *ft_yaml_item(const struct ft_yaml *node, size_t i);

/* Key of the i-th child of a map, and its line. */
const char *ft_yaml_key(const struct ft_yaml *node, size_t i);
unsigned ft_yaml_key_line(const struct ft_yaml *node, size_t i);

/* Child of a map by key; NULL when absent or when node is not a map. */
const struct ft_yaml *ft_yaml_get(const struct ft_yaml *node, const char *key);

/* Complaint at a node: "FILE:LINE: key 'key': ...". key may be NULL. */
void ft_yaml_complain(struct ft_diag *diag, const struct ft_yaml *node, const char *key,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
