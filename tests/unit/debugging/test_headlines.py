"""What an error says without who says it and where: one line, a wrapped error and a traceback meet."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.debugging.signatures import (
    find_headlines,
    kept_headlines,
    signature,
    signature_fields,
)
from stratagem.debugging.signatures.headlines import Agreement, Headline, agreement
from tests.unit.debugging.causes_managed import MANAGED
from tests.unit.debugging.causes_native import NATIVE
from tests.unit.debugging.causes_services import SERVICES

LINE = "ModuleNotFoundError: No module named 'numpy'"
TRACE = f"""Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in <module>
    import numpy
{LINE}
"""
GO = "panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 1 [running]:\n"
# The same words in two places of a program, by language.
PLACES = {
    "go": (
        f"{GO}main.load(0x0)\n\t/home/a/main.go:11 +0x1d\n",
        f"{GO}main.save(0x0)\n\t/home/a/store.go:90 +0x2a\n",
    ),
    "java": (
        "java.lang.NullPointerException: null\n\tat com.acme.Cart.add(Cart.java:3)\n",
        "java.lang.NullPointerException: null\n\tat com.acme.User.load(User.java:9)\n",
    ),
    "dotnet": (
        (
            "System.NullReferenceException: Object reference not set to an instance of an object.\n"
            "   at Acme.Cart.Add(String id) in /src/Cart.cs:line 3\n"
        ),
        (
            "System.NullReferenceException: Object reference not set to an instance of an object.\n"
            "   at Acme.User.Load(String id) in /src/User.cs:line 9\n"
        ),
    ),
    "deadlock": (
        (
            "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n"
            "main.collect(0xc0)\n\t/home/a/collect.go:11 +0x65\n"
        ),
        (
            "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [semacquire]:\n"
            "main.fanOut()\n\t/home/a/main.go:30 +0x99\n"
        ),
    ),
}
# One message in two clothings each.
WRAPPED = {
    "sqlalchemy": (
        'psycopg.OperationalError: FATAL:  password authentication failed for user "app"',
        (
            "sqlalchemy.exc.OperationalError: (psycopg.OperationalError) FATAL:  password "
            'authentication failed for user "app"'
        ),
    ),
    "mysql": (
        "ERROR 1045 (28000): Access denied for user 'app'@'10.0.0.1' (using password: YES)",
        "SQLSTATE[HY000] [1045] Access denied for user 'app'@'10.9.8.7' (using password: YES)",
    ),
    "typescript": (
        "src/api.ts:14:7 - error TS2304: Cannot find name 'foo'.",
        "src/web/api.ts(3,1): error TS2304: Cannot find name 'foo'.",
    ),
    "rails": (
        "app/models/user.rb:14:in `name': undefined method `strip' for nil:NilClass (NoMethodError)",
        "NoMethodError (undefined method `strip' for nil:NilClass):\n\napp/models/user.rb:14:in `name'",
    ),
    "node": (
        "Error: Cannot find module 'express'",
        (
            "Error: Cannot find module 'express'\nRequire stack:\n- /app/index.js\n"
            "    at Module._load (node:internal/modules/cjs/loader:922:27)\n"
            "    at Object.<anonymous> (/app/index.js:1:17) {\n  code: 'MODULE_NOT_FOUND'\n}"
        ),
    ),
    "cause": (
        "java.sql.SQLException: the pool of sessions is empty",
        (
            "java.lang.IllegalStateException: no pool\n\tat com.acme.Pool.open(Pool.java:3)\n"
            "Caused by: java.sql.SQLException: the pool of sessions is empty\n\tat com.acme.Net.dial(Net.java:9)\n"
        ),
    ),
    "pip": (
        (
            "ERROR: Could not find a version that satisfies the requirement acme==9.9 (from versions: 1.0, 1.1)\n"
            "ERROR: No matching distribution found for acme==9.9"
        ),
        "No matching distribution found for acme==9.9",
    ),
    "perl": (
        "Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module) at a.pl line 3.",
        "Can't locate JSON/XS.pm in @INC",
    ),
    "image": (
        (
            "docker: Error response from daemon: pull access denied for acme/api, repository does not exist "
            "or may require 'docker login'."
        ),
        "pull access denied for acme/api, repository does not exist",
    ),
    "locale": ("bash: docker: command not found", "bash: docker: Befehl nicht gefunden."),
    "gateway": ("ValueError: the quota is used up", "search: ValueError: the quota is used up"),
    "rustc": (
        "error[E0502]: cannot borrow `items` as mutable because it is also borrowed as immutable",
        (
            "error[E0502]: cannot borrow `items` as mutable because it is also borrowed as immutable\n"
            " --> src/main.rs:8:9\n  |\n8 |  items.push(1);\n  |  ^^^^^ mutable borrow occurs here\n"
        ),
    ),
}
# What is missing is named alike in all of these; `{}` is the name.
MISSING = {
    "python": ("ModuleNotFoundError: No module named '{}'", "yaml", "flask"),
    "node": ("Error: Cannot find module '{}'", "express", "lodash"),
    "ruby": ("cannot load such file -- {} (LoadError)", "nokogiri", "ffi"),
    "bundler": (
        "Could not find {}-1.15.4 in any of the sources (Bundler::GemNotFound)",
        "nokogiri",
        "ffi",
    ),
    "rust": ("error: no matching package named `{}` found", "serde", "tokio"),
    "go": ("main.go:5:2: no required module provides package {}; to add it:", "a.io/x", "b.io/y"),
    "java": ("error: package {} does not exist", "org.junit", "org.mockito"),
    "class": ("java.lang.ClassNotFoundException: {}", "com.mysql.Driver", "org.h2.Loader"),
    "php": ('PHP Fatal error:  Uncaught Error: Class "{}" not found', "Redis", "Imagick"),
    "dotnet": (
        "error NU1101: Unable to find package {}. No packages exist",
        "Acme.Json",
        "Acme.Log",
    ),
    "perl": ("Can't locate {} in @INC (you may need to install it)", "JSON/XS.pm", "DBI/Pg.pm"),
    "r": ("Error in library(x) : there is no package called ‘{}’", "dplyr", "shiny"),
    "elixir": ("function f/1 is undefined (module {} is not available)", "Jason", "Poison"),
    "swift": ("error: no such module '{}'", "Alamofire", "Kingfisher"),
    "lua": ("module '{}' not found:", "cjson", "lpeg"),
    "julia": ("ArgumentError: Package {} not found in current path", "CSV", "Plots"),
    "haskell": ("Could not find module `{}'", "Data.Aeson", "Data.Text"),
    "pip": ("ERROR: No matching distribution found for {}==9.9", "acme-lib", "other-lib"),
    "conda": (
        "PackagesNotFoundError: The following packages are not available from current channels:\n\n  - {}",
        "scikit-lern",
        "nunpy",
    ),
    "npm": (
        (
            "npm ERR! code E404\nnpm ERR! 404 Not Found - GET https://npm.example/x - Not found\n"
            "npm ERR! 404\nnpm ERR! 404  '{}' is not in this registry."
        ),
        "left-padd",
        "reactt",
    ),
    "composer": (
        "  Problem 1\n    - Root composer.json requires {}, it could not be found in any version",
        "acme/mailer",
        "acme/logger",
    ),
    "maven": ("Could not find artifact com.acme:{}:jar:1.0 in central", "acme-core", "acme-web"),
    "hex": ("** (Mix) No package with name {} (from: mix.exs) in registry", "phoenixx", "ectoo"),
    "luarocks": ("Error: No results matching query were found for Lua 5.3: {}", "lpegg", "lfss"),
    "apt": ("E: Unable to locate package {}", "libfoo-dev", "libbar-dev"),
    "dnf": ("Error: Unable to find a match: {}", "htoppp", "nginxx"),
    "apk": ("ERROR: unable to select packages:\n  {} (no such package):", "curll", "gitt"),
    "image": (
        (
            "docker: Error response from daemon: pull access denied for {}, repository does not exist "
            "or may require 'docker login': denied"
        ),
        "acme/api",
        "acme/web",
    ),
    "linker": ("/usr/bin/ld: cannot find -{}: No such file or directory", "lssl", "lpq"),
    "ocaml": ("Error: Unbound module {}", "Yojson", "Lwt"),
    "kotlin": ("lateinit property {} has not been initialized", "adapter", "binding"),
    "variable": ("Use of uninitialized value {} in addition (+)", "$qty", "$sum"),
    "c": ("fatal error: {}: No such file or directory", "zlib.h", "curl.h"),
}
# Package managers by what they say of a package that they cannot get; `{}` is its name.
PACKAGES = {
    "npm version": "npm ERR! code ETARGET\nnpm ERR! notarget No matching version found for {}@^9.0.0.",
    "npm address": "npm ERR! 404 Not Found - GET https://registry.npmjs.org/{} - Not found",
    "npm peer": "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve\nnpm error Found: {}@8.2.0",
    "npm engine": (
        "npm ERR! code EBADENGINE\nnpm ERR! engine Unsupported engine\n"
        "npm ERR! engine Not compatible with your version of node/npm: {}@3.0.0"
    ),
    "pnpm": " ERR_PNPM_FETCH_404  GET https://registry.npmjs.org/{}: Not Found - 404",
    "yarn": "➤ YN0000: ┌ Resolution step\n➤ YN0035: │ {}@npm:^4.17.21: Package not found",
    "pip": "ERROR: Cannot install {}==0.1.0 because these package versions have conflicting dependencies.",
    "uv": (
        "  × No solution found when resolving dependencies:\n"
        "  ╰─▶ Because {} was not found in the package registry and you require {}, we can conclude"
    ),
    "poetry": "Because app depends on {} (^1.14) which doesn't match any versions, version solving failed.",
    "cargo": "error: failed to download from `https://static.crates.io/crates/{}/0.17.8/download`",
    "cargo version": 'error: failed to select a version for the requirement `{} = "^9"`',
    "go": (
        "go: a.io/{}@v0.3.1: reading https://proxy.golang.org/a.io/{}/@v/v0.3.1.info: 404 Not Found"
    ),
    "bundler": "Could not find gem '{} (~> 9.0)' in rubygems repository https://rubygems.org/ or here.",
    "gem": "An error occurred while installing {} (0.5.6), and Bundler cannot continue.",
    "maven": "Could not find artifact com.acme:{}:jar:1.4.2 in central (https://repo.maven.org/maven2)",
    "gradle": (
        "Execution failed for task ':app:compileJava'.\n> Could not resolve all files for configuration "
        "':app:compileClasspath'.\n   > Could not find com.acme:{}:2.1.0."
    ),
    "nuget": "error NU1605: Detected package downgrade: {} from 13.0.3 to 12.0.3. Reference it directly",
    "composer": (
        "Your requirements could not be resolved to an installable set of packages.\n\n  Problem 1\n"
        "    - Root composer.json requires {} ^9.0, found {}[1.0.0] but it does not match the constraint."
    ),
    "composer address": 'The "https://repo.packagist.org/p2/acme/{}.json" file could not be downloaded',
    "apt": "E: Failed to fetch http://archive.ubuntu.com/pool/main/x/{}_7.68.0-1_amd64.deb  404  Not Found",
    "pacman": "error: target not found: {}",
    "workspace": "npm ERR! No workspaces found:\nnpm ERR!   --workspace={}",
    "conflict": "error NU1107: Version conflict detected for {}. Install {} 8.0.0 directly to project Shop",
    "docker": "Error response from daemon: manifest for {}:2.4 not found: manifest unknown",
    "helm": "Error: failed to fetch https://charts.example.com/stable/{}-6.1.0.tgz : 404 Not Found",
    "helm repo": "Error: INSTALLATION FAILED: repo {} not found",
    "conan": "ERROR: Package '{}/9.9.0' not resolved: Unable to find '{}/9.9.0' in remotes.",
    "cabal": "cabal: Could not resolve dependencies:\n[__1] unknown package: {} (dependency of shop)",
    "git": "fatal: repository 'https://github.com/acme/{}.git/' not found",
    "model": "Repository Not Found for url: https://huggingface.co/api/models/acme/{}.",
}


def meet(asked: str, stored: str) -> bool:
    """Whether a question is taken for what is stored by its headline."""
    known = kept_headlines(signature_fields(stored, stored))
    return agreement(find_headlines(asked), known) is Agreement.SAME


def test_the_last_line_of_a_traceback_says_what_the_whole_says() -> None:
    assert meet(TRACE, LINE)
    assert meet(LINE, TRACE)


@pytest.mark.parametrize(("one", "other"), WRAPPED.values(), ids=WRAPPED)
def test_a_wrapped_error_says_what_the_bare_one_says(one: str, other: str) -> None:
    assert meet(one, other)
    assert meet(other, one)


@pytest.mark.parametrize(("one", "other"), PLACES.values(), ids=PLACES)
def test_the_same_words_in_another_place_are_not_the_same_problem(one: str, other: str) -> None:
    assert meet(one, one)
    assert not meet(one, other)


def test_no_two_causes_share_a_headline() -> None:
    causes = MANAGED | NATIVE | SERVICES
    found = {name: find_headlines(texts[0]) for name, texts in causes.items()}

    for one, other in itertools.combinations(found, 2):
        assert agreement(found[one], found[other]) is not Agreement.SAME, (one, other)


@pytest.mark.parametrize(("message", "name", "another"), MISSING.values(), ids=MISSING)
def test_what_is_missing_is_a_name_in_every_ecosystem(
    message: str, name: str, another: str
) -> None:
    found = find_headlines(message.format(name))[0]

    assert name.lower() in found.names
    assert not meet(message.format(name), message.format(another))


@pytest.mark.parametrize("message", PACKAGES.values(), ids=PACKAGES)
def test_a_package_that_cannot_be_got_is_a_name_with_every_manager(message: str) -> None:
    # Both are words of the language as well: where they stand makes them names.
    one, other = message.replace("{}", "chalk"), message.replace("{}", "sugar")

    assert any("chalk" in each.names for each in find_headlines(one))
    assert meet(one, one)
    assert not meet(one, other)
    assert signature(one) != signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "No matching version found for chalk@^9.0.0.",
            "No matching version found for chalk@9.1.2",
        ),
        ("no versions of torch==1.7.1 found", "no versions of torch==1.8 found"),
        ("manifest for acme/api:2.4 not found", "manifest for acme/api:2.9-rc1 not found"),
    ],
)
def test_a_package_is_known_by_its_major_version(one: str, other: str) -> None:
    assert meet(one, other)
    for old, new in (("chalk@9", "chalk@8"), ("torch==1", "torch==2"), ("api:2", "api:3")):
        assert not meet(one, other.replace(old, new)) or old not in other


def test_the_last_clause_of_an_error_without_names_is_its_cause() -> None:
    wrapped = "Error: the upload was stopped: no space is left on the device"

    assert meet("no space is left on the device", wrapped)
    assert not meet("no such file or directory", "Error: config.yaml: no such file or directory")


def test_what_names_no_cause_has_no_key() -> None:
    assert [each.key for each in find_headlines("Build failed")] == [""]
    assert not meet("Build failed", "Build failed")


def test_a_type_alone_is_said_of_too_many_things() -> None:
    assert not meet("KeyError", "KeyError")


def test_a_headline_is_kept_whole() -> None:
    found = find_headlines(TRACE)[0]

    assert Headline.from_dict(found.as_dict()) == found
    assert found.frame == "in <module> (main.py)"
    assert (found.type, found.names) == ("modulenotfounderror", ("numpy",))


@pytest.mark.parametrize(
    "text", [each for name, pair in WRAPPED.items() for each in pair if name != "rustc"]
)
def test_a_signature_says_what_its_error_says(text: str) -> None:
    assert meet(signature(text), text)


@given(st.text(max_size=300))
def test_any_text_has_headlines_of_bounded_size(text: str) -> None:
    for each in find_headlines(text):
        assert len(each.key) <= 400
        assert len(each.names) + len(each.words) <= 160


def test_a_heading_with_a_number_is_no_headline_where_the_reason_follows() -> None:
    [found] = find_headlines(
        "  Problem 1\n    - Root composer.json requires php ^8.3 but your php version (8.1.2) "
        "does not satisfy that requirement."
    )

    assert found.names == ("composer.json", "php")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (
            "> node src\nError [ERR_X_CLOSED]: the harbour is closed",
            "error err_x_closed the harbour is closed",
        ),
        ("Exit code 1\nThe harbour is closed", "the harbour is closed"),
    ],
)
def test_the_status_of_a_command_is_no_headline_where_its_error_follows(
    text: str, key: str
) -> None:
    [found] = find_headlines(text)

    assert found.key == key
