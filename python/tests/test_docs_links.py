"""Relative links of README.md and docs/ lead somewhere, and every page is reached from the index."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs/README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page: Path) -> list[tuple[str, str]]:
    found = [link for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]
    return [(link.partition("#")[0], link.partition("#")[2]) for link in found]


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ +(.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_links_lead_somewhere():
    dead, seen = [], 0
    for page in pages():
        for path, anchor in links(page):
            seen += 1
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                dead.append(f"{page.relative_to(ROOT)}: {path}#{anchor}")
    assert seen > 50
    assert dead == []


def test_every_page_is_reached_from_the_index():
    reached, todo = set(), [INDEX]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [(page.parent / path).resolve() for path, _ in links(page) if path]
        todo += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert [str(p.relative_to(ROOT)) for p in pages() if p not in reached] == []
