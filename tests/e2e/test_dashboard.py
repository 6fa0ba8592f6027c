"""The dashboard in a real browser: how it looks, whether it can be used without mouse or eyes, and what it survives."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.store import KeyStore
from tests.e2e.browser import BROWSER, DRIVER, Browser, browser
from tests.e2e.node_process import NodeProcess, node_process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs Debian's chromium and chromium-driver"),
]

PAGES = ("/", "/sandboxes", "/pools", "/rollouts", "/groups", "/waits", "/templates", "/keys")
EVIL = "<script>document.title = 'pwned'</script><img src=x onerror=\"document.title = 'pwned'\">"
BASICS = "return axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"


@dataclass
class Site:
    """A node that listens on a port, and things that have happened on it."""

    node: NodeProcess
    url: str
    evil: str = ""
    large: str = ""
    random: str = ""

    @property
    def pages(self) -> tuple[str, ...]:
        """Every kind of page."""
        return (*PAGES, f"/rollouts/{self.evil}", f"/rollouts/{self.large}", "/groups/group-1", "/rollouts/nothing")

    def run(self, command: str, **fields: Any) -> str:
        """The id of something that ran."""
        status, answer = self.node.call("POST", "/v1/rollouts", {"template": "python", "command": command, **fields})
        assert status == 200, answer
        return str(answer["id"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Rollouts of every kind, a group, and sandboxes that live."""
    home = tmp_path_factory.mktemp("dashboard")
    port = free_port()
    with node_process(home, home=str(home), port=port) as node:
        made = Site(node, f"http://127.0.0.1:{port}")
        for number in range(60):
            made.run(f"echo {number}; exit {number % 3}")
        made.evil = made.run(f"cat <<'E'\n{EVIL}\nE", label=EVIL)
        made.large = made.run("yes AAAAAAAAAAAAAAAA | head -c 17000000 | tr -d '\\n'")
        made.random = made.run("cat /proc/sys/kernel/random/uuid")
        for label in ("a", EVIL, ""):
            assert node.call("POST", "/v1/sandboxes", {"template": "python", "label": label})[0] == 201
        add_group(home / "ledger.db")
        yield made


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    """One browser for all of it."""
    with browser() as made:
        yield made


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def add_group(ledger: Path) -> None:
    """Let a rollout that was recorded have been graded: sixteen siblings of it, with rewards."""
    with sqlite3.connect(ledger) as db:
        db.row_factory = sqlite3.Row
        row = dict(db.execute("SELECT * FROM rollouts LIMIT 1").fetchone())
        checks = [["line 1", "passed", ""], [EVIL, "failed", EVIL]]
        details = json.dumps({"checks": checks, "passed": 1, "total": 2, "trust": "isolated", "reason": EVIL})
        for number in range(16):
            fields = {
                **row,
                **{"seq": 1000 + number, "id": f"grade_{number:016}", "kind": "grade", "group_id": "group-1"},
                **{"reward": (number % 4) / 4, "status": "failed", "details": details},
            }
            names = ", ".join(fields)
            db.execute(f"INSERT INTO rollouts ({names}) VALUES ({', '.join('?' * len(fields))})", (*fields.values(),))
    db.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_hold_up(width: int, dark: bool, site: Site, window: Browser, tmp_path: Path) -> None:
    """No sideways scrolling, nothing that the policy stopped, no error, and the basics of accessibility."""
    window.look(width=width, dark=dark)
    axe = files("axe_core_python").joinpath("axe.min.js").read_text()
    for path in site.pages:
        window.open(site.url + path)
        window.run(axe)
        found = window.run(BASICS)
        window.picture(tmp_path / f"{path.strip('/').replace('/', '-') or 'overview'}.png")
        complaints = [line for line in window.complaints() if "404" not in line]
        assert (path, [short(each) for each in found["violations"]], complaints) == (path, [], [])
        assert window.run("return document.documentElement.scrollWidth") <= width, path


def short(violation: dict[str, Any]) -> str:
    """What is wrong, and where."""
    return f"{violation['id']}: {violation['nodes'][0]['html'][:200]}"


def test_a_candidates_markup_stays_text(site: Site, window: Browser) -> None:
    """Wherever it shows: output, code, label, check, reason."""
    window.look()
    for path in (f"/rollouts/{site.evil}", "/rollouts", "/sandboxes", "/rollouts/grade_0000000000000003"):
        window.open(site.url + path)
        assert window.run("return document.title").endswith("Hotbed"), path
        assert window.all("main script, main img") == []
    window.open(f"{site.url}/rollouts/{site.evil}")
    assert EVIL in window.run("return document.body.textContent")


def test_sixteen_mebibytes_of_one_line_are_drawn_in_a_moment(site: Site, window: Browser) -> None:
    """As an excerpt; the rest is a download."""
    window.look()
    window.open(f"{site.url}/rollouts/{site.large}")

    assert "are not shown" in window.one(".cut").text
    assert window.run("return document.body.textContent.length") < 200_000


def test_the_overview_draws_its_plots_and_says_them(site: Site, window: Browser) -> None:
    """A plot is a picture; what it shows is in words as well."""
    window.look()
    window.open(site.url)
    window.until("return document.querySelectorAll('.plot canvas').length === 6")
    told = window.until("return document.querySelector('.plot').getAttribute('aria-label').includes('at most')")

    assert told
    window.run("document.querySelector('details').open = true")
    assert window.all("details table caption")


ALONE = """
const real = fetch;
window.fetch = async (...asked) => {
  const columns = await (await real(...asked)).json();
  let value = 0;
  for (const name in columns) columns[name] = name === "t" ? [1e9, 1e9 + 10, 1e9 + 20] : [null, ++value, null];
  return new Response(JSON.stringify(columns));
};
"""
DRAWN = """
const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
const [r, g, b] = [1, 3, 5].map((at) => parseInt(accent.slice(at, at + 2), 16));
const canvases = [...document.querySelectorAll(".plot canvas")];
return canvases.length === 6 && canvases.every((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] === 255) return true;
  return false;
});
"""


def test_one_value_alone_is_drawn(site: Site, window: Browser) -> None:
    """A node that has graded once must not look as if it never had."""
    window.look()
    asked = window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": ALONE})
    window.open(site.url)

    assert window.until(DRAWN)
    window.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", asked)


def test_the_grid_follows_what_lives_until_it_is_paused(site: Site, window: Browser) -> None:
    """Without a reload; and stops for who wants to read."""
    window.look()
    window.open(f"{site.url}/sandboxes")
    before = len(window.all(".grid .cell"))
    status, made = site.node.call("POST", "/v1/sandboxes", {"template": "python"})
    assert status == 201
    window.until(f"return document.querySelectorAll('.grid .cell').length === {before + 1}")

    window.one("#pause").click()
    assert window.one("#pause").get_attribute("aria-pressed") == "true"
    site.node.call("DELETE", f"/v1/sandboxes/{made['id']}")
    sent = "return performance.getEntriesByType('resource').filter((e) => e.name.includes('/parts/')).length"
    asked = window.run(sent)
    window.run("document.querySelector('[data-live]').dispatchEvent(new Event('click'))")
    assert (window.run(sent), len(window.all(".grid .cell"))) == (asked, before + 1)


def test_a_replay_runs_and_shows_what_came_of_it(site: Site, window: Browser) -> None:
    """In the page, without leaving it; identical, or the first difference."""
    window.look()
    window.open(f"{site.url}/rollouts/{site.evil}")
    window.one(".replay button").click()
    assert window.says("#replayed .verdict", "Identical.")
    new = window.one("#replayed a").get_attribute("href")
    assert new is not None
    window.open(new)
    assert EVIL in window.run("return document.body.textContent")

    window.open(f"{site.url}/rollouts/{site.random}")
    window.one(".replay button").click()
    assert window.says("#replayed .verdict", "It came out different")
    assert window.says("#replayed .verdict", "stdout, byte")


def test_everything_is_reached_by_the_keyboard(site: Site, window: Browser) -> None:
    """The first stop skips the menu; what has the focus shows it; tables that scroll can be scrolled."""
    window.look()
    window.open(f"{site.url}/rollouts")
    stops = window.run(
        "return [...document.querySelectorAll('a, button, input, select, [tabindex=\"0\"]')]"
        ".filter((e) => e.offsetParent && e.tabIndex >= 0).map((e) => e.className || e.tagName)"
    )
    assert stops[0] == "skip"
    assert "scroll" in stops
    body = window.one("body")
    body.send_keys("\ue004")  # Tab
    assert window.run("return document.activeElement.className") == "skip"
    assert window.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert window.run("return document.activeElement.getBoundingClientRect().left") >= 0


def test_filters_and_pages_work_without_a_script(site: Site, window: Browser) -> None:
    """They are a form and links."""
    window.look()
    window.open(f"{site.url}/rollouts")
    window.one("a[rel=next]").click()
    assert window.until("return location.search.includes('before=') && document.querySelector('.paging a')")
    window.open(f"{site.url}/rollouts")
    window.one("select[name=status]").send_keys("exit")
    window.one(".filters button").click()
    window.until("return location.search.includes('status=exit') && document.readyState === 'complete'")
    assert {cell.text for cell in window.all("tbody .status")} == {"exit"}


def test_calm_and_dark_are_followed(site: Site, window: Browser) -> None:
    """What the reader's system says about motion and light."""
    for dark in (False, True):
        window.look(dark=dark, calm=True)
        window.open(site.url)
        [red, *_] = window.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (red < 100) == dark
        assert window.run("return document.getAnimations().length") == 0


def test_a_browser_signs_in_looks_and_leaves(window: Browser, tmp_path: Path) -> None:
    """Where keys are needed; a wrong key is told so, next to the field."""
    store = KeyStore(tmp_path)
    key, secret = Key(tenant="ops", tier="pro", scopes=frozenset({"admin"})), new_secret()
    store.add(key, secret)
    store.close()
    port = free_port()
    with node_process(tmp_path, home=str(tmp_path), port=port):
        window.look()
        window.open(f"http://127.0.0.1:{port}/keys")
        window.one("#key").send_keys("hb_wrong")
        window.one(".sign button").click()
        assert window.says("[role=alert]", "not one of this server")
        window.one("#key").send_keys(key_text(key, secret))
        window.one(".sign button").click()
        assert window.says("h1", "Overview")
        assert window.run("return document.cookie") == ""
        window.open(f"http://127.0.0.1:{port}/keys")
        assert window.says("main", key.id)
        window.one(".tools form button").click()
        window.one("#key")
        window.open(f"http://127.0.0.1:{port}/keys")
        assert window.says("h1", "Sign in")
