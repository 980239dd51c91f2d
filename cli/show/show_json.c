// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/output/safe.h"

/* On a terminal what would drive it is escaped; elsewhere it is handed on as it came. */
int ft_show_json_line(FILE *out, const struct ft_value *value)
{
    char *text = ft_value_dump(value);

    if (!text)
        return -ENOMEM;
    if (isatty(fileno(out)))
        ft_safe_put_json(out, text);
    else
        fputs(text, out);
    fputc('\n', out);
    free(text);
    return 0;
}

int ft_show_json(FILE *out, const struct ft_value *root, bool complete)
{
    const struct ft_value *records = ft_value_get(root, "records");
    int rc = 0;

    if (complete)
        return ft_show_json_line(out, root);
    for (size_t i = 0; rc == 0 && i < ft_value_count(records); i++)
        rc = ft_show_json_line(out, ft_value_at(records, i));
    return rc;
}
