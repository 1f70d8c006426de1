"""A browser without a window, as the tests of pages drive it: Chromium, by Selenium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run")
OPTIONS += ("--disable-dev-shm-usage", "--disable-background-networking")


class Browser:
    """A page in a window of some width, and what a test asks of it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path | str, *, width: int = 1280, dark: bool = False) -> "Browser":
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(page.as_uri() if isinstance(page, Path) else page)
        return self

    def run(self, script: str, *arguments: object) -> object:
        """What a piece of JavaScript returns."""
        return self.driver.execute_script(f"return ({script})", *arguments)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        root = "document.documentElement"
        return int(str(self.run(f"{root}.scrollWidth - {root}.clientWidth")))

    @property
    def complaints(self) -> list[str]:
        """What the browser has written to its console since this was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextmanager
def started() -> Iterator[Browser]:
    """A browser; without one, the test that asks for it is skipped."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with its chromedriver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in OPTIONS:
        options.add_argument(option)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
