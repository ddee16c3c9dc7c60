"""The pages in Chinese, and the catalogue that they come from."""

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import django
import pytest
import unfold
from django.conf import settings

from sessions_app.console.skin_words import UNUSED
from tests.admin import STORED, list_of, make_whole, read

ROOT = Path(settings.BASE_DIR)
FOLDER = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES"
CATALOGUE = Path("locale/zh_Hans/LC_MESSAGES/django.po")
DJANGO = Path(django.__file__).parent
SOURCES = ("config", "runs_app", "sessions_app", "templates", "locale")


def entries(path):
    """The catalogue as {(context, id): [translations]}, and the ids of fuzzy ones."""
    found, fuzzy = {}, []
    for block in path.read_text().split("\n\n")[1:]:
        parts = dict(re.findall(r'^(msg\w+(?:\[\d\])?) ((?:".*"\n?)+)', block, re.MULTILINE))
        if "msgid" not in parts:
            continue
        text = {name: _unquoted(value) for name, value in parts.items()}
        key = (text.get("msgctxt"), text["msgid"])
        found[key] = [value for name, value in text.items() if name.startswith("msgstr")]
        if re.search("^#,.*fuzzy", block, re.MULTILINE):
            fuzzy.append(key)
    return found, fuzzy


def _unquoted(quoted):
    return "".join(ast.literal_eval(line) for line in quoted.strip().split("\n"))


class TestTheCatalogue:
    def test_is_complete(self):
        found, fuzzy = entries(FOLDER / "django.po")
        assert len(found) > 200
        assert not fuzzy
        assert not [key for key, translations in found.items() if not all(translations)]

    def test_is_compiled_as_it_is_written(self):
        found, _fuzzy = entries(FOLDER / "django.po")
        with (FOLDER / "django.mo").open("rb") as compiled:
            catalogue = gettext.GNUTranslations(compiled)._catalog  # type: ignore[attr-defined]
        catalogue.pop("")
        read = {
            (None, *key.split("\x04"))[-2:]: text
            for key, text in (
                (key[0] if isinstance(key, tuple) else key, text) for key, text in catalogue.items()
            )
        }
        assert read == {key: translations[0] for key, translations in found.items()}

    def test_keeps_what_is_filled_in(self):
        found, _fuzzy = entries(FOLDER / "django.po")
        for (_context, original), translations in found.items():
            for translation in translations:
                assert _placeholders(translation) == _placeholders(original), original

    @pytest.mark.skipif(not shutil.which("xgettext"), reason="GNU gettext is not installed")
    def test_has_every_string_of_the_code_and_no_other(self, tmp_path):
        for source in SOURCES:
            shutil.copytree(ROOT / source, tmp_path / source)
        make_messages(tmp_path)
        now, fuzzy = entries(tmp_path / CATALOGUE)
        known, _fuzzy = entries(FOLDER / "django.po")
        assert set(now) == set(known), "run makemessages and compilemessages (docs/ADMIN.md)"
        assert not fuzzy


@pytest.mark.skipif(not shutil.which("xgettext"), reason="GNU gettext is not installed")
class TestTheSkin:
    def test_says_nothing_that_has_no_chinese(self, tmp_path):
        """Neither in Django's catalogues, which have much of it, nor in ours."""
        (tmp_path / "locale").mkdir()
        leave_out = shutil.ignore_patterns("contrib", "static", "unfold_crispy")
        shutil.copytree(Path(unfold.__file__).parent, tmp_path / "unfold", ignore=leave_out)
        make_messages(tmp_path)
        said = {key for key, _text in entries(tmp_path / CATALOGUE)[0].items()}
        translated = {
            key
            for path in (FOLDER / "django.po", *DJANGO.glob("contrib/*/locale/zh_Hans/*/django.po"))
            for key, text in entries(path)[0].items()
            if all(text)
        }
        common = entries(DJANGO / "conf/locale/zh_Hans/LC_MESSAGES/django.po")[0]
        missing = {text for _context, text in said - translated - set(common)}
        assert missing == UNUSED


def make_messages(folder):
    subprocess.run(
        [sys.executable, "-m", "django", "makemessages", "-l", "zh_Hans", "--no-obsolete"],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if "SETTINGS" not in key},
        check=True,
        capture_output=True,
    )


def _placeholders(text):
    return sorted(re.findall(r"%(?:\(\w+\))?[sd]", text))


class TestThePages:
    @pytest.mark.parametrize("name", STORED)
    def test_follow_the_browsers_language(self, entered, agent, name):
        client = entered("superuser")
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN,zh;q=0.9"
        whole = make_whole(agent)
        for address in (list_of(name), whole.page(name)):
            page = read(client, address)
            assert page.of("html")[0]["lang"] == "zh-hans"
            assert re.search("[\u4e00-\u9fff]", page.words())

    def test_have_no_english_left(self, entered, agent):
        client = entered("operators")
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-Hans"
        whole = make_whole(agent, text="你好")
        for address in (
            *map(list_of, STORED),
            *(whole.page(name) for name in STORED),
            f"/admin/sessions_app/session/remove/?id={whole.session.pk}",
        ):
            words = re.findall(
                r"\b[A-Za-z]{3,}\b", re.sub(r"\w+_\w+", "", read(client, address).words())
            )
            # Names: of the product, of formats and units, and what the agent wrote.
            allowed = {"Dossier", "operators", "USD", "token", "Token", "API", "CSV", "agent"}
            allowed |= {"role", "user", "content", "name", "message", "UTC", "system", "developer"}
            # Languages are named in themselves; a checkbox by Django, whose Chinese lacks it.
            allowed |= {"English"}
            allowed |= {
                "assistant",
                "tool",
                "goal",
                "plan",
                "completed",
                "steps",
                "facts",
                "null",
                "errors",
                "extra",
            }
            assert set(words) <= allowed, address

    def test_say_what_was_done(self, entered, agent):
        client = entered("operators")
        whole = make_whole(agent)
        data = {"id": whole.session.pk, "reason": "完成"}
        response = client.post(
            "/admin/sessions_app/session/close/",
            data,
            follow=True,
            headers={"Accept-Language": "zh-CN"},
        )
        assert "已关闭 1 个会话。" in response.content.decode()

    def test_are_english_for_others(self, entered, agent):
        client = entered("operators")
        page = read(client, list_of("sessions_app_session"))
        assert page.of("html")[0]["lang"] == "en"
