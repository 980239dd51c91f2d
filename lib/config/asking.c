// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/config/asking.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLANKS " \t"
/* Of a question, behind the command's own, with the NULL. */
#define OWN_ARGS 8

/* The command behind "PATTERN=". */
static const char *command_of(const char *item)
{
    const char *equals = strchr(item, '=');

    return equals ? equals + 1 + strspn(equals + 1, BLANKS) : "";
}

/* The next word, which blanks end, unless it is in single quotes; NULL: there is none. *at is
 * behind it then. */
static const char *next_word(const char **at, size_t *len)
{
    const char *word = *at + strspn(*at, BLANKS);

    if (!*word)
        return NULL;
    if (*word == '\'') {
        word++;
        *len = strcspn(word, "'");
        *at = word + *len + (word[*len] == '\'');
    } else {
        *len = strcspn(word, BLANKS);
        *at = word + *len;
    }
    return word;
}

static size_t count_words(const char *text)
{
    size_t n = 0, len;

    while (next_word(&text, &len))
        n++;
    return n;
}

const char *ft_asking_complaint(const char *item)
{
    const char *command = command_of(item);

    if (strchr(item, '=') == item)
        return "needs a pattern of switches' names";
    if (*command != '/')
        return "needs the full path of a program";
    if (count_words(command) > FT_ASKING_ARGS - OWN_ARGS)
        return "has too many arguments";
    if (strlen(command) > FT_ASKING_TEXT / 2)
        return "is too long";
    return NULL;
}

const char *ft_asking_command(const struct ft_strings *items, const char *switch_name)
{
    for (size_t i = 0; i < items->count; i++) {
        const char *item = items->items[i];
        char pattern[FT_ASKING_NAME];
        size_t len = strcspn(item, "=");

        if (len >= sizeof(pattern))
            continue;
        memcpy(pattern, item, len);
        pattern[len] = '\0';
        if (fnmatch(pattern, switch_name, 0) == 0)
            return command_of(item);
    }
    return NULL;
}

bool ft_asking_is_safe(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len >= FT_ASKING_NAME || !isalnum((unsigned char)*name))
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("/.:_-", *c))
            return false;
    return true;
}

/* Adds a word to the question; NULL where there is no room. */
static const char *add_word(struct ft_asking *q, size_t *args, size_t *used, const char *word,
                            size_t len)
{
    char *at = q->text + *used;

    if (*args + 1 >= FT_ASKING_ARGS || len >= sizeof(q->text) - *used)
        return NULL;
    memcpy(at, word, len);
    at[len] = '\0';
    *used += len + 1;
    q->argv[(*args)++] = at;
    q->argv[*args] = NULL;
    return at;
}

static const char *add_text(struct ft_asking *q, size_t *args, size_t *used, const char *text)
{
    return add_word(q, args, used, text, strlen(text));
}

bool ft_asking_write(struct ft_asking *q, const char *command, const char *name, const char *in,
                     const struct ft_tuple *tuple)
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES], numbers[3][8];
    size_t args = 0, used = 0, len;
    const char *word;

    while ((word = next_word(&command, &len)))
        if (!add_word(q, &args, &used, word, len))
            return false;
    ft_ip_format(&tuple->src, src);
    ft_ip_format(&tuple->dst, dst);
    snprintf(numbers[0], sizeof(numbers[0]), "%u", tuple->proto);
    snprintf(numbers[1], sizeof(numbers[1]), "%u", tuple->sport);
    snprintf(numbers[2], sizeof(numbers[2]), "%u", tuple->dport);
    q->switch_name = add_text(q, &args, &used, name);
    q->in = add_text(q, &args, &used, in);
    return q->switch_name && q->in && add_text(q, &args, &used, src) &&
           add_text(q, &args, &used, dst) && add_text(q, &args, &used, numbers[0]) &&
           add_text(q, &args, &used, numbers[1]) && add_text(q, &args, &used, numbers[2]);
}

bool ft_asking_read(const char *text, char name[FT_ASKING_NAME])
{
    size_t len;

    text += strspn(text, " \t\r\n");
    len = strcspn(text, " \t\r\n");
    if (len == 0 || len >= FT_ASKING_NAME || text[len + strspn(text + len, " \t\r\n")])
        return false;
    memcpy(name, text, len);
    name[len] = '\0';
    return true;
}
