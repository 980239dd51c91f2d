#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The manual for a browser: a file for each page, with links between them, and an index.
#
# usage: html.sh FOLDER STYLESHEET PAGE...
set -eu
folder=$1
style=$2
shift 2
if ! command -v mandoc >/dev/null; then
    echo "make: html needs mandoc (Debian: mandoc)" >&2
    exit 1
fi
rm -rf "$folder"
mkdir -p "$folder/pages"
cp "$style" "$folder/manual.css"
cp "$@" "$folder/pages/"
cd "$folder/pages"
{
    echo '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>fabrictrace</title>'
    echo '<link rel="stylesheet" href="manual.css"></head><body><h1>fabrictrace, the manual</h1><table>'
    for page in *; do
        # Pages that lie here are linked here, those of others at Debian's.
        mandoc -Thtml -O 'style=manual.css,man=%N.%S.html;https://manpages.debian.org/%N.%S' "$page" >"../$page.html"
        printf '<tr><td><a href="%s.html">%s(%s)</a></td><td>%s</td></tr>\n' "$page" "${page%.*}" "${page##*.}" \
            "$(sed -n 's/^\.Nd //p' "$page" | head -n 1)"
    done
    echo '</table></body></html>'
} >../index.html
cd .. && rm -r pages
