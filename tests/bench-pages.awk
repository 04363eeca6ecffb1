# Writes `pages` Markdown files of 20 KiB below `into`, the same in every run and with every awk: prose with links and
# emphasis and a little HTML, headings, lists, quotes, code and tables.

# The minimal standard generator: its products are exact in a double.
function random(n) { seed = seed * 16807 % 2147483647; return seed % n }
function word() { return words[1 + random(count)] }
function inline(  kind) {
    kind = random(60)
    if (kind == 0) return "*" word() " " word() "*"
    if (kind == 1) return "**" word() "**"
    if (kind == 2) return "`" word() "_" word() "()`"
    if (kind == 3) return "[" word() " " word() "](page-" random(pages) ".md#" word() ")"
    if (kind == 4) return "[" word() "](https://example.net/" word() "/" word() "?a=1&b=2)"
    if (kind == 5) return "<kbd>" word() "</kbd>"
    return word()
}
function prose(n,  text, line) {
    text = line = ""
    for (; n > 0; n--) {
        line = line inline() (random(12) ? " " : ", ")
        if (length(line) > 80) { text = text line word() "\n"; line = "" }
    }
    return text line word() ".\n"
}
function code(n,  text) {
    for (text = "```rust\n"; n > 0; n--)
        text = text "    let " word() " = " word() "(&" word() ", \"" word() "\", " random(1000) ");\n"
    return text "```\n"
}
function list(mark, n,  text) {
    for (text = ""; n > 0; n--) text = text mark " " prose(6 + random(12))
    return text
}
function table(n,  text) {
    for (text = "| " word() " | " word() " | " word() " |\n|---|:--|--:|\n"; n > 0; n--)
        text = text "| " inline() " | " word() " " word() " | " random(10000) " |\n"
    return text
}
function block(  kind) {
    kind = random(20)
    if (kind < 11) return prose(40 + random(50))
    if (kind < 13) return "## " word() " " word() " " word() "\n"
    if (kind < 15) return list("-", 3 + random(5))
    if (kind < 16) return list("1.", 3 + random(5))
    if (kind < 18) return code(4 + random(10))
    if (kind < 19) return table(3 + random(6))
    return "> " prose(20 + random(20))
}
BEGIN {
    count = split("the of and to in a is that for it was on are as with they at be this from have or by one had not " \
        "but what all were when we there can an your which their said if do will each about how up out " \
        "them then she many some so these would other into has more her two like him see time could no " \
        "make than first been its who now people made over did down only way find use may water long " \
        "little very after words called just where most know through back much before good new write our " \
        "used me man too any day same right look think also around another came come work three must " \
        "because does part even place well such here take why things help put years different away again " \
        "off went old number", words, " ")
    seed = 1
    for (page = 0; page < pages; page++) {
        text = "# " word() " " word() "\n"
        while (length(text) < 20480) text = text "\n" block()
        print text > (into "/page-" page ".md")
        close(into "/page-" page ".md")
    }
}
