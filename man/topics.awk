# SPDX-License-Identifier: Apache-2.0
#
# From what `fabrictraced --topics` prints, after the section RECORD FIELDS of man/records.awk, to
# the section TOPICS of fabrictrace-topics(7): each topic with its key, cadence, size, partitions and
# how it is kept, the command that creates it, and its fields.

BEGIN {
    title["key"] = "Key"
    title["cadence"] = "Cadence"
    title["size"] = "Size"
    title["partitions"] = "Partitions"
    title["kept"] = "Retention"
}

# Lines of at most 78 characters, a new one for each sentence.
function say(text,    words, n, i, line) {
    gsub(/\\/, "\\e", text)
    n = split(text, words, " ")
    line = words[1]
    for (i = 2; i <= n; i++)
        if (line ~ /\.$/ || length(line) + 1 + length(words[i]) > 78) {
            print line
            line = words[i]
        } else {
            line = line " " words[i]
        }
    print line
}

# The fields of all records first.
NR == FNR {
    if ($1 == ".Ss")
        topic = $2
    else
        fields[topic] = fields[topic] $0 "\n"
    next
}

FNR == 1 { topic = "" }

/^## / {
    topic = $2
    if (!(topic in fields)) {
        print FILENAME ":" FNR ": " topic " is no record" >"/dev/stderr"
        failed = 1
    }
    print ".Ss " topic
    print ".Bl -tag -width Partitions"
    next
}

topic != "" && /^# [a-z]+: / {
    name = substr($2, 1, length($2) - 1)
    print ".It " title[name]
    say(substr($0, length(name) + 5))
    next
}

topic in fields && /^create / {
    print ".El"
    print ".Pp"
    print "Its fields:"
    text = fields[topic]
    sub(/^.*\.Bl -tag -width Ds\n/, ".Bl -tag -width Ds\n", text)
    printf "%s", text
    topic = ""
}

END { exit failed }
