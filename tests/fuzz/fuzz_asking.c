// SPDX-License-Identifier: Apache-2.0
/* Lines: an item of oracle.commands, the names of a switch and of a port as the network has them;
 * the rest is what a command wrote. A question is made of words that are there, in order; an answer
 * is one name. */
#include "config.h"

#include "lib/config/asking.h"

#include <stdbool.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define OWN_WORDS 7

static void check_answer(const char *text)
{
    char name[FT_ASKING_NAME];

    if (!ft_asking_read(text, name))
        return;
    ft_fuzz_assert(name[0] && strlen(name) < sizeof(name), "a name ends");
    ft_fuzz_assert(!strpbrk(name, " \t\r\n") && strstr(text, name), "it is one word of the answer");
}

static void check_question(const char *command, const char *name, const char *in)
{
    struct ft_tuple tuple = {.proto = 17, .sport = 49152, .dport = 4791};
    struct ft_asking q;
    size_t words = 0;

    ft_ip_parse("10.0.0.1", &tuple.src);
    ft_ip_parse("2001:db8::1", &tuple.dst);
    if (!ft_asking_write(&q, command, name, in, &tuple))
        return;
    while (q.argv[words]) {
        ft_fuzz_assert(
            q.argv[words] >= q.text && q.argv[words] < q.text + sizeof(q.text) &&
                memchr(q.argv[words], 0, (size_t)(q.text + sizeof(q.text) - q.argv[words])),
            "words are in its text, and end there");
        words++;
    }
    ft_fuzz_assert(words >= OWN_WORDS && words < FT_ASKING_ARGS, "the question is whole");
    ft_fuzz_assert(strcmp(q.switch_name, name) == 0 && strcmp(q.in, in) == 0, "names are as given");
    ft_fuzz_assert(q.argv[words - OWN_WORDS] == q.switch_name, "the switch is named first");
    ft_fuzz_assert(strcmp(q.argv[words - 4], "2001:db8::1") == 0 &&
                       strcmp(q.argv[words - 1], "4791") == 0,
                   "the flow is named last");
}

static void check_safe(const char *name)
{
    if (ft_asking_is_safe(name))
        ft_fuzz_assert(!strpbrk(name, " \t\r\n'\"`$;&|<>(){}[]*?!~#\\=%,^+@") && name[0] != '-',
                       "a name that is passed on is no word of a shell");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = strndup((const char *)bytes, len), *rest = text, *lines[3];
    struct ft_strings items = {lines, 1};
    const char *command;
    size_t count = 0;

    while (text && rest && count < 3)
        lines[count++] = strsep(&rest, "\n");
    if (rest) {
        check_safe(lines[1]);
        command = ft_asking_command(&items, lines[1]);
        if (command && !ft_asking_complaint(lines[0])) {
            ft_fuzz_assert(command[0] == '/', "a command is a full path");
            check_question(command, lines[1], lines[2]);
        }
        check_answer(rest);
    }
    free(text);
    return 0;
}
