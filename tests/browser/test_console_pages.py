"""The console in a real browser: what is shown, by mouse and by keyboard, in both themes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser_pages import HOSTILE, LONG, ask, ask_by_vector, row_texts, select_mode
from tests.live_server import live_server
from tests.pylance_dataset import NUM_APPENDED, NUM_INDEXED, VECTORS, nearest

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_table_comes_into_view_with_its_facts(t1: Any) -> None:
    expect(t1.get_by_role("status").filter(has_text="ready")).to_be_visible()
    facts = t1.locator(".facts")
    live = NUM_INDEXED + NUM_APPENDED - 12
    for text in (f"{live} rows", "12 deleted rows", "3 fragments", "4 columns", "1 index"):
        expect(facts).to_contain_text(text)
    expect(t1.get_by_text("version 4, the latest")).to_be_visible()


def test_namespaces_open_on_demand_and_the_address_leads_back(t1: Any) -> None:
    t1.get_by_text("odd", exact=True).click()
    t1.get_by_role("button", name="a <b>").click()
    expect(t1.get_by_role("heading", name="a <b>")).to_be_visible()
    t1.reload()
    expect(t1.get_by_role("heading", name="a <b>")).to_be_visible()
    t1.go_back()
    expect(t1.get_by_role("heading", name="t1")).to_be_visible()


def test_tables_are_found_by_a_part_of_their_name(t1: Any) -> None:
    button = t1.get_by_role("button", name="t1", exact=True)
    t1.get_by_label("Find a table").fill("zzz")
    expect(button).to_be_hidden()
    t1.get_by_label("Find a table").fill("T")
    expect(button).to_be_visible()


def test_a_pasted_vector_finds_its_neighbours(t1: Any) -> None:
    query = VECTORS[3] + 0.01
    ask_by_vector(t1, query.tolist(), refine=100, probes=4)
    wanted, distances = nearest(query, 10)
    assert row_texts(t1, "id") == [str(each) for each in wanted]
    shown = [float(text) for text in row_texts(t1, "_distance")]
    assert shown == pytest.approx(distances.tolist(), rel=1e-3)
    plot = t1.get_by_role("img", name="_distance of 10 rows")
    assert plot.locator("circle").count() == 10


def test_a_row_of_the_answer_leads_to_its_neighbours(t1: Any) -> None:
    ask_by_vector(t1, VECTORS[3].tolist(), refine=100, probes=4)
    first = t1.get_by_role("button", name="Neighbours of row 3", exact=True)
    first.click()
    expect(first).to_be_hidden()
    expect(t1.get_by_label("Neighbours of the row with id")).to_have_value("3")
    assert "3" not in row_texts(t1, "id")


def test_why_a_row_is_not_in_the_answer_is_told(t1: Any, console_url: Any) -> None:
    ask_by_vector(t1, VECTORS[3].tolist())
    t1.get_by_text("Why is a row not here?").click()
    t1.get_by_label("Row id", exact=True).fill("49")
    t1.get_by_role("button", name="Ask").click()
    expect(t1.locator(".reason .pill")).to_have_text("deleted")


def test_filters_are_completed_and_narrow_the_answer(t1: Any) -> None:
    select_mode(t1, "Filter")
    box = t1.get_by_role("combobox", name="Filter")
    box.press_sequentially("pr")
    expect(t1.get_by_role("option", name="price double")).to_have_attribute("aria-selected", "true")
    box.press("Enter")
    expect(box).to_have_value("price")
    box.press_sequentially(" < 1 A")
    box.press("Tab")
    box.press_sequentially(" id > 0")
    expect(box).to_have_value("price < 1 AND id > 0")
    box.press("Enter")
    t1.get_by_role("table").first.wait_for()
    assert row_texts(t1, "id") == ["1", "2", "3"]


def test_texts_in_filters_are_not_completed(t1: Any) -> None:
    box = t1.get_by_role("combobox", name="Filter")
    box.fill("")
    box.press_sequentially("kind = 'pri")
    expect(box).to_have_attribute("aria-expanded", "false")


def test_the_plan_shows_what_each_step_did(t1: Any) -> None:
    ask_by_vector(t1, VECTORS[3].tolist(), refine=2, probes=2)
    t1.get_by_role("tab", name="Plan").click()
    step = t1.locator(".step", has=t1.get_by_text("IndexSearch", exact=True)).first
    expect(step).to_contain_text("vec_idx")
    expect(step).to_contain_text("2 partitions")
    expect(step).to_contain_text(" ms")
    expect(t1.locator(".plan > li > .step").first).to_contain_text("Take")


def test_errors_are_shown_as_the_server_words_them(t1: Any, console_url: Any) -> None:
    select_mode(t1, "Filter")
    t1.get_by_role("combobox", name="Filter").fill("prize < 3")
    ask(t1, waits_for="[role=alert]")
    told = httpx.post(f"{console_url}/v1/table/t1/query", json={"filter": "prize < 3"}).json()
    expect(t1.get_by_role("alert")).to_contain_text(told["error"])
    expect(t1.get_by_role("alert")).to_contain_text("400 Bad Request")


def test_a_vector_that_is_none_is_refused_before_it_is_sent(t1: Any) -> None:
    select_mode(t1, "Vector")
    t1.get_by_label("Vector", exact=True).last.fill("[1, 2, x]")
    ask(t1, waits_for="[role=alert]")
    expect(t1.get_by_role("alert")).to_contain_text("“x”, which is no number")


def test_an_older_version_can_be_looked_at(t1: Any) -> None:
    t1.get_by_role("tab", name="Versions").click()
    t1.get_by_role("button", name="Look at version 2", exact=True).click()
    expect(t1.get_by_text("version 2, pinned")).to_be_visible()
    expect(t1.locator(".facts")).to_contain_text(f"{NUM_INDEXED} rows")
    assert "version=2" in t1.url
    t1.get_by_role("button", name="Back to the latest").first.click()
    expect(t1.get_by_text("version 4, the latest")).to_be_visible()


def test_the_schema_names_columns_and_vectors(t1: Any) -> None:
    t1.get_by_role("tab", name="Schema").click()
    row = t1.get_by_role("row", name="vec")
    expect(row).to_contain_text("16 \N{MULTIPLICATION SIGN} float")
    expect(row).to_contain_text("vector of 16")


def test_the_picture_of_coverage_is_told_in_words_too(t1: Any) -> None:
    t1.get_by_role("tab", name="Coverage").click()
    picture = t1.get_by_role("img", name="3 fragments; vec_idx covers 2 fragments")
    expect(picture).to_be_visible()
    assert picture.locator("rect.covered").count() == 2
    assert picture.locator("rect.gap").count() == 1
    t1.get_by_text("The same as a table").click()
    table = t1.get_by_role("table", name="Fragments and what covers them")
    assert table.get_by_text("covered", exact=True).count() == 2


def test_names_may_hold_what_stands_between_names(page: Any, console_url: Any) -> None:
    page.goto(f"{console_url}/console/#{_address(['odd', 'p$q'])}")
    page.get_by_role("heading", name="p$q").wait_for()
    ask(page)
    assert row_texts(page, "cell") == list(HOSTILE)


def test_odd_names_of_columns_and_parts_are_completed_as_filters_spell_them(
    page: Any, console_url: Any
) -> None:
    page.goto(f"{console_url}/console/#{_address(['odd', 'a <b>'])}")
    box = page.get_by_role("combobox", name="Filter")
    for start, spelt, end in (
        ("odd", "`odd ``n'`", " > 0 AND "),
        ("poi", "point.`y z`", " = 'in'"),
    ):
        box.press_sequentially(start)
        page.get_by_role("option", name=spelt).click()
        box.press_sequentially(end)
    ask(page)
    assert row_texts(page, "odd `n'") == ["1", "2", "3", "4"]
    assert row_texts(page, "point")[0] == '{"x": 1, "y z": "in"}'


def test_words_are_looked_for_in_a_column_without_an_index(page: Any, console_url: Any) -> None:
    page.goto(f"{console_url}/console/#{_address(['odd', 'a <b>'])}")
    select_mode(page, "Words")
    page.get_by_label("Words", exact=True).last.fill("alert")
    ask(page)
    assert row_texts(page, "cell") == ["javascript:alert(1)"]
    expect(page.get_by_role("img", name="_score of 1 row:")).to_be_visible()


def test_a_vector_and_words_are_fused(t1: Any) -> None:
    select_mode(t1, "Hybrid")
    t1.get_by_label("Words", exact=True).last.fill("kind 3")
    t1.get_by_label("Near to").select_option("A row")
    t1.get_by_label("Neighbours of the row with id").fill("3")
    ask(t1)
    assert row_texts(t1, "_relevance_score")[0] != "null"
    assert t1.locator(".plot").count() == 3


def test_long_answers_are_shown_in_part(t1: Any) -> None:
    select_mode(t1, "Filter")
    t1.get_by_label("Rows (k)").fill("600")
    ask(t1)
    expect(t1.get_by_text("The first 500 of 600 rows are shown.")).to_be_visible()
    assert len(row_texts(t1, "id")) == 500


def test_tables_of_several_databases_lie_below_their_names(
    page: Any, console_root: Path, tmp_path: Path
) -> None:
    databases = {"odd": {"root": str(console_root / "odd")}, "none": {"root": str(tmp_path)}}
    with live_server(None, databases=databases) as url:
        page.goto(f"{url}/console/")
        page.get_by_text("odd", exact=True).click()
        page.get_by_role("button", name="a <b>").click()
        ask(page)
        assert row_texts(page, "cell") == list(HOSTILE)


def test_recall_is_measured_on_demand(t1: Any) -> None:
    t1.get_by_role("tab", name="Coverage").click()
    t1.get_by_role("button", name="Measure the recall of vec").click()
    row = t1.get_by_role("row", name="vec_idx")
    expect(row).to_contain_text("% of the 10 nearest, 50 queries")


def test_values_that_are_missing_break_the_line_of_a_plot(t1: Any) -> None:
    line = t1.evaluate(
        """import("./js/plot.js").then(({ rankPlot }) => rankPlot("x", [1, 2, null, 3])
        .querySelector(".line").getAttribute("d").replaceAll(/[^ML]/g, ""))"""
    )
    assert line == "MLM"


def test_the_cache_shows_the_tables_that_were_asked(t1: Any) -> None:
    ask_by_vector(t1, VECTORS[3].tolist())
    t1.get_by_role("button", name="Cache").click()
    expect(t1.get_by_role("heading", name="Cache")).to_be_visible()
    expect(t1.get_by_role("row", name="t1")).to_contain_text("KiB")


def test_cells_are_text_whatever_they_hold(page: Any, console_url: Any) -> None:
    page.goto(f"{console_url}/console/#{_address(['odd', 'a <b>'])}")
    ask(page)
    assert row_texts(page, "cell") == list(HOSTILE)
    assert set(row_texts(page, "long")) == {str(LONG)}
    assert "hacked" not in page.title()
    assert page.locator("table img, table script, table h1").count() == 0


def test_a_wrong_key_is_told_and_a_right_one_stays_in_the_tab(
    page: Any, console_root: Path
) -> None:
    with live_server(console_root, api_keys=("right",)) as url:
        page.goto(f"{url}/console/")
        dialog = page.get_by_role("dialog", name="API key")
        told = httpx.get(f"{url}/v1/table").json()["error"]
        expect(dialog).to_contain_text(told)
        _give_key(page, "wrong")
        expect(dialog).to_contain_text(told)
        _give_key(page, "right")
        expect(page.get_by_role("heading", name="t1")).to_be_visible()
        ask_by_vector(page, VECTORS[3].tolist())
        page.get_by_role("tab", name="Code").click()
        assert "right" not in page.locator(".answer").inner_text()
        stored = json.loads(page.evaluate("JSON.stringify([{...localStorage}, document.cookie])"))
        assert "right" not in json.dumps(stored)
        page.reload()
        expect(page.get_by_role("heading", name="t1")).to_be_visible()
        page.get_by_role("button", name="API key").click()
        page.get_by_role("button", name="Forget it").click()
        expect(dialog).to_contain_text(told)


def test_everything_can_be_done_with_the_keyboard_alone(page: Any, console_url: Any) -> None:
    page.goto(f"{console_url}/console/")
    page.get_by_role("heading", name="t1").wait_for()
    page.keyboard.press("Tab")
    assert _focused(page) == "Skip to the table"
    page.keyboard.press("Enter")
    _tab_to(page, "Query")
    page.keyboard.press("ArrowRight")
    assert _focused(page) == "Schema"
    expect(page.get_by_role("table", name="Columns")).to_be_visible()
    page.keyboard.press("Home")
    assert _focused(page) == "Query"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")  # from "Row" to "Vector"
    expect(page.get_by_label("Vector", exact=True).last).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Neighbours of the row with id")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("7")
    _tab_to(page, "Search")
    page.keyboard.press("Enter")
    page.get_by_role("table").first.wait_for()
    _tab_to(page, "Rows")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".plan")).to_be_visible()
    assert _focused(page) == "Plan"


def test_a_jump_to_the_table_leaves_it_open(t1: Any) -> None:
    t1.keyboard.press("Tab")
    t1.keyboard.press("Enter")
    assert t1.url.endswith("#content")
    t1.get_by_role("tab", name="Versions").click()  # which asks the service
    expect(t1.get_by_role("button", name="Look at version 2", exact=True)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_then_the_reader(
    t1: Any, console_url: Any, scheme: Any
) -> None:
    other = "light" if scheme == "dark" else "dark"
    t1.emulate_media(color_scheme=scheme)
    assert _is_dark(t1) == (scheme == "dark")
    t1.get_by_label("Colours").select_option(other)
    assert _is_dark(t1) == (other == "dark")
    t1.reload()
    t1.get_by_role("heading", name="t1").wait_for()
    assert _is_dark(t1) == (other == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(t1: Any, scheme: Any) -> None:
    t1.get_by_label("Colours").select_option(scheme)
    ask_by_vector(t1, VECTORS[3].tolist())
    faint = t1.evaluate(_FAINT_TEXTS)
    for name in ("Plan", "Code", "Schema", "Versions", "Coverage"):
        t1.get_by_role("tab", name=name).click()
        t1.locator(".busy").first.wait_for(state="detached")
        if name == "Coverage":
            t1.get_by_text("The same as a table").click()
        faint += t1.evaluate(_FAINT_TEXTS)
    t1.get_by_role("button", name="API key").click()
    faint += t1.evaluate(_FAINT_TEXTS)
    assert faint == []


def test_a_narrow_screen_shows_all_without_sideways_scrolling(t1: Any) -> None:
    t1.set_viewport_size({"width": 400, "height": 800})
    ask_by_vector(t1, VECTORS[3].tolist())
    for name in ("Plan", "Code", "Schema", "Versions", "Coverage"):
        t1.get_by_role("tab", name=name).click()
        assert t1.evaluate("document.documentElement.scrollWidth") <= 400, name


def test_all_controls_have_names(t1: Any) -> None:
    t1.get_by_text("Columns and options").click()
    for mode in ("Vector", "Row", "Filter"):
        select_mode(t1, mode)
        assert t1.evaluate(_NAMELESS) == []


_NAMELESS = """[...document.querySelectorAll("input, select, textarea, button")]
  .filter((each) => !(each.labels?.length || each.ariaLabel || each.textContent.trim()))
  .map((each) => each.outerHTML)"""

# What WCAG 2 AA asks for: contrast of 4.5, of large and bold texts 3.
_FAINT_TEXTS = """(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let each = element; each !== null; each = each.parentElement) {
      const found = channels(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] > 0.5) return found;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const each of document.querySelectorAll("body *")) {
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
    if (!own || each instanceof SVGElement || !each.checkVisibility()) continue;
    const [a, b] = [light(channels(getComputedStyle(each).color)), light(behind(each))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const text = each.textContent.trim().slice(0, 30);
    if (contrast < 4.5) faint.push(`${text}: ${contrast.toFixed(2)}`);
  }
  return faint;
})()"""


def _address(parts: Any) -> Any:
    return str(httpx.QueryParams({"table": json.dumps(parts)}))


def _give_key(page: Any, key: Any) -> None:
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Use key").click()


def _focused(page: Any) -> Any:
    return page.evaluate("document.activeElement.textContent.trim()")


def _tab_to(page: Any, text: Any) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if _focused(page) == text:
            return
    raise AssertionError(f"the keyboard does not reach {text}")


def _is_dark(page: Any) -> Any:
    colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    return sum(int(part) for part in colour.strip("rgb()").split(",")) < 300
