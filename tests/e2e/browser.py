"""A real browser without a screen: Debian's Chromium, driven by its own driver."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # as root, Chromium refuses its own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--ignore-certificate-errors",
)


class Browser:
    """One window."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Load a page."""
        self.driver.get(url)

    def all(self, selector: str) -> list[WebElement]:
        """Every element that a CSS selector finds."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str, *, seconds: float = 10) -> WebElement:
        """The first, as soon as there is one."""
        wait = WebDriverWait(self.driver, seconds, poll_frequency=0.05)
        return wait.until(lambda driver: driver.find_element(By.CSS_SELECTOR, selector))

    def says(self, selector: str, words: str) -> bool:
        """Whether the first comes to say this: a page that is about to be replaced need not yet."""
        return bool(
            self.until(
                f"return document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(words)})"
            )
        )

    def until(self, script: str, *, seconds: float = 10) -> Any:
        """What a script returns, once that is something."""
        return WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: self.run(script))

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script)

    def look(self, *, width: int = 1280, height: int = 800, dark: bool = False, calm: bool = False) -> None:
        """A window of this size, for somebody who prefers this."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", size)
        wishes = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"},
        ]
        self._devtools("Emulation.setEmulatedMedia", {"features": wishes})

    def picture(self, path: Path) -> None:
        """The whole page as a PNG."""
        taken = self._devtools("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(taken["data"]))

    def complaints(self) -> list[str]:
        """What the console had to say since it was asked last: errors, and what the page's policy stopped."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]  # as it is published

    def _devtools(self, command: str, fields: dict[str, Any]) -> dict[str, Any]:
        return cast("dict[str, Any]", self.driver.execute_cdp_cmd(command, fields))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that is gone afterwards."""
    options = ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(executable_path=str(DRIVER)))
    try:
        driver.set_page_load_timeout(20)
        yield Browser(driver)
    finally:
        driver.quit()
