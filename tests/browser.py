"""A headless Chromium that reads pages as people do, and the checker of their HTML."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from machine import BUILD, required
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHECKER = BUILD / "vnu" / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"

# Every element with text of its own, and how its colour stands out from what is behind it
# (WCAG 2.2, relative luminance and contrast ratio); a drawing's text is filled.
_CONTRASTS = """
const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const parts = colour => colour.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const behind = element => {
  for (; element; element = element.parentElement) {
    const found = parts(getComputedStyle(element).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
const ratio = (one, other) => {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const found = [];
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const style = getComputedStyle(element);
  const drawn = element instanceof SVGGraphicsElement;
  if (drawn && element.hasAttribute("style") && !["text", "tspan"].includes(element.tagName)) {
    const line = style.stroke === "none" ? style.fill : style.stroke;
    if (arguments[0] && line.startsWith("rgb")) found.push([line, ratio(parts(line), behind(element))]);
  } else if (own && !arguments[0] && !["title", "desc"].includes(element.tagName)) {
    const colour = drawn ? style.fill : style.color;
    found.push([element.textContent.trim(), ratio(parts(colour), behind(element))]);
  }
}
return found;
"""  # noqa: E501

_CUT = """
return [...document.querySelectorAll("svg")].flatMap(svg => {
  const all = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < all.left - 1 || box.right > all.right + 1
        || box.top < all.top - 1 || box.bottom > all.bottom + 1;
  }).map(text => text.textContent);
});
"""


class Browser:
    """A Chromium of its own; nothing of it is kept."""

    def __init__(self) -> None:
        found = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
        for name, path in found.items():
            if path is None:
                required(f"{name} is not installed: apt-get install chromium chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = str(found["chromium"])
        for argument in ("headless=new", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
            options.add_argument(f"--{argument}")
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # which root cannot have
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service(str(found["chromedriver"]))
        self.driver = webdriver.Chrome(options=options, service=service)

    def close(self) -> None:
        self.driver.quit()

    def look(self, width: int, scheme: str = "light", media: str = "screen") -> None:
        """Be so many pixels wide, prefer a colour scheme, and be a screen or paper."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        emulated = {"media": media, "features": [feature]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)

    def open(self, page: Path) -> None:
        """Load a page, with the logs of those before it forgotten."""
        self.said(), self.requests()
        self.driver.get(page.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def said(self) -> list[dict[str, Any]]:
        """Return the errors and messages that were logged to the console since last asked."""
        return list(self.driver.get_log("browser"))

    def requests(self) -> list[str]:
        """The addresses asked for since last asked."""
        log = self.driver.get_log("performance")
        events = [json.loads(entry["message"])["message"] for entry in log]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.run("return document.documentElement.scrollWidth - window.innerWidth"))

    def contrasts(self, *, drawn: bool = False) -> list[tuple[str, float]]:
        """Every text and its contrast; or, of drawings, every line's colour and its contrast."""
        return [(text, ratio) for text, ratio in self.run(_CONTRASTS, drawn)]

    def cut(self) -> list[str]:
        """The labels of drawings that reach beyond them."""
        return list(self.run(_CUT))

    def accessible(self) -> list[dict[str, Any]]:
        """Return the nodes of the accessibility tree, which a screen reader reads."""
        tree = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})
        return [node for node in tree["nodes"] if not node["ignored"]]

    def picture(self) -> bytes:
        """The whole page, as PNG."""
        shot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"}
        )
        return base64.b64decode(shot["data"])

    def printed(self) -> bytes:
        """The page on A4 paper, as PDF."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", paper)["data"])


def invalid(*pages: Path) -> list[str]:
    """Return the errors and warnings of the Nu HTML checker about pages."""
    if not CHECKER.exists():
        required("the HTML checker is not installed: make vnu")
    command = ["java", "-jar", str(CHECKER), "--stdout", "--exit-zero-always", "--format", "json"]
    done = subprocess.run([*command, *map(str, pages)], capture_output=True, text=True, check=True)
    return [
        f"{Path(said['url']).name}, line {said.get('lastLine')}: {said['message']}"
        for said in json.loads(done.stdout)["messages"]
    ]
