"""A hook of mkdocs: a link out of docs/, which works on GitHub, leads to the repository."""

import pathlib
import re

LINK = re.compile(r"\]\(\.\./([^)#\s]*)")


def on_page_markdown(markdown, page, config, files):
    root = pathlib.Path(config.config_file_path).parent

    def target(match):
        kind = "tree" if (root / match[1]).is_dir() else "blob"
        return f"]({config.extra["repository"]}/{kind}/main/{match[1]}"

    return LINK.sub(target, markdown)
