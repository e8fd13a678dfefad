"""How languages write a frame, and what is left of it."""

from __future__ import annotations

import pytest

from stratagem.debugging.signatures import frames
from stratagem.debugging.signatures.frames import Frame


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('  File "/a/b/c.py", line 3, in f', Frame("f", "c.py")),
        ('File "C:\\a\\c.py", line 3, in f', Frame("f", "c.py")),
        ('  File "/a/b/c.py", line 3', Frame("", "c.py")),
        ("a/c.py:3: in f", Frame("f", "c.py")),
        ("File ~/a/c.py:3, in f(x)", Frame("f", "c.py")),
        ("Cell In[12], line 3", Frame("", "Cell")),
        ('  File "/v/lib/python3.12/site-packages/x/c.py", line 3, in f', Frame("f", "c.py", True)),
        (
            '  File "<frozen importlib._bootstrap>", line 3, in f',
            Frame("f", "<frozen_importlib._bootstrap>", True),
        ),
        ('  File "/a/c.py", line 3, in <listcomp>', Frame("<listcomp>", "c.py", True)),
        ("no frame", None),
    ],
)
def test_frames_of_python(line: str, expected: Frame | None) -> None:
    assert frames.python_frame(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Java
        ("\tat com.shop.Cart.add(Cart.java:12)", Frame("com.shop.Cart.add", "")),
        (
            "\tat app//com.shop.Cart.<init>(Cart.java:12) ~[shop.jar:1.2]",
            Frame("com.shop.Cart.<init>", ""),
        ),
        ("\tat com.shop.Cart$1.run(Cart.java:12)", Frame("com.shop.Cart.run", "")),
        ("\tat com.shop.Cart.lambda$add$7(Cart.java:12)", Frame("com.shop.Cart.lambda$add", "")),
        ("\tat com.shop.Cart$$SpringCGLIB$$0.add(<generated>)", Frame("com.shop.Cart.add", "")),
        ("\tat java.base/java.util.List.of(List.java:1)", Frame("java.util.List.of", "", True)),
        (
            "\tat com.shop.A$$Lambda$14/0x00000008.run(Unknown Source)",
            Frame("com.shop.A$Lambda.run", "", True),
        ),
        # JavaScript
        ("    at add (/a/cart.js:1:2)", Frame("add", "cart.js")),
        ("    at async Cart.add (file:///a/cart.mjs:1:2)", Frame("Cart.add", "cart.mjs")),
        ("    at Object.<anonymous> (/a/cart.js:1:2) {", Frame("", "cart.js")),
        ("    at new Cart (C:\\a\\cart.js:1:2)", Frame("Cart", "cart.js")),
        ("    at /a/cart.js:1:2", Frame("", "cart.js")),
        ("    at add (https://x.io/static/cart.3f2a1b9c.js?v=3:1:2)", Frame("add", "cart.js")),
        ("    at f (/a/node_modules/x/i.js:1:2)", Frame("f", "i.js", True)),
        (
            "    at Module._load (node:internal/modules/cjs/loader:1:2)",
            Frame("_load", "loader", True),
        ),
        ("add@http://x.io/cart.js:1:2", Frame("add", "cart.js")),
        # Others
        ("   at Shop.Cart.Add(Int32 n) in C:\\a\\Cart.cs:line 12", Frame("Shop.Cart.Add", "")),
        ("   at System.Convert.ToInt32(String s)", Frame("System.Convert.ToInt32", "", True)),
        ("#0 /a/cart.php(12): Cart->add(1)", Frame("Cart->add", "cart.php")),
        ("\tfrom /a/cart.rb:12:in `add'", Frame("add", "cart.rb")),
        ("#0  0x0000555555555139 in add (c=0x0) at /a/cart.c:12", Frame("add", "cart.c")),
        ("#1  main () at main.c:5", Frame("main", "main.c")),
        (
            "#2  0x00007f in raise () from /lib/x86_64-linux-gnu/libc.so.6",
            Frame("raise", "libc.so.6", True),
        ),
        (
            "    #0 0x55a1 in shop::Cart<int>::add(int) /a/cart.cc:12:3",
            Frame("shop::Cart::add", "cart.cc"),
        ),
        (
            "    #1 0x7f in __libc_start_main (/lib/libc.so.6+0x21b97)",
            Frame("__libc_start_main", "libc.so.6", True),
        ),
        ("no frame at all", None),
        ("at noon we met", None),
    ],
)
def test_frames_of_others(line: str, expected: Frame | None) -> None:
    assert frames.frame(line) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("main.(*Cart).add", "main.(*Cart).add"),
        ("main.start.func1.2", "main.start.func"),
        ("main.Map[...]", "main.Map"),
        ("shop::cart::add::h0123456789abcdef", "shop::cart::add"),
        ("<shop::Cart as core::fmt::Display>::fmt", "shop::Cart::fmt"),
        ("shop::run::{{closure}}", "shop::run::{closure}"),
        ("shop::run::{closure#3}", "shop::run::{closure}"),
    ],
)
def test_made_up_parts_of_names_go(name: str, expected: str) -> None:
    assert frames.module_frame(name, "").name == expected


def test_a_shown_frame_is_read_as_it_is() -> None:
    for frame in (Frame("f", "a.py"), Frame("", "a.py"), Frame("main.(*T).f", "")):
        assert frames.parse_signature_frame(str(frame)) == frame
