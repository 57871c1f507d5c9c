"""Write what a benchmark measured into a page of the documentation."""

import re


def table(heads, rows):
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(blocks, page, command):
    """Replace each named block between its marks on the page, which name the command."""
    text = page.read_text(encoding="utf-8")
    for name, block in blocks.items():
        marks = f"<!-- {name}: written by `{command}` -->", f"<!-- /{name} -->"
        pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
        text = re.sub(pattern, lambda _, b=block, m=marks: f"{m[0]}\n{b}\n{m[1]}", text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")
