// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_ANSWER_H
#define FT_CLI_OUTPUT_ANSWER_H
/*
 * An answer of the daemon's HTTP API (daemon/api/api.h) as a read-only tree of JSON values.
 *
 * Every getter takes NULL and values of another kind and then finds nothing, so a reader asks for a
 * member of a member without a check between. Owner: the caller of ft_answer_parse(); the values
 * and texts inside are borrowed from the answer.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_answer;
struct ft_value;

/* Parses one JSON object. NULL with a reason in error (error_bytes > 0). */
struct ft_answer *ft_answer_parse(const char *text, size_t len, char *error, size_t error_bytes);
/* Makes every text one that a terminal may see (cli/output/safe.h). */
void ft_answer_clean(struct ft_answer *answer);

/* Gives it this member, a value of any answer; NULL takes the member away. -ENOMEM. */
int ft_answer_put(struct ft_answer *answer, const char *name, const struct ft_value *value);

/* Keeps of its records those that are marked, an item of keep for each. */
void ft_answer_keep(struct ft_answer *answer, const bool *keep);

void ft_answer_free(struct ft_answer *answer);
const struct ft_value *ft_answer_root(const struct ft_answer *answer);

/* Member of an object, NULL when absent. */
const struct ft_value *ft_value_get(const struct ft_value *object, const char *name);

/* Items of a list; 0 and NULL for anything else. */
size_t ft_value_count(const struct ft_value *list);
const struct ft_value *ft_value_at(const struct ft_value *list, size_t i);

/* Text of a value itself (an item of a list of texts), NULL otherwise. */
const char *ft_value_text(const struct ft_value *value);

/* Members by kind: the text, NULL when absent; false and *out untouched when absent. */
const char *ft_value_str(const struct ft_value *object, const char *name);
bool ft_value_uint(const struct ft_value *object, const char *name, uint64_t *out);
bool ft_value_real(const struct ft_value *object, const char *name, double *out);

/* True when the member is there and true. */
bool ft_value_true(const struct ft_value *object, const char *name);

/* True when the member is there with this very text. */
bool ft_value_is(const struct ft_value *object, const char *name, const char *text);

/* The value as JSON on one line, members in the order received; free() it. NULL without memory. */
char *ft_value_dump(const struct ft_value *value);

#endif
