"""How the site is built: `make docs`. Nothing is fetched, when it is built or when it is read."""

import re
from importlib.metadata import version as installed

import typer
from sphinx.util.nodes import make_refnode

from isopursuit.cli.app import app

project = "isopursuit"
author = "The isopursuit developers"
project_copyright = f"{author}, BSD-3-Clause"
version = release = installed("isopursuit")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "reproduction/*.md", "**/sg_execution_times.rst"]
nitpicky = True

default_role = "py:obj"  # a docstring's single backticks; see `link_or_code`
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings tell shapes and meanings, which types do not
autodoc_default_options = {"members": True, "exclude-members": "set_fit_request"}
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # as a list, like parameters

myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",  # all are run
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,  # its page asks the network for jQuery
    "min_reported_time": 1e9,
}
suppress_warnings = ["config.cache"]  # sphinx-gallery's, about its own settings

html_theme = "furo"
html_title = f"isopursuit {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = html_use_index = html_domain_indices = False
html_show_sphinx = False


def link_or_code(app, env, node, contnode):
    """A docstring's bare name is a link where one public function or class has it, and code where none has.

    What pages link to by a role of their own must be there: -n -W.
    """
    if node.get("refdomain") != "py" or node["reftype"] not in ("obj", "class"):
        return None
    linked = {
        name: entry
        for name, entry in env.get_domain("py").objects.items()
        if name.split(".")[-1] == node["reftarget"] and entry.objtype in ("function", "class", "exception")
    }
    if len(linked) != 1:
        return contnode
    [(name, entry)] = linked.items()
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, name)


def keep_colons(app, what, name, thing, options, lines):
    """A property's docstring is a sentence, whose colon napoleon would take for the end of a type."""
    if what == "property":
        lines[:0] = ["..", ""]


def describe_commands(sphinx, docname, source):
    """Replace COMMANDS on the page of the command line by the commands and options of the program."""
    if docname != "reference/command_line":
        return
    parts = []
    for name, command in typer.main.get_command(app).commands.items():
        parts += [f"## isopursuit {name}", " ".join(plain(command.help).split()), "| option | meaning |\n|---|---|"]
        for parameter in command.params:
            names = [*parameter.opts, *parameter.secondary_opts]
            if names[0].startswith("-"):
                shown = ", ".join(f"`{one}`" for one in names)
                parts[-1] += f"\n| {shown} | {' '.join(plain(parameter.help).split())} |"
    source[0] = source[0].replace("COMMANDS", "\n\n".join(parts))


def plain(text):
    """A help text as it is shown, without Markdown."""
    return re.sub(r"([\\|*_<>\[\]`$])", r"\\\1", text or "")


def setup(sphinx):
    """Sphinx calls this."""
    sphinx.connect("source-read", describe_commands)
    sphinx.connect("missing-reference", link_or_code)
    sphinx.connect("autodoc-process-docstring", keep_colons, priority=400)  # before napoleon
