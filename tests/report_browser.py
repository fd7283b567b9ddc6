#!/usr/bin/python3
"""Open a report in headless Chromium, click and type in it, and check what it shows. Run by make report-test.

Usage: report_browser.py HEED RUN... [--pictures DIR]. Writes a report of the runs with the program HEED and checks it.
--pictures saves screenshots. If no Chromium is installed, prints a note and checks nothing.
"""

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class Browser:
    """Chromium's debugging protocol over a pipe: messages in JSON, each terminated by a zero byte."""

    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.inn, from_browser = os.pipe()

        def as_three_and_four():
            # dup2() closes its target, so neither descriptor may have the number that the other one gets.
            a, b = os.dup(to_browser), os.dup(from_browser)
            a, b = (os.dup(a), os.dup(b)) if {a, b} & {3, 4} else (a, b)
            os.dup2(a, 3)
            os.dup2(b, 4)

        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen([program, *options, "about:blank"], preexec_fn=as_three_and_four, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.count, self.rest, self.session, self.events = 0, b"", None, []
        page = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.inn, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, path):
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.evaluate("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")
        self.settle()

    def settle(self):
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.settle()

    def media(self, kind="", scheme="light"):
        self.call("Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def mouse(self, selector, x=0.5, y=0.5, click=True):
        """Clicks at a position given as fractions of an element's width and height."""
        box = self.evaluate(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center',"
                            " behavior: 'instant'}); const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")
        at = {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)
        self.settle()

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode={"Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27}[name])
        self.settle()

    def picture(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        self.call("Browser.close")
        self.process.wait(timeout=20)


checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"report: {what}")


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")


def look_at(browser, report):
    browser.size(1200, 900)
    browser.media()
    browser.open(report)
    data = browser.evaluate("report")
    sections = browser.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
    for title in ("Figures", "Curves", "What it gets wrong", "Where it looks", "What it costs", "What produced it"):
        check(title in sections, f"has no section '{title}'")

    for arm in data["arms"]:
        check(arm["arm"] in text(browser, "#figures"), f"the figures have no '{arm['arm']}'")

    # A curve's values are shown at the pointer, and with the arrow keys.
    chart = "[data-key=loss]"
    loss = [arm["mean"] for arm in data["curves"][[c["key"] for c in data["curves"]].index("loss")]["arms"]][0]
    browser.mouse(f"{chart} svg", 0.99, click=False)
    check(text(browser, f"{chart} .tip strong") == f"Epoch {len(loss)}", "pointing at a curve does not show its last epoch")
    check(f"{loss[-1]:.4g}" in text(browser, f"{chart} .tip"), "the value pointed at is not the run's")
    browser.mouse("h1", click=False)
    check(browser.evaluate(f"document.querySelector('{chart} .tip').hidden"), "values stay when the pointer leaves")
    browser.evaluate(f"document.querySelector('{chart} svg').focus()")
    browser.key("ArrowRight")
    check(text(browser, f"{chart} .tip strong") == "Epoch 1", "the arrow keys do not show the first epoch")
    browser.key("Escape")
    browser.mouse(f"{chart} summary")
    check(browser.evaluate(f"document.querySelectorAll('{chart} tbody tr').length") == len(loss), "the table lacks epochs")
    browser.mouse(f"{chart} summary")

    path = browser.evaluate("pathOf([[1, 2], [3, 4], [5, null], [6, 7], [8, null]], (a) => a, (b) => b)")
    check(path == "M1.0 2.0L3.0 4.0M4.5 7.0h3", f"a point between gaps is drawn as {path}")

    # Steps after the last complete epoch stay within the chart.
    beyond = browser.evaluate("(() => { const run = report.runs[0], steps = run.steps; run.steps = {mean_of: 1, epoch: [0.5, 99.5], loss: [1, 2]};"
                              " const chart = new Chart(report.curves.find((one) => one.key === 'loss')); document.body.append(chart.element);"
                              " chart.draw(); const widths = [...chart.svg.querySelectorAll('path.thin')].map((p) => p.getBBox().x + p.getBBox().width);"
                              " const room = chart.svg.clientWidth; chart.element.remove(); run.steps = steps;"
                              " return Math.max(...widths) - room; })()")
    check(beyond < 0, f"the line of the steps ends {beyond} pixels beyond the chart")

    # The note states the largest number of steps that a point stands for: the last point of a run may have fewer.
    note = browser.evaluate("(() => { const old = report.runs.map((run) => run.steps); report.runs.forEach((run, i) => {"
                            " run.steps = {mean_of: 1 + i, epoch: [], loss: []}; }); const text = curvesSection().textContent;"
                            " report.runs.forEach((run, i) => { run.steps = old[i]; }); return text; })()")
    runs = len(data["runs"])
    check(runs == 1 or f"each point the mean of up to {runs} steps." in note, f"the note on the steps of {runs} runs is: {note}")

    # The confusion matrix sums to the number of images, and the mistakes are shown.
    model = data["models"][0]
    cells = browser.evaluate("[...document.querySelectorAll('.confusion tbody td')].map(c => Number(c.textContent)).filter(n => n >= 0)")
    check(sum(cells) == model["images"], f"the confusion matrix has {sum(cells)} of {model['images']} images")
    check(browser.evaluate("document.querySelectorAll('.gallery li').length") == len(model["mistakes"]), "mistakes are missing")
    broken = browser.evaluate("[...document.images].filter(i => !i.complete || i.naturalWidth === 0).length")
    check(broken == 0, f"{broken} images do not load")

    # Maps: a click on the last patch selects it and changes every map. Arrow keys move the selection; Escape resets it.
    maps = model["maps"][0]["maps"]
    rows, columns = maps["grid"]
    drawn = "[...document.querySelectorAll('.map canvas')].map(c => c.toDataURL())"
    before = browser.evaluate(drawn)
    check(len(before) == sum(block.get("heads", 0) for block in maps["blocks"]), "there is not a map for each block and head")
    browser.mouse(".query svg", 1 - 0.5 / columns, 1 - 0.5 / rows)
    check(f"row {rows}, column {columns}" in text(browser, ".looking"), "a click does not choose the patch under it")
    check(all(a != b for a, b in zip(before, browser.evaluate(drawn))), "the maps do not follow the click")
    browser.key("ArrowLeft")
    check(f"row {rows}, column {columns - 1}." in text(browser, ".looking"), "an arrow key does not move the patch")
    browser.key("Escape")
    check(browser.evaluate(drawn) == before, "Escape does not go back")
    browser.mouse(".map", 0.01, 0.01)
    check("row 1, column 1." in text(browser, ".looking"), "a click on a map does not choose its patch")
    browser.mouse(".thumbs button:nth-child(2)")
    check(f"Test image {model['maps'][1]['index']}," in text(browser, ".looking"), "another image cannot be chosen")
    # The patches' weights in a row of softmax's map sum to one minus the class token's weight.
    weight = browser.evaluate("(() => { const l = new Looking(report.models[0]), b = l.blocks[0], n = b.rows * b.columns;"
                              " let s = 0; for (let k = 0; k < n; ++k) s += b.bytes[k] / 127 * b.largest[0]; return s; })()")
    if maps["blocks"][0]["mechanism"] == "softmax":
        check(0 < weight < 1 + 0.005 * rows * columns, f"a map of softmax sums to {weight}")

    # Costs.
    total = model["cost"]["contractions"]["total"]["mul"]
    check(browser.evaluate("document.querySelectorAll('.cost tr.part:not([hidden])').length") == 0, "blocks begin open")
    browser.mouse(".cost tbody button")
    check(browser.evaluate("document.querySelectorAll('.cost tr.part:not([hidden])').length") > 2, "a block does not open")
    heads = browser.evaluate("[...document.querySelectorAll('.cost thead th')].map(h => h.textContent)")
    shown = text(browser, f".cost tfoot tr > :nth-child({heads.index('mul') + 1})")
    size, _, prefix = shown.partition(" ")
    check(abs(float(size) * 1000 ** ["", "k", "M", "G", "T", "P", "E"].index(prefix) - total) <= 0.005 * total,
          f"the total of the multiplications is shown as {shown}; it is {total}")
    browser.mouse("#what-it-costs .bar button:nth-child(2)")
    check("exp" in text(browser, ".cost thead"), "counting every operation does not show exponentials")
    browser.mouse("#what-it-costs .bar button:nth-child(1)")

    # Origin of the run.
    origin = text(browser, "#what-produced-it")
    for value in (data["version"], data["runs"][0]["directory"], data["runs"][0]["environment"]["date"][:10]):
        check(value in origin, f"does not say '{value}'")

    if len(data["arms"]) > 1:
        lines = "document.querySelectorAll('[data-key=loss] path.mean').length"
        before = browser.evaluate(lines)
        browser.mouse(".legend button")
        check(browser.evaluate(lines) == before - 1, "the legend does not hide an arm")
        browser.mouse(".legend button")
        browser.evaluate("(() => { const s = document.getElementById('model'); s.value = 1; s.dispatchEvent(new Event('change')); })()")
        check(data["models"][1]["run"] in text(browser, "#what-produced-it"), "another model cannot be chosen")
        browser.evaluate("(() => { const s = document.getElementById('model'); s.value = 0; s.dispatchEvent(new Event('change')); })()")

    for odd in ("undefined", "NaN", "null", "Infinity", "[object"):
        check(odd not in browser.evaluate("document.body.innerText"), f"the page says '{odd}'")

    # All clickable elements are reachable by Tab, and the page is not wider than a phone.
    browser.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    reached = set()
    for _ in range(80):
        browser.key("Tab")
        reached.add(browser.evaluate("document.activeElement.closest('figure') ? 'chart' : document.activeElement.closest('.query')"
                                     " ? 'patches' : document.activeElement.closest('.cost') ? 'cost' : document.activeElement.tagName"))
    check({"chart", "patches", "cost", "A", "BUTTON", "SUMMARY"} <= reached, f"Tab reaches {sorted(reached)} only")
    for width in (360, 1200):
        browser.size(width, 800)
        wide = browser.evaluate("document.documentElement.scrollWidth")
        check(wide <= width, f"the page is {wide} wide in a window of {width}")

    # In print, layers keep their names, and charts keep their aspect ratio.
    browser.media("print")
    unnamed = "[...document.querySelectorAll('.cost tbody tr:not([hidden]) th')].filter(th => !th.innerText.trim()).length"
    check(browser.evaluate(unnamed) == 0, "a layer has no name on paper")
    check(browser.evaluate("[...document.querySelectorAll('.chart')].every(c => Math.abs(c.clientHeight / c.clientWidth"
                           " - c.viewBox.baseVal.height / c.viewBox.baseVal.width) < 0.05)"), "charts lose their shape on paper")
    browser.media()

    # The page makes no requests and causes no errors.
    for event in browser.events:
        if event["method"] == "Network.requestWillBeSent":
            address = event["params"]["request"]["url"]
            check(address.startswith(("file:", "data:")), f"fetches {address}")
        if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
            sys.exit(f"report: {json.dumps(event['params'])[:600]}")


def take_pictures(browser, report, directory):
    directory.mkdir(parents=True, exist_ok=True)
    for name, width, scheme in (("desktop", 1200, "light"), ("desktop-dark", 1200, "dark"), ("phone", 390, "light"), ("phone-dark", 390, "dark")):
        browser.size(width, 900)
        browser.media(scheme=scheme)
        browser.open(report)
        browser.mouse(".query svg", 0.6, 0.6)
        browser.mouse("[data-key=loss] svg", 0.5, click=False)
        browser.picture(directory / f"{name}.png")
    browser.size(794, 1123)
    browser.media("print")
    browser.open(report)
    pdf = browser.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
    (directory / "print.pdf").write_bytes(base64.b64decode(pdf))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heed")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("report in a browser: skipped, no Chromium is installed")
        return
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.html"
        subprocess.run([arguments.heed, "report", *arguments.runs, "-o", report], check=True, stdout=subprocess.DEVNULL)
        browser = Browser(program, f"{directory}/profile")
        try:
            look_at(browser, report)
            if arguments.pictures:
                take_pictures(browser, report, arguments.pictures)
        finally:
            browser.close()
    print(f"report in a browser: {checks} checks passed")


if __name__ == "__main__":
    main()
