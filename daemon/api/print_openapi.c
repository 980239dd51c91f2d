// SPDX-License-Identifier: Apache-2.0
/* Prints the description of the HTTP API, to be installed. */
#include "config.h"

#include <stdio.h>

#include "daemon/api/openapi.h"
#include "lib/base/writer.h"

int main(void)
{
    struct ft_writer w;
    size_t written;

    ft_writer_init(&w, 1 << 20);
    ft_openapi_write(&w);
    written = ft_writer_ok(&w) ? fwrite(w.bytes, 1, w.len, stdout) : 0;
    written = fclose(stdout) == 0 ? written : 0;
    ft_writer_free(&w);
    return written ? 0 : 1;
}
