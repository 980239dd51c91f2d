# SPDX-License-Identifier: Apache-2.0
#
# From the comments of fabrictrace.proto to the section RECORD FIELDS of fabrictrace-records(7): each record,
# object and enumeration with its members, their types, units and meaning. What has no comment is an
# error. The form of the comments is described at the head of fabrictrace.proto.

function fail(what) {
    print FILENAME ":" FNR ": " what " has no comment" >"/dev/stderr"
    failed = 1
}

# Lines of at most 78 characters, a new one for each sentence, none that reads as a request.
function say(text,    words, n, i, line) {
    gsub(/\\/, "\\e", text)
    gsub(/`/, "", text)
    n = split(text, words, " ")
    line = ""
    for (i = 1; i <= n; i++) {
        if (line != "" && length(line) + 1 + length(words[i]) > 78) {
            emit(line)
            line = ""
        }
        line = line == "" ? words[i] : line " " words[i]
        if (words[i] ~ /[.?!]$/ && words[i] !~ /\.\.\.$/) {
            emit(line)
            line = ""
        }
    }
    if (line != "")
        emit(line)
}

function emit(line) {
    print (line ~ /^[.']/ ? "\\&" : "") line
}

# A name of the field or of a standard (ifName, sFlow) keeps its first letter.
function sentence(text) {
    if (text ~ /^[a-z]+([ .,:;-]|$)/)
        text = toupper(substr(text, 1, 1)) substr(text, 2)
    return text ~ /[.?!]$/ ? text : text "."
}

# The bracketed unit of a comment, or what the name says.
function unit_of(name, text) {
    if (match(text, /^\[[^]]*\] */))
        return substr(text, 2, index(text, "]") - 2)
    if (name ~ /(^|_)(time|first|last|since|start|end|seen|moved|progress|from)_ms$/)
        return "Unix milliseconds"
    if (name ~ /_ms$/) return "milliseconds"
    if (name ~ /_us$/) return "microseconds"
    if (name ~ /_ns$/) return "nanoseconds"
    if (name ~ /_bps$/) return "bits per second"
    if (name ~ /(^|_)bytes$/) return "bytes"
    if (name ~ /(^|_)percent$/) return "percent"
    if (name ~ /_celsius$/) return "degrees Celsius"
    if (name ~ /_millivolts$/) return "millivolts"
    if (name ~ /_microwatts$/) return "microwatts"
    if (name ~ /(^|_)share(_lo|_hi)?$/) return "0 to 1"
    if (name ~ /(^|_)(packets|samples|flows|messages)$/) {
        sub(/^.*_/, "", name)
        return name
    }
    return ""
}

function type_of(type, repeated, unit) {
    if (type ~ /^[us]?int(32|64)$/) type = repeated ? "integers" : "integer"
    else if (type == "double") type = repeated ? "numbers" : "number"
    else if (type == "bool") type = "true or false"
    else if (type == "string") type = repeated ? "strings" : "string"
    else if (type == "bytes" && unit == "message") type = "bytes"
    else if (type == "bytes") type = repeated ? "IP addresses" : "IP address"
    else type = (type in enums ? "word of \\&" : "object \\&") type
    return repeated ? "list of " type : type
}

function head_of(name, schema, text) {
    print ".Ss " (schema != "" ? schema : name)
    if (text == "")
        fail("message or enum " name)
    say(text)
    print ".Bl -tag -width Ds"
}

# Enumerations are used before and after they are defined: a first pass learns their names.
NR == FNR {
    if ($1 == "enum")
        enums[$2] = 1
    next
}

/^ *\/\// {
    line = $0
    sub(/^ *\/\/ ?/, "", line)
    if (line ~ /^schema: /)
        schema = substr(line, 9)
    else
        above = above (above == "" ? "" : " ") line
    next
}

/^(message|enum) / {
    name = $2
    inside = name != "Record" && name != "Batch"
    if (inside)
        head_of(name, schema, above)
    prefix = name
    while (match(prefix, /[a-z][A-Z]/))
        prefix = substr(prefix, 1, RSTART) "_" substr(prefix, RSTART + 1)
    prefix = toupper(prefix) "_"
    above = schema = ""
    next
}

/^}/ {
    if (inside)
        print ".El"
    inside = 0
    above = ""
    next
}

inside && /^  .* = [0-9]+( \[packed = true\])?;/ {
    text = above
    if ((at = index($0, "//"))) {
        beside = substr($0, at + 2)
        sub(/^ */, "", beside)
        text = text (text == "" ? "" : " ") beside
    }
    above = ""
    if ($1 == "optional" || $1 == "repeated") {
        unit = unit_of($3, text)
        sub(/^\[[^]]*\] */, "", text)
        print ".It Ql " $3 " Pq " type_of($2, $1 == "repeated", unit) (unit == "" ? "" : ", " unit)
        what = $3
    } else {
        what = $1
        print ".It Cm " tolower(substr($1, length(prefix) + 1))
    }
    if (text == "")
        fail(name "." what)
    say(sentence(text))
    next
}

/^$/ { above = "" }

END { exit failed }
